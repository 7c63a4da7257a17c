"""Every call of the client for GitHub, on the tests' GitHub: what it reads, and what it changes."""

from datetime import UTC, datetime

import pytest
from github_calls import Answer
from github_place import BOT, DRAFT, NAME
from github_repository import Rules
from github_state import Credential

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, Denied, Unavailable
from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Mergeability,
    MergeabilityKind,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import (
    ChangedPaths,
    CommitStatus,
    RequestDraft,
    RequestEdit,
    RequestPart,
    RequestState,
    ReviewVerdict,
    StatusState,
)

pytest.importorskip("graphql")

# ---- who and where -----------------------------------------------------------------------------


def test_the_bot_of_an_app_has_the_login_of_rest(place, forge_with):
    assert place.forge.login() == BOT
    assert forge_with(place.site.github.token("ann")).login() == "ann"
    assert place.open().author == BOT


def test_a_repository_shows_its_settings(place):
    place.site.repository.methods = ("merge", "rebase")
    facts = place.forge.repository(NAME)
    assert (facts.name, facts.is_archived) == (NAME, False)
    assert facts.merge_styles == {MergeStyle.MERGE, MergeStyle.REBASE}


def test_a_hidden_repository_is_denied_by_every_read(place, forge_with):
    place.site.repository.is_private = True
    outsider = forge_with(place.site.github.token("mallory"))
    for call in (
        lambda: outsider.repository(NAME),
        lambda: outsider.request(NAME, 1),
        lambda: outsider.branch(NAME, "main"),
        lambda: outsider.open_requests(NAME),
    ):
        with pytest.raises(Denied, match="acme/site") as failure:
            call()
        assert failure.value.reason == "ForgeDenied"


def test_a_renamed_repository_is_reported_with_its_new_address(place):
    place.site.github.rename(place.site.repository, "acme/moved")
    with pytest.raises(Unavailable, match="has moved GET /repos/acme/site"):
        place.forge.repository(NAME)


# ---- the life of a request ---------------------------------------------------------------------


def test_a_request_is_observed_as_it_was_opened(place):
    opened = place.open()
    seen = place.seen(opened)
    assert (seen.state, seen.is_draft) == (RequestState.OPEN, False)
    assert (seen.title, seen.text) == (DRAFT.title, DRAFT.text)
    assert (seen.head_branch, seen.base_branch) == ("draft", "main")
    assert seen.head_commit == place.site.disk.object_id("draft")
    assert (seen.author, seen.head_repository) == (BOT, NAME)
    assert seen.mergeability == Mergeability(MergeabilityKind.CLEAN, "clean")
    assert place.forge.open_requests(NAME)[0].number == opened.number


def test_a_draft_is_marked_ready_and_back(place):
    opened = place.open(is_draft=True)
    assert opened.is_draft
    place.forge.edit_request(NAME, opened, RequestEdit(is_draft=False))
    ready = place.seen(opened)
    assert (ready.is_draft, ready.title) == (False, DRAFT.title)
    place.forge.edit_request(NAME, ready, RequestEdit(title="Release v2", is_draft=True))
    again = place.seen(opened)
    assert (again.is_draft, again.title, again.text) == (True, "Release v2", DRAFT.text)


def test_a_request_that_is_open_already_or_lacks_a_branch_is_a_conflict(place):
    place.open()
    with pytest.raises(Conflict, match="already exists"):
        place.open()
    with pytest.raises(Conflict, match="head is invalid"):
        place.forge.open_request(NAME, RequestDraft("nothing", "main", "T", "", is_draft=False))


def test_a_plan_without_drafts_is_told_with_what_to_set(place):
    place.site.repository.allows_drafts = False
    with pytest.raises(Unavailable, match=r"set pullRequest.draft: false") as failure:
        place.open(is_draft=True)
    assert failure.value.reason == "ForgeRefuses"


def test_parts_of_a_request_are_written_by_themselves_and_fail_by_themselves(place):
    opened = place.open(is_draft=True)
    assert not place.forge.keeps_text_versions
    place.site.github.refuse("/graphql", Answer({"message": "No"}, 403))
    edit = RequestEdit(title="Release v2", is_draft=False, text="Now.")
    failures = place.forge.edit_request(NAME, opened, edit)
    assert failures.keys() == {RequestPart.DRAFT_FLAG}
    seen = place.seen(opened)
    assert (seen.title, seen.text, seen.is_draft) == ("Release v2", "Now.", True)
    place.site.github.refuse("PATCH", Answer({"message": "No"}, 403))
    failures = place.forge.edit_request(NAME, seen, edit)
    assert failures.keys() == {RequestPart.TITLE, RequestPart.TEXT}
    assert not place.seen(opened).is_draft


def test_closing_and_reopening_say_who_closed(place):
    opened = place.open()
    assert place.forge.closed_by(NAME, opened) == ""
    place.forge.close_request(NAME, 1)
    closed = place.seen(opened)
    assert closed.state is RequestState.CLOSED
    assert place.forge.closed_by(NAME, closed) == BOT
    place.site.ask("PATCH", "/pulls/1", {"state": "open"})
    place.site.github.close(place.site.repository.pulls[1], "ann")
    assert place.forge.closed_by(NAME, place.seen(opened)) == "ann"
    assert [it.number for it in place.forge.closed_requests(NAME, BOT)] == [1]
    assert list(place.forge.closed_requests(NAME, "ann")) == []


def test_a_request_that_there_is_not(place):
    assert place.forge.request(NAME, 4711) is None


def test_lists_are_read_page_by_page(place, monkeypatch):
    for number in range(3):
        place.site.disk.git("branch", f"d{number}", "draft")
        place.site.open(head=f"d{number}")
    monkeypatch.setattr(place.forge._client, "_page_size", ("per_page", 2))
    assert [it.number for it in place.forge.open_requests(NAME)] == [3, 2, 1]


# ---- labels, reviewers, reviews ----------------------------------------------------------------


def test_labels_are_created_by_naming_them_and_those_of_people_stay(place):
    opened = place.open()
    place.site.ask("POST", "/issues/1/labels", {"labels": ["urgent"]})
    place.forge.create_label(NAME, "fanout/hold")
    place.forge.add_labels(NAME, opened, {"fanout", "stage/prod"})
    assert place.seen(opened).labels == {"urgent", "fanout", "stage/prod"}


def test_reviewers_who_cannot_be_asked_are_told_and_the_others_are_asked(place):
    opened = place.open()
    place.site.repository.teams.add("ops")
    wanted = {"ann", "nobody", "team/ops"}
    assert place.forge.request_reviews(NAME, 1, wanted) == ["nobody", "team/ops"]
    pull = place.site.repository.pulls[opened.number]
    assert [it.login for it in pull.reviewers] == ["ann"]
    place.site.installation.permissions["members"] = "read"
    assert place.forge.request_reviews(NAME, 1, {"team/ops"}) == ()
    assert pull.teams == ["ops"]


def test_reviews_with_the_commit_that_each_is_about(place):
    opened = place.open()
    pull, github = place.site.repository.pulls[1], place.site.github
    approval = github.review(pull, "ann")
    place.site.pass_time(minutes=1)
    github.review(pull, "bob", "CHANGES_REQUESTED")
    github.review(pull, "eve", "COMMENTED", commit=None)
    github.review(pull, "eve", "PENDING")
    observed = place.forge.reviews(NAME, 1)
    assert [(it.reviewer, it.verdict, it.commit) for it in observed] == [
        ("ann", ReviewVerdict.APPROVED, opened.head_commit),
        ("bob", ReviewVerdict.CHANGES_REQUESTED, opened.head_commit),
        ("eve", ReviewVerdict.COMMENTED, ""),
    ]
    github.dismiss(approval)
    assert [it.is_dismissed for it in place.forge.reviews(NAME, 1)] == [True, False, False]


# ---- statuses and branches ---------------------------------------------------------------------


def test_statuses_and_check_runs_are_one_list(place):
    commit = place.open().head_commit
    assert place.forge.statuses(NAME, commit) == ()
    for state, words in ((StatusState.PENDING, "soak"), (StatusState.SUCCESS, "merge it")):
        status = CommitStatus("fanout", state, "", datetime.now(UTC), words, "https://x.example")
        place.forge.set_status(NAME, commit, status)
        place.site.pass_time(minutes=1)
    ci = place.site.github.app("ci")
    for name, conclusion in (("e2e", "success"), ("lint", "skipped"), ("unit", None)):
        place.site.github.check(place.site.repository, commit, ci, name, conclusion)
    observed = {(it.context, it.creator): it.state for it in place.forge.statuses(NAME, commit)}
    assert observed == {
        ("fanout", BOT): StatusState.SUCCESS,
        ("e2e", "ci[bot]"): StatusState.SUCCESS,
        ("lint", "ci[bot]"): StatusState.SKIPPED,
        ("unit", "ci[bot]"): StatusState.PENDING,
    }


def test_a_long_description_of_a_status_is_cut(place):
    commit = place.open().head_commit
    status = CommitStatus("fanout", StatusState.PENDING, "", datetime.now(UTC), "x" * 500)
    place.forge.set_status(NAME, commit, status)
    assert place.forge.statuses(NAME, commit)[0].description == "x" * 140


def test_rules_of_both_kinds_are_read(place):
    assert place.forge.branch(NAME, "main") == BranchFacts(is_protected=False, may_push=True)
    repository, app = place.site.repository, place.site.app
    repository.rulesets["main"] = Rules(checks={"fanout": app.id}, approvals=2, methods=("squash",))
    facts = place.forge.branch(NAME, "main")
    assert facts == BranchFacts(
        is_protected=True,
        required_statuses=frozenset({RequiredStatus("fanout", f"app {app.id}")}),
        required_approvals=2,
        may_push=False,
        allowed_styles=frozenset({MergeStyle.SQUASH}),
    )
    repository.protections["main"] = Rules(checks={"ci/e2e": None}, signatures=True)
    facts = place.forge.branch(NAME, "main")
    assert facts is not None
    assert facts.required_statuses == {
        RequiredStatus("fanout", f"app {app.id}"),
        RequiredStatus("ci/e2e"),
    }
    # What only administrators may read of classic protection is hidden, and not taken for absent.
    assert (facts.required_approvals, facts.requires_signatures) == (2, None)
    assert place.forge.branch(NAME, "nothing") is None


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (Rules(linear_history=True), "requires_linear_history"),
        (Rules(signatures=True), "requires_signatures"),
        (Rules(queue=True), "requires_queue"),
        (Rules(code_owners=True), "requires_code_owners"),
        (Rules(last_push_approval=True), "ignores_last_pusher"),
        (Rules(conversation_resolution=True), "requires_resolved_conversations"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_each_rule_of_a_ruleset_is_a_field(place, rules, name):
    place.site.repository.rulesets["main"] = rules
    facts = place.forge.branch(NAME, "main")
    names = (
        "requires_linear_history",
        "requires_signatures",
        "requires_queue",
        "requires_code_owners",
        "ignores_last_pusher",
        "requires_resolved_conversations",
    )
    assert {it: getattr(facts, it) for it in names} == {it: it == name for it in names}


def test_paths_of_a_request_are_of_its_head(place):
    opened = place.open()
    changed = place.forge.changed_paths(NAME, 1)
    assert changed == ChangedPaths(opened.head_commit, frozenset({"a.txt"}))
    github = place.site.github
    pushes = iter([True])

    def push(call: str) -> None:
        if call.startswith("GET") and "/files" in call and next(pushes, False):
            place.site.disk.commit("draft", {"c.txt": "c\n"})

    github.before = push
    assert place.forge.changed_paths(NAME, 1).head_commit == ""


# ---- merging -----------------------------------------------------------------------------------


@pytest.mark.parametrize("style", list(MergeStyle))
def test_a_request_is_merged_with_its_message_and_its_branch_is_deleted(place, style):
    opened = place.open()
    outcome = place.merge(opened, style=style)
    head = place.site.disk.object_id("main")
    assert outcome == Merged(head)
    merged = place.seen(opened)
    assert (merged.state, merged.merged_by, merged.merged_commit) == (
        RequestState.MERGED,
        BOT,
        head,
    )
    if style is not MergeStyle.REBASE:
        message = place.site.disk.git("log", "-1", "--format=%B", "main")
        assert message == "Publish v1\n\nBy fanout"
    assert place.forge.branch(NAME, "draft") is None


def test_a_merge_whose_branch_cannot_be_deleted_is_a_merge(place):
    opened = place.open()
    place.site.github.lose("DELETE", times=1)
    assert isinstance(place.merge(opened), Merged)


def test_a_head_that_was_not_evaluated_is_not_merged(place):
    opened = place.open()
    place.site.disk.commit("draft", {"c.txt": "c\n"})
    with pytest.raises(Conflict, match="not as observed"):
        place.merge(opened)
    assert place.seen(opened).state is RequestState.OPEN


@pytest.mark.parametrize(
    ("rules", "style", "kind"),
    [
        (Rules(approvals=1), MergeStyle.MERGE, RefusalKind.NOT_NOW),
        (Rules(checks={"ci": None}), MergeStyle.MERGE, RefusalKind.NOT_NOW),
        (Rules(queue=True), MergeStyle.MERGE, RefusalKind.QUEUE_REQUIRED),
        (Rules(methods=("squash",)), MergeStyle.MERGE, RefusalKind.STYLE_FORBIDDEN),
    ],
    ids=["approvals", "status", "queue", "style"],
)
def test_a_merge_that_rules_forbid_is_refused_in_the_words_of_the_host(place, rules, style, kind):
    opened = place.open()
    place.site.repository.rulesets["main"] = rules
    outcome = place.merge(opened, style=style)
    assert isinstance(outcome, Refused)
    assert (outcome.kind, outcome.is_retryable) == (kind, False)
    assert outcome.words


def test_a_merge_just_before_is_retryable(place):
    opened = place.open()
    repository = place.site.repository
    repository.before_merge = lambda: place.site.disk.commit("main", {"z.txt": "z\n"})
    outcome = place.merge(opened)
    assert isinstance(outcome, Refused)
    assert outcome.is_retryable


def test_merging_or_closing_a_finished_request_is_a_conflict(place):
    opened = place.open()
    place.merge(opened)
    with pytest.raises(Conflict):
        place.forge.close_request(NAME, 1)
    outcome = place.merge(opened)
    assert isinstance(outcome, Refused)


def test_a_request_that_a_person_armed_is_accepted(place):
    opened = place.open()
    place.site.repository.allows_auto_merge = True
    place.site.repository.rulesets["main"] = Rules(checks={"ci": None})
    pull = place.site.repository.pulls[1]
    ann = Credential(place.site.github.account("ann"))
    place.site.github.state.arm(pull, {"mergeMethod": "MERGE"}, ann)
    assert place.seen(opened).accepted == Accepted(MergeRoute.AUTO_MERGE)
