"""Sentences of removals, word for word, in small states that raise them."""

from typing import Any

import pytest
from reconcile.builders import NOW, open_draft, repository_state, resolved, variant_name

from fanout.api.results import Hold
from fanout.declared.declared_objects import DeclarationFailure, DeclaredObjects
from fanout.errors import FanoutError
from fanout.gates.removal_gate import RemovalEvaluation
from fanout.plan.changes.package_removal import DraftIndex, PackageRemoval, complete_removal
from fanout.plan.observation.repository_state import PathState
from fanout.plan.records.policy_records import PolicyRecords
from fanout.plan.records.policy_status import PublishedLine, RecordedStatus, VariantLine
from fanout.reconcile.execution import removal_execution
from fanout.reconcile.execution.removal_execution import (
    find_removals,
    find_undeclared_variant,
    remove_by_level,
)
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.removal.orphaned_variants import (
    OrphanLocations,
    VariantLocation,
    describe_orphans,
    find_removal_doubt,
    summarize_orphans,
)
from fanout.values import replace

AMS, BER = variant_name("ams"), variant_name("ber")
POLICY = resolved("ams")
NO_WORLD: Any = None  # what is read is given


def test_a_removal_that_is_doubtful():
    declared = DeclaredObjects(unread=(DeclarationFailure("a.yaml"),))
    doubt = find_removal_doubt(declared, POLICY.upstream_policy, NOW)
    assert doubt is not None
    assert doubt.message == "a target may be in a declaration that cannot be used: a.yaml"


def orphan(branch=""):
    places = (("edge", "sites/ber"), ("core", "ber"))
    locations = tuple(VariantLocation(it, removed_by=branch) for it in places)
    return OrphanLocations(BER, "dev", None, locations)


WAITS = Hold("ReviewMissing", "it waits", "ann")
CLOSED = Hold("RequestClosed", "ann closed it")
ORPHANS = [
    ("", {BER: ()}, "the next sweep removes it"),
    ("", {BER: (WAITS,)}, "it stays: it waits; who can act: ann"),
    ("", {}, f"to remove it, run `fanout remove monitoring {BER} --reason WHY`"),
    ("branch drafts/x", {BER: ()}, "it is removed by branch drafts/x"),
    ("branch drafts/x", {BER: (WAITS,)},
     "it is removed by branch drafts/x; it waits; who can act: ann"),
    ("the pull request of drafts/x", {BER: (CLOSED,)}, "it stays: ann closed it"),
]  # fmt: skip


@pytest.mark.parametrize(("request_words", "holds", "consequence"), ORPHANS)
def test_a_variant_without_a_target(request_words, holds, consequence):
    [failure] = describe_orphans(POLICY, [orphan(request_words)], RemovalEvaluation(holds=holds))
    assert failure.problem == (
        f"variant {BER} (sites/ber in edge, ber in core) has no target any more; {consequence}"
    )


LIMIT = Hold("TooManyRemovals", "no target exists any more")
LOST_EDITS = Hold("EditedDownstream", "it has edits")
UNREACHABLE = Hold("UnknownRepository", "ber is in /r")
SUMMARIES = [
    (RemovalEvaluation(), "TargetGone", "1 variant without a target", ""),
    (RemovalEvaluation(limit=LIMIT), "TooManyRemovals",
     "1 variant without a target: no target exists any more",
     "to confirm, run `fanout remove monitoring --all-gone --reason WHY`"),
    (RemovalEvaluation(holds={BER: (LOST_EDITS,)}, limit=LIMIT), "TooManyRemovals",
     "1 variant without a target: no target exists any more",
     "to confirm, run `fanout remove monitoring --all-gone --edited --reason WHY`"),
    (RemovalEvaluation(holds={BER: (UNREACHABLE,)}), "UnknownRepository",
     "1 variant without a target: ber is in /r", ""),
]  # fmt: skip


@pytest.mark.parametrize(("decision", "reason", "sentence", "remedy"), SUMMARIES)
def test_a_summary_of_variants_without_a_target(decision, reason, sentence, remedy):
    assert summarize_orphans("monitoring", [orphan()], decision) == (reason, sentence, remedy)


# ---- execution


def result(*orphans, lines=None):
    return PolicyResult(
        resolved_policy=POLICY,
        policy_state=PolicyRecords(),
        status=RecordedStatus(variants=lines or {}),
        orphans=orphans,
    )


def refusal(function, *arguments):
    with pytest.raises(FanoutError) as error:
        function(*arguments)
    return error.value.problem


LINE = VariantLine(repository="/r", path="sites/ams", stage="dev")
ELSEWHERE = OrphanLocations(BER, "dev", LINE, (VariantLocation(("/r", "sites/ber"), LINE),))
REFUSED = [
    (result(), "zzz", "platform/monitoring has no variant zzz without a target"),
    (result(lines={AMS: LINE}), AMS,
     f"{AMS} left no other package, and its target still exists: it would be created again"),
    (result(ELSEWHERE), BER,
     f"{BER} is at sites/ber in /r, for which the namespace has no Repository"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "variant", "problem"), REFUSED, ids=[it[2] for it in REFUSED])
def test_a_removal_that_is_refused(of, variant, problem):
    assert refusal(find_removals, None, of, DeclaredObjects(), [variant], "") == problem


def test_a_variant_that_an_unread_file_may_declare():
    declared = DeclaredObjects(unread=(DeclarationFailure("a.yaml"),))
    assert refusal(find_undeclared_variant, None, declared, "platform", "own") == (
        "own may be declared in a.yaml, which cannot be read"
    )


def removal(tree="t1"):
    """The removal of a published variant with a draft, whose package has this tree."""
    state = repository_state(open_draft(BER, "sites/ber"))
    published = PublishedLine(revision="v1", commit="c", digest="d", tree="t1", at=NOW)
    line = VariantLine(repository=state.identity, path="sites/ber", published=published)
    state = replace(state, head="h", path_states={"sites/ber": PathState(tree)})
    package = PackageRemoval(
        variant=BER,
        path="sites/ber",
        repository_state=state,
        repository="edge",
        stage="dev",
    )
    drafts = DraftIndex.build(state)
    return complete_removal(package, "platform/monitoring", line, drafts, needs_approvals=False)


def test_a_package_that_changed_during_its_removal(monkeypatch):
    monkeypatch.setattr(removal_execution, "find_removals", lambda *_: (removal("later"),))
    steps = remove_by_level(
        NO_WORLD, result(ELSEWHERE), DeclaredObjects(), [removal()], "gone", NOW
    )
    assert refusal(next, steps) == "the package sites/ber changed during the removal"
