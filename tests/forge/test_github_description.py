"""What is kept of GitHub's description, and that nothing outside it passes."""

import pytest
from github_calls import HANDLERS
from github_description import (
    CALLS,
    DESCRIPTION,
    SCHEMAS,
    VERSION,
    NotDescribed,
    check_answer,
    check_request,
    complete,
    find_call,
)

URL = "https://git.example.com/api/v3/x"
PULL = "/repos/acme/site/pulls/7"


def test_the_source_is_named_with_version_and_license():
    source = DESCRIPTION["source"]
    assert source["version"] == VERSION
    assert source["package"].startswith("npm @octokit/openapi ")
    assert source["license"] == "MIT"


def test_each_described_call_is_answered_and_no_other():
    assert HANDLERS.keys() == CALLS.keys()


@pytest.mark.parametrize("name", ["pull-request", "pull-request-simple"])
def test_requests_are_those_of_the_version_without_their_merge_commit(name: str):
    for removed in ("merge_commit_sha", "assignee"):
        assert removed not in SCHEMAS[name]["properties"]
        assert removed not in SCHEMAS[name]["required"]
    assert set(SCHEMAS[name]["required"]) <= SCHEMAS[name]["properties"].keys()


def test_repositories_are_those_of_the_version():
    assert "use_squash_pr_title_as_default" not in SCHEMAS["full-repository"]["properties"]
    assert SCHEMAS["rate-limit-overview"]["required"] == ["resources"]


@pytest.mark.parametrize(
    ("method", "path", "name", "variables"),
    [
        ("GET", "/repos/a/b/branches/drafts/x", "branches/{branch}", {"branch": "drafts/x"}),
        ("DELETE", "/repos/a/b/git/refs/heads/d/x", "git/refs/{ref}", {"ref": "heads/d/x"}),
        ("GET", "/repos/a/b/compare/main...d/x", "compare/{basehead}", {"basehead": "main...d/x"}),
        ("GET", "/repos/a/b/rules/branches/m", "rules/branches/{branch}", {"branch": "m"}),
    ],
)
def test_a_call_is_found_by_its_path(method: str, path: str, name: str, variables: dict[str, str]):
    call = find_call(method, path)
    assert call.name == f"{method} /repos/{{owner}}/{{repo}}/{name}"
    assert call.variables == {"owner": "a", "repo": "b", **variables}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/user"),
        ("DELETE", PULL),
        ("GET", "/repos/acme/site/pulls/7/commits"),
        ("GET", "/repositories/7"),
    ],
)
def test_a_call_that_is_not_described_is_named(method: str, path: str):
    with pytest.raises(NotDescribed, match=f"{method} {path} is not in the description"):
        find_call(method, path)


@pytest.mark.parametrize(
    ("method", "path", "queries", "body", "message"),
    [
        ("GET", "/repos/a/b/pulls", {"author": "x"}, None, "has no query author"),
        ("GET", "/repos/a/b/pulls", {"state": "merged"}, None, "query state"),
        ("GET", "/repos/a/b/pulls", {"page": "first"}, None, "query page"),
        ("GET", "/search/issues", {}, None, "without the query q"),
        ("GET", PULL, {}, {"x": 1}, "has no body"),
        ("POST", "/repos/a/b/pulls", {}, {"title": "t", "head": "h"}, "'base' is a required"),
        ("PATCH", PULL, {}, {"draft": False}, "'draft' was unexpected"),
        ("PUT", f"{PULL}/merge", {}, {"merge_method": "ff"}, "'ff' is not one of"),
        ("PUT", f"{PULL}/merge-async", {}, {"bypass_rules": True}, "'bypass_rules'"),
    ],
)
def test_a_request_that_is_not_described_is_named(
    method: str, path: str, queries: dict[str, str], body: object, message: str
):
    call = find_call(method, path)
    with pytest.raises(NotDescribed, match=message) as raised:
        check_request(call, queries, body)
    assert str(raised.value).startswith(call.name)


@pytest.mark.parametrize(
    ("status", "edit", "message"),
    [
        (200, {"merge_commit_sha": None}, "'merge_commit_sha' was unexpected"),
        (200, {"number": "7"}, "'7' is not of type 'integer'"),
        (202, {}, "is not answered with 202"),
        (304, None, ""),
        (429, {"message": "slow down"}, ""),
        (429, {"wait": 3}, "'wait' was unexpected"),
        (502, None, ""),
    ],
)
def test_an_answer_that_is_not_described_is_named(
    status: int, edit: dict[str, object] | None, message: str
):
    call = find_call("GET", PULL)
    body = complete("pull-request", edit or {}, url=URL) if status == 200 else edit
    if not message:
        check_answer(call, status, body)
        return
    with pytest.raises(NotDescribed, match=message):
        check_answer(call, status, body)


@pytest.mark.parametrize(
    ("call", "status", "name"),
    [
        (("GET", PULL), 200, "pull-request"),
        (("GET", "/repos/a/b"), 200, "full-repository"),
        (("GET", "/repos/a/b/branches/main"), 200, "branch-with-protection"),
        (("POST", "/repos/a/b/statuses/0"), 201, "status"),
        (("GET", "/repos/a/b/compare/a...b"), 200, "commit-comparison"),
    ],
)
def test_a_completed_object_is_described(call: tuple[str, str], status: int, name: str):
    check_answer(find_call(*call), status, complete(name, {}, url=URL))
    with pytest.raises(NotDescribed):
        check_answer(find_call(*call), status, {})
