"""What `fanout run --hooks` refuses, as a real process; what it does is in tests/story/."""

import os
import socket
import subprocess
import sys

import pytest
from fleet import Fleet
from preloaded import FANOUT, run_preloaded

from fanout.cli.process_exit import ExitCode

SECRET = "canary-of-the-webhook"
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- {{host: git.example.com, type: gitea, secretRef: {{name: token}}{webhook}}}
"""
WEBHOOK = ", webhookSecretRef: {name: hooks}"
# As where the extra is not installed: `python -m fanout` with a library that cannot be imported.
OPTIONS = ("-f", "policies", "--config", "config.yaml", "--hooks")
WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from fanout.cli.main import run; run()"


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    configure(fleet, WEBHOOK)
    return fleet


def configure(fleet, webhook):
    (fleet.root / "config.yaml").write_text(CONFIGURATION.format(webhook=webhook))


def run(fleet, address="127.0.0.1:0", secret=SECRET):
    """Code and output of `fanout run --hooks`, which must end by itself."""
    code, output = run_preloaded(
        [*FANOUT, "run", *OPTIONS, address],
        directory=fleet.root,
        environment={**os.environ, "FANOUT_SECRET_HOOKS": secret},
    )
    assert SECRET not in output
    return code, output


def test_no_host_has_a_secret_for_webhooks(fleet):
    configure(fleet, "")
    code, errors = run(fleet)
    assert code == ExitCode.ERROR
    assert "--hooks: no host in forges of the FanoutConfiguration has a webhookSecretRef" in errors


def test_the_secret_is_empty(fleet):
    code, errors = run(fleet, secret="")
    assert code == ExitCode.ERROR
    assert "secret 'hooks' is empty" in errors
    assert "FANOUT_SECRET_HOOKS" in errors


def test_the_address_is_none(fleet):
    code, errors = run(fleet, "8080")
    assert code == ExitCode.ERROR
    assert "--hooks: '8080' is not an address" in errors
    assert "127.0.0.1:8080" in errors


def test_the_address_is_in_use(fleet):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code, errors = run(fleet, address)
    assert code == ExitCode.ERROR
    assert f"--hooks: cannot listen on {address}" in errors


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_the_extra_is_not_installed(fleet, library):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, library, "run", *OPTIONS, "127.0.0.1:0"],
        cwd=fleet.root,
        env={**os.environ, "FANOUT_SECRET_HOOKS": SECRET},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert SECRET not in done.stdout + done.stderr
    assert done.returncode == ExitCode.ERROR
    assert f"--hooks: the library {library} is not installed" in done.stderr
    assert "pip install 'fanout-gitops[serve]'" in done.stderr


def test_without_hooks_no_library_of_the_extra_is_loaded():
    code = "import fanout.cli.verbs.run, sys; print({'starlette', 'uvicorn'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
