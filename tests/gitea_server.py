"""A real Gitea on loopback, for tests: an administrator, two people, and their tokens.

It is asked here with the standard library alone, so that a test judges fanout's client by what
another client sees.
"""

import base64
import getpass
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fleet import Repo
from servers.build import gitea_folder
from servers.supervised import (
    OPENER,
    await_answer,
    choose_ports,
    start_supervised,
    stop_supervised,
)

ADMIN, PEOPLE = "ada", ("ann", "bob")
PASSWORD = "correct horse battery"
ACCESS = "{{.Identity}} {{.Ctx.Req.Method}} {{.Ctx.Req.URL.RequestURI}} {{.ResponseWriter.Status}}"
# Without what no test asks: SSH, mail, indexers, updates, avatars, Actions, packages. Everything
# that changes with the clock alone is off as well.
CONFIG = """\
APP_NAME = tests
RUN_USER = {user}
WORK_PATH = {root}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {static}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {root}/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = {root}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = secret-of-tests
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
LEVEL = Warn
logger.access.MODE = calls
ACCESS_LOG_TEMPLATE = {access}
[log.calls]
MODE = file
LEVEL = Info
FLAGS = none
FILE_NAME = {root}/calls
LOG_ROTATE = false
[indexer]
ISSUE_INDEXER_TYPE = db
REPO_INDEXER_ENABLED = false
[picture]
DISABLE_GRAVATAR = true
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
[cron.update_checker]
ENABLED = false
"""


class GiteaError(Exception):
    """An answer that was not expected."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclass
class Gitea:
    """A running server; `tokens` by login."""

    root: Path
    url: str
    command: list[str]
    environment: dict[str, str]
    tokens: dict[str, str] = field(default_factory=dict)
    supervisor: subprocess.Popen[bytes] | None = None  # None: stopped

    @property
    def pid(self) -> int:
        assert self.supervisor is not None, "it runs"
        return self.supervisor.pid

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        assert self.supervisor is None, "it is stopped"
        log = self.root / "log"
        self.supervisor = start_supervised([*self.command, "web"], self.environment, log)
        await_answer(f"{self.api}/version", self.supervisor, log)

    def stop(self) -> None:
        """Stop the server; its repositories and the address stay for another `start`."""
        if self.supervisor is None:
            return
        stop_supervised(self.supervisor)
        self.supervisor = None

    @property
    def api(self) -> str:
        return f"{self.url}/api/v1"

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def ask(
        self, method: str, path: str, body: Any = None, *, by: str = ADMIN, check: bool = True
    ) -> tuple[int, Any]:
        """Call the API as `by`; return status and JSON. Raises GiteaError unless 2xx."""
        status, text = self._send(method, path, body, f"token {self.tokens[by]}")
        if check and not 200 <= status < 300:
            raise GiteaError(status, text)
        return status, json.loads(text or "null")

    def get(self, path: str, *, by: str = ADMIN) -> Any:
        return self.ask("GET", path, by=by)[1]

    def post(self, path: str, body: Any = None, *, by: str = ADMIN) -> Any:
        return self.ask("POST", path, body, by=by)[1]

    def calls(self, by: str) -> list[str]:
        """Return method, path and status of each answered call of the API by this person."""
        # The server writes its log a little later than the answer; this call is the last line.
        mark = f"/api/v1/version?{time.monotonic_ns()}"
        self.get(mark.removeprefix("/api/v1"))
        end = time.monotonic() + 30
        while mark not in (text := (self.root / "calls").read_text()):
            assert time.monotonic() < end, "the access log does not grow"
            time.sleep(0.05)
        rows = [line.partition(" ") for line in text.splitlines()]
        return [call.replace("/api/v1/", "/") for name, _, call in rows if name == by]

    def repository(
        self,
        name: str,
        *,
        owner: str = ADMIN,
        writers: tuple[str, ...] = (),
        private: bool = False,
    ) -> Repo:
        """Create a repository without commits; return it as it is on the server's disk."""
        settings = {"name": name, "default_branch": "main", "private": private}
        self.post(f"/admin/users/{owner}/repos", settings)
        for login in writers:
            self.ask("PUT", f"/repos/{owner}/{name}/collaborators/{login}", {"permission": "write"})
        return self.on_disk(name, owner=owner)

    def on_disk(self, name: str, *, owner: str = ADMIN) -> Repo:
        """Return a repository for looking at it with git. Pushes go through `push_url`."""
        return Repo(self.root / "repositories" / owner / f"{name}.git")

    def git_url(self, name: str, *, owner: str = ADMIN) -> str:
        return f"{self.url}/{owner}/{name}.git"

    def push_url(self, name: str, *, owner: str = ADMIN, by: str = ADMIN) -> str:
        """Return the URL with which this person clones and pushes."""
        return f"http://{by}:{self.tokens[by]}@{self.host}/{owner}/{name}.git"

    def add_person(self, login: str) -> None:
        """Create a person with a token for everything that they may do."""
        person = {"username": login, "email": f"{login}@example.com", "password": PASSWORD}
        self.post("/admin/users", {**person, "must_change_password": False})
        self.add_token(login, "all")

    def add_token(self, login: str, *scopes: str) -> str:
        """Create a token of these scopes; it becomes the one that `ask` takes."""
        name = f"token-{len(self.tokens)}-{time.time_ns()}"
        pair = base64.b64encode(f"{login}:{PASSWORD}".encode()).decode()
        status, text = self._send(
            "POST", f"/users/{login}/tokens", {"name": name, "scopes": scopes}, f"Basic {pair}"
        )
        if status != 201:
            raise GiteaError(status, text)
        self.tokens[login] = json.loads(text)["sha1"]
        return self.tokens[login]

    def revoke_tokens(self, login: str) -> None:
        """Delete all tokens of a person; `tokens` still has the last one."""
        pair = base64.b64encode(f"{login}:{PASSWORD}".encode()).decode()
        path = f"/users/{login}/tokens"
        _, listed = self._send("GET", path, None, f"Basic {pair}")
        for token in json.loads(listed):
            self._send("DELETE", f"{path}/{token['id']}", None, f"Basic {pair}")

    def _send(self, method: str, path: str, body: Any, authorization: str) -> tuple[int, str]:
        request = urllib.request.Request(
            self.api + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": authorization, "Content-Type": "application/json"},
        )
        try:
            with OPENER.open(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def built_folder() -> Path:
    """Return the folder of the built server; without it, the test fails."""
    folder = gitea_folder()
    if not (folder / "gitea").exists():
        pytest.fail(f"there is no {folder / 'gitea'}; `make servers` builds it")
    return folder


@contextmanager
def running_gitea(root: Path) -> Iterator[Gitea]:
    """A new server in a new directory, for as long as the block lasts."""
    folder = built_folder()
    (port,) = choose_ports(1)
    root.mkdir(parents=True)
    url = f"http://127.0.0.1:{port}"
    config = root / "app.ini"
    config.write_text(
        CONFIG.format(
            root=root, port=port, url=url, static=folder, user=getpass.getuser(), access=ACCESS
        )
    )
    program = [str(folder / "gitea"), "--config", str(config)]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GITEA_WORK_DIR": str(root),
        "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": "true",
    }
    _run([*program, "migrate"], environment)
    account = ("--username", ADMIN, "--password", PASSWORD, "--email", f"{ADMIN}@example.com")
    _run([*program, "admin", "user", "create", "--admin", *account], environment)
    gitea = Gitea(root, url, program, environment)
    try:
        gitea.start()
        gitea.add_token(ADMIN, "all")
        for login in PEOPLE:
            gitea.add_person(login)
        yield gitea
    finally:
        gitea.stop()
        shutil.rmtree(root, ignore_errors=True)


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        env=environment,
        text=True,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
