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
    facts,
    passed,
    published,
    said,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

DEV, PROD = stage("dev"), stage("prod", after("dev"))
D, P = variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))
OK, BAD = said("dev", PASSED), said("dev", FAILED)


def world(*records, stages=(DEV, PROD), variants=(D, P), **fields):
    return facts(stages, variants, *records, **fields)


BOTH = (D, variant("p", "prod", published("v1")))
TIMED = decided(Action.PUBLISH, revision="v9", expires=at(60))
FROZEN = Hold("PathTaken", "somebody else's")
RULED = stage("prod", after("dev"), requires=(SIGNED,))

ROWS = [
    ("a failure in dev that nobody works on", world(BAD), True),
    ("verification is under way", world(), False),
    ("something may go", world(OK), False),
    ("everything is ready", world(OK, said("prod", PASSED), variants=BOTH), False),
    ("somebody suspended a stage", world(BAD, decided(Action.SUSPEND, stage="dev")), False),
    ("a suspended variant", world(BAD, variants=(D, replace(P, suspended=True))), False),
    ("a timer runs", world(BAD, TIMED), False),
    ("a draft is still to be written", world(BAD, variants=(D, variant("p", "prod"))), False),
    ("a person may promote", world(OK, stages=(DEV, replace(PROD, automatic=False))), False),
    ("the next sweep may", world(OK, sweep=False), False),
    ("released, and people are to approve", world(OK, stages=(DEV, RULED)), False),
    ("one that is held, all others ready", world(OK, variants=(D, replace(P, held=FROZEN))), True),
    ("the stage before has no targets", world(variants=(P,)), True),
    ("only one in no stage is left", world(OK, variants=(D, variant("x", "moon"))), False),
]


@pytest.mark.parametrize(("sentence", "facts_", "is_stuck"), ROWS, ids=map(itemgetter(0), ROWS))
def test_stuck(sentence, facts_, is_stuck):
    holds = [hold.reason for hold in evaluate_gates(facts_).holds]
    assert ("Stuck" in holds) == is_stuck


def test_a_stuck_policy_names_the_gate_and_who_can_open_it():
    (hold,) = evaluate_gates(world(BAD)).holds
    halt = "stage dev is halted: 1 variant failed v1 (d), maxFailures: 0"
    assert hold.message == f"rollout is stuck; {halt}"
    assert hold.who == gate_wording.format_halt_actor("dev")


SOAKED = stage("prod", after("dev", soak=60))


def raced(*left, has=None, revisions="v1 v2 v3 v4"):
    """Dev has run through these revisions, each for ten minutes, and is at v4 now."""
    history = {("dev", name): passed(10 * n, 10 * n + 10) for n, name in enumerate(left)}
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
