"""The Gitea of the tests: what is there, and that it ends with whoever started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fleet import Repo
from gitea_server import ADMIN, PEOPLE, Gitea
from servers.supervised import await_end, list_children

TESTS = Path(__file__).parents[1]
HOLD = """
import sys, time
from pathlib import Path
from gitea_server import running_gitea
with running_gitea(Path(sys.argv[1]) / "gitea") as server:
    print(server.pid, server.url, flush=True)
    time.sleep(600)
"""


@pytest.mark.forge
def test_the_server_has_an_administrator_and_two_people_with_tokens(gitea: Gitea):
    users = {login: gitea.get("/user", by=login) for login in (ADMIN, *PEOPLE)}
    assert {login: user["login"] for login, user in users.items()} == {
        login: login for login in (ADMIN, *PEOPLE)
    }
    assert [login for login, user in users.items() if user["is_admin"]] == [ADMIN]


@pytest.mark.forge
def test_the_access_log_has_each_call_with_whose_it_was(gitea: Gitea):
    gitea.add_person("counted")
    gitea.get("/user?x=1", by="counted")
    gitea.ask("GET", "/repos/ada/nothing", by="counted", check=False)
    gitea.get("/user", by="ann")
    assert gitea.calls("counted") == [
        "POST /users/counted/tokens 201",
        "GET /user?x=1 200",
        "GET /repos/ada/nothing 404",
    ]


def push(gitea: Gitea, name: str, work: Path, spec: str, by: str = ADMIN) -> str:
    """Push as a person; return what git printed, "" for a push that was accepted."""
    if not work.exists():
        subprocess.run(["git", "init", "-q", "--bare", str(work)], check=True)
        Repo(work).commit("main", {"a.txt": "a\n"})
    done = subprocess.run(
        ["git", "push", "-q", gitea.push_url(name, by=by), spec],
        cwd=work,
        env={**os.environ, "GIT_ALLOW_PROTOCOL": "file:http"},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


@pytest.mark.forge
def test_the_server_knows_of_a_push_and_refuses_others_with_its_words(gitea: Gitea, tmp_path: Path):
    """Although the hooks of its repositories do not run its program."""
    repo, work = gitea.repository("hooked", writers=("ann",)), tmp_path / "work.git"
    assert push(gitea, "hooked", work, "main") == ""
    gitea.await_checks(ADMIN)
    head = gitea.get("/repos/ada/hooked/branches/main")["commit"]["id"]
    assert repo.refs() == {"refs/heads/main": head}
    assert not gitea.get("/repos/ada/hooked")["empty"]
    gitea.post("/repos/ada/hooked/branch_protections", {"rule_name": "main", "enable_push": False})
    Repo(work).commit("main", {"b.txt": "b\n"})
    assert "Not allowed to push to protected branch main" in push(gitea, "hooked", work, "main")
    assert push(gitea, "hooked", work, "main:other", by="ann") == ""
    assert "hook declined" in push(gitea, "hooked", work, "main:refs/pull/1/head", by="ann")
    hook = repo.path / "hooks" / "pre-receive.d" / "no"
    hook.write_text("#!/bin/sh\necho of another hook >&2\ngrep -q refs/heads/new && exit 1\n")
    hook.chmod(0o755)
    assert "of another hook" in push(gitea, "hooked", work, "main:new")
    assert sorted(repo.refs()) == ["refs/heads/main", "refs/heads/other"]


@pytest.mark.forge
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_its_supervisor(tmp_path: Path, ending: signal.Signals):
    run = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        pid, _ = run.stdout.readline().split()
        children = list_children(int(pid))
        assert children, "the supervisor runs the server"
        os.kill(int(pid), ending)
        await_end(children)
        run.send_signal(signal.SIGKILL)
        run.wait()


@pytest.mark.forge
def test_the_server_ends_with_a_test_run_that_is_killed(tmp_path: Path):
    """SIGKILL runs no cleanup."""
    run = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    with run.stdout:
        pid, _ = run.stdout.readline().split()
        children = list_children(int(pid))
        assert children, "the supervisor runs the server"
        run.send_signal(signal.SIGKILL)
        run.wait()
    await_end([pid, *children])
