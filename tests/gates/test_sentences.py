"""Sentences of the gates, word for word, in small worlds that raise them."""

from datetime import timedelta

import pytest
from gates.worlds import (
    DEV,
    FAILED,
    OK,
    PASSED,
    PENDING,
    SIGNED,
    after,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    prod,
    published,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, CheckMethod, OverridableGate
from fanout.api.results import Hold
from fanout.api.stages import Check, Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.forecast import forecast_stages
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import PropagationCondition
from fanout.gates.removal_gate import OrphanedVariant, RemovalFacts, evaluate_removals
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace

HOUR = timedelta(hours=1)
NIGHT = build_window("0 0 1 1 *", "UTC", timedelta(days=1), None)
HEALTH = check_rule("health", CheckMethod.OBJECT)
D = variant("d", "dev", published("v1"))
QUEUED = {"revisions": "v1 v2", "serialize": True}
BACK = decided(Action.ROLLBACK, stage="prod", revision="v1", when=5)
LIFTED = decided(Action.PUBLISH, OverridableGate.VERIFICATION, stage="dev", revision="v1")


def dev(*records, rule=DEV, has=D, **fields):
    """The variant of dev, alone."""
    return facts([rule], [has], *records, **fields)


def reading(revision: str) -> CheckReading:
    return CheckReading("health", "digest-v1", PASSED, "healthy", revision)


def soaked(*records, **fields):
    """Prod after a soak of an hour in dev."""
    return prod(*records, rule=stage("prod", after("dev", soak=60)), policy_fields=fields)


def reading_object(version: str):
    """Dev has the first version of an object, and prod is to have this one."""
    has = replace(published("v1"), reads={"ConfigMap/ca": "1"})
    wanted = replace(draft("v1"), reads={"ConfigMap/ca": version})
    rules = [DEV, stage("prod", after("dev"))]
    return facts(rules, [variant("d", "dev", has), variant("p", "prod", draft=wanted)], OK)


def conditions(value):
    """Dev with a draft and a condition of this value."""
    condition = PropagationCondition("stage.ready", lambda _: value)
    rule = stage("dev", propagate_when=(condition,))
    return facts([rule], [variant("d", "dev", draft=draft("v1"))])


PROMOTED = decided(Action.PUBLISH, stage="dev", revision="v2", name="x")
SETTLING = Check.model_construct(name="health", settle=HOUR)
ROWS = [
    (dev(OK), "check e2e passed: reported by ci"),
    (dev(evidence_of("dev", PENDING)), "check e2e is pending: reported by ci"),
    (dev(evidence_of("dev", PENDING)),
     "ci (fanout report, when it has a result) or whoever may withdraw records (fanout withdraw)"),
    (dev(OK, evidence_of("dev", FAILED, by="ann")),
     "check e2e is contradictory: passed by ci, failed by ann"),
    (dev(OK, evidence_of("dev", FAILED, by="ann", link="U")),
     "check e2e is contradictory: passed by ci, failed by ann (U)"),
    (dev(LIFTED), "check e2e is overridden by ann"),
    (dev(rule=stage("dev", verification=(HEALTH,))), "check health has not been queried yet"),
    (dev(rule=stage("dev", verification=(HEALTH,))), "the source of check health (object)"),
    (dev(rule=stage("dev", verification=(check_rule("e2e", timeout=HOUR),)), now=70),
     "check e2e is not reported for v1 yet; no answer within 1h (timeout)"),
    (dev(OK, rule=stage("dev", verification=(check_rule("e2e", fresh_for=HOUR),)), now=90),
     "check e2e passed: reported by ci; the answer is older than 1h (freshFor)"),
    (dev(OK, rule=stage("dev", rollout=Rollout(min_ready=HOUR))),
     "checks passed; they must stay so for 1h (minReady)"),
    (dev(rule=stage("dev", verification=(replace(HEALTH, names_revision=True),)),
         has=replace(D, readings=(reading("v0"),))),
     "check health reports on v0, not on v1"),
    (dev(rule=stage("dev", verification=(replace(HEALTH, names_revision=True),)),
         has=replace(D, readings=(reading(""),))),
     "check health reports on no revision, not on v1"),
    (dev(rule=replace(DEV, suspended=True)), "the policy's author (spec.suspend)"),
    (dev(decided(Action.PUBLISH, stage="dev", name="x")),
     "ann (record the decision again, with --revision)"),
    (dev(decided(Action.PUBLISH, stage="dev", revision="v2", name="x")),
     "decision x to publish v2 waits: spec.upstream does not allow v2"),
    (dev(has=replace(D, offline=True)),
     "target Cluster/d is offline; its variant keeps its state and counts"),
    (dev(has=variant("d", "dev", offline=True)),
     "target Cluster/d is offline; its variant does not count"),
    (facts([DEV], []), "no target is in stage dev; the stage cannot pass"),
    (dev(has=variant("d", "")), "target Cluster/d is in no stage; choose one of: dev"),
    (dev(has=variant("d", "moon")),
     "target Cluster/d is in stage moon, which the policy does not declare; choose one of: dev"),
    (facts([DEV, stage("join", after("dev"), control_flow=True)], [variant("j", "join")]),
     "target Cluster/j is in stage join, which is a control-flow stage; choose one of: dev"),
    (soaked(decided(Action.PUBLISH, OverridableGate.AFTER, stage="prod", revision="v1")),
     "v1 is not ready in stage dev; its soak of 1h has not started"),
    (prod(evidence_of("dev", FAILED)), "v1 failed in stage dev"),
    (reading_object("2"), "ConfigMap/ca changed; d in stage dev is not ready with the new version"),
    (dev(has=replace(D, draft=draft("v2")), **QUEUED),
     "v2 waits until the variant is ready or has failed at v1 (inFlight: Serialize)"),
    (facts([DEV], [D, variant("e", "dev", draft=draft("v2"))], **QUEUED),
     "d goes first (inFlight: Serialize): it is not ready at v1 yet"),
    (prod(OK, has=published("v2", 1), open_draft="v1", policy_fields={"revisions": "v1"}),
     "its published revision is newer than v1; automation never downgrades"),
    (prod(OK, policy_fields={"calendars": (PublicationCalendar("never", (NIGHT,), (NIGHT,)),)}),
     "; it does not open again"),
    (prod(OK, BACK, rule=stage("prod", after("dev"), requires=(SIGNED,)),
          has=published("v2", 1), open_draft="v1", policy_fields={"revisions": "v1 v2"}),
     "check signed-off is not required again for a rollback to v1"),
    (dev(PROMOTED, has=replace(D, draft=draft("v2")), revisions="v1 v2 v3"),
     "decision x to publish v2 waits: the candidate is v3"),
    (dev(replace(OK, spec=OK.spec.model_copy(update={"revision": None})), now=20),
     " by ci does not count: it names no revision and no commit"),
    (dev(has=variant("d", "dev", offline=True)),
     "no variant of stage dev counts for v1: all are suspended, offline or skipped"),
    (facts([DEV], [variant("e", "dev", draft=draft("v1"), group=1),
                   variant("d", "dev", draft=draft("v1"))]),
     "group 1 goes first: d is not ready at v1"),
    (facts([DEV], [D]), "d: check e2e is not reported for v1 yet"),
    (facts([DEV], [D, replace(D, name="e"), replace(D, name="f")]),
     "3 variants, d first: check e2e is not reported for v1 yet"),
    (conditions(False), "propagateWhen is false: stage.ready"),
    (conditions(3), "propagateWhen stage.ready yields 3, expected true or false"),
    (conditions(ExpressionFailure("ExpressionError", "no such key")),
     "propagateWhen stage.ready: no such key"),
    (dev(rule=stage("dev", verification=(replace(HEALTH, spec=SETTLING),))),
     "check health starts 1h after publication (settle)"),
]  # fmt: skip


def list_texts(policy_facts):
    """All sentences and actors of the holds and checks of a world."""
    decision = evaluate_gates(policy_facts)
    others = (other for it in decision.stages.values() for other in it.others)
    items = (*decision.variants.values(), *decision.stages.values(), *others, decision)
    parts = [hold for it in items for hold in it.holds]
    parts += [check for it in decision.variants.values() for check in it.checks]
    return {text for it in parts for text in (it.message, it.who)}


@pytest.mark.parametrize(("policy_facts", "expected"), ROWS, ids=[expected for _, expected in ROWS])
def test_a_sentence_of_a_world(policy_facts, expected):
    texts = list_texts(policy_facts)
    assert any(expected in text for text in texts), "\n".join(texts)


@pytest.mark.parametrize(
    ("names", "expected"),
    [("eu", "stage eu cannot pass v2"), ("eu us", "stage eu, stage us cannot pass v2")],
)
def test_a_forecast_of_a_stage_behind_others_that_cannot_pass(names, expected):
    before = names.split()
    rules = [*map(stage, before), stage("prod", after(*before))]
    policy_facts = facts(rules, [HELD], revisions="v1 v2")
    result = forecast_stages(policy_facts, "v2", lambda instant: instant, {})["prod"]
    assert [it.message for it in result.holds] == [expected]


REMOVALS = [
    (OrphanedVariant("p", "prod", at(0), ("the package a", "the draft b")),
     "removal would delete edits of the package a and the draft b"),
    (OrphanedVariant("d", "dev"), "variants of later stages are removed first: q"),
]  # fmt: skip
LIMITS = [
    (0, 1, False, "no target exists any more; 1 variant would be removed"),
    (0, 2, True, "the policy was deleted; 2 variants would be removed"),
    (4, 2, False, "2 of 6 variants would be removed (removalLimit: 1)"),
]


@pytest.mark.parametrize(("present", "orphan_count", "is_deleted", "expected"), LIMITS)
def test_a_sentence_of_too_many_removals(present, orphan_count, is_deleted, expected):
    orphans = tuple(OrphanedVariant(f"p{it}", "prod") for it in range(orphan_count))
    removal = RemovalFacts(facts([stage("prod")], ()), present, orphans, limit=1)
    removals = evaluate_removals(replace(removal, is_deleted=is_deleted))
    assert removals.limit.message == expected


@pytest.mark.parametrize(("orphan", "expected"), REMOVALS)
def test_a_sentence_of_a_removal(orphan, expected):
    stages = (stage("dev"), stage("prod", after("dev")))
    orphans = (orphan, OrphanedVariant("q", "prod"))
    removal = RemovalFacts(facts(stages, ()), 10, orphans, limit=5)
    holds = evaluate_removals(removal).holds[orphan.name]
    assert expected in [it.message for it in holds]


HELD = variant("p", "prod", draft=draft("v2"), held=Hold("Offline", "no answer"))
FORECASTS = [
    ([], "v2", "no variant counts in stage prod"),
    ([HELD], "v2", "1 held variant freed immediately"),
    ([variant("d", "dev", published("v2", 5)), HELD], "v1", "stage dev moved on before v1 passed"),
]


@pytest.mark.parametrize(("variants", "revision", "expected"), FORECASTS)
def test_a_sentence_of_a_forecast(variants, revision, expected):
    upstream = after("dev") if revision == "v1" else None
    rules = [stage("dev", verification=()), stage("prod", upstream, verification=())]
    policy_facts = facts(rules, variants, revisions="v1 v2")
    result = forecast_stages(policy_facts, revision, lambda instant: instant, {})["prod"]
    assert expected in [*result.assumptions, *(it.message for it in result.holds)]
