"""The tests' GitHub: reading in batches, and what REST has no call for."""

import re
from pathlib import Path
from typing import Any

import pytest
from github_repository import Pull, Rules
from github_site import WRITES, Site

# Until an environment of an earlier lock file is made again by `make`.
pytest.importorskip("graphql")

from github_graphql import SCHEMA, count_nodes
from graphql import parse, validate

FOLDER = Path(__file__).parent / "github_api"
DOCUMENTS = (FOLDER / "documents.graphql").read_text(encoding="utf-8")
HEADER = re.compile(r"(?m)^(?:query|mutation|fragment) (\w+)")


def ask(site: Site, name: str, *, token: str = "", **variables: Any) -> dict[str, Any]:
    """Send one of the documents; return the whole answer."""
    body = {"query": document(name), "operationName": name, "variables": variables}
    graphql, credential = site.github.graphql, token or site.token
    status, _, received = site.github.ask("POST", graphql, body, token=credential)
    assert status == 200, received
    answer: dict[str, Any] = received
    return answer


def document(name: str) -> str:
    """Return one operation, with the fragment if it has a use for it."""
    starts = [it.start() for it in HEADER.finditer(DOCUMENTS)] + [len(DOCUMENTS)]
    parts = {
        found[1]: DOCUMENTS[found.start() : end]
        for found, end in zip(HEADER.finditer(DOCUMENTS), starts[1:], strict=True)
    }
    return parts[name] + (parts["Request"] if "...Request" in parts[name] else "")


def read(site: Site) -> dict[str, Any]:
    """Return the first request as GraphQL has it."""
    answer = ask(site, "Pulls", pulls=[site.repository.pulls[1].node])
    request: dict[str, Any] = answer["data"]["nodes"][0]
    return request


def test_the_documents_are_those_of_the_schema():
    assert not validate(SCHEMA, parse(DOCUMENTS))


def test_requests_of_repositories_are_read_in_one_batch(site: Site):
    pull = site.open()
    site.pass_time(minutes=1)
    site.ask("POST", f"/statuses/{pull.head_commit}", {"state": "pending", "context": "fanout"})
    site.github.check(site.repository, pull.head_commit, site.app, "test", "neutral")
    site.github.review(pull, "ann")
    site.ask("POST", "/issues/1/labels", {"labels": ["x"]})
    site.ask("POST", "/pulls/1/requested_reviewers", {"reviewers": ["bob"]})
    other = site.github.repository("acme/empty")
    answer = ask(site, "Requests", repositories=[site.repository.node, other.node])
    assert "errors" not in answer
    assert answer["data"]["viewer"]["login"] == "fanout[bot]"
    first, second = answer["data"]["nodes"]
    assert (second["nameWithOwner"], second["pullRequests"]["nodes"]) == ("acme/empty", [])
    [request] = first["pullRequests"]["nodes"]
    assert request["author"] == {"__typename": "Bot", "login": "fanout"}, "without [bot]"
    assert request["headRefOid"] == pull.head_commit
    assert [it["name"] for it in request["labels"]["nodes"]] == ["x"]
    [review] = request["reviews"]["nodes"]
    assert (review["author"]["login"], review["commit"]["oid"]) == ("ann", pull.head_commit)
    contexts = request["statusCheckRollup"]["contexts"]["nodes"]
    assert [(it["__typename"], it.get("context") or it.get("name")) for it in contexts] == [
        ("StatusContext", "fanout"),
        ("CheckRun", "test"),
    ]


def test_rules_are_read_without_being_an_administrator(site: Site):
    site.repository.protections["main"] = Rules(checks={"ci": None}, approvals=2)
    names = ("refs/heads/main", "refs/heads/draft", "refs/heads/none")
    refs = [
        ask(site, "Rules", repository=site.repository.node, branch=it)["data"]["nodes"][0]["ref"]
        for it in names
    ]
    rule = refs[0]["refUpdateRule"]
    assert (rule["requiredStatusCheckContexts"], rule["requiredApprovingReviewCount"]) == (
        ["ci"],
        2,
    )
    assert rule["viewerCanPush"]
    assert [it and it["refUpdateRule"] for it in refs[1:]] == [None, None]


def test_a_repository_that_is_not_seen_is_an_error_in_part(site: Site):
    site.open()
    hidden = site.github.repository("other/hidden", is_private=True)
    answer = ask(site, "Requests", repositories=[hidden.node, site.repository.node])
    assert [it and it["nameWithOwner"] for it in answer["data"]["nodes"]] == [None, "acme/site"]
    [error] = answer["errors"]
    assert (error["type"], error["path"]) == ("NOT_FOUND", ["nodes", 0])


def test_mergeability_is_unknown_until_asked_again(site: Site):
    pull = site.open()
    site.repository.pulls[1].asked = None
    states = [(it["mergeable"], it["mergeStateStatus"]) for it in (read(site), read(site))]
    assert states == [("UNKNOWN", "UNKNOWN"), ("MERGEABLE", "CLEAN")]
    merged = site.ask("PUT", "/pulls/1/merge", {"sha": pull.head_commit})
    assert read(site)["mergeCommit"]["oid"] == merged["sha"]
    assert read(site)["state"] == "MERGED"
    assert read(site)["mergedBy"]["login"] == "fanout"


def test_the_timeline_has_who_closed(site: Site):
    site.github.close(site.open(), "ann")
    [event] = read(site)["timelineItems"]["nodes"]
    assert event["actor"]["login"] == "ann"


def test_draft_and_ready_are_changed_here_only(site: Site):
    pull = site.open(draft=True)
    ask(site, "Ready", pull=pull.node)
    assert not site.ask("GET", "/pulls/1")["draft"]
    ask(site, "Draft", pull=pull.node)
    assert site.ask("GET", "/pulls/1")["draft"]


def enable(site: Site, head: str = "", method: str = "SQUASH") -> str:
    """Try to arm the request; return the message of the refusal, "" without one."""
    pull = site.repository.pulls[1]
    values = {"pull": pull.node, "head": head or pull.head_commit, "method": method}
    answer = ask(site, "EnableAutoMerge", **values)
    for error in answer.get("errors", ()):
        assert error["type"] == "UNPROCESSABLE"
        return str(error["message"])
    return ""


def arm(site: Site) -> str:
    """Open the request and arm it where the status `fanout` is required; return its head."""
    pull = site.open()
    site.repository.allows_auto_merge = True
    site.repository.rulesets["main"] = Rules(checks={"fanout": site.app.id})
    assert enable(site) == ""
    return pull.head_commit


@pytest.mark.parametrize(
    ("allowed", "rules", "head", "message"),
    [
        (False, Rules(), "0" * 40, "Auto merge is not allowed for this repository"),
        (True, Rules(), "0" * 40, "Head sha did not match"),
        (True, None, "", "Protected branch rules not configured"),
        (True, Rules(signatures=True), "", "is in clean status"),
    ],
)
def test_auto_merge_is_refused_in_githubs_words(
    site: Site, allowed: bool, rules: Rules | None, head: str, message: str
):
    site.open()
    site.repository.allows_auto_merge = allowed
    if rules is not None:
        site.repository.rulesets["main"] = rules
    site.ask("GET", "/pulls/1")
    assert message in enable(site, head)
    assert read(site)["autoMergeRequest"] is None


def test_auto_merge_merges_when_nothing_is_outstanding(site: Site):
    head = arm(site)
    assert site.ask("GET", "/pulls/1")["auto_merge"]["merge_method"] == "squash"
    assert read(site)["autoMergeRequest"]["mergeMethod"] == "SQUASH"
    site.ask("POST", f"/statuses/{head}", {"state": "success", "context": "fanout"})
    assert site.ask("GET", "/pulls/1")["merged"]


def test_auto_merge_stays_when_a_writer_pushes_and_merges_the_later_head(site: Site):
    arm(site)
    later = site.disk.commit("draft", {"c": "c\n"})
    assert read(site)["autoMergeRequest"] is not None
    site.ask("POST", f"/statuses/{later}", {"state": "success", "context": "fanout"})
    assert site.ask("GET", "/pulls/1")["merged"]
    assert "c" in site.disk.files("main")


def test_auto_merge_puts_a_request_into_the_queue_of_its_base(site: Site):
    head = arm(site)
    site.repository.rulesets["main"].queue = True
    assert read(site)["mergeQueueEntry"] is None
    site.ask("POST", f"/statuses/{head}", {"state": "success", "context": "fanout"})
    assert read(site)["mergeQueueEntry"]["state"] == "QUEUED"


def test_auto_merge_that_was_disabled_merges_nothing(site: Site):
    head = arm(site)
    ask(site, "DisableAutoMerge", pull=site.repository.pulls[1].node)
    site.ask("POST", f"/statuses/{head}", {"state": "success", "context": "fanout"})
    assert not site.ask("GET", "/pulls/1")["merged"]


def enqueue(site: Site, head: str) -> dict[str, Any]:
    return ask(site, "Enqueue", pull=site.repository.pulls[1].node, head=head)


def test_a_queued_request_has_a_place_until_it_is_taken_out(site: Site):
    pull = site.open()
    site.repository.rulesets["main"] = Rules(queue=True)
    assert "errors" in enqueue(site, "0" * 40)
    entry = enqueue(site, pull.head_commit)["data"]["enqueuePullRequest"]["mergeQueueEntry"]
    assert (entry["position"], entry["state"]) == (1, "QUEUED")
    assert read(site)["mergeQueueEntry"]["id"] == entry["id"]
    ask(site, "Dequeue", pull=pull.node)
    assert read(site)["mergeQueueEntry"] is None


def test_a_push_takes_a_request_out_of_the_queue(site: Site):
    pull = site.open()
    site.repository.rulesets["main"] = Rules(queue=True)
    enqueue(site, pull.head_commit)
    site.disk.commit("draft", {"c": "c\n"})
    assert read(site)["mergeQueueEntry"] is None


def open_two(site: Site) -> list[Pull]:
    """Put two requests of different files into the queue, whose check is `fanout`."""
    site.repository.rulesets["main"] = Rules(queue=True, checks={"fanout": None})
    site.disk.git("branch", "second", "main")
    site.disk.commit("second", {"b.txt": "second\n"})
    pulls = [site.open(), site.open(head="second")]
    for pull in pulls:
        set_status(site, pull.head_commit)
        answer = ask(site, "Enqueue", pull=pull.node, head=pull.head_commit)
        assert "errors" not in answer
        site.pass_time(seconds=1)
    site.github.run_queue(site.repository)
    return pulls


def set_status(site: Site, commit: str | None, state: str = "success") -> None:
    site.ask("POST", f"/statuses/{commit}", {"state": state, "context": "fanout"})


def test_the_queue_merges_commits_of_its_own_once_these_have_passed(site: Site):
    first, second = open_two(site)
    entry = read(site)["mergeQueueEntry"]
    assert entry["state"] == "AWAITING_CHECKS"
    assert entry["headCommit"]["oid"] == first.queue_commit == second.queue_base
    assert first.queue_commit not in (None, first.head_commit)
    queued = site.disk.refs("refs/heads/gh-readonly-queue/main/")
    assert [*queued.values()] == [first.queue_commit, second.queue_commit]
    set_status(site, second.queue_commit)
    site.github.run_queue(site.repository)
    assert [it.state for it in (first, second)] == ["open", "open"], "the first is outstanding"
    set_status(site, first.queue_commit)
    site.github.run_queue(site.repository)
    assert [it["merged"] for it in (site.ask("GET", f"/pulls/{n}") for n in (1, 2))] == [True, True]
    assert site.disk.object_id("main") == second.merge_commit
    assert not site.disk.refs("refs/heads/gh-readonly-queue/")


def test_a_request_whose_check_fails_falls_out_and_the_others_are_built_again(site: Site):
    first, second = open_two(site)
    earlier = second.queue_commit
    set_status(site, first.queue_commit, "failure")
    site.github.run_queue(site.repository)
    assert read(site)["mergeQueueEntry"] is None
    [event] = read(site)["timelineItems"]["nodes"]
    assert (event["__typename"], event["reason"]) == ("RemovedFromMergeQueueEvent", "CI_FAILURE")
    assert second.queue_commit not in (None, earlier)
    assert second.queue_base == site.disk.object_id("main")


def test_a_queue_that_is_removed_lets_its_requests_go(site: Site):
    pulls = open_two(site)
    del site.repository.rulesets["main"]
    site.github.run_queue(site.repository)
    assert [it.events[-1].reason for it in pulls] == ["QUEUE_CLEARED"] * 2
    assert not site.disk.refs("refs/heads/gh-readonly-queue/")


@pytest.mark.parametrize("case", ["no queue", "check outstanding"])
def test_a_request_that_cannot_be_merged_now_is_not_queued(site: Site, case: str):
    pull = site.open()
    if case == "check outstanding":
        site.repository.rulesets["main"] = Rules(queue=True, checks={"ci": None})
    [error] = enqueue(site, pull.head_commit)["errors"]
    assert error["type"] == "UNPROCESSABLE"


def test_a_permission_that_is_missing_is_an_error(site: Site):
    pull = site.open()
    reading = {**WRITES, "pull_requests": "read"}
    reader = site.github.token(site.github.installation(site.app, "acme", permissions=reading))
    [error] = ask(site, "Ready", token=reader, pull=pull.node)["errors"]
    assert (error["type"], error["message"]) == (
        "FORBIDDEN",
        "Resource not accessible by integration",
    )


def test_a_document_reads_at_most_500000_nodes(site: Site):
    text, too_large = document("Requests"), document("Requests").replace("first: 30", "first: 50")
    ids = {"repositories": [f"R_{number}" for number in range(50)]}
    assert count_nodes(parse(text), ids)[0] <= 500_000 < count_nodes(parse(too_large), ids)[0]
    body = {"query": too_large, "variables": ids}
    _, _, answer = site.github.ask("POST", site.github.graphql, body, token=site.token)
    assert [it["type"] for it in answer["errors"]] == ["MAX_NODE_LIMIT_EXCEEDED"]


def test_documents_have_a_limit_of_points_beside_that_of_calls(site: Site):
    site.github.limits.hourly["graphql"] = 4
    answers = [ask(site, "Requests", repositories=[site.repository.node]) for _ in range(2)]
    assert [it["data"]["rateLimit"]["cost"] for it in answers] == [2, 2]
    assert [it["data"]["rateLimit"]["remaining"] for it in answers] == [2, 0]
    body = {"query": document("Requests"), "variables": {"repositories": []}}
    status, headers, _ = site.github.ask("POST", site.github.graphql, body, token=site.token)
    assert (status, headers["X-RateLimit-Resource"]) == (403, "graphql")
    assert site.try_call("GET", "")[0] == 200


def test_a_field_that_is_not_in_the_schema_fails_the_test_by_name(site: Site):
    body = {"query": "{ viewer { email } }"}
    assert site.github.ask("POST", site.github.graphql, body, token=site.token)[0] == 500
    [violation] = site.github.violations
    assert "Cannot query field 'email' on type 'User'" in violation
    site.github.violations.clear()
