"""A company whose downstream repositories are on a real Gitea, and what people do there.

``fleet = ForgeFleet.on(gitea, tmp_path)``: an organization of its own with the downstream
repositories, an account for fanout with a token of the scopes that the guide names, Repositories
with a forge, and the FanoutConfiguration. All else is as in `fleet`. `now` begins at the real time,
because instants of reviews and merges are the server's.
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
from gitea_server import ADMIN, PEOPLE, Gitea, await_condition

from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.values import replace

SCOPES = ("write:repository", "write:issue", "read:user")
SECRET = "gitea"  # the secret's name
NUMBERS = itertools.count(1)
REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}}}
spec:
  url: {url}
  forge: {{type: gitea}}
  secretRef: {{name: {secret}}}
"""
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
installId: {install}
concurrency: {concurrency}
forges:
- {{host: "{host}", type: gitea, api: "{api}", secretRef: {{name: {secret}}}{limits}}}
"""


@dataclass
class GiteaRepo(Repo):
    """A repository as it is on the server's disk; commits are pushed, so that Gitea sees them."""

    gitea: Gitea = field(kw_only=True)
    owner: str = field(kw_only=True)
    work: Path = field(kw_only=True)  # a clone of the person who commits

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(".git")

    def commit(
        self,
        branch: str,
        files: Mapping[str, Content],
        message: str = "by hand",
        *,
        by: str = ADMIN,
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

    def push(self, *specs: str, by: str = ADMIN, check: bool = True) -> str:
        """Push refs of the person's clone; `+` forces. Return what git printed."""
        url = self.gitea.push_url(self.name, owner=self.owner, by=by)
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
class ForgeFleet(Fleet):
    """The company; `bot` is the login of fanout's account."""

    gitea: Gitea = field(kw_only=True)
    owner: str = field(kw_only=True)
    bot: str = field(kw_only=True)
    install: str = field(default="default", kw_only=True)
    seen_calls: int = field(default=0, kw_only=True)

    @classmethod
    def on(
        cls,
        gitea: Gitea,
        root: Path,
        sites: dict[str, tuple[str, str]] | None = None,
        *,
        api: str = "",
        install: str = "default",
        scopes: tuple[str, ...] = SCOPES,
    ) -> Self:
        """Build on the server; `api`: address that fanout calls in place of the server's."""
        number = next(NUMBERS)
        fleet = cls(
            root, gitea=gitea, owner=f"org-{number}", bot=f"fanout-{number}", install=install
        )
        fleet.now = datetime.now(UTC).replace(microsecond=0)
        gitea.post("/orgs", {"username": fleet.owner})
        gitea.add_person(fleet.bot, *scopes)
        fleet.configure(api=api)
        fleet.populate(sites)
        fleet.calls()
        return fleet

    def beside(self, root: Path, install: str) -> "ForgeFleet":
        """Another installation, with files of its own and the same repositories and account."""
        other = ForgeFleet(
            root, self.now, gitea=self.gitea, owner=self.owner, bot=self.bot, install=install
        )
        other.repos = dict(self.repos)
        for path in sorted((self.root / self.policies).iterdir()):
            other.write(path.name, path.read_text(encoding="utf-8"))
        other.configure()
        return other

    def configure(self, *, api: str = "", concurrency: int = 4, **limits: int) -> None:
        """Write the FanoutConfiguration; `limits`: callsPerMinute and creationsPerHour."""
        text = CONFIGURATION.format(
            install=self.install,
            concurrency=concurrency,
            host=self.gitea.host,
            api=api or self.gitea.api,
            secret=SECRET,
            limits="".join(f", {name}: {limit}" for name, limit in limits.items()),
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
        repo = self.hosted(name)
        if first:
            repo.commit("main", {"README.md": f"# {name}\n"}, "first commit")
            self._await_content(name)
        if declare:
            url = self.gitea.git_url(name, owner=self.owner)
            self.write(
                f"repository-{name}.yaml", REPOSITORY.format(name=name, url=url, secret=SECRET)
            )
        return repo

    def hosted(self, name: str) -> GiteaRepo:
        """Create an empty repository on the server; fanout and people may write to it."""
        writers = tuple({self.bot, *PEOPLE} - {ADMIN})
        on_disk = self.gitea.repository(name, owner=self.owner, writers=writers, private=True)
        work = self.root / "clones" / f"{name}.git"
        repo = GiteaRepo(on_disk.path, gitea=self.gitea, owner=self.owner, work=work)
        self.repos[name] = repo
        return repo

    # ---- the program ---------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Variables with the token, which child processes need."""
        return {f"FANOUT_SECRET_{SECRET.upper()}": f"{self.bot}:{self.gitea.tokens[self.bot]}"}

    def run(self, *args: str, files: bool = True) -> Result:
        """One command line, in process, at the fleet's time."""
        with mock.patch.dict(os.environ, self.environment()):
            return super().run(*args, files=files)

    def sweep(self, *args: str) -> Result:
        """Sweep when the server is done with all before; else a pass merges nothing."""
        if self.gitea.supervisor is not None:
            self.await_checks()
        return super().sweep(*args)

    def settings(self) -> Settings:
        """Settings from the flags that `run` gives."""
        return replace(super().settings(), config=Path(self.options[1]))

    @contextlib.contextmanager
    def opened(self) -> Iterator[Program]:
        """The program, open for several passes at the fleet's time."""
        with mock.patch.dict(os.environ, self.environment()), super().opened() as program:
            yield program

    # ---- the server ----------------------------------------------------------------------------

    def path(self, repo: str) -> str:
        """Path of a repository in the API."""
        return f"/repos/{self.owner}/{repo}"

    def requests(self, repo: str) -> list[dict[str, Any]]:
        """All pull requests, in the order of their numbers.

        With number, state (open, closed, merged), title (without the prefix of drafts), draft,
        head and base (branches), commit (of the head), labels, author, body, merged_by and
        merge_commit.
        """
        path = f"{self.path(repo)}/pulls"
        numbers = sorted(it["number"] for it in self._all(f"{path}?state=all"))
        # The list leaves out who merged.
        return [read_request(self.gitea.get(f"{path}/{number}")) for number in numbers]

    def only_request(self, repo: str) -> dict[str, Any]:
        """The one pull request of a repository."""
        (request,) = self.requests(repo)
        return request

    def review(
        self, repo: str, number: int, by: str, verdict: str = "APPROVED", *, commit: str = ""
    ) -> int:
        """APPROVED, REQUEST_CHANGES or COMMENT, of the head or of an older commit."""
        self.await_checks()  # the head is the one before while a push is worked off
        body = {"event": verdict, "body": "read", **({"commit_id": commit} if commit else {})}
        path = f"{self.path(repo)}/pulls/{number}/reviews"
        return int(self.gitea.post(path, body, by=by)["id"])

    def dismiss(self, repo: str, number: int, review: int) -> None:
        path = f"{self.path(repo)}/pulls/{number}/reviews/{review}/dismissals"
        self.gitea.post(path, {"message": "no"})

    def merge(self, repo: str, number: int, by: str = "ann", style: str = "merge") -> None:
        """Merge as a person: merge, squash, rebase, rebase-merge or fast-forward-only."""
        path = f"{self.path(repo)}/pulls/{number}/merge"
        self.await_checks()
        self.gitea.post(path, {"Do": style}, by=by)

    def close(self, repo: str, number: int, by: str = "ann") -> None:
        self._edit(repo, number, {"state": "closed"}, by)

    def reopen(self, repo: str, number: int, by: str = "ann") -> None:
        self._edit(repo, number, {"state": "open"}, by)

    def retitle(self, repo: str, number: int, title: str, by: str = "ann") -> None:
        self._edit(repo, number, {"title": title}, by)

    def mark_ready(self, repo: str, number: int, by: str = "ann") -> None:
        """Let a pull request be a draft no longer, as a person."""
        self.retitle(repo, number, "mine", by)

    def rewrite(self, repo: str, number: int, text: str, by: str = "ann") -> None:
        """Change the text of a pull request."""
        self._edit(repo, number, {"body": text}, by)

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
        labels = f"{self.path(repo)}/labels"
        if name not in {it["name"] for it in self._all(labels)}:
            self.gitea.post(labels, {"name": name, "color": "#cccccc"})
        self.gitea.post(f"{self.path(repo)}/issues/{number}/labels", {"labels": [name]}, by=by)

    def unlabel(self, repo: str, number: int, name: str, by: str = "ann") -> None:
        path = f"{self.path(repo)}/issues/{number}/labels"
        (label,) = (it["id"] for it in self.gitea.get(path) if it["name"] == name)
        self.gitea.ask("DELETE", f"{path}/{label}", by=by)

    def status(
        self, repo: str, commit: str, context: str, state: str = "success", by: str = "ann"
    ) -> None:
        """Set a commit status: success, pending, failure or error."""
        path = f"{self.path(repo)}/statuses/{commit}"
        self.gitea.post(path, {"context": context, "state": state}, by=by)

    def statuses(self, repo: str, commit: str) -> dict[tuple[str, str], str]:
        """The newest state of each context and creator."""
        answers = self._all(f"{self.path(repo)}/commits/{commit}/statuses")
        answers.sort(key=lambda it: it["id"])  # instants are of whole seconds
        return {(it["context"], it["creator"]["login"]): it["status"] for it in answers}

    def protect(self, repo: str, branch: str = "main", **rules: object) -> None:
        """Protect a branch, or change the rules of one: names as in Gitea's API."""
        path = f"{self.path(repo)}/branch_protections"
        if branch in {it["rule_name"] for it in self.gitea.get(path)}:
            self.gitea.ask("PATCH", f"{path}/{branch}", rules)
        else:
            self.gitea.post(path, {"rule_name": branch, **rules})

    def rename_branch(self, repo: str, branch: str, name: str) -> None:
        path = f"{self.path(repo)}/branches/{branch}"
        self.gitea.ask("PATCH", path, {"name": name})

    def delete_branch(self, repo: str, branch: str, by: str = "ann") -> None:
        self.gitea.ask("DELETE", f"{self.path(repo)}/branches/{branch}", by=by)

    @property
    def host(self) -> str:
        return self.gitea.host

    def page(self, repo: str, number: int) -> str:
        """The address that the forge gives a pull request."""
        return str(self.gitea.get(f"{self.path(repo)}/pulls/{number}")["html_url"])

    def retarget(self, repo: str, number: int, branch: str, by: str = "ann") -> None:
        self.await_checks()
        self._edit(repo, number, {"base": branch}, by)

    def open_request(self, repo: str, head: str, base: str, title: str, by: str = "ann") -> int:
        """Open a pull request as a person; return its number."""
        opening = {"head": head, "base": base, "title": title}
        return int(self.gitea.post(f"{self.path(repo)}/pulls", opening, by=by)["number"])

    def links(self, repo: str, commit: str) -> set[str]:
        """Addresses that the statuses of a commit lead to."""
        statuses = self.gitea.get(f"{self.path(repo)}/commits/{commit}/statuses")
        return {it["target_url"] for it in statuses}

    def writes(self) -> list[str]:
        """Calls of the API by fanout since this or `calls` was asked last that may write."""
        return [it for it in self.calls() if not it.startswith("GET ")]

    def calls(self) -> list[str]:
        """Calls of the API by fanout since this was asked last: "GET /user 200"."""
        calls = [it for it in self.gitea.calls(self.bot) if ".git/" not in it]
        new, self.seen_calls = calls[self.seen_calls :], len(calls)
        return new

    def await_checks(self) -> None:
        """Wait until the server is done with all that was pushed."""
        self.gitea.await_checks(self.owner)

    def _await_content(self, repo: str) -> None:
        """Wait until the server, which does so after the push, notes that there is a commit."""
        await_condition(lambda: not self.gitea.get(self.path(repo))["empty"], f"{repo} stays empty")

    def _edit(self, repo: str, number: int, change: dict[str, Any], by: str) -> None:
        self.gitea.ask("PATCH", f"{self.path(repo)}/pulls/{number}", change, by=by)

    def _all(self, path: str) -> list[Any]:
        entries: list[Any] = []
        for page in itertools.count(1):
            separator = "&" if "?" in path else "?"
            part = self.gitea.get(f"{path}{separator}limit=50&page={page}") or []
            entries += part
            if len(part) < 50:
                return entries
        raise AssertionError


def read_request(answer: dict[str, Any]) -> dict[str, Any]:
    """A pull request of the API, by the names of this module."""
    return {
        "number": answer["number"],
        "state": "merged" if answer["merged"] else answer["state"],
        "title": answer["title"].removeprefix("WIP: "),
        "draft": answer["draft"],
        "head": answer["head"]["label"],  # its ref is another one where the branch is deleted
        "base": answer["base"]["ref"],
        "commit": answer["head"]["sha"],
        "labels": sorted(it["name"] for it in answer["labels"]),
        "author": answer["user"]["login"],
        "body": answer["body"],
        "merged_by": (answer["merged_by"] or {}).get("login", ""),
        "merge_commit": answer["merge_commit_sha"] or "" if answer["merged"] else "",
    }
