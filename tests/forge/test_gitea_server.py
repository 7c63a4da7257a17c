"""The Gitea of the tests: what is there, and that it ends with whoever started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
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
def test_there_are_an_administrator_and_two_people_with_tokens(gitea: Gitea):
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
