"""A company whose downstream repositories are on the tests' GitHub, and what people do there.

``fleet = GitHubFleet.on(github, tmp_path)``: an organization of its own with the downstream
repositories, the App of fanout installed on it, Repositories with a forge, and the
FanoutConfiguration. What people do has the names of `forge_fleet`, so that one test runs on both.
"""

import contextlib
import itertools
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from unittest import mock

from fleet import Content, Fleet, Repo, Result
from github_repository import CommitStatus, Pull, Repository
from github_server import GitHub
from github_state import Installation

from fanout.api.fanout_configuration import ForgeProgram
from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.plan.pull_requests import call_limits
from fanout.values import replace

NUMBERS = itertools.count(1)
PEOPLE = ("ada", "ann", "bob")
SECRET = "github"
# What docs/guides/github.md names.
PERMISSIONS = {
    "contents": "write",
    "pull_requests": "write",
    "statuses": "write",
    "checks": "read",
    "members": "read",
}
READY = """mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { isDraft } }
}"""
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}}}
spec:
  url: {url}
  forge: {{type: github}}
  secretRef: {{name: {secret}}}
"""
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
installId: {install}
concurrency: {concurrency}
forges:
- {{host: "{host}", type: github, api: "{api}", secretRef: {{name: {secret}}}}}
"""


@dataclass
class HostedRepo(Repo):
    """A repository as it is on the server's disk; commits are pushed by people."""

    github: GitHub = field(kw_only=True)
    hosted: Repository = field(kw_only=True)
    work: Path = field(kw_only=True)  # a clone of the person who commits

    def commit(
        self,
        branch: str,
        files: Mapping[str, Content],
        message: str = "by hand",
        *,
        by: str = "ada",
    ) -> str:
        """Commit as this person, and push; a new branch starts at `main`."""
        clone = Repo(self.work, author=f"{by.title()} <{by}@example.com>")
        if not self.work.exists():
            self.work.parent.mkdir(parents=True, exist_ok=True)
            init = ["git", "init", "-q", "--bare", "--template=", str(self.work)]
            subprocess.run(init, check=True)
        clone.git("fetch", "-q", "--prune", str(self.path), "+refs/heads/*:refs/heads/*")
        refs = clone.refs("refs/heads/")
        if f"refs/heads/{branch}" not in refs and "refs/heads/main" in refs:
            clone.git("update-ref", f"refs/heads/{branch}", refs["refs/heads/main"])
        commit = clone.commit(branch, files, message)
        self.push(f"{commit}:refs/heads/{branch}", by=by)
        return commit

    def push(self, *specs: str, by: str = "ada", check: bool = True) -> str:
        """Push refs of the person's clone; `+` forces. Return what git printed."""
        url = self.github.git_url(self.hosted, self.github.token(by))
        done = subprocess.run(
            ["git", "push", "-q", url, *specs],
            cwd=self.work,
            env={**os.environ, "GIT_ALLOW_PROTOCOL": "file:http"},
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stderr


@dataclass
class GitHubFleet(Fleet):
    """The company; `bot` is the login of what acts for the App."""

    github: GitHub = field(kw_only=True)
    installation: Installation = field(kw_only=True)
    token: str = field(kw_only=True)
    owner: str = field(kw_only=True)
    bot: str = "fanout[bot]"
    install: str = field(default="default", kw_only=True)
    seen_calls: int = field(default=0, kw_only=True)

    @classmethod
    def on(
        cls,
        github: GitHub,
        root: Path,
        sites: dict[str, tuple[str, str]] | None = None,
        key: tuple[str, Path] | None = None,
    ) -> Self:
        """Build on the server; `key`: the App's private key, and the file of the public one.

        With it the secret is that of the App, else a token of its installation.
        """
        app = github.state.apps.get("fanout") or github.app("fanout", key[1] if key else None)
        owner = f"acme-{next(NUMBERS)}"
        installation = github.installation(app, owner, permissions=PERMISSIONS)
        token = github.token(installation)
        fleet = cls(root, github=github, installation=installation, token=token, owner=owner)
        fleet.now = datetime.now(UTC).replace(microsecond=0)
        if key is not None:
            secret = root / fleet.state / "secrets" / SECRET
            secret.mkdir(parents=True, mode=0o700)
            (secret / "githubAppID").write_text(str(app.id), encoding="utf-8")
            (secret / "githubAppPrivateKey").write_text(key[0], encoding="utf-8")
            fleet.token = ""
        fleet.configure()
        fleet.populate(sites)
        fleet.calls()
        return fleet

    def configure(self, *, concurrency: int = 4) -> None:
        """Write the FanoutConfiguration."""
        text = CONFIGURATION.format(
            install=self.install,
            concurrency=concurrency,
            host=self.github.host,
            api=self.github.api,
            secret=SECRET,
        )
        path = self.root / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.options = ("--config", str(path))

    def repository(
        self, name: str, *options: str, declare: bool = True, first: bool = True
    ) -> Repo:
        """A repository on the server, but for the upstream one."""
        if name == "blueprints":
            return super().repository(name, *options, declare=declare, first=first)
        full_name = f"{self.owner}/{name}"
        hosted = self.github.repository(full_name, writers=PEOPLE, is_private=True)
        work = self.root / "clones" / f"{name}.git"
        repo = HostedRepo(hosted.path, github=self.github, hosted=hosted, work=work)
        self.repos[name] = repo
        if first:
            repo.commit("main", {"README.md": f"# {name}\n"}, "first commit")
        if declare:
            url = self.github.git_url(hosted)
            text = REPOSITORY.format(name=name, url=url, secret=SECRET)
            self.write(f"repository-{name}.yaml", text)
        return repo

    # ---- the program ---------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Variables with the token, which child processes need."""
        name, value = f"FANOUT_SECRET_{SECRET.upper()}", f"x-access-token:{self.token}"
        return {name: value} if self.token else {}

    def run(self, *args: str, files: bool = True) -> Result:
        """One command line, in process, at the fleet's time and without pauses between writes."""
        with mock.patch.dict(os.environ, self.environment()), without_pauses():
            return super().run(*args, files=files)

    def settings(self) -> Settings:
        """Settings from the flags that `run` gives."""
        return replace(super().settings(), config=Path(self.options[1]))

    @contextlib.contextmanager
    def opened(self) -> Iterator[Program]:
        """The program, open for several passes at the fleet's time."""
        with (
            mock.patch.dict(os.environ, self.environment()),
            without_pauses(),
            super().opened() as program,
        ):
            yield program

    # ---- the server ----------------------------------------------------------------------------

    def requests(self, repo: str) -> list[dict[str, Any]]:
        """All pull requests, in the order of their numbers, with the names of `forge_fleet`."""
        hosted = self._hosted(repo)
        with self.github.state.lock:
            self.github.state.synchronize(hosted)
        return [read_pull(it) for _, it in sorted(hosted.pulls.items())]

    def only_request(self, repo: str) -> dict[str, Any]:
        """The one pull request of a repository."""
        (request,) = self.requests(repo)
        return request

    def review(
        self, repo: str, number: int, by: str, verdict: str = "APPROVED", *, commit: str = ""
    ) -> int:
        """APPROVED, REQUEST_CHANGES or COMMENT, of the head or of an older commit."""
        words = {"REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
        state, pull = words.get(verdict, verdict), self._pull(repo, number)
        return self.github.review(pull, by, state, commit=commit).id

    def dismiss(self, repo: str, number: int, review: int) -> None:
        [found] = [it for it in self._pull(repo, number).reviews if it.id == review]
        self.github.dismiss(found)

    def merge(self, repo: str, number: int, by: str = "ann", style: str = "merge") -> None:
        """Merge as a person: merge, squash or rebase."""
        self._ask("PUT", repo, f"/pulls/{number}/merge", {"merge_method": style}, by)

    def close(self, repo: str, number: int, by: str = "ann") -> None:
        self._ask("PATCH", repo, f"/pulls/{number}", {"state": "closed"}, by)

    def reopen(self, repo: str, number: int, by: str = "ann") -> None:
        self._ask("PATCH", repo, f"/pulls/{number}", {"state": "open"}, by)

    def retitle(self, repo: str, number: int, title: str, by: str = "ann") -> None:
        self._ask("PATCH", repo, f"/pulls/{number}", {"title": title}, by)

    def mark_ready(self, repo: str, number: int, by: str = "ann") -> None:
        """Let a pull request be a draft no longer, as a person."""
        pull = self._pull(repo, number).node
        body = {"query": READY, "variables": {"pull": pull}}
        token = self.github.token(by)
        status, _, answer = self.github.ask("POST", self.github.graphql, body, token=token)
        assert (status, answer.get("errors")) == (200, None), answer

    def rewrite(self, repo: str, number: int, text: str, by: str = "ann") -> None:
        """Change the text of a pull request."""
        self._ask("PATCH", repo, f"/pulls/{number}", {"body": text}, by)

    def blockers(self, reason: str) -> list[dict[str, Any]]:
        """Return what blocks the policy for this reason, as `explain` shows it."""
        view = self.run("explain", "monitoring", "-o", "json").json["status"]
        return [it for it in view["blockers"] if it["reason"] == reason]

    def ask_again(self) -> None:
        """Run the command that `explain` prints about the only closed request, and sweep twice."""
        [closed] = self.blockers("RequestClosed")
        [command] = closed["commands"]
        signature = ("--by", "Ann <ann@example.com>")
        resumed = self.later(minutes=1).run(*shlex.split(command)[1:], *signature)
        assert resumed.code == 0, resumed.err
        for _ in range(2):
            assert self.later(minutes=1).sweep().code == 0
        assert self.blockers("RequestClosed") == []

    def label(self, repo: str, number: int, name: str, by: str = "ann") -> None:
        """Set a label, which is created if need be."""
        self._ask("POST", repo, f"/issues/{number}/labels", {"labels": [name]}, by)

    def unlabel(self, repo: str, number: int, name: str, by: str = "ann") -> None:
        quoted = name.replace("/", "%2F")
        self._ask("DELETE", repo, f"/issues/{number}/labels/{quoted}", None, by)

    def status(
        self, repo: str, commit: str, context: str, state: str = "success", by: str = "ann"
    ) -> None:
        """Set a commit status: success, pending, failure or error."""
        self._ask("POST", repo, f"/statuses/{commit}", {"context": context, "state": state}, by)

    def statuses(self, repo: str, commit: str) -> dict[tuple[str, str], str]:
        """The newest state of each context and creator."""
        statuses: list[CommitStatus] = self._hosted(repo).statuses[commit]
        return {(it.context, it.creator.login): it.state for it in statuses}

    def delete_branch(self, repo: str, branch: str, by: str = "ann") -> None:
        self._ask("DELETE", repo, f"/git/refs/heads/{branch}", None, by)

    def await_checks(self) -> None:
        """Wait for nothing: the double is done with a push at once."""

    @property
    def host(self) -> str:
        return self.github.host

    def page(self, repo: str, number: int) -> str:
        """The address that the forge gives a pull request."""
        return f"{self.github.url}/{self.owner}/{repo}/pull/{number}"

    def retarget(self, repo: str, number: int, branch: str, by: str = "ann") -> None:
        self._ask("PATCH", repo, f"/pulls/{number}", {"base": branch}, by)

    def open_request(self, repo: str, head: str, base: str, title: str, by: str = "ann") -> int:
        """Open a pull request as a person; return its number."""
        self._ask("POST", repo, "/pulls", {"head": head, "base": base, "title": title}, by)
        return max(self._hosted(repo).pulls)

    def links(self, repo: str, commit: str) -> set[str]:
        """Addresses that the statuses of a commit lead to."""
        return {it.target_url or "" for it in self._hosted(repo).statuses[commit]}

    def writes(self) -> list[str]:
        """Calls of the API since this or `calls` was asked last that may write.

        A GraphQL query and a mutation look alike; mutations are in no test that asks.
        """
        return [it for it in self.calls() if not it.startswith(("GET ", "POST /graphql"))]

    def calls(self) -> list[str]:
        """Calls of the API since this was asked last: "GET /graphql 200"."""
        new = self.github.calls[self.seen_calls :]
        self.seen_calls = len(self.github.calls)
        return new

    def _ask(self, method: str, repo: str, path: str, body: object, by: str) -> None:
        token = self.github.token(by)
        address = f"/repos/{self.owner}/{repo}{path}"
        status, _, answer = self.github.ask(method, address, body, token=token)
        assert status < 300, answer

    def _hosted(self, repo: str) -> Repository:
        found = self.repos[repo]
        assert isinstance(found, HostedRepo)
        return found.hosted

    def _pull(self, repo: str, number: int) -> Pull:
        hosted = self._hosted(repo)
        with self.github.state.lock:
            self.github.state.synchronize(hosted)
        return hosted.pulls[number]


@contextlib.contextmanager
def without_pauses() -> Iterator[None]:
    """Let writes follow each other at once: the double asks for no second between them."""
    limits = call_limits._LIMITS_BY_PROGRAM
    quick = replace(limits[ForgeProgram.GITHUB], write_spacing=0.0)
    with mock.patch.dict(limits, {ForgeProgram.GITHUB: quick}):
        yield


def read_pull(pull: Pull) -> dict[str, Any]:
    """A pull request by the names of `forge_fleet`."""
    return {
        "number": pull.number,
        "state": "merged" if pull.merged_at else pull.state,
        "title": pull.title,
        "draft": pull.is_draft,
        "head": pull.head,
        "base": pull.base,
        "commit": pull.head_commit,
        "labels": sorted(pull.labels),
        "author": pull.author.login,
        "body": pull.body or "",
        "merged_by": pull.merged_by.login if pull.merged_by else "",
        "merge_commit": pull.merge_commit or "",
    }
