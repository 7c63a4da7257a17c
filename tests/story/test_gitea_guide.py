"""What docs/guides/gitea.md shows is so: its commands are run, and its table of rights is tried."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from forge_fleet import ForgeFleet
from gitea_server import ADMIN, Gitea, GiteaError, await_condition
from pages import play

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "gitea.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| .* \| `((?:git|[A-Z]+) .*)` \| `(.*)` \| (\S+) \|$", TEXT, re.MULTILINE)
SCOPES = {"write:repository", "write:issue", "read:user"}
IMPLIED = {"write:repository": "read:repository", "write:issue": "read:issue"}
pytestmark = pytest.mark.forge


@dataclass
class Caller:
    """Makes each call of the table once, in a repository of its own with an open request."""

    fleet: ForgeFleet
    repo: str = "edge"

    def calls(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        """Each call of the table, and a function that says whether it was allowed."""
        fleet, repo = self.fleet, self.fleet.repos[self.repo]
        path, gitea = fleet.path(self.repo), fleet.gitea
        commit = repo.commit("change", {"a.txt": "a\n"}, by="ann")
        repo.commit("drafts/two", {"b.txt": "b\n"}, by="ann")
        opening = {"head": "change", "base": "main", "title": "Change"}
        number = gitea.post(f"{path}/pulls", opening, by="ann")["number"]
        fleet.label(self.repo, number, "old")
        [label] = gitea.get(f"{path}/issues/{number}/labels")
        values = {
            "OWNER/NAME": f"{fleet.owner}/{self.repo}",
            "NUMBER": str(number),
            "COMMIT": commit,
            "BRANCH": "main",
            "LABEL": str(label["id"]),
            "DRAFT": "drafts/two",
        }
        bodies = {
            "/pulls": {"head": "drafts/two", "base": "main", "title": "Two"},
            "/pulls/NUMBER": {"title": "Other"},
            "/issues/NUMBER/labels": {"labels": ["old"]},
            "/labels": {"name": "new", "color": "#cccccc"},
            "/requested_reviewers": {"reviewers": ["bob"]},
            "/statuses/COMMIT": {"context": "fanout", "state": "success"},
            "/merge": {"Do": "merge", "head_commit_id": commit},
        }
        for call, _, _ in ROWS:
            method, _, where = call.partition(" ")
            if method == "git":
                yield call, lambda where=where: self.git(where)
                continue
            suffix = max((it for it in bodies if where.endswith(it)), key=len, default="")
            body = bodies[suffix] if method in ("POST", "PATCH") else None
            for name, value in values.items():
                where = where.replace(name, value)
            yield call, lambda ask=(method, where, body): self.api(*ask)

    def api(self, method: str, path: str, body: Any) -> bool:
        fleet = self.fleet
        fleet.await_checks()
        status, answer = fleet.gitea.ask(method, path, body, by=fleet.bot, check=False)
        # Who may not merge is told 405, like everybody while the branch does not allow it.
        assert status < 300 or status == 403 or "not allowed to merge" in str(answer), answer
        return status < 300

    def git(self, command: str) -> bool:
        fleet, repo = self.fleet, self.fleet.repos[self.repo]
        url = fleet.gitea.push_url(self.repo, owner=fleet.owner, by=fleet.bot)
        specs = ["main:refs/heads/drafts/three"] if command == "push" else []
        done = subprocess.run(
            ["git", command, "-q", url, *specs],
            cwd=repo.work,
            env={**os.environ, "GIT_ALLOW_PROTOCOL": "file:http"},
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def allowed(self) -> dict[str, bool]:
        return {call: ask() for call, ask in self.calls()}


@pytest.fixture
def caller(gitea: Gitea, tmp_path: Path) -> Caller:
    return Caller(ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}))


def test_the_table_has_every_call_of_the_program():
    assert len(ROWS) == 22


@pytest.mark.parametrize("missing", sorted({*SCOPES, *IMPLIED.values()}))
def test_without_a_scope_the_calls_that_need_it_are_refused(caller: Caller, missing: str):
    # Without a right to write there is still the one to read.
    granted = {it for it in SCOPES if missing not in (it, IMPLIED.get(it))}
    granted |= {IMPLIED[missing]} if missing in IMPLIED else set()
    caller.fleet.gitea.add_token(caller.fleet.bot, *granted)
    effective = granted | {IMPLIED[it] for it in granted & IMPLIED.keys()}
    assert caller.allowed() == {call: scope in effective for call, scope, _ in ROWS}


@pytest.mark.parametrize("right", ["read", "write"])
def test_a_right_allows_the_calls_that_the_page_says(caller: Caller, right: str):
    fleet = caller.fleet
    path = f"{fleet.path(caller.repo)}/collaborators/{fleet.bot}"
    fleet.gitea.ask("PUT", path, {"permission": right})
    assert caller.allowed() == {
        call: right == "write" or needed in ("none", "`read`") for call, _, needed in ROWS
    }


def test_a_team_needs_two_units(caller: Caller):
    fleet, gitea = caller.fleet, caller.fleet.gitea
    gitea.ask("DELETE", f"{fleet.path(caller.repo)}/collaborators/{fleet.bot}")
    team = {
        "name": "automation",
        "permission": "write",
        "units_map": {"repo.code": "write", "repo.pulls": "write"},
        "includes_all_repositories": True,
    }
    number = gitea.post(f"/orgs/{fleet.owner}/teams", team)["id"]
    gitea.ask("PUT", f"/teams/{number}/members/{fleet.bot}")
    assert caller.allowed() == {call: True for call, _, _ in ROWS}


def test_the_page_does_what_it_says(gitea: Gitea, tmp_path: Path, monkeypatch):
    fleet = prepare(gitea, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file:http")
    text = TEXT.replace("https://git.example.com", gitea.url)
    text = text.replace("git.example.com", gitea.host)
    text = text.replace("TOKEN-OF-AN-ADMINISTRATOR", gitea.tokens[ADMIN])
    text = text.replace("TOKEN-OF-ANN", gitea.tokens["ann"])
    first, rest = text.split("Store the account")

    def before(line: str) -> None:
        """Let Gitea check the requests: it refuses merges until it has."""
        if line == "fanout sweep" or "/merge " in line:
            fleet.await_checks()
        if "/reviews " in line:
            time.sleep(1)  # instants are whole seconds, and a review follows what it is about

    ran = play(first, monkeypatch)
    token = json.loads((tmp_path / "work-token.json").read_text(encoding="utf-8"))["sha1"]
    assert ran + play(rest.replace("TOKEN-OF-FANOUT", token), monkeypatch, before) >= 15
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"] * 3


def prepare(gitea: Gitea, root: Path) -> ForgeFleet:
    """What the page begins with: an organization, a package, and a repository for it."""
    gitea.post("/orgs", {"username": "acme"})
    fleet = ForgeFleet(root / "fleet", gitea=gitea, owner="acme", bot=ADMIN)
    fleet.now = datetime.now(UTC).replace(microsecond=0)
    for name in ("blueprints", "edge"):
        repo = fleet.hosted(name)
        repo.commit("main", {"README.md": f"# {name}\n"})
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n"
    blueprints = fleet.repos["blueprints"]
    commit = blueprints.commit("main", {"web/Kptfile": kptfile})
    blueprints.push(f"{commit}:refs/tags/web/v1")
    return fleet


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("block_on_outdated_branch", "The head branch is behind the base branch"),
        ("require_signed_commits", "wont sign"),
    ],
)
def test_rules_that_the_page_leaves_off_hold_a_request(caller: Caller, rule: str, words: str):
    number = behind(caller.fleet)
    caller.fleet.protect("edge", enable_push=False, **{rule: True})
    with pytest.raises(GiteaError, match=words):
        caller.fleet.merge("edge", number, caller.fleet.bot)


def test_a_dismissed_approval_is_one_of_the_commit_before(caller: Caller):
    fleet, number = caller.fleet, behind(caller.fleet)
    fleet.protect("edge", dismiss_stale_approvals=True)
    fleet.review("edge", number, "ann")
    fleet.repos["edge"].commit("change", {"b.txt": "b\n"}, by="bob")
    # Gitea works off a push some time after it.
    reviews = f"{fleet.path('edge')}/pulls/{number}/reviews"
    await_condition(lambda: fleet.gitea.get(reviews)[0]["dismissed"], "it is not dismissed")


def behind(fleet: ForgeFleet) -> int:
    """Open a request whose target branch has moved on."""
    repo, path = fleet.repos["edge"], fleet.path("edge")
    repo.commit("change", {"a.txt": "a\n"}, by="ann")
    opening = {"head": "change", "base": "main", "title": "Change"}
    number = fleet.gitea.post(f"{path}/pulls", opening, by=fleet.bot)["number"]
    repo.commit("main", {"c.txt": "c\n"})
    return int(number)
