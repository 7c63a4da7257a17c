"""The tests' GitHub: each row is a fact of the real one, asked with plain HTTP and git."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from github_calls import Answer
from github_repository import METHODS, Pull, Repository, Rules
from github_server import GitHub, running_github

START = datetime(2026, 12, 1, tzinfo=UTC)
WRITES = {"contents": "write", "pull_requests": "write", "statuses": "write", "checks": "read"}


class Site:
    """A repository `acme/site` with a request from `draft` to `main`, and who asks about it."""

    def __init__(self, github: GitHub) -> None:
        self.github = github
        self.now = START
        github.state.clock = lambda: self.now
        self.repository = github.repository("acme/site", writers=("ann", "bob"), readers=("eve",))
        self.disk = github.on_disk(self.repository)
        self.disk.commit("main", {"a.txt": "a\n", "b.txt": "b\n"})
        self.disk.git("branch", "draft", "main")
        self.disk.commit("draft", {"a.txt": "new\n"}, "change a")
        self.app = github.app("fanout")
        self.installation = github.installation(self.app, "acme", **WRITES)
        self.token = github.token(self.installation)

    def pass_time(self, **time: float) -> None:
        self.now += timedelta(**time)

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Call the API below the repository as the App; return the JSON of a success."""
        status, _, answer = self.try_call(method, path, body, **options)
        assert status < 300, answer
        return answer

    def try_call(
        self, method: str, path: str, body: Any = None, *, token: str = "", **options: Any
    ) -> tuple[int, dict[str, str], Any]:
        path = path if path.startswith("//") else f"//repos/acme/site{path}"
        return self.github.ask(method, path[1:], body, token=token or self.token, **options)

    def open(self, **body: Any) -> Pull:
        """Open the request; return what the server has of it."""
        values = {"title": "Change a", "head": "draft", "base": "main", **body}
        return self.repository.pulls[self.ask("POST", "/pulls", values)["number"]]

    def merge(self, **body: Any) -> tuple[int, str]:
        """Try to merge the first request; return status and message."""
        status, _, answer = self.try_call("PUT", "/pulls/1/merge", body)
        return status, answer["message"]


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with running_github(tmp_path / "github") as server:
        yield server


@pytest.fixture
def site(github: GitHub) -> Site:
    return Site(github)


def git(folder: Path, *arguments: str) -> str:
    """Run git; return what it printed, of a failure too."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, "GIT_ALLOW_PROTOCOL": "file:http"},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.stdout + done.stderr


# Requests


def test_a_request_is_opened_as_what_acts_for_the_app(site: Site):
    site.open(body="text")
    pull = site.ask("GET", "/pulls/1")
    assert (pull["number"], pull["state"], pull["body"]) == (1, "open", "text")
    assert (pull["user"]["login"], pull["user"]["type"]) == ("fanout[bot]", "Bot")
    assert pull["head"]["sha"] == site.disk.object_id("draft")
    assert site.disk.object_id("refs/pull/1/head") == pull["head"]["sha"]
    assert "merge_commit_sha" not in pull


def test_mergeable_is_null_until_asked_again_and_after_each_change(site: Site):
    site.open()  # answers with the request, and so has asked
    site.repository.pulls[1].asked = None
    seen = [site.ask("GET", "/pulls/1")["mergeable"] for _ in range(2)]
    site.disk.commit("draft", {"c.txt": "c\n"})
    seen += [site.ask("GET", "/pulls/1")["mergeable"] for _ in range(2)]
    assert seen == [None, True, None, True]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"head": "none"}, "head"),
        ({"base": "none"}, "base"),
        ({"head": "same"}, "No commits between main and same"),
        ({}, "A pull request already exists for acme:draft."),
        ({"base": "other", "draft": True}, "Draft pull requests are not supported"),
        ({"base": "other", "body": "x" * 65_537}, "body is too long"),
    ],
)
def test_a_request_that_cannot_be_is_422(site: Site, body: dict[str, Any], message: str):
    site.open()
    site.disk.git("branch", "same", "main")
    site.disk.git("branch", "other", "main")
    site.repository.allows_drafts = False
    values = {"title": "t", "head": "draft", "base": "main", **body}
    status, _, answer = site.try_call("POST", "/pulls", values)
    [error] = answer["errors"]
    assert (status, answer["message"]) == (422, "Validation Failed")
    assert message in (error.get("message") or error["field"])


def test_lists_are_pages_of_at_most_100_with_links(site: Site):
    for number in range(5):
        site.disk.git("branch", f"d{number}", "draft")
        site.open(head=f"d{number}")
    _, headers, page = site.try_call("GET", "/pulls?per_page=2&page=2")
    assert [it["number"] for it in page] == [3, 2]
    links = dict(part.split("; ")[::-1] for part in headers["Link"].split(", "))
    assert links.keys() == {'rel="prev"', 'rel="next"', 'rel="last"', 'rel="first"'}
    following = links['rel="next"'].strip("<>")
    _, headers, page = site.github.ask("GET", following, token=site.token)
    assert [it["number"] for it in page] == [1]
    assert 'rel="next"' not in headers["Link"]
    assert "Link" not in site.try_call("GET", "/pulls?per_page=500")[1]


def test_requests_are_filtered_by_exact_head_base_and_state(site: Site):
    site.disk.git("branch", "draft2", "draft")
    site.open()
    site.open(head="draft2")
    numbers = {
        query: [it["number"] for it in site.ask("GET", f"/pulls?{query}")]
        for query in ("head=acme:draft", "head=other:draft", "base=none", "state=closed")
    }
    site.ask("PATCH", "/pulls/1", {"state": "closed"})
    closed = site.ask("GET", "/pulls?state=closed&sort=updated&direction=desc")
    assert numbers == {
        "head=acme:draft": [1],
        "head=other:draft": [],
        "base=none": [],
        "state=closed": [],
    }
    assert [it["number"] for it in closed] == [1]


def test_title_text_and_state_are_edited_and_who_closed_is_an_event(site: Site):
    site.open()
    site.ask("PATCH", "/pulls/1", {"title": "t", "body": "new", "state": "closed"})
    site.ask("PATCH", "/pulls/1", {"state": "open"})
    site.github.close(site.repository.pulls[1], "ann")
    events = site.ask("GET", "/issues/1/events")
    assert [(it["event"], it["actor"]["login"]) for it in events] == [
        ("closed", "fanout[bot]"),
        ("reopened", "fanout[bot]"),
        ("closed", "ann"),
    ]
    apps = [it["performed_via_github_app"] for it in events]
    assert [app and app["slug"] for app in apps] == ["fanout", "fanout", None]


def test_a_request_whose_branch_is_deleted_is_closed_and_not_opened_again(site: Site):
    site.open()
    site.ask("DELETE", "/git/refs/heads/draft")
    assert site.ask("GET", "/pulls/1")["state"] == "closed"
    assert site.try_call("PATCH", "/pulls/1", {"state": "open"})[0] == 422
    for branch in ("draft", "main"):
        assert site.try_call("DELETE", f"/git/refs/heads/{branch}")[0] == 422


def test_labels_are_created_by_naming_them(site: Site):
    site.open()
    labels = site.ask("POST", "/issues/1/labels", {"labels": ["fanout/prod eu", "b"]})
    assert [(it["name"], it["color"]) for it in labels] == [
        ("fanout/prod eu", "ededed"),
        ("b", "ededed"),
    ]
    rest = site.ask("DELETE", "/issues/1/labels/fanout%2Fprod%20eu")
    assert [it["name"] for it in rest] == ["b"]
    assert site.try_call("DELETE", "/issues/1/labels/none")[0] == 404


@pytest.mark.parametrize(
    ("body", "members", "status"),
    [
        ({"reviewers": ["ann", "eve"]}, "", 201),
        ({"reviewers": ["ann", "nobody"]}, "", 422),
        ({"reviewers": ["fanout[bot]"]}, "", 422),
        ({"team_reviewers": ["ops"]}, "", 403),
        ({"team_reviewers": ["ops"]}, "read", 201),
    ],
)
def test_one_reviewer_without_access_refuses_all_and_teams_need_members(
    site: Site, body: dict[str, Any], members: str, status: int
):
    pull = site.open()
    site.repository.teams.add("ops")
    site.installation.permissions.update({"members": members} if members else {})
    answered, headers, _ = site.try_call("POST", "/pulls/1/requested_reviewers", body)
    assert answered == status
    assert bool(pull.reviewers or pull.teams) == (status == 201)
    if status == 403:
        assert "members=read" in headers["X-Accepted-GitHub-Permissions"]


def test_a_dismissed_review_replaces_its_verdict_and_a_commit_may_be_lost(site: Site):
    pull = site.open()
    review = site.github.review(pull, "ann")
    site.github.review(pull, "bob", "CHANGES_REQUESTED", commit=None)
    site.github.dismiss(review)
    assert [
        (it["user"]["login"], it["state"], it["commit_id"])
        for it in site.ask("GET", "/pulls/1/reviews")
    ] == [("ann", "DISMISSED", pull.head_commit), ("bob", "CHANGES_REQUESTED", None)]


def test_changed_files_have_their_old_names_and_stay_after_the_merge(site: Site):
    site.disk.commit("draft", {"b.txt": None, "c/b.txt": "b\n", "new": "n\n"})
    site.open()
    before = site.ask("GET", "/pulls/1/files")
    assert [(it["filename"], it["status"], it.get("previous_filename")) for it in before] == [
        ("a.txt", "modified", None),
        ("c/b.txt", "renamed", "b.txt"),
        ("new", "added", None),
    ]
    site.ask("PUT", "/pulls/1/merge", {})
    assert site.ask("GET", "/pulls/1/files") == before


def test_a_comparison_has_commits_and_files(site: Site):
    site.disk.commit("main", {"z": "z\n"})
    compared = site.ask("GET", "/compare/main...draft")
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 1, 1)
    assert [it["commit"]["message"] for it in compared["commits"]] == ["change a\n"]
    assert [it["filename"] for it in compared["files"]] == ["a.txt"]
    assert site.try_call("GET", "/compare/main...none")[0] == 404


def test_a_search_finds_an_apps_requests_by_its_slug(site: Site):
    site.open()
    for query, count in {
        "is:pr author:app/fanout": 1,
        "is:pr author:fanout": 0,
        "is:pr repo:acme/site updated:>=2026-12-02T00:00:00Z": 0,
        "is:pr is:open head:dra": 1,
    }.items():
        _, _, found = site.try_call("GET", f"//search/issues?q={query.replace(' ', '+')}")
        assert found["total_count"] == len(found["items"]) == count, query


# Statuses and rules


def test_statuses_are_newest_first_with_their_creator(site: Site):
    head = site.disk.object_id("draft")
    for state in ("pending", "success"):
        values = {"state": state, "context": "fanout", "description": state}
        site.ask("POST", f"/statuses/{head}", values)
    assert [
        (it["context"], it["state"], it["creator"]["login"])
        for it in site.ask("GET", "/commits/draft/statuses")
    ] == [("fanout", "success", "fanout[bot]"), ("fanout", "pending", "fanout[bot]")]


def test_a_commit_has_at_most_1000_statuses_of_a_context(site: Site):
    head = site.disk.object_id("draft")
    site.ask("POST", f"/statuses/{head}", {"state": "success", "context": "full"})
    site.repository.statuses[head] *= 1_000
    values = {"state": "success", "context": "full"}
    assert site.try_call("POST", f"/statuses/{head}", values)[0] == 422
    assert site.try_call("POST", f"/statuses/{head}", {**values, "context": "other"})[0] == 201
    assert site.try_call("POST", f"/statuses/{'0' * 40}", values)[0] == 422


def test_check_runs_are_the_newest_of_each_name_and_app(site: Site):
    head, ci = site.disk.object_id("draft"), site.github.app("ci")
    for conclusion in ("failure", "neutral"):
        site.github.check(site.repository, head, ci, "test", conclusion)
    site.github.check(site.repository, head, ci, "build", None)
    latest = site.ask("GET", f"/commits/{head}/check-runs?filter=latest")
    assert [
        (it["name"], it["status"], it["conclusion"], it["app"]["slug"])
        for it in latest["check_runs"]
    ] == [("build", "in_progress", None, "ci"), ("test", "completed", "neutral", "ci")]
    assert site.ask("GET", f"/commits/{head}/check-runs?filter=all")["total_count"] == 3


def test_rulesets_and_classic_protection_are_read_in_two_places(site: Site):
    site.repository.rulesets["main"] = Rules(
        checks={"fanout": site.app.id, "ci": None},
        approvals=2,
        methods=("squash",),
        linear_history=True,
        signatures=True,
        queue=True,
    )
    site.repository.protections["main"] = Rules(checks={"old": None})
    branch = site.ask("GET", "/branches/main")
    rules = {it["type"]: it.get("parameters") for it in site.ask("GET", "/rules/branches/main")}
    assert branch["protected"]
    assert branch["protection"]["required_status_checks"]["contexts"] == ["old"]
    assert rules.keys() == {
        "required_status_checks",
        "pull_request",
        "required_linear_history",
        "required_signatures",
        "merge_queue",
    }
    assert rules["required_status_checks"]["required_status_checks"] == [
        {"context": "fanout", "integration_id": site.app.id},
        {"context": "ci"},
    ]
    assert rules["pull_request"]["allowed_merge_methods"] == ["squash"]
    assert site.ask("GET", "/rules/branches/draft") == []
    assert not site.ask("GET", "/branches/draft")["protected"]
    assert site.try_call("GET", "/branches/none")[0] == 404


# Merging


@pytest.mark.parametrize("method", METHODS)
def test_a_merge_is_the_commit_that_git_has_on_the_base(site: Site, method: str):
    pull = site.open()
    base = site.disk.commit("main", {"z": "z\n"})
    status, _, answer = site.try_call(
        "PUT", "/pulls/1/merge", {"sha": pull.head_commit, "merge_method": method}
    )
    parents = site.disk.git("rev-parse", "main^@").split()
    assert (status, answer["merged"], answer["sha"]) == (200, True, site.disk.object_id("main"))
    assert parents == ([base, pull.head_commit] if method == "merge" else [base])
    assert site.disk.file("main", "a.txt") == "new\n"
    subject = site.disk.git("log", "-1", "--format=%s", "main")
    assert (
        subject
        == {
            "merge": "Merge pull request #1 from acme/draft",
            "squash": "Change a (#1)",
            "rebase": "change a",
        }[method]
    )
    merged = site.ask("GET", "/pulls/1")
    assert (merged["state"], merged["merged"]) == ("closed", True)
    assert merged["merged_by"]["login"] == "fanout[bot]"
    assert [it["event"] for it in site.ask("GET", "/issues/1/events")] == ["merged", "closed"]
    assert site.disk.object_id("draft") == pull.head_commit, "the branch stays"
    site.disk.fsck()


@pytest.mark.parametrize("method", ["merge", "squash"])
def test_a_merge_has_the_given_title_and_text(site: Site, method: str):
    site.open()
    values = {"merge_method": method, "commit_title": "Title", "commit_message": "Text\n\nA: b"}
    site.ask("PUT", "/pulls/1/merge", values)
    assert site.disk.git("log", "-1", "--format=%B", "main") == "Title\n\nText\n\nA: b"


def prepare(site: Site, case: str) -> None:
    """Bring the request, or the rules of its base, into a state that refuses a merge."""
    pull, repository = site.repository.pulls[1], site.repository
    match case:
        case "closed":
            site.github.close(pull, "ann")
        case "draft":
            pull.is_draft = True
        case "conflict":
            site.disk.commit("main", {"a.txt": "otherwise\n"})
        case "no check":
            repository.rulesets["main"] = Rules(checks={"fanout": None})
        case "check of another app":
            repository.rulesets["main"] = Rules(checks={"fanout": site.github.app("other").id})
            values = {"state": "success", "context": "fanout"}
            site.ask("POST", f"/statuses/{pull.head_commit}", values)
        case "no review":
            repository.protections["main"] = Rules(approvals=1)
            site.github.review(pull, "eve")  # who may not write
        case "dismissed":
            repository.rulesets["main"] = Rules(approvals=1)
            site.github.dismiss(site.github.review(pull, "ann"))
        case "behind":
            repository.rulesets["main"] = Rules(is_strict=True)
            site.disk.commit("main", {"z": "z\n"})
        case "queue":
            repository.rulesets["main"] = Rules(queue=True)
        case "style of the repository":
            repository.methods = ("squash",)
        case "style of a rule":
            repository.rulesets["main"] = Rules(methods=("rebase",))
        case "linear":
            repository.rulesets["main"] = Rules(linear_history=True)
        case "race":
            repository.before_merge = lambda: site.disk.commit("main", {"z": "z\n"})


@pytest.mark.parametrize(
    ("case", "words", "mergeable_state"),
    [
        ("closed", "Pull Request is not mergeable", "unknown"),
        ("draft", "Pull Request is still a draft", "draft"),
        ("conflict", "Pull Request is not mergeable", "dirty"),
        ("no check", 'Required status check "fanout" is expected.', "blocked"),
        ("check of another app", 'Required status check "fanout" is expected.', "blocked"),
        ("no review", "At least 1 approving review is required", "blocked"),
        ("dismissed", "At least 1 approving review is required", "blocked"),
        ("behind", "Head branch is out of date", "behind"),
        ("queue", "Changes must be made through the merge queue", "clean"),
        ("style of the repository", "Merge commits are not allowed", "clean"),
        ("style of a rule", "Merge commits are not allowed", "clean"),
        ("linear", "Merge commits are not allowed", "clean"),
        ("race", "Base branch was modified.", "clean"),
    ],
)
def test_a_merge_that_may_not_be_is_405_in_githubs_words(
    site: Site, case: str, words: str, mergeable_state: str
):
    site.open()
    prepare(site, case)
    before = site.disk.object_id("main")
    site.ask("GET", "/pulls/1")
    assert site.ask("GET", "/pulls/1")["mergeable_state"] == mergeable_state
    status, message = site.merge()
    assert (status, message[: len(words)]) == (405, words)
    assert case == "race" or site.disk.object_id("main") == before


def test_a_merge_of_another_head_is_409_and_after_a_race_it_succeeds(site: Site):
    old = site.open().head_commit
    head = site.disk.commit("draft", {"c": "c\n"})
    assert site.merge(sha=old)[0] == 409
    site.repository.before_merge = lambda: site.disk.commit("main", {"z": "z\n"})
    assert site.merge(sha=head)[0] == 405
    site.repository.before_merge = lambda: None
    assert site.merge(sha=head)[0] == 200


def test_required_checks_and_reviews_let_a_merge_through(site: Site):
    pull = site.open()
    site.repository.rulesets["main"] = Rules(checks={"fanout": site.app.id}, approvals=1)
    site.repository.protections["main"] = Rules(checks={"ci": None})
    values = {"state": "success", "context": "fanout"}
    site.ask("POST", f"/statuses/{pull.head_commit}", values)
    site.github.review(pull, "ann")
    site.github.check(site.repository, pull.head_commit, site.github.app("ci"), "ci", "skipped")
    assert site.merge()[0] == 200


def test_a_status_that_is_not_required_makes_it_unstable_and_mergeable(site: Site):
    pull = site.open()
    site.ask("POST", f"/statuses/{pull.head_commit}", {"state": "failure", "context": "x"})
    read = [site.ask("GET", "/pulls/1") for _ in range(2)][1]
    assert (read["mergeable"], read["mergeable_state"]) == (True, "unstable")
    assert site.merge()[0] == 200


def test_a_branch_is_deleted_after_the_merge_where_the_repository_says_so(site: Site):
    site.open()
    site.repository.deletes_merged_branches = True
    site.ask("PUT", "/pulls/1/merge", {})
    assert "refs/heads/draft" not in site.disk.refs()
    assert site.ask("GET", "/pulls/1")["merged"]


def test_a_later_merge_is_pending_and_then_known_by_its_commit(site: Site):
    pull = site.open()
    asked = site.ask("PUT", "/pulls/1/merge-async", {"sha": pull.head_commit})
    assert asked["status"] == "pending"
    assert site.try_call("PUT", "/pulls/1/merge-async", {})[0] == 409
    path = f"/pulls/1/merge-async/{asked['details']['uuid']}"
    results = [site.ask("GET", path) for _ in range(3)]
    assert [it["status"] for it in results] == ["pending", "merged", "merged"]
    assert results[1]["details"]["sha"] == site.disk.object_id("main")
    assert site.ask("PUT", "/pulls/1/merge-async", {})["status"] == "merged"


@pytest.mark.parametrize(
    ("action", "push", "status", "words"),
    [
        ("direct_merge", True, "failed", "Head branch was modified."),
        ("default", False, "enqueued", "Added"),
        ("merge_queue", False, "enqueued", "Added"),
    ],
)
def test_a_later_merge_keeps_its_head_and_may_be_queued(
    site: Site, action: str, push: bool, status: str, words: str
):
    site.open()
    site.repository.rulesets["main"] = Rules(queue=not push)
    asked = site.ask("PUT", "/pulls/1/merge-async", {"merge_action": action})
    if push:
        site.disk.commit("draft", {"c": "c\n"})
    path = f"/pulls/1/merge-async/{asked['details']['uuid']}"
    result = [site.ask("GET", path) for _ in range(2)][1]
    assert result["status"] == status
    assert result["details"]["message"].startswith(words)


@pytest.mark.parametrize("case", ["closed", "draft"])
def test_a_later_merge_of_what_is_closed_or_a_draft_is_400(site: Site, case: str):
    site.open()
    prepare(site, case)
    assert site.try_call("PUT", "/pulls/1/merge-async", {})[0] == 400


# Git over HTTP


def test_pushes_need_write_and_reach_the_requests(site: Site, tmp_path: Path):
    pull = site.open()
    work = tmp_path / "work"
    url = site.github.git_url(site.repository, site.token)
    git(tmp_path, "clone", "-q", "-b", "draft", url, "work")
    (work / "c.txt").write_text("c\n")
    git(work, "add", ".")
    author = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
    git(work, *author, "commit", "-qm", "by hand")
    head = git(work, "rev-parse", "HEAD").strip()
    reader = site.github.git_url(site.repository, site.github.token("eve"))
    assert "403" in git(work, "push", reader, "draft")
    assert "hidden ref" in git(work, "push", url, "draft:refs/pull/1/head")
    assert site.disk.object_id("draft") == pull.head_commit
    writer = site.github.git_url(site.repository, site.github.token("ann"))
    git(work, "push", writer, "draft", "draft:main")
    assert site.disk.object_id("main") == head
    merged = site.ask("GET", "/pulls/1")
    assert (merged["merged"], merged["merged_by"]["login"]) == (True, "ann")


def test_hidden_repositories_and_old_names_of_git(site: Site, tmp_path: Path):
    site.repository.is_private = True
    url = site.github.git_url(site.repository, site.token)
    assert "refs/heads/main" in git(tmp_path, "ls-remote", url)
    assert "not found" in git(
        tmp_path, "ls-remote", site.github.git_url(site.repository, site.github.token("zoe"))
    )
    site.github.rename(site.repository, "acme/renamed")
    assert "refs/heads/main" in git(tmp_path, "ls-remote", url)


# Credentials


@pytest.mark.parametrize(
    ("method", "path", "body", "missing"),
    [
        ("PUT", "/pulls/1/merge", {}, "contents=write"),
        ("PATCH", "/pulls/1", {"title": "t"}, "pull_requests=write"),
        ("POST", "/pulls", {"head": "draft", "base": "main"}, "pull_requests=write"),
        ("GET", "/pulls/1", None, "pull_requests=read, contents=read"),
        ("GET", "/commits/draft/check-runs", None, "checks=read"),
        ("DELETE", "/git/refs/heads/draft", None, "contents=write"),
    ],
)
def test_a_permission_that_is_missing_is_403_and_named(
    site: Site, method: str, path: str, body: Any, missing: str
):
    site.open()
    site.installation.permissions.clear()
    status, headers, answer = site.try_call(method, path, body)
    assert (status, answer["message"]) == (403, "Resource not accessible by integration")
    assert headers["X-Accepted-GitHub-Permissions"] == missing
    reader = site.github.token("zoe", pull_requests="read")
    status, _, answer = site.try_call("PATCH", "/pulls/1", {"title": "t"}, token=reader)
    assert (status, answer["message"]) == (403, "Resource not accessible by personal access token")


def test_what_a_credential_does_not_see_is_404(site: Site):
    hidden = site.github.repository("acme/hidden", is_private=True)
    site.repository.is_private = True
    chosen = site.github.installation(
        site.app, "acme", repositories=(site.repository,), contents="read"
    )
    token = site.github.token(chosen)
    statuses = {
        name: site.try_call("GET", f"//repos/{name}", token=token)[0]
        for name in ("acme/site", hidden.full_name, "acme/none")
    }
    assert statuses == {"acme/site": 200, "acme/hidden": 404, "acme/none": 404}
    assert site.try_call("GET", "", token=site.github.token("zoe"))[0] == 404


def test_an_archived_repository_refuses_writes(site: Site):
    site.open()
    site.repository.is_archived = True
    assert site.ask("GET", "")["archived"]
    assert site.try_call("PATCH", "/pulls/1", {"title": "t"})[0] == 403


def assertion(site: Site, key: Path, **claims: Any) -> str:
    """Return a signed assertion of the App, as openssl signs it."""
    now = int(site.now.timestamp())
    values = {"iat": now - 60, "exp": now + 540, "iss": site.app.client_id, **claims}
    parts = [json.dumps(it).encode() for it in ({"alg": "RS256", "typ": "JWT"}, values)]
    text = ".".join(base64.urlsafe_b64encode(it).rstrip(b"=").decode() for it in parts)
    command = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    signed = subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout
    return f"{text}.{base64.urlsafe_b64encode(signed).rstrip(b'=').decode()}"


@pytest.fixture
def keys(tmp_path: Path) -> list[Path]:
    """Return the files of two private keys and the public key of the first."""
    files = [tmp_path / name for name in ("key", "other", "public")]
    for file in files[:2]:
        subprocess.run(["openssl", "genrsa", "-out", file, "2048"], check=True, capture_output=True)
    command = ["openssl", "rsa", "-in", files[0], "-pubout", "-out", files[2]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def test_an_installation_token_lasts_an_hour_and_has_what_was_asked_for(
    site: Site, keys: list[Path]
):
    key, other, public = keys
    site.app = site.github.app("signed", public)
    site.installation = site.github.installation(site.app, "acme", **WRITES)
    jwt = assertion(site, key)
    found = site.ask("GET", "/installation", token=jwt)
    path = f"//app/installations/{found['id']}/access_tokens"
    body = {"repositories": ["site"], "permissions": {"contents": "read"}}
    granted = site.ask("POST", path, body, token=jwt)
    assert found["id"] == site.installation.id
    assert len(granted["token"]) > 40
    assert granted["expires_at"] == "2026-12-01T01:00:00Z"
    assert granted["permissions"] == {"contents": "read"}
    assert site.ask("GET", "/branches/main", token=granted["token"])["name"] == "main"
    assert site.try_call("GET", "/pulls/1", token=granted["token"])[0] == 404 - 0
    site.pass_time(minutes=60)
    assert site.try_call("GET", "", token=granted["token"])[0] == 401
    now = int(site.now.timestamp())
    refused = {
        assertion(site, other): 401,
        assertion(site, key, iss="Iv0"): 401,
        assertion(site, key, exp=now + 601): 401,
        assertion(site, key, exp=now - 1): 401,
        assertion(site, key, iat=now + 60): 401,
        "none": 401,
    }
    for token, status in refused.items():
        assert site.try_call("POST", path, {}, token=token)[0] == status
    jwt = assertion(site, key)
    for wrong in ({"repositories": ["none"]}, {"permissions": {"administration": "read"}}):
        assert site.try_call("POST", path, wrong, token=jwt)[0] == 422
    site.installation.is_suspended = True
    status, _, answer = site.try_call("POST", path, {}, token=jwt)
    assert (status, answer["message"]) == (403, "This installation has been suspended")
    del site.github.state.installations[site.installation.id]
    assert site.try_call("POST", path, {}, token=jwt)[0] == 404


# Limits, and what happens on the way


def test_a_304_is_free_and_the_tag_is_of_one_token(site: Site):
    status, headers, _ = site.try_call("GET", "/pulls")
    known = {"If-None-Match": headers["ETag"]}
    again, unchanged, body = site.try_call("GET", "/pulls", headers=known)
    assert (status, again, body) == (200, 304, None)
    assert unchanged["X-RateLimit-Used"] == headers["X-RateLimit-Used"]
    renewed = site.github.token(site.installation)
    assert site.try_call("GET", "/pulls", headers=known, token=renewed)[0] == 200
    site.open()
    assert site.try_call("GET", "/pulls", headers=known)[0] == 200


@pytest.mark.parametrize("status", [403, 429])
def test_the_primary_limit_ends_with_its_hour(site: Site, status: int):
    site.github.limits.status, site.github.limits.hourly["core"] = status, 2
    answers = [site.try_call("GET", "") for _ in range(3)]
    assert [it[0] for it in answers] == [200, 200, status]
    assert [it[1]["X-RateLimit-Remaining"] for it in answers] == ["1", "0", "0"]
    assert answers[2][1]["X-RateLimit-Reset"] == str(int((START + timedelta(hours=1)).timestamp()))
    assert "Retry-After" not in answers[2][1]
    overview = site.ask("GET", "//rate_limit")
    assert overview["resources"]["core"]["remaining"] == 0
    assert "rate" not in overview
    site.pass_time(hours=1)
    assert site.try_call("GET", "")[0] == 200


@pytest.mark.parametrize("retry_after", [60, None])
@pytest.mark.parametrize(
    ("limits", "wait"),
    [
        ({"content_a_minute": 2}, {"minutes": 1}),
        ({"content_an_hour": 2}, {"hours": 1}),
        ({"points_a_minute": 14}, {"minutes": 1}),
    ],
)
def test_secondary_limits_are_told_with_and_without_retry_after(
    site: Site, limits: dict[str, int], wait: dict[str, int], retry_after: int | None
):
    head = site.disk.object_id("draft")
    site.github.limits.retry_after = retry_after
    for name, value in limits.items():
        setattr(site.github.limits, name, value)
    path, body = f"/statuses/{head}", {"state": "pending"}
    answers = [site.try_call("POST", path, body) for _ in range(3)]
    assert [it[0] for it in answers] == [201, 201, 403]
    assert "secondary rate limit" in answers[2][2]["message"]
    assert answers[2][1].get("Retry-After") == (retry_after and str(retry_after))
    assert answers[2][1]["X-RateLimit-Remaining"] != "0"
    site.pass_time(**wait)
    assert site.try_call("POST", path, body)[0] == 201


def test_installations_have_limits_of_their_own(site: Site):
    other = site.github.token(site.github.installation(site.app, "other"))
    used = [site.try_call("GET", "", token=it)[1]["X-RateLimit-Used"] for it in (site.token, other)]
    assert used == ["1", "1"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [("GET", "/pulls?state=all", None, 301), ("PATCH", "/pulls/1", {"title": "t"}, 307)],
)
def test_a_renamed_repository_is_found_by_its_id(
    site: Site, method: str, path: str, body: Any, status: int
):
    site.open()
    site.github.rename(site.repository, "group/new")
    answered, headers, answer = site.try_call(method, path, body)
    assert (answered, answer["url"]) == (status, headers["Location"])
    assert headers["Location"] == f"{site.github.api}/repositories/{site.repository.id}{path}"
    token = site.github.token("ann")
    assert site.github.ask(method, headers["Location"], body, token=token)[0] == 200
    by_id = f"{site.github.api}/repositories/{site.repository.id}"
    assert site.github.ask("GET", by_id, token=token)[2]["full_name"] == "group/new"


def test_an_answer_is_replaced_or_lost(site: Site):
    page = Answer(b"<html>Unicorn!</html>", 502, {"Content-Type": "text/html"})
    site.github.refuse("POST /repos/acme/site/pulls", page)
    values = {"title": "t", "head": "draft", "base": "main"}
    status, _, text = site.try_call("POST", "/pulls", values)
    assert (status, text, site.repository.pulls) == (502, "<html>Unicorn!</html>", {})
    site.github.lose("POST /repos/acme/site/pulls")
    with pytest.raises(OSError, match="closed connection"):
        site.try_call("POST", "/pulls", values)
    assert site.repository.pulls.keys() == {1}
    assert site.try_call("POST", "/pulls", values)[0] == 422


def test_a_test_acts_between_two_calls(site: Site):
    old = site.open().head_commit
    site.github.before = lambda call: "merge" in call and site.disk.commit("draft", {"c": "c\n"})
    assert site.merge(sha=old)[0] == 409


@pytest.mark.parametrize(
    ("path", "headers", "message"),
    [
        ("//user", {}, "GET /user is not in the description"),
        ("/pulls?author=x", {}, "has no query author"),
        ("/pulls", {"X-GitHub-Api-Version": "2022-11-28"}, "asks for another version"),
    ],
)
def test_what_is_not_described_fails_the_test_by_name(
    site: Site, path: str, headers: dict[str, str], message: str
):
    assert site.try_call("GET", path, headers=headers)[0] == 500
    [violation] = site.github.violations
    assert message in violation
    site.github.violations.clear()


def test_the_block_of_a_server_ends_with_its_violations(tmp_path: Path):
    with (
        pytest.raises(AssertionError, match="GET /user is not"),
        running_github(tmp_path / "g") as it,
    ):
        it.ask("GET", "/user", token=it.token("ann"))


def test_calls_are_listed_with_what_was_answered(site: Site, github: GitHub):
    site.ask("GET", "/pulls?state=all")
    site.try_call("GET", "/pulls/9")
    assert github.calls == [
        "GET /repos/acme/site/pulls?state=all 200",
        "GET /repos/acme/site/pulls/9 404",
    ]


def test_repositories_are_kept_apart(github: GitHub):
    made: list[Repository] = [github.repository(f"acme/{name}") for name in ("a", "b")]
    assert made[0].path != made[1].path
    assert made[0].owner == made[1].owner
