"""`make servers`: which folders it finds, and the versions that it pins."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from servers.build import (
    HERE,
    KUBERNETES,
    KUBERNETES_MODULE,
    KUBERNETES_PROGRAMS,
    cel_go_folder,
    gitea_folder,
    kstatus_folder,
    kubernetes_folder,
    pinned,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch):
    """Return an empty cache in which Gitea, kstatus and celgo are built."""
    monkeypatch.setenv("TEST_SERVERS", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    place(gitea_folder(), "gitea")
    place(kstatus_folder(), "kstatus")
    place(cel_go_folder(), "celgo")
    return tmp_path / "cache"


def place(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()


def make_servers() -> tuple[int, str, str]:
    # A path without Go and a compiler: nothing can be built.
    environment = {**os.environ, "PATH": os.devnull}
    command = [sys.executable, str(HERE / "build.py")]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_cached_server_is_not_built_again(cache: Path):
    place(kubernetes_folder(), *KUBERNETES_PROGRAMS)
    assert make_servers() == (
        0,
        f"{gitea_folder()}\n{kstatus_folder()}\n{cel_go_folder()}\n{kubernetes_folder()}\n",
        "",
    )


def test_the_programs_of_kubebuilder_assets_come_first(cache: Path, tmp_path: Path, monkeypatch):
    assets = tmp_path / "assets"
    place(assets, *KUBERNETES_PROGRAMS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    folders = (gitea_folder(), kstatus_folder(), cel_go_folder(), assets)
    assert make_servers() == (0, "".join(f"{folder}\n" for folder in folders), "")


def test_a_program_that_kubebuilder_assets_lacks_is_named(cache: Path, tmp_path: Path, monkeypatch):
    assets = tmp_path / "assets"
    place(assets, "etcd", "kube-apiserver")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    error = f"make servers: KUBEBUILDER_ASSETS is set, but there is no {assets / 'kubectl'}\n"
    assert make_servers() == (1, "", error)
    assert sorted(it.name for it in assets.iterdir()) == ["etcd", "kube-apiserver"]


def test_all_modules_of_kubernetes_have_one_version():
    text = (KUBERNETES_MODULE / "go.mod").read_text(encoding="utf-8")
    _, _, minor_and_patch = pinned(KUBERNETES_MODULE, KUBERNETES).partition(".")
    replaced = re.findall(r"^\t(\S+) => (\S+) v(\S+)$", text, re.MULTILINE)
    assert len(replaced) > 25
    assert {(target, version) for name, target, version in replaced} == {
        (name, f"0.{minor_and_patch}") for name, _, _ in replaced
    }
