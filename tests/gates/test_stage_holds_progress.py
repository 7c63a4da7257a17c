"""A policy says when only a person can set it going again, and when it runs too fast."""

from operator import itemgetter

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    passed,
    published,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action
from fanout.api.results import Hold
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

DEV, PROD = stage("dev"), stage("prod", after("dev"))
D, P = variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))
OK, BAD = evidence_of("dev", PASSED), evidence_of("dev", FAILED)


def build_facts(*records, stages=(DEV, PROD), variants=(D, P), **fields):
    return facts(stages, variants, *records, **fields)


BOTH = (D, variant("p", "prod", published("v1")))
TIMED = decided(Action.PUBLISH, revision="v9", expires=at(60))
FROZEN = Hold("PathTaken", "somebody else's")
RULED = stage("prod", after("dev"), requires=(SIGNED,))

ROWS = [
    ("a failure in dev that nobody works on", build_facts(BAD), True),
    ("verification is under way", build_facts(), False),
    ("something may go", build_facts(OK), False),
    ("everything is ready", build_facts(OK, evidence_of("prod", PASSED), variants=BOTH), False),
    ("somebody suspended a stage", build_facts(BAD, decided(Action.SUSPEND, stage="dev")), False),
    ("a suspended variant", build_facts(BAD, variants=(D, replace(P, suspended=True))), False),
    ("a timer runs", build_facts(BAD, TIMED), False),
    ("a draft is still to be written", build_facts(BAD, variants=(D, variant("p", "prod"))), False),
    ("a person may promote", build_facts(OK, stages=(DEV, replace(PROD, automatic=False))), False),
    ("the next sweep may", build_facts(OK, sweep=False), False),
    ("released, and people are to approve", build_facts(OK, stages=(DEV, RULED)), False),
    (
        "one that is held, all others ready",
        build_facts(OK, variants=(D, replace(P, held=FROZEN))),
        True,
    ),
    ("the stage before has no targets", build_facts(variants=(P,)), True),
    ("only one in no stage is left", build_facts(OK, variants=(D, variant("x", "moon"))), False),
]


@pytest.mark.parametrize(("sentence", "facts_", "is_stuck"), ROWS, ids=map(itemgetter(0), ROWS))
def test_stuck(sentence, facts_, is_stuck):
    holds = [hold.reason for hold in evaluate_gates(facts_).holds]
    assert ("Stuck" in holds) == is_stuck


def test_a_stuck_policy_names_the_gate_and_who_can_open_it():
    (hold,) = evaluate_gates(build_facts(BAD)).holds
    halt = "stage dev is halted: 1 variant failed v1 (d), maxFailures: 0"
    assert hold.message == f"rollout is stuck; {halt}"
    actor = "any promoter of stage dev (fanout retry, skip or rollback), or a fixed revision"
    assert hold.who == actor


SOAKED = stage("prod", after("dev", soak=60))


def raced(*left_at, has=None, revisions="v1 v2 v3 v4"):
    """Dev has run through these revisions, each for ten minutes, and is at v4 now."""
    history = {("dev", name): passed(10 * n, 10 * n + 10) for n, name in enumerate(left_at)}
    variants = (
        variant("d", "dev", published("v4", 90)),
        variant("p", "prod", has, draft=draft("v4")),
    )
    return evaluate_gates(
        facts((DEV, SOAKED), variants, revisions=revisions, history=history, now=100)
    )


def test_releases_that_are_faster_than_the_soak_starve_what_is_downstream():
    decision = raced("v2", "v3", has=published("v1"))
    (hold,) = (hold for hold in decision.holds if hold.reason == "Starving")
    assert hold.message == (
        "stage prod starves: 2 revisions (v2, v3) left upstream stages before the soak of 1h"
    )
    assert hold in decision.stages["prod"].holds


def test_a_single_quick_fix_does_not_starve_a_stage():
    assert not any(hold.reason == "Starving" for hold in raced("v2", has=published("v1")).holds)


def test_a_revision_that_the_stage_took_ends_the_starvation():
    decision = raced("v2", "v3", has=published("v3"))
    assert not any(hold.reason == "Starving" for hold in decision.holds)
