"""Sentences of conditions and explanations, word for word, in small states that raise them."""

from datetime import timedelta
from typing import Any

import pytest
from forge_states import at, drafted, published
from gates.worlds import facts, stage, variant
from reconcile.builders import NOW, resolved

from fanout.api.gate_vocabulary import Action, ConflictWinner, VariantState, Verdict
from fanout.api.record_objects import DecisionSpec, EvidenceSpec
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.errors import Unavailable
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.gates.removal_gate import RemovalEvaluation
from fanout.package.merge.merge_conflicts import ConflictChoices
from fanout.plan.records.policy_records import PolicyRecords, RecordEntry
from fanout.plan.rendered_variant import without_candidate
from fanout.present.conditions import (
    build_policy_conditions,
    build_stage_conditions,
    build_variant_conditions,
)
from fanout.present.explanation.explanation_notes import build_notes, list_conflicts
from fanout.present.policy_entry import walk_policy
from fanout.reconcile.pass_results import PolicyResult
from fanout.selection.variant_spec import TargetFailure
from fanout.values import replace

READY, FAILED, HELD = VariantState.READY, VariantState.FAILED, VariantState.HELD
STAGE = StageResult(
    name="prod", candidate="v2", verdict=Verdict.PENDING, gate=Verdict.PASSED, state="Pending"
)


def evaluated(*variants, state=READY, policy=None, records=(), **fields):
    """The entry of a policy with these variants, all in one state."""
    results = {
        it.spec.name: VariantResult(name=it.spec.name, stage="prod", state=state, **fields)
        for it in variants
    }
    result = PolicyResult(
        resolved_policy=policy or resolved(),
        policy_state=PolicyRecords(records=records),
        variants=tuple(map(without_candidate, variants)),
        rules=(stage("prod", pin=""),),
        facts=replace(facts([stage("prod")], [variant("a", "prod")]), now=NOW),
        decision=PolicyEvaluation(stages={"prod": STAGE}, variants=results, history={}),
    )
    return walk_policy(result)


A: Any = published("a", None)
B: Any = published("b", None)
E2E = Hold("VerificationFailed", "check e2e failed")
TARGET = TargetFailure("Cluster/d/ams", "ExpressionError", "no path")
OTHER = TargetFailure("Cluster/d/ber", "ExpressionError", "no name")


def unread(variant):
    state = replace(variant.repository_state, failure=Unavailable("no answer"))
    return replace(variant, repository_state=state)


READINESS = [
    (evaluated(A, B), "2 of 2 variants ready"),
    (evaluated(policy=replace(resolved(), failures=(TARGET,))),
     "1 target without a variant, Cluster/d/ams first: no path; 0 of 0 variants ready"),
    (evaluated(A, policy=replace(resolved(), failures=(TARGET, OTHER))),
     "2 targets without a variant, Cluster/d/ams first: no path; 1 of 1 variant ready"),
    (evaluated(A, B, state=FAILED, holds=(E2E,)),
     "2 variants failed, a first: check e2e failed; 0 of 2 variants ready"),
    (evaluated(A, state=FAILED), "1 variant failed, a first; 0 of 1 variant ready"),
    (evaluated(unread(A), unread(B), state=HELD),
     "2 variants cannot be observed, a first: no answer; 0 of 2 variants ready"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "message"), READINESS, ids=[it[1] for it in READINESS])
def test_a_sentence_of_the_readiness_of_a_policy(entry, message):
    assert build_policy_conditions(entry)[0].message == message


REJECTED = replace(A.published, rejected=("replicas", "image"))


def test_a_condition_lists_conflicts_that_were_decided():
    entry = evaluated(replace(A, published=REJECTED)).variants[0]
    [decided] = (it for it in build_variant_conditions(entry) if it.type == "ConflictsDecided")
    assert decided.message == (
        "merge conflicts decided in v2, which is published:\nreplicas\nimage"
    )


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (1, "1 undecided merge conflict in drafts of this stage"),
        (2, "2 undecided merge conflicts in drafts of this stage"),
    ],
)
def test_a_condition_counts_the_conflicts_of_a_stage(number, sentence):
    entry = evaluated(A)
    stage = replace(entry.stages[0], variants=(replace(entry.variants[0], undecided=number),))
    assert [it.message for it in build_stage_conditions(stage)][1:] == [sentence]


def early(variant):
    return replace(variant, published=replace(variant.published, out_of_band=True))


SOON = NOW + timedelta(minutes=6)
EVIDENCE = RecordEntry(name="e1", at=SOON, by="ci", spec=EvidenceSpec.model_construct(stage="prod"))
PINNED = replace(stage("prod"), pin="v1")


def pinned():
    entry = evaluated(A)
    return replace(entry, result=replace(entry.result, rules=(PINNED,)))


def removing():
    entry = evaluated(A)
    removals = RemovalEvaluation(holds={"ber": (), "cph": ()})
    return replace(entry, result=replace(entry.result, removals=removals))


NOTES = [
    (evaluated(early(A)), "a: a person merged v2 before its gates opened", ""),
    (evaluated(early(A), early(B)), "a, b: a person merged v2 before its gates opened", ""),
    (evaluated(A, records=(EVIDENCE,)),
     ("Evidence e1 of ci is dated 2026-03-02T09:06:00Z, more than five minutes ahead; it does not"
      " count yet"), "fanout withdraw monitoring e1 --reason WHY"),
    (pinned(), "the policy pins stage prod to v1", ""),
    (removing(), "the next sweep removes variants without a target: ber, cph", "fanout sweep"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "message", "command"), NOTES, ids=[it[1] for it in NOTES])
def test_a_sentence_of_an_explanation(entry, message, command):
    [note] = build_notes(entry)
    assert (note.message, note.command) == (message, command)


def test_a_value_that_was_rejected_by_the_published_revision():
    unedited = replace(REJECTED, pristine=REJECTED.tree)
    entry = evaluated(replace(A, published=unedited))
    assert [it.message for it in build_notes(entry, "prod", entry.variants[0])] == [
        "decided when v2 was published: replicas",
        "decided when v2 was published: image",
    ]


LOCAL = ConflictChoices(default_side=ConflictWinner.LOCAL)
RESOLVED = RecordEntry(
    name="d1",
    at=at(0),
    by="ann",
    spec=DecisionSpec.model_construct(
        action=Action.RESOLVE, revision="v2", reason="capacity", variants=(), stage="prod"
    ),
)


def disputed(conflicts, **fields):
    """A variant whose draft has these conflicts in its trailers."""
    variant: Any = drafted("a", None)
    trailers = replace(variant.draft.trailers, conflicts=conflicts)
    ref = "refs/heads/drafts/default/sites/a/monitoring"
    draft = replace(variant.draft, trailers=trailers, ref=ref, **fields)
    return replace(variant, draft_ref=ref, draft=draft)


CONFLICTS = [
    (disputed("k=local?@a.yaml"), (), "a.yaml: the local value is in the draft; undecided"),
    (disputed("k=upstream?"), (), "a value: the upstream value is in the draft; undecided"),
    (replace(disputed("k=local?@a.yaml"), choices=LOCAL), (),
     "a.yaml: the local value is in the draft; decided by spec.onConflict"),
    (disputed("k=local?@a.yaml", settled_keys=frozenset("k")), (),
     "a.yaml: the local value is in the draft; decided by a commit on the draft"),
    (disputed("k=local?@a.yaml"), (RESOLVED,),
     "a.yaml: the local value is in the draft; decided by ann (d1): capacity"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "records", "message"), CONFLICTS, ids=[it[2] for it in CONFLICTS]
)
def test_a_sentence_of_a_conflict(facts, records, message):
    entry = evaluated(facts, records=records)
    [conflict] = list_conflicts(entry.result, entry.variants[0].variant)
    assert conflict.message == message
