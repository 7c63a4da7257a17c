"""A double of GitHub on loopback, for tests: its REST API of 2026-03-10 beside real repositories.

    with running_github(root) as github:
        repository = github.repository("acme/site", writers=("ann",))
        app = github.app("fanout")
        token = github.token(github.installation(app, "acme", permissions={"contents": "write"}))

Every request and every answer is checked against GitHub's published description: what is not in it
is an entry of `violations`, is answered with 500, and fails the test when the block ends. Beside
the description, `forge/test_github_*.py` have in their names how GitHub behaves; a client relies on
nothing else. Calls are answered one after the other, and pushes at any time.

It has no hooks, no forks, and no protection against pushes; its merge queue works when a test says
so, and merges no group but one after the other.
"""

import hashlib
import json
import shutil
import threading
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from github_calls import Answer, Calls, Request
from github_credentials import authenticate, find_credential
from github_description import VERSION, Call, NotDescribed, check_answer, check_request, find_call
from github_limits import Limits
from github_repository import Account, App, CheckRun, Pull, Repository, Review, create_bare
from github_state import Credential, Installation, Refusal, State
from http_git import GitOverHttp

API, GRAPHQL = "/api/v3", "/api/graphql"  # as on Enterprise Server
PATIENCE = 60  # seconds for an answer on a busy machine


@dataclass
class Interference:
    """Something that happens to calls whose method and path contain `part`, `times` times."""

    part: str
    times: int
    # What is answered instead of carrying the call out; None: the answer of a call that is carried
    # out is lost.
    answer: Answer | None


class GitHubHandler(GitOverHttp):
    """One connection, to the API or to a repository."""

    server: "GitHubServer"  # type: ignore[assignment]  # has all that the base class asks for

    def do_GET(self) -> None:  # noqa: N802 a name of http.server
        body = self._body()
        if self.path == GRAPHQL or self.path.startswith(f"{API}/"):
            self._answer_api(body)
        else:
            self._answer_git(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the header Date, by which a client learns how wrong its clock is."""
        return super().date_time_string(self.server.github.state.clock().timestamp())

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 names of http.server

    def _answer_api(self, body: bytes) -> None:
        path = self.path.removeprefix("/api" if self.path == GRAPHQL else API)
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.github.serve(self.command, path, headers, body)
        if answer is None:
            self.close_connection = True  # the answer is lost
            return
        content = answer.body
        if not isinstance(content, bytes):
            content = b"" if content is None else json.dumps(content).encode()
        kind = {"Content-Type": "application/json; charset=utf-8"}
        self._answer(answer.status, {**kind, **answer.headers}, content)

    def _answer_git(self, body: bytes) -> None:
        path, _, rest = self.path.lstrip("/").partition(".git/")
        github, state = self.server.github, self.server.github.state
        credential = find_credential(state, self.headers.get("Authorization") or "")
        repository = state.find_repository(path)
        access = state.access(credential, repository) if repository else None
        if repository is None or access is None:
            if credential is None:
                self._answer(401, {"WWW-Authenticate": 'Basic realm="GitHub"'})
            else:
                self._answer(404, {})
        elif path.lower() != repository.full_name.lower():
            self._answer(301, {"Location": f"{github.url}/{repository.full_name}.git/{rest}"})
        elif "git-receive-pack" in rest and credential is None:
            self._answer(401, {"WWW-Authenticate": 'Basic realm="GitHub"'})
        elif credential is not None and not self._allows(credential, access, rest):
            self._answer(403, {}, b"Write access to repository not granted.")
        else:
            if rest == "git-receive-pack" and credential is not None:
                state.pushers[repository.id] = credential.account
            self.path = f"/{repository.path.name}/{rest}"
            self._serve(body)

    @staticmethod
    def _allows(credential: Credential, access: str, rest: str) -> bool:
        if credential.is_suspended:
            return False
        if "git-receive-pack" in rest:
            return access == "write" and credential.allows("contents", "write")
        return credential.allows("contents", "read")


class GitHubServer(ThreadingHTTPServer):
    """The socket, and what `GitOverHttp` asks its server for."""

    daemon_threads = True
    request_queue_size = 128
    is_read_only = old = False

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), GitHubHandler)
        self.root = root
        self.users: dict[str, str] = {}
        self.github: GitHub

    def handle_error(self, *_: object) -> None:
        """Ignore a client that was ended before the answer."""


class GitHub:
    """The double. Its methods are what people do, or what a test wants to happen."""

    def __init__(self, root: Path, server: GitHubServer) -> None:
        self.root = root
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.state = State()
        self.limits = Limits(lambda: self.state.clock())  # noqa: PLW0108 a test sets another clock
        self._calls = Calls(self.state, self.limits, self.api, self.url)
        self.calls: list[str] = []  # method, path and status of each answered call
        self.violations: list[str] = []
        # Called with method and path before each call, and not under the lock: may push or ask.
        self.before: Callable[[str], object] = lambda _: None
        self._interferences: list[Interference] = []
        server.github = self

    @property
    def api(self) -> str:
        return f"{self.url}{API}"

    @property
    def graphql(self) -> str:
        return f"{self.url}{GRAPHQL}"

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    # What is there

    def account(self, login: str, kind: str = "User") -> Account:
        """Return the account of a login, created when it is not there."""
        accounts = self.state.accounts
        return accounts.setdefault(login, Account(self.state.next_id(), login, kind))

    def app(self, slug: str, key: Path | None = None) -> App:
        """Create an App; `key`: the file of its public key, which assertions are checked with."""
        app = App(self.state.next_id(), slug, self.account(f"{slug}[bot]", "Bot"), key)
        self.state.apps[slug] = app
        return app

    def installation(
        self,
        app: App,
        owner: str,
        *,
        permissions: Mapping[str, str] | None = None,
        repositories: tuple[Repository, ...] | None = None,
    ) -> Installation:
        """Install an App on an account, with permissions such as `{"contents": "write"}`."""
        selected = None if repositories is None else {it.id for it in repositories}
        account = self.account(owner, "Organization")
        number = self.state.next_id()
        found = Installation(
            number, app, account, {"metadata": "read", **(permissions or {})}, selected
        )
        self.state.installations[number] = found
        return found

    def token(self, holder: str | Installation, **permissions: str) -> str:
        """Return a new token: of a person, with all that they may or with these permissions, or of
        an installation, as if it had been asked for.
        """
        credentials = self.state.credentials
        if isinstance(holder, Installation):
            app = holder.app
            token = f"ghs_{app.id}_installation.{self.state.next_id()}"
            credentials[token] = Credential(
                app.account, holder.permissions, holder.repositories, installation=holder
            )
        else:
            token = f"github_pat_{holder}_{self.state.next_id()}"
            credentials[token] = Credential(self.account(holder), permissions or None)
        return token

    def repository(
        self,
        full_name: str,
        *,
        writers: tuple[str, ...] = (),
        readers: tuple[str, ...] = (),
        **settings: Any,
    ) -> Repository:
        """Create a repository without commits; settings are fields of Repository."""
        owner, name = full_name.split("/")
        number = self.state.next_id()
        path = self.root / f"{number}.git"
        create_bare(path)
        repository = Repository(
            id=number,
            owner=self.account(owner, "Organization"),
            name=name,
            path=path,
            created_at=self.state.clock(),
            writers=set(writers),
            readers=set(readers),
            **settings,
        )
        for login in (*writers, *readers):
            self.account(login)
        self.state.repositories[number] = repository
        self.state.names[full_name.lower()] = number
        return repository

    def git_url(self, repository: Repository, token: str = "") -> str:
        """Return the URL to clone from and to push to, with a token."""
        user = f"x-access-token:{token}@" if token else ""
        return f"http://{user}{self.host}/{repository.full_name}.git"

    # What people do

    def rename(self, repository: Repository, full_name: str) -> None:
        """Rename or transfer a repository; its earlier names lead to it."""
        owner, name = full_name.split("/")
        with self.state.lock:
            repository.owner, repository.name = self.account(owner, "Organization"), name
            self.state.names[full_name.lower()] = repository.id

    def uninstall(self, installation: Installation) -> None:
        """Remove an App from an account; its tokens end."""
        state = self.state
        with state.lock:
            del state.installations[installation.id]
            tokens = [
                it for it, held in state.credentials.items() if held.installation is installation
            ]
            for token in tokens:
                del state.credentials[token]

    def review(
        self, pull: Pull, login: str, state: str = "APPROVED", *, commit: str | None = ""
    ) -> Review:
        """Review a request: its head, or another commit, or None for one that was lost."""
        with self.state.lock:
            at = self.state.clock()
            reviewed = pull.head_commit if commit == "" else commit
            review = Review(self.state.next_id(), self.account(login), state, reviewed, at)
            pull.reviews.append(review)
            pull.updated_at = at
        return review

    def dismiss(self, review: Review) -> None:
        """Dismiss a review, which takes the place of its verdict."""
        review.state = "DISMISSED"

    def check(
        self,
        repository: Repository,
        commit: str,
        app: App,
        name: str,
        conclusion: str | None = "success",
    ) -> CheckRun:
        """Run a check of a commit; without a conclusion it has not ended."""
        status = "in_progress" if conclusion is None else "completed"
        number, at = self.state.next_id(), self.state.clock()
        run = CheckRun(number, name, status, conclusion, app, at)
        repository.check_runs[commit].append(run)
        return run

    def run_queue(self, repository: Repository) -> None:
        """Let the merge queue of a repository work once; it does nothing by itself."""
        with self.state.lock:
            self.state.run_queue(repository)

    def close(self, pull: Pull, login: str) -> None:
        """Close a request as a person."""
        with self.state.lock:
            self.state.close(pull, Credential(self.account(login)))

    # What a test wants to happen

    def refuse(self, part: str, answer: Answer, *, times: int = 1) -> None:
        """Answer the next calls whose method and path contain `part` with this, undone."""
        self._interferences.append(Interference(part, times, answer))

    def lose(self, part: str, *, times: int = 1) -> None:
        """Carry the next calls out whose method and path contain `part`, and answer nothing."""
        self._interferences.append(Interference(part, times, None))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], Any]:
        """Call the API with the standard library alone; return status, headers and JSON."""
        sent = {
            "Authorization": f"Bearer {token}",
            "X-GitHub-Api-Version": VERSION,
            "Accept": "application/vnd.github+json",
            **(headers or {}),
        }
        data = None if body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.api + path
        request = urllib.request.Request(url, data, sent, method=method)
        try:
            with OPENER.open(request, timeout=PATIENCE) as answer:
                return answer.status, dict(answer.headers), json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                content = error.read()
                is_json = error.headers.get_content_type() == "application/json"
                text = json.loads(content or b"null") if is_json else content.decode()
                return error.code, dict(error.headers), text

    # Answers

    def serve(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> Answer | None:
        """Answer a call of the API; None: not at all."""
        with self.limits.counted():
            self.before(f"{method} {path}")
            return self._serve(method, path, headers, content)

    def _serve(
        self, method: str, path: str, headers: dict[str, str], content: bytes
    ) -> Answer | None:
        with self.state.lock:
            interference = self._interfere(f"{method} {path}")
            try:
                answer = self._answer(method, path, headers, content, interference)
            except NotDescribed as violation:
                answer = self._fail(str(violation))
            except Exception:  # noqa: BLE001 a defect of the double is a violation too
                answer = self._fail(traceback.format_exc())
            self.calls.append(f"{method} {path} {answer.status}")
        return None if interference and interference.answer is None else answer

    def _fail(self, message: str) -> Answer:
        self.violations.append(message)
        return Answer({"message": message}, 500)

    def _answer(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        content: bytes,
        interference: Interference | None,
    ) -> Answer:
        if headers.get("x-github-api-version") != VERSION:
            raise NotDescribed(f"{method} {path}: asks for another version than {VERSION}")
        if path == "/graphql":
            return self._answer_graphql(headers, content, interference)
        path, _, query = path.partition("?")
        path, location = self._locate(path)
        call = find_call(method, path)
        queries = dict(parse_qsl(query, keep_blank_values=True))
        body = json.loads(content) if content else None
        check_request(call, queries, body)
        try:
            credential = authenticate(self.state, headers.get("authorization", ""))
        except Refusal as refusal:
            return self._checked(call, Answer(refusal.body, refusal.status, refusal.headers))
        key = credential.limit_key
        request = Request(call, queries, body, f"{self.api}{path}", credential)
        if location:
            answer = self._moved(request, f"{location}?{query}" if query else location)
        elif interference and interference.answer is not None:
            answer = interference.answer
        else:
            answer = self._carry_out(request, headers)
        if answer.status != 304:
            self.limits.charge(key, call.name)
        answer = Answer(
            answer.body, answer.status, {**self.limits.headers(key, call.name), **answer.headers}
        )
        return self._checked(call, answer)

    def _answer_graphql(
        self, headers: dict[str, str], content: bytes, interference: Interference | None
    ) -> Answer:
        # Loaded here because REST alone does without graphql-core.
        from github_graphql import GraphQL

        limits: dict[str, str] = {}
        credential = None
        try:
            credential = authenticate(self.state, headers.get("authorization", ""))
            if interference and interference.answer is not None:
                answer = interference.answer
            else:
                graphql = GraphQL(self.state, self.limits, self.url)
                answer = graphql.answer(json.loads(content), credential)
        except Refusal as refusal:
            answer = Answer(refusal.body, refusal.status, refusal.headers)
        if credential is not None:
            limits = self.limits.headers(credential.limit_key, "GET /graphql")
        return Answer(answer.body, answer.status, {**limits, **answer.headers})

    def _carry_out(self, request: Request, headers: dict[str, str]) -> Answer:
        try:
            self.limits.admit(request.credential.limit_key, request.call.name)
            answer = self._calls.answer(request)
        except Refusal as refusal:
            return Answer(refusal.body, refusal.status, refusal.headers)
        if not request.call.name.startswith("GET ") or answer.status != 200:
            return answer
        # The tag depends on the token, so that another token of the same App has no use for it.
        text = json.dumps(answer.body) + headers["authorization"]
        tag = f'W/"{hashlib.sha256(text.encode()).hexdigest()}"'
        is_known = headers.get("if-none-match") == tag
        shown = Answer(None, 304) if is_known else answer
        return Answer(shown.body, shown.status, {**answer.headers, "ETag": tag})

    @staticmethod
    def _checked(call: Call, answer: Answer) -> Answer:
        if not isinstance(answer.body, bytes):
            check_answer(call, answer.status, answer.body)
        return answer

    def _moved(self, request: Request, location: str) -> Answer:
        """Answer a call to an earlier name of a repository."""
        repository = self.state.repositories[int(location.split("/")[2])]
        if self.state.access(request.credential, repository) is None:
            return Answer(Refusal(404, "Not Found").body, 404)
        is_read = request.call.name.startswith("GET ")
        message = "Moved Permanently" if is_read else "Temporary Redirect"
        url = f"{self.api}{location}"
        headers = {"Location": url}
        return Answer({"message": message, "url": url}, 301 if is_read else 307, headers)

    def _locate(self, path: str) -> tuple[str, str]:
        """Return the described path, and where the repository is if it moved, else "".

        `/repositories/ID` is not in the description; it is where redirects lead to.
        """
        parts = path.split("/")
        if parts[1] == "repositories" and len(parts) > 2 and parts[2].isdigit():
            repository = self.state.repositories.get(int(parts[2]))
            name = repository.full_name if repository else "unknown/unknown"
            return "/".join(["", "repos", name, *parts[3:]]), ""
        if parts[1] == "repos" and len(parts) > 3:
            name = "/".join(parts[2:4])
            repository = self.state.find_repository(name)
            if repository is not None and repository.full_name.lower() != name.lower():
                return path, "/".join(["", "repositories", str(repository.id), *parts[4:]])
        return path, ""

    def _interfere(self, call: str) -> Interference | None:
        for interference in self._interferences:
            if interference.part in call:
                interference.times -= 1
                if not interference.times:
                    self._interferences.remove(interference)
                return interference
        return None


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Answers that lead elsewhere are answers."""

    def redirect_request(self, *_: object) -> None:
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirects)


@contextmanager
def running_github(root: Path) -> Iterator[GitHub]:
    """A double in a new directory, for as long as the block lasts."""
    root.mkdir(parents=True)
    server = GitHubServer(root)
    github = GitHub(root, server)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(root, ignore_errors=True)
    assert not github.violations, "\n".join(github.violations)
