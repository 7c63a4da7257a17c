"""Every small world, judged twice: by the evaluator and by `specification`, which shares nothing.

Up to three stages before with two variants each, all that these can be, all that can be required
of them, approvals, windows, failures that are borne, a newer revision. Worlds that differ in the
order of stages or of variants alone are one world. Many worlds are put into one policy, each as a
stage of its own: so it is seen too that stages do not disturb each other.

A plain run takes every combination of stages, requirement and failures borne, with some of the
other settings in turn; `make worlds` takes them all.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, combinations_with_replacement, product

import pytest
from gates.specification import (
    EDGE,
    MORE,
    NOW,
    RECORDED,
    REFUSALS,
    SOAK,
    STORIES,
    Before,
    Expected,
    World,
    judge,
)
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    SIGNED,
    T0,
    after,
    approved,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, Require, VariantState
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.record_facts import ReviewFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.values import replace

REQUIREMENTS = (*Require, 1, 2, 3, Fraction(60, 100))
SETTINGS = [*product((False, True), ("none", "open", "closed"), (0, 1, 2))]
IN_TURN = len(SETTINGS) if os.environ.get("WORLDS") == "all" else 1
PER_POLICY = 250  # in larger ones each stage looks at the decisions of all others for long
HOUR = build_window("0 1 * * *", "UTC", duration=at(60) - T0)  # from 60 to EDGE
WINDOWS = {
    "none": (),
    "open": (PublicationCalendar("office", allow=(HOUR,)),),
    "closed": (PublicationCalendar("freeze", deny=(HOUR,)),),
}


@cache
def every_world(borne: int) -> tuple[World, ...]:
    """All of them, with the settings in turn."""
    return tuple(_every_world(borne))


def _every_world(borne: int) -> Iterator[World]:
    pairs = list(combinations_with_replacement(STORIES, 2))
    stages = [Before(pair, borne) for pair in pairs]
    turn = 0
    for count in (1, 2, 3):
        for before in combinations_with_replacement(stages, count):
            for require in REQUIREMENTS:
                for _ in range(IN_TURN):
                    newer, window, approvals = SETTINGS[turn % len(SETTINGS)]
                    turn += 1
                    yield World(before, require, approvals, window, newer)


def overridden() -> Iterator[World]:
    """Two stages of one kind each, and all that a person can decide."""
    kinds = [Before((state, state)) for state in (*STORIES, *MORE)]
    overrides = (
        OverridableGate.AFTER,
        OverridableGate.SOAK,
        OverridableGate.REQUIRES,
        OverridableGate.WINDOW,
    )
    lifts = chain.from_iterable(combinations(overrides, size) for size in range(5))
    wills = [(True, False, ()), (False, False, ()), *((False, True, it) for it in lifts)]
    for before, require, window, approvals, (automatic, by_hand, lifted) in product(
        combinations_with_replacement(kinds, 2),
        (Require.ALL, Require.ANY),
        ("none", "closed"),
        (1, 2),
        wills,
    ):
        yield World(
            before, require, approvals, window, False, automatic, by_hand, frozenset(lifted)
        )


def conflicting() -> Iterator[World]:
    """Two stages of one kind each before a draft with merge conflicts, by who has decided what."""
    kinds = [Before((state, state)) for state in STORIES]
    for before, window, approvals, automatic, by_hand, accepted in product(
        combinations_with_replacement(kinds, 2),
        ("none", "closed"),
        (1, 2),
        (False, True),
        (False, True),
        (False, True),
    ):
        yield World(
            before,
            Require.ALL,
            approvals,
            window,
            automatic=automatic,
            decided=by_hand,
            conflict=True,
            accepted=accepted,
        )


def refused() -> Iterator[World]:
    """Two stages of one kind each before a draft of which somebody requests changes."""
    kinds = [Before((state, state)) for state in STORIES]
    for before, window, approvals, automatic, lifted, refusal in product(
        combinations_with_replacement(kinds, 2),
        ("none", "closed"),
        (1, 2),
        (False, True),
        ((), (OverridableGate.REQUIRES,)),
        REFUSALS,
    ):
        yield World(
            before,
            Require.ALL,
            approvals,
            window,
            automatic=automatic,
            decided=bool(lifted),
            lifts=frozenset(lifted),
            refusal=refusal,
        )


def refusals(inputs: World, own: str) -> Iterator[ReviewFacts]:
    """The changes that somebody requests of the draft; the approvals are of minute 1."""
    by, when, changes = {
        "stands": ("cid", 2, {}),
        "stands after an approval of the same person": ("ann", 2, {}),
        "is of an older draft": ("cid", 0.5, {}),
        "was answered by an approval of the same person": ("ann", 0.5, {}),
        "is of another revision": ("cid", 2, {"revision": "v0"}),
        "is of another variant": ("cid", 2, {"variants": ("other",)}),
        "is by somebody who is not asked": ("eve", 2, {}),
    }[inputs.refusal]
    link = "https://git.example.com/7"
    values = {"revision": "v1", "variants": (own,), **changes}
    yield ReviewFacts(at(when), by, link, own, SIGNED.name, **values)


def policy(worlds: Sequence[World]) -> PolicyFacts:
    """One policy with a stage for each world; they share window and newer revision."""
    rules, variants, records, requested = {}, [], [], []
    history: dict[tuple[str, str], RevisionHistory] = {}
    for number, inputs in enumerate(worlds):
        for name, before in named(inputs):
            if name not in rules:
                rules[name] = stage(name, rollout=Rollout(max_failures=before.borne))
                tell(name, before, variants, records, history)
        own = f"prod-{number}"
        require = inputs.require
        wanted = {"require": require} if isinstance(require, Require) else {"at_least": require}
        gate = after(*(name for name, _ in named(inputs)), soak=SOAK, **wanted)
        rules[own] = stage(own, gate, requires=(SIGNED,), automatic=inputs.automatic)
        open_draft = replace(draft("v1"), conflict_count=int(inputs.conflict))
        variants.append(variant(own, own, draft=open_draft))
        records += [approved(person, of=own) for person in ("ann", "bob")[: inputs.approvals]]
        requested += refusals(inputs, own) if inputs.refusal else ()
        if inputs.decided:
            records.append(decided(Action.PUBLISH, *inputs.lifts, stage=own, revision="v1"))
        if inputs.accepted:
            seen = {"variants": (own,), "trees": frozenset({open_draft.tree})}
            accepted = decided(Action.PUBLISH, stage=own, revision="v1", **seen)
            records.append(with_spec(accepted, accept_conflicts=True))
    first = worlds[0]
    made = facts(
        rules.values(),
        variants,
        *sorted(records, key=lambda it: it.at),
        now=NOW,
        history=history,
        revisions="v1 v2" if first.newer else "v1",
        calendars=WINDOWS[first.window],
    )
    return replace(made, records=replace(made.records, requested_changes=tuple(requested)))


def named(inputs: World) -> list[tuple[str, Before]]:
    """The stages before, by names that worlds of one policy share."""
    return [(f"{place} {', '.join(it.states)}", it) for place, it in zip("abc", inputs.stages)]  # noqa: B905


def tell(name, before, variants, records, history) -> None:
    """What is observed and on record of a stage before."""
    for number, story in enumerate(before.stories):
        own = f"{name} {number}"
        has = published("v2", story.left) if story.away(NOW) else published("v1", story.back or 0)
        variants.append(variant(own, name, has if story.published else None))
        records += [
            evidence_of(name, verdict, when=when, variants=(own,))
            for when, verdict in story.answers
        ]
    spans = before.stretches(RECORDED)
    if spans:
        begun, end = spans[-1]
        longest = max((end - begun for begun, end in spans if end is not None), default=0.0)
        history[name, "v1"] = RevisionHistory(
            at(spans[0][0]),
            None if end is None else at(end),
            timedelta(minutes=longest),
            at(begun) if len(spans) > 1 and end is None else None,
        )


def differs(decision: PolicyEvaluation, own: str, inputs: World, expected: Expected) -> str:
    """Where the evaluator says otherwise; nothing if they agree."""
    view, item = decision.stages[own], decision.variants[own]
    state = VariantState.PROPOSED if expected.published else VariantState.RELEASED
    if not expected.released:
        state = VariantState.HELD if expected.held else VariantState.DRAFTED
    reasons = frozenset(str(hold.reason) for hold in item.holds)
    opens = None if expected.opens is None else at(expected.opens)
    faults = [
        (view.candidate, expected.candidate),
        (view.gate, expected.gate),
        (item.release, expected.released),
        (item.publish, expected.published),
        (item.state, state),
        (view.verdict, PENDING),
    ]
    differences = [f"{has} and not {wanted}" for has, wanted in faults if has != wanted]
    if not expected.must <= reasons <= expected.may:
        differences.append(f"told {sorted(reasons)}, to be told {sorted(expected.must)}")
    if inputs.window != "closed" and expected.candidate == "v1" and view.next != opens:
        differences.append(f"next {view.next} and not {opens}")
    if inputs.window == "closed" and expected.gate is PASSED and not expected.released:
        differences += [] if view.next in (at(EDGE), opens) else [f"next {view.next}, not the edge"]
    return "; ".join(differences)


def before_differs(decision: PolicyEvaluation, name: str, before: Before, *, newer: bool) -> str:
    """The same for a stage before: its verdict, its clock, and what becomes of its variants."""
    view, since = decision.stages[name], before.clock()
    clock = decision.history.get((name, "v1"), RevisionHistory())
    stands = {
        PASSED: VariantState.READY,
        FAILED: VariantState.FAILED,
        PENDING: VariantState.VERIFYING,
    }
    has_moved = newer or before.left is not None
    spans = before.stretches(NOW)
    begun = spans[-1][0] if spans else None
    failed = sum(it.at(NOW) is FAILED for it in before.stories)
    faults = [
        (view.verdicts.get("v1", PENDING), before.verdict()),
        (clock.passed, None if since is None else at(since)),
        (clock.left, None if before.left is None else at(before.left)),
        (clock.stretch_start, None if begun is None else at(begun))
        if before.left is None
        else (0, 0),
        (view.candidate, "v2" if newer else "v1"),
        (view.halted, not has_moved and failed > before.borne),
    ]
    if not has_moved:
        for number, story in enumerate(before.stories):
            stand = story.at(NOW)
            wanted = VariantState.DRAFTED if stand is None else stands[stand]
            faults.append((decision.variants[f"{name} {number}"].state, wanted))
    return "; ".join(f"{has} and not {wanted}" for has, wanted in faults if has != wanted)


def disagreements(worlds: Sequence[World]) -> list[str]:
    """All worlds of one policy in which the two do not agree."""
    decision = evaluate_gates(policy(worlds))
    differences, seen = [], set()
    for number, inputs in enumerate(worlds):
        fault = differs(decision, f"prod-{number}", inputs, judge(inputs))
        differences += [f"{inputs}: {fault}"] if fault else []
        for name, before in named(inputs):
            if name not in seen:
                seen.add(name)
                fault = before_differs(decision, name, before, newer=inputs.newer)
                differences += [f"{name}: {fault}"] if fault else []
    return differences


def policies(worlds: Iterable[World]) -> Iterator[list[World]]:
    """Worlds by policy: those that share a window and a newer revision go into one."""
    groups: dict[tuple[str, bool], list[World]] = {}
    for inputs in worlds:
        group = groups.setdefault((inputs.window, inputs.newer), [])
        group.append(inputs)
        if len(group) == PER_POLICY:
            yield groups.pop((inputs.window, inputs.newer))
    yield from groups.values()


SHARES = 4
"""Into so many tests the worlds are dealt out, so that two processes can work on them."""


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("borne", [0, 1], ids=["no failure is borne", "one failure is borne"])
def test_every_world(borne, share, record_property):
    differences = []
    for number, worlds in enumerate(policies(every_world(borne))):
        if number % SHARES == share:
            differences += disagreements(worlds)
            record_property("worlds", len(worlds))
    assert not differences, "\n".join([f"{len(differences)} disagreements", *differences[:10]])


def test_every_world_that_a_person_decides_about(record_property):
    differences = []
    for worlds in policies(overridden()):
        differences += disagreements(worlds)
        record_property("worlds", len(worlds))
    assert not differences, "\n".join([f"{len(differences)} disagreements", *differences[:10]])


def test_every_world_with_a_merge_conflict(record_property):
    differences = []
    for worlds in policies(conflicting()):
        differences += disagreements(worlds)
        record_property("worlds", len(worlds))
    assert not differences, "\n".join([f"{len(differences)} disagreements", *differences[:10]])


def test_every_world_in_which_somebody_requests_changes(record_property):
    differences = []
    for worlds in policies(refused()):
        differences += disagreements(worlds)
        record_property("worlds", len(worlds))
    assert not differences, "\n".join([f"{len(differences)} disagreements", *differences[:10]])


def test_a_world_alone_is_evaluated_as_it_is_among_others(record_property):
    every = chain(every_world(0), every_world(1), overridden(), conflicting(), refused())
    alone = [inputs for number, inputs in enumerate(every) if number % 499 == 0]
    differences = [fault for inputs in alone for fault in disagreements([inputs])]
    record_property("worlds", len(alone))
    assert not differences, "\n".join(differences[:10])
