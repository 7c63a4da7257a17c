"""Explanations say what passed, what is missing, since when, who can act, and when next."""

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    draft,
    facts,
    passed,
    published,
    said,
    stage,
    variant,
)

from fanout.errors import InvalidInput
from fanout.gates.explanation import explain_policy, explain_stage, explain_variant
from fanout.gates.gate_evaluator import evaluate_gates

STAGES = (stage("dev"), stage("prod", after("dev", soak=60), requires=(SIGNED,)))
VARIANTS = (variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1")))


def told(*records, now=10.0, history=None):
    world = facts(STAGES, VARIANTS, *records, now=now, history=history or {})
    return world, evaluate_gates(world)


SOAKS = {("dev", "v1"): passed(10)}


def every(line):
    yield line
    for child in line.children:
        yield from every(child)


def test_a_variant_tells_its_checks_and_the_gate_of_its_stage():
    line = explain_variant(*told(said("dev", PASSED), approved("ann"), history=SOAKS), "p")
    assert (line.subject, line.state) == ("variant p", "Drafted")
    assert line.until is None, "somebody has to approve it first"
    lines = {item.subject: item for item in every(line)}
    assert lines["check signed-off"].actor == "a member of sre"
    assert "1 of 2" in lines["check signed-off"].sentence
    assert lines["after"].state == "pending"
    assert lines["stage dev"].sentence == "v1 has passed and soaks for 1h"
    assert (lines["stage dev"].since, lines["stage dev"].until) == (at(10), at(70))
    assert lines["SoakRunning"].until == at(70)


def test_a_clock_that_is_not_on_record_yet_shows_no_instant():
    line = explain_variant(*told(said("dev", PASSED)), "p")
    lines = {item.subject: item for item in every(line)}
    assert lines["stage dev"].sentence == "v1 has passed; its soak of 1h starts with the next sweep"
    assert lines["SoakRunning"].actor == "the next sweep, which records it"
    about = [lines[name] for name in ("variant p", "stage dev", "SoakRunning")]
    assert [(item.since, item.until) for item in about] == [(None, None)] * 3


def test_a_stage_tells_its_gate_and_the_variants_that_are_not_ready():
    line = explain_stage(*told(said("dev", FAILED)), "prod")
    assert line.actor.startswith("whoever may decide about stage dev: fanout retry, skip")
    subjects = [item.subject for item in line.children]
    assert subjects[0] == "after"
    assert subjects[-1] == "variant p"
    assert line.children[0].state == "failed"
    ready = explain_stage(*told(said("dev", PASSED), history=SOAKS), "dev")
    assert (ready.state, ready.since, ready.children) == ("passed", at(10), ())


def test_a_policy_tells_its_own_holds_and_its_stages():
    line = explain_policy(*told(said("dev", FAILED)))
    assert [item.subject for item in line.children] == ["Stuck", "stage dev", "stage prod"]
    assert line.sentence.startswith("0 of 2 variants ready; nothing moves any more")
    assert line.state == "Stuck"


def test_a_published_variant_tells_since_when_it_is_ready():
    line = explain_variant(*told(said("dev", PASSED, when=4)), "d")
    assert (line.state, line.since, line.actor) == ("Ready", at(4), "")
    assert [item.state for item in line.children] == ["passed"]


@pytest.mark.parametrize("explain", [explain_stage, explain_variant])
def test_what_is_not_there_is_refused_by_name(explain):
    with pytest.raises(InvalidInput, match=r"has no .* moon"):
        explain(*told(), "moon")


def test_nothing_is_told_twice():
    line = explain_variant(*told(), "d")
    sentences = [item.sentence for item in every(line)][1:]
    assert len(sentences) == len(set(sentences))


def test_what_goes_back_is_not_said_to_wait_for_its_checks():
    rule = stage("prod", requires=(SIGNED,), pin="v1")
    p = variant("p", "prod", published("v2"), draft=draft("v1"))
    it = facts((rule,), (p,), revisions="v1 v2")
    line = explain_variant(it, evaluate_gates(it), "p")
    assert line.sentence == "has v2; candidate v1; may be published now"
    lines = {item.subject: item for item in every(line)}
    signed = lines["check signed-off"]
    assert (signed.state, signed.actor) == ("passed", "")
    assert signed.sentence == "check signed-off is not asked again of what goes back to v1"
