"""Effects of records: whether each counts now, by the gates' own rules, and why not."""

from datetime import timedelta
from operator import itemgetter

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    approved,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    published,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action
from fanout.gates.active_decisions import decision_statuses
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.record_effect import RecordEvaluator
from fanout.values import replace

PROD = stage("prod", requires=(SIGNED,), automatic=False)
DRAFTED = variant("a", "prod", draft=draft("v1"))


def evaluator_of(policy_facts):
    return RecordEvaluator(policy_facts, evaluate_gates(policy_facts))


def approval_effects(*approvals, rule=SIGNED, subject=DRAFTED):
    policy_facts = facts((replace(PROD, requires=(rule,)),), (subject,), *approvals)
    return evaluator_of(policy_facts).evaluate_approvals()


OTHER = frozenset({"tree-other"})
APPROVALS = [
    ("an approver", approved("ann"), {}, {}, "Effective"),
    ("somebody else", approved("eve"), {}, {}, "NotEntitled"),
    ("another draft", approved("ann", trees=OTHER), {}, {}, "Stale"),
    ("another candidate", approved("ann", revision="v0", trees=OTHER), {}, {}, "DecisionWaits"),
    ("another stage", approved("ann", of="nowhere"), {}, {}, "NotFound"),
    ("another check", approved("ann", check="budget"), {}, {}, "NotFound"),
    ("another variant", approved("ann", variants=("b",)), {}, {}, "NotFound"),
    ("dated ahead", approved("ann", at=at(30)), {}, {}, "FromTheFuture"),
    ("over", approved("ann"), {"expires": timedelta(minutes=5)}, {}, "Expired"),
    (
        "the approver's own change",
        approved("ann"),
        {"separation": True},
        {"draft": replace(draft("v1"), authors=frozenset({"ann"}))},
        "OwnChange",
    ),
    (
        "published since",
        approved("ann"),
        {},
        {"draft": None, "published": published("v1", 5)},
        "Applied",
    ),
    (
        "of an earlier revision than the stage has since",
        approved("ann", revision="v0", trees=OTHER),
        {},
        {"draft": None, "published": published("v1", 5)},
        "Applied",
    ),
    (
        "of an earlier revision than the stage had then",
        approved("ann", revision="v0", trees=OTHER),
        {},
        {"draft": None, "published": published("v1", 0)},
        "DecisionWaits",
    ),
]


@pytest.mark.parametrize(
    ("_", "approval", "rule", "subject", "expected"), APPROVALS, ids=map(itemgetter(0), APPROVALS)
)
def test_effect_of_an_approval(_, approval, rule, subject, expected):
    effects = approval_effects(
        approval, rule=replace(SIGNED, **rule), subject=replace(DRAFTED, **subject)
    )
    effect = effects[approval.name]
    assert effect.reason == expected
    assert effect.is_effective == (expected == "Effective")


BRANCH = variant("gone", "prod", draft=replace(draft("v1"), revision="", tree="tree-branch"))
OF_BRANCH = {"revision": None, "trees": frozenset({"tree-branch"})}
REMOVALS = [
    ("of the branch", approved("ann", **OF_BRANCH), [BRANCH], "Effective"),
    ("of another tree", approved("ann", revision=None, trees=OTHER), [BRANCH], "Stale"),
    ("of a branch that is gone", approved("ann", **OF_BRANCH), [], "Applied"),
    ("by somebody else", approved("eve", **OF_BRANCH), [BRANCH], "NotEntitled"),
    ("of another stage", approved("ann", of="nowhere", **OF_BRANCH), [BRANCH], "NotFound"),
    ("of another check", approved("ann", check="never", **OF_BRANCH), [BRANCH], "NotFound"),
    ("dated ahead", approved("ann", at=at(30), **OF_BRANCH), [BRANCH], "FromTheFuture"),
    ("of an own change", approved("ann", **OF_BRANCH),
     [replace(BRANCH, draft=replace(BRANCH.draft, authors=frozenset({"ann"})))], "OwnChange"),
    ("from before the package was published", approved("ann", **OF_BRANCH),
     [replace(BRANCH, removed=at(5))], "Stale"),
    ("of a draft with the tree of the branch",
     approved("ann", trees=frozenset({"tree-branch"})), [BRANCH], "Stale"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "approval", "removals", "expected"), REMOVALS, ids=map(itemgetter(0), REMOVALS)
)
def test_effect_of_an_approval_of_removals(_, approval, removals, expected):
    policy_facts = facts(
        (replace(PROD, requires=(replace(SIGNED, separation=True),)),), (DRAFTED,), approval
    )
    evaluator = RecordEvaluator(policy_facts, evaluate_gates(policy_facts), removals)
    assert evaluator.evaluate_approvals()[approval.name].reason == expected


def test_a_revocation_needs_an_earlier_approval_and_the_right_to_revoke_it():
    first = approved("ann", name="first")
    by_eve = approved("eve", name="by-eve", revokes="first", trees=frozenset())
    vain = approved("bob", name="vain", revokes="later", trees=frozenset())
    before = approval_effects(first, by_eve, vain)
    assert [before[name].reason for name in ("first", "by-eve", "vain")] == [
        "Effective", "NotEntitled", "NotFound",
    ]  # fmt: skip
    by_bob = approved("bob", name="by-bob", revokes="first", trees=frozenset())
    after = approval_effects(first, by_bob)
    assert [after[name].reason for name in ("first", "by-bob")] == ["Withdrawn", "Applied"]


DEV = stage("dev", verification=("e2e",))
LIVE = variant("a", "dev", published("v1", 2))
EVIDENCE = [
    ("about what is published", evidence_of("dev", PASSED, when=3), {}, "Effective"),
    ("a failure counts as well", evidence_of("dev", FAILED, when=3), {}, "Effective"),
    ("before it was published", evidence_of("dev", PASSED, when=1), {}, "RecordedEarly"),
    ("another revision", evidence_of("dev", PASSED, "v9", when=3), {}, "WrongRevision"),
    ("a commit", evidence_of("dev", PASSED, "", commit="commit-v1", when=3), {}, "Effective"),
    (
        "another commit",
        evidence_of("dev", PASSED, "", commit="c" * 40, when=3),
        {},
        "WrongRevision",
    ),
    ("another check", evidence_of("dev", PASSED, check="never", when=3), {}, "NotFound"),
    ("another stage", evidence_of("nowhere", PASSED, when=3), {}, "NotFound"),
    ("another variant", evidence_of("dev", PASSED, variants=("b",), when=3), {}, "NotFound"),
    ("dated ahead", evidence_of("dev", PASSED, when=30), {}, "FromTheFuture"),
    ("withdrawn", evidence_of("dev", PASSED, when=3, withdrawn=at(4)), {}, "Withdrawn"),
    ("too old", evidence_of("dev", PASSED, when=3), {"fresh_for": timedelta(minutes=5)}, "Expired"),
    ("fresh", evidence_of("dev", PASSED, when=3), {"fresh_for": timedelta(minutes=9)}, "Effective"),
]


@pytest.mark.parametrize(
    ("_", "evidence", "rule", "expected"), EVIDENCE, ids=map(itemgetter(0), EVIDENCE)
)
def test_effect_of_evidence(_, evidence, rule, expected):
    dev = replace(DEV, verification=(check_rule("e2e", **rule),))
    effect = evaluator_of(facts((dev,), (LIVE,), evidence)).evaluate_evidence()[evidence.name]
    assert effect.reason == expected
    assert effect.is_effective == (expected == "Effective")


def test_the_last_report_of_a_reporter_counts_for_it():
    first, last = evidence_of("dev", FAILED, when=3), evidence_of("dev", PASSED, when=4)
    other = evidence_of("dev", PASSED, when=4, by="qa")
    effects = evaluator_of(facts((DEV,), (LIVE,), first, other, last)).evaluate_evidence()
    reasons = [effects[it.name].reason for it in (first, other, last)]
    assert reasons == ["Superseded", "Effective", "Effective"]


def test_a_retry_takes_the_place_of_a_failure():
    failure = evidence_of("dev", FAILED, when=3)
    retry = decided(Action.RETRY, stage="dev", revision="v1", when=4)
    effects = evaluator_of(facts((DEV,), (LIVE,), failure, retry)).evaluate_evidence()
    assert effects[failure.name].reason == "Superseded"


def test_evidence_counts_where_one_of_several_variants_has_the_revision():
    evidence = evidence_of("dev", PASSED, "v2", when=6)
    old, new = variant("a", "dev", published("v1", 2)), variant("b", "dev", published("v2", 5))
    for order in ((old, new), (new, old)):
        policy_facts = facts((DEV,), order, evidence, revisions="v1 v2")
        assert evaluator_of(policy_facts).evaluate_evidence()[evidence.name].is_effective


def test_a_record_counts_that_does_so_for_one_of_several_variants():
    evidence = evidence_of("dev", PASSED, when=3)
    early, late = variant("a", "dev", published("v1", 2)), variant("b", "dev", published("v1", 5))
    own = replace(draft("v1"), authors=frozenset({"ann"}))
    rule, approval = replace(SIGNED, separation=True), approved("ann")
    drafted = (DRAFTED, replace(DRAFTED, name="b", draft=own))
    for order in (1, -1):
        policy_facts = facts((DEV,), (early, late)[::order], evidence)
        assert evaluator_of(policy_facts).evaluate_evidence()[evidence.name].is_effective
        policy_facts = facts((replace(PROD, requires=(rule,)),), drafted[::order], approval)
        assert evaluator_of(policy_facts).evaluate_approvals()[approval.name].is_effective


def test_evidence_that_a_draft_needed_was_used_once_it_is_published():
    dev = stage("dev", verification=(), requires=(check_rule("e2e"),))
    evidence = evidence_of("dev", PASSED, when=1)
    effects = evaluator_of(facts((dev,), (LIVE,), evidence)).evaluate_evidence()
    assert effects[evidence.name].reason == "Applied"


DECISIONS = [
    ("of the candidate", decided(Action.PUBLISH, stage="prod", revision="v1"), "Effective"),
    ("of another revision", decided(Action.PUBLISH, stage="prod", revision="v9"), "DecisionWaits"),
    ("of another stage", decided(Action.SUSPEND, stage="nowhere"), "NotFound"),
    ("of another variant", decided(Action.SUSPEND, stage="prod", variants=("b",)), "NotFound"),
    ("of the policy", decided(Action.SUSPEND), "Effective"),
    ("a resumption", decided(Action.RESUME), "Applied"),
    ("over", decided(Action.SUSPEND, expires=at(5)), "Expired"),
    (
        "of rewritten drafts",
        decided(Action.PUBLISH, stage="prod", revision="v1", trees=OTHER),
        "Stale",
    ),
]


@pytest.mark.parametrize(
    ("_", "decision", "expected"), DECISIONS, ids=map(itemgetter(0), DECISIONS)
)
def test_effect_of_a_decision(_, decision, expected):
    policy_facts = facts((PROD,), (DRAFTED,), decision)
    statuses = decision_statuses(
        policy_facts.records.decisions, policy_facts.variants, policy_facts.now
    )
    effect = evaluator_of(policy_facts).evaluate_decision(decision, statuses[decision.name])
    assert effect.reason == expected
    assert effect.is_effective == (expected == "Effective")
