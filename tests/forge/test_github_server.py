"""The tests' GitHub: requests, statuses and rules, and what a test may do to calls.

Each test, or row of its table, is a fact of the real GitHub, asked with plain HTTP and git.
"""

from pathlib import Path
from typing import Any

import pytest
from github_calls import Answer
from github_repository import Repository, Rules
from github_server import GitHub, running_github
from github_site import Site


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
        ({"title": None}, "title is missing"),
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
    values = {name: value for name, value in values.items() if value is not None}
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
def test_a_reviewer_without_access_refuses_all_and_teams_need_members(
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


def test_of_changed_files_there_are_3000_and_no_word_of_more(site: Site):
    site.disk.commit("draft", {f"many/{number}": f"{number}\n" for number in range(3_000)})
    site.open()
    _, headers, page = site.try_call("GET", "/pulls/1/files?per_page=100&page=30")
    assert len(page) == 100
    assert 'rel="next"' not in headers["Link"]


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
def test_a_call_that_is_not_described_fails_the_test_by_name(
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
