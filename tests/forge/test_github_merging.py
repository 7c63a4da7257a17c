"""The tests' GitHub: what merges a request, and what refuses to."""

import pytest
from github_repository import METHODS, Rules
from github_site import Site


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
    ("action", "queue", "push", "status", "words"),
    [
        ("direct_merge", False, True, "failed", "Head branch was modified."),
        ("merge_queue", True, True, "failed", "Head branch was modified."),
        ("merge_queue", False, False, "failed", "The base branch has no merge queue."),
        ("default", True, False, "enqueued", "Added"),
        ("merge_queue", True, False, "enqueued", "Added"),
    ],
)
def test_a_later_merge_keeps_its_head_and_may_be_queued(
    site: Site, action: str, queue: bool, push: bool, status: str, words: str
):
    pull = site.open()
    site.repository.rulesets["main"] = Rules(queue=queue)
    asked = site.ask("PUT", "/pulls/1/merge-async", {"merge_action": action})
    if push:
        site.disk.commit("draft", {"c": "c\n"})
    path = f"/pulls/1/merge-async/{asked['details']['uuid']}"
    result = [site.ask("GET", path) for _ in range(2)][1]
    assert result["status"] == status
    assert result["details"]["message"].startswith(words)
    assert (pull in site.repository.queue()) == (status == "enqueued")


@pytest.mark.parametrize("case", ["closed", "draft"])
def test_a_later_merge_of_what_is_closed_or_a_draft_is_400(site: Site, case: str):
    site.open()
    prepare(site, case)
    assert site.try_call("PUT", "/pulls/1/merge-async", {})[0] == 400
