"""A real Gitea on loopback, for tests: an administrator, two people, and their tokens.

It is asked here with the standard library alone, so that a test judges fanout's client by what
another client sees.
"""

import base64
import getpass
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
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
PASSWORD = "correct-horse-battery"
ACCESS = "{{.Identity}} {{.Ctx.Req.Method}} {{.Ctx.Req.URL.RequestURI}} {{.ResponseWriter.Status}}"
INTERNAL_TOKEN = "token-of-hooks"
# Without what no test asks: SSH, mail, indexers, updates, avatars, Actions, packages. Everything
# that changes with the clock alone is off as well.
# Nothing is written to be there after a crash of the machine. Queues in memory begin at once: those
# on disk are looked at every two seconds, and collect items for 0.1 s.
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
SQLITE_JOURNAL_MODE = WAL&_synchronous=OFF
[repository]
ROOT = {root}/repositories
DEFAULT_BRANCH = main
SCRIPT_TYPE = {root}/hook
[security]
INSTALL_LOCK = true
SECRET_KEY = secret-of-tests
INTERNAL_TOKEN = {token}
PASSWORD_HASH_ALGO = pbkdf2$1$50
[queue]
TYPE = channel
BATCH_LENGTH = 1
[git.config]
core.fsync = none
gc.auto = 0
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


HOOK = Path(__file__).parent / "servers" / "gitea_hook.py"
# Runs the hooks of repositories, in place of a shell. What `gitea hook` does for each ref, and for
# pushes of the server itself, is done here.
HOOK_SCRIPT = """\
#!/bin/sh
case "${{1##*/}} $GITEA_INTERNAL_PUSH $2" in
*" true "*) ;;
"update  refs/pull/"*) exit 1 ;;
"update "*) ;;
*) exec {} -IS {} {} {} {} {} "$@" ;;
esac
"""
PATIENCE = 300  # seconds until the server must have done what it does at once, on a busy machine


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
    log_size: int = 0  # of the read part of the log of calls
    logged: dict[str, list[str]] = field(default_factory=dict)  # that part, by login

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
        status, text = self._send(method, path, body, encode_basic(by, self.credential(by)))
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
        mark = f"/version?{time.monotonic_ns()}"
        self.get(mark)
        await_condition(lambda: self._read_log(mark), "the access log does not grow")
        return list(self.logged.get(by, ()))

    def _read_log(self, mark: str) -> bool:
        """Read the new lines of the log of calls; return whether the mark is among them."""
        with (self.root / "calls").open("rb") as log:
            log.seek(self.log_size)
            lines, _, _ = log.read().rpartition(b"\n")
        self.log_size += len(lines) + 1 if lines else 0
        for line in lines.decode().splitlines():
            name, _, call = line.partition(" ")
            self.logged.setdefault(name, []).append(call.replace("/api/v1/", "/"))
        return mark in lines.decode()

    def await_checks(self, owner: str) -> None:
        """Wait until all pushes are worked off, and open requests are checked for conflicts.

        Until then the API says something else of branches and requests, and nothing is merged.
        Between a push and its processing there is a moment without a trace, so it is looked twice.
        """
        quiet = 0

        def is_quiet() -> bool:
            nonlocal quiet
            quiet = 0 if self._is_working() or self._is_checking(owner) else quiet + 1
            return quiet == 2

        await_condition(is_quiet, f"the server is still at work for {owner}")

    def _is_working(self) -> bool:
        request = urllib.request.Request(
            f"{self.url}/api/internal/manager/processes?flat=true&json=true&no-system=true",
            headers={"X-Gitea-Internal-Auth": f"Bearer {INTERNAL_TOKEN}"},
        )
        with OPENER.open(request, timeout=PATIENCE) as answer:
            processes = json.load(answer)["Processes"]
        return any(it["Description"].startswith("PushUpdates:") for it in processes)

    def _is_checking(self, owner: str) -> bool:
        # The API says of drafts that they cannot be merged, the database whether it checks.
        question = (
            "SELECT count(*) FROM pull_request"
            " JOIN repository ON base_repo_id = repository.id JOIN issue ON issue_id = issue.id"
            " WHERE owner_name = ? AND NOT has_merged AND NOT is_closed AND pull_request.status = 1"
        )
        database = f"file:{self.root / 'gitea.db'}?mode=ro"
        with closing(sqlite3.connect(database, uri=True, timeout=PATIENCE)) as connection:
            [checking] = connection.execute(question, (owner,)).fetchone()
        return bool(checking)

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
        return f"http://{by}:{self.credential(by)}@{self.host}/{owner}/{name}.git"

    def credential(self, login: str) -> str:
        """Return what this person is known by: the token, or the password of those who are here.

        Gitea hashes a token 10,000 times for each call, which takes longer than most calls.
        """
        return PASSWORD if login in (ADMIN, *PEOPLE) else self.tokens[login]

    def add_person(self, login: str, *scopes: str) -> None:
        """Create a person with a token of these scopes; without any, for all that they may do."""
        person = {"username": login, "email": f"{login}@example.com", "password": PASSWORD}
        self.post("/admin/users", {**person, "must_change_password": False})
        self.add_token(login, *(scopes or ("all",)))

    def add_token(self, login: str, *scopes: str) -> str:
        """Create a token of these scopes; it becomes the one that `ask` takes."""
        name = f"token-{len(self.tokens)}-{time.time_ns()}"
        status, text = self._send(
            "POST",
            f"/users/{login}/tokens",
            {"name": name, "scopes": scopes},
            encode_basic(login, PASSWORD),
        )
        if status != 201:
            raise GiteaError(status, text)
        self.tokens[login] = json.loads(text)["sha1"]
        return self.tokens[login]

    def revoke_tokens(self, login: str) -> None:
        """Delete all tokens of a person; `tokens` still has the last one."""
        basic, path = encode_basic(login, PASSWORD), f"/users/{login}/tokens"
        _, listed = self._send("GET", path, None, basic)
        for token in json.loads(listed):
            self._send("DELETE", f"{path}/{token['id']}", None, basic)

    def _send(self, method: str, path: str, body: Any, authorization: str) -> tuple[int, str]:
        request = urllib.request.Request(
            self.api + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": authorization, "Content-Type": "application/json"},
        )
        try:
            with OPENER.open(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def encode_basic(login: str, credential: str) -> str:
    """Return the value of a header Authorization."""
    return f"Basic {base64.b64encode(f'{login}:{credential}'.encode()).decode()}"


def await_condition(condition: Callable[[], object], message: str, *, pause: float = 0.01) -> None:
    """Wait until it is so, looking after each pause. Fails with the message."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(pause)


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
            root=root,
            port=port,
            url=url,
            static=folder,
            user=getpass.getuser(),
            access=ACCESS,
            token=INTERNAL_TOKEN,
        )
    )
    hook = root / "hook"
    values = [sys.executable, HOOK, str(port), INTERNAL_TOKEN, str(folder / "gitea"), str(config)]
    hook.write_text(HOOK_SCRIPT.format(*(shlex.quote(str(it)) for it in values)))
    hook.chmod(0o755)
    program = [str(folder / "gitea"), "--config", str(config)]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GITEA_WORK_DIR": str(root),
        "GOGC": "400",  # a tenth of its processor time for some memory
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
