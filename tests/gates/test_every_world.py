"""Every small world: two stages before, all they can be, all that people can say; judged twice.

The second judge is written here, from the design's sentences, as plain set arithmetic: who has
passed, who has soaked, what is lifted. It shares nothing with the evaluator.
"""

from itertools import chain, combinations, product

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    decided,
    draft,
    facts,
    passed,
    published,
    said,
    stage,
    variant,
)

from fanout.gates.answer import State
from fanout.gates.evaluate import evaluate
from fanout.gates.records import Action, Override
from fanout.gates.rules import Require

#   state → (what it has, its evidence, history; passed?, failed?, soaked for 60 minutes?)
STATES = {
    "not published": ("", None, None, False, False, False),
    "verifying": ("v1", None, None, False, False, False),
    "soaking": ("v1", PASSED, 50, True, False, False),
    "soaked": ("v1", PASSED, 40, True, False, True),
    "failed": ("v1", FAILED, None, False, True, False),
    "withdrawn": ("v1", FAILED, 1, False, True, False),
    "left in time": ("v2", None, (10, 80), True, False, True),
    "left too early": ("v2", None, (10, 60), True, False, False),
}
NOW = 100
OVERRIDES = (Override.AFTER, Override.SOAK, Override.REQUIRES)
LIFTS = [
    None,
    *chain.from_iterable(combinations(OVERRIDES, size) for size in range(len(OVERRIDES) + 1)),
]


def world(states, require, signed, automatic, lifts):
    variants, records, history = [variant("p", "prod", draft=draft("v1"))], [], {}
    for name, state in zip(("eu", "us"), states, strict=True):
        has, status, since, *_ = STATES[state]
        variants.append(
            variant(name, name, published(has, 90 if has == "v2" else 0) if has else None)
        )
        if status is not None:
            records.append(said(name, status))
        if since is not None:
            history[name, "v1"] = passed(*since) if isinstance(since, tuple) else passed(since)
    records += [approved(person) for person in ("ann", "bob")[:signed]]
    if lifts is not None:
        records.append(decided(Action.PUBLISH, *lifts, stage="prod", revision="v1"))
    prod = stage(
        "prod", after("eu", "us", require=require, soak=60), requires=(SIGNED,), automatic=automatic
    )
    rules = (stage("eu"), stage("us"), prod)
    return facts(rules, variants, *records, now=NOW, history=history)


def specification(states, require, signed, automatic, lifts):
    """Is the variant released, is it published, and is the gate beyond hope as it stands?"""
    lifted = set(lifts or ())
    told = [STATES[state] for state in states]
    through = [
        (has_passed or Override.AFTER in lifted) and (soaked or Override.SOAK in lifted)
        for *_, has_passed, _, soaked in told
    ]
    enough = {Require.ALL: 2, Require.ANY: 1, Require.MAJORITY: 2}[require]
    opened = sum(through) >= enough
    lost = len(told) - sum(failed for *_, failed, _ in told) < enough
    wanted = automatic or lifts is not None
    released = opened and wanted
    agreed = signed >= 2 or Override.REQUIRES in lifted
    return released, released and agreed, lost and not opened


@pytest.mark.parametrize("require", Require)
@pytest.mark.parametrize("automatic", [True, False], ids=["automatic", "by hand"])
def test_every_world(require, automatic):
    for states in product(STATES, repeat=2):
        for signed, lifts in product((1, 2), LIFTS):
            case = (states, require, signed, automatic, lifts)
            decision = evaluate(world(*case))
            released, is_published, lost = specification(*case)
            p, prod = decision.variants["p"], decision.stages["prod"]
            assert (p.release, p.publish) == (released, is_published), case
            expected = State.DRAFTED
            if released:
                expected = State.PROPOSED if is_published else State.RELEASED
            assert p.state is expected, case
            if Override.AFTER not in (lifts or ()):
                assert (prod.gate is FAILED) == lost, case


def test_the_states_are_what_they_are_called():
    for name, (*_, has_passed, has_failed, _) in STATES.items():
        verdicts = evaluate(world((name, name), Require.ALL, 0, True, None)).stages["eu"].verdicts
        assert (verdicts["v1"] is PASSED, verdicts["v1"] is FAILED) == (has_passed, has_failed), (
            name
        )
