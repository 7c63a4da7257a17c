"""Which variants without a target may go now, and what the others wait for."""

from datetime import timedelta
from fractions import Fraction
from operator import itemgetter

import pytest
from gates.worlds import after, at, decided, facts, stage
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates import gate_wording
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.removal_gate import (
    OrphanedVariant,
    RemovalFacts,
    compute_levels,
    compute_removal_limit,
    evaluate_removals,
    group_by_level,
)
from fanout.values import replace

SHARE = Fraction(1, 5)
STAGES = (stage("dev"), stage("eu", after("dev")), stage("us", after("dev")))
STAGES += (stage("prod", after("eu", "us")),)
NIGHT = PublicationCalendar(
    "freeze", deny=(build_window("0 0 1 1 *", "UTC", timedelta(hours=24), None),)
)


def removal_facts(*orphans: OrphanedVariant, **fields) -> RemovalFacts:
    """Ten variants whose targets are there, and these."""
    values = {"present_count": 10, "limit": SHARE, **fields}
    stages, decisions = values.pop("stages", STAGES), values.pop("decisions", ())
    names = values.keys() & PolicyFacts.__struct_fields__
    policy_fields = {name: values.pop(name) for name in names}
    policy_facts = facts(stages, (), *decisions, now=60, **policy_fields)
    return RemovalFacts(policy_facts, orphaned=orphans, **values)


def many(number: int, of: str = "prod") -> tuple[OrphanedVariant, ...]:
    return tuple(OrphanedVariant(f"{of}-{index:03}", of) for index in range(number))


def confirmation(*variants: str, trees: tuple[str, ...] = (), when: float = 30) -> DecisionFacts:
    return decided(Action.CONFIRM_REMOVAL, when=when, variants=variants, trees=frozenset(trees))


def reasons(removals: RemovalFacts) -> dict[str, str]:
    """The first reason of each, "" of those that go."""
    return {
        name: str(holds[0].reason) if holds else ""
        for name, holds in evaluate_removals(removals).holds.items()
    }


ONE = OrphanedVariant("p", "prod", published_at=at(0))
EDITED = OrphanedVariant("p", "prod", at(0), ("the package sites/p",), frozenset({"tree-1"}))
HELD = OrphanedVariant("p", "prod", held=Hold(Reason.REMOTE_UNAVAILABLE, "no answer"))
BY_HAND = tuple(stage(it.name, it.after, automatic=False) for it in STAGES)
PAUSED = tuple(stage(it.name, it.after, suspended=it.name == "prod") for it in STAGES)
DOUBT = Hold(Reason.INVALID_OBJECT, "a file cannot be read")
PASSING = Hold("TargetsUncertain", "the kind is new", "nobody", until=at(50))

ONES = [
    ("goes where automation is on", removal_facts(ONE), ""),
    ("waits for an administrator where it is off",
     removal_facts(ONE, stages=BY_HAND), "AutomationOff"),
    ("goes without automation when a person said so",
     removal_facts(ONE, stages=BY_HAND, confirmations=(confirmation("p"),)), ""),
    ("waits for a sweep where there is a schedule",
     removal_facts(ONE, sweep=False), "SweepAwaited"),
    ("goes in any pass when a person said so",
     removal_facts(ONE, sweep=False, confirmations=(confirmation("p"),)), ""),
    ("waits for the window", removal_facts(ONE, calendars=(NIGHT,)), "WindowClosed"),
    ("waits for the window though a person said so",
     removal_facts(ONE, calendars=(NIGHT,), confirmations=(confirmation("p"),)), "WindowClosed"),
    ("waits for a window that cannot be read, though a person said so",
     removal_facts(ONE, has_unreadable_calendar=True, confirmations=(confirmation("p"),)),
     "WindowClosed"),
    ("stays while its policy is suspended by spec",
     removal_facts(ONE, suspended=True), "Suspended"),
    ("stays while its stage is suspended by spec", removal_facts(ONE, stages=PAUSED), "Suspended"),
    ("stays while somebody suspends its stage",
     removal_facts(ONE, decisions=(decided(Action.SUSPEND, stage="prod"),)), "Suspended"),
    ("stays while somebody suspends it",
     removal_facts(ONE, decisions=(decided(Action.SUSPEND, variants=("p",)),)), "Suspended"),
    ("goes while another stage is suspended",
     removal_facts(ONE, decisions=(decided(Action.SUSPEND, stage="dev"),)), ""),
    ("stays where files cannot be read", removal_facts(ONE, safety_hold=DOUBT), "InvalidObject"),
    ("stays where files cannot be read, whoever said what",
     removal_facts(ONE, safety_hold=DOUBT, confirmations=(confirmation("p"),)), "InvalidObject"),
    ("stays while its target may come back",
     removal_facts(ONE, safety_hold=PASSING), "TargetsUncertain"),
    ("goes when somebody says that its target does not come back",
     removal_facts(ONE, safety_hold=PASSING, confirmations=(confirmation("p"),)), ""),
    ("waits for its repository", removal_facts(HELD), "RemoteUnavailable"),
    ("that people edited waits for them", removal_facts(EDITED), "EditedDownstream"),
    ("that people edited waits though somebody let it go without the edits",
     removal_facts(EDITED, confirmations=(confirmation("p"),)), "EditedDownstream"),
    ("that people edited goes when somebody let these edits go",
     removal_facts(EDITED, confirmations=(confirmation("p", trees=("tree-1",)),)), ""),
    ("that was edited again since is asked about again",
     removal_facts(EDITED, confirmations=(confirmation("p", trees=("tree-0",)),)),
     "EditedDownstream"),
    ("published after a person's word is asked about again",
     removal_facts(OrphanedVariant("p", "prod", at(40)), stages=BY_HAND,
                   confirmations=(confirmation("p"),)),
     "AutomationOff"),
    ("is not let go by a word from the future",
     removal_facts(ONE, stages=BY_HAND, confirmations=(confirmation("p", when=70),)),
     "AutomationOff"),
    ("of no stage goes where every stage is automatic", removal_facts(OrphanedVariant("p")), ""),
    ("of a deleted policy waits for a person where it is the last",
     removal_facts(ONE, present_count=0, is_deleted=True), "TooManyRemovals"),
    ("of a deleted policy goes where all may go",
     removal_facts(ONE, present_count=0, is_deleted=True, limit=Fraction(1)), ""),
    ("of a deleted policy waits for automation",
     removal_facts(ONE, present_count=0, is_deleted=True, limit=Fraction(1), stages=BY_HAND),
     "AutomationOff"),
    ("of a deleted policy that keeps its packages asks nobody",
     removal_facts(ONE, present_count=0, is_deleted=True, keeps_packages=True, stages=BY_HAND,
           sweep=False), ""),
    ("of a deleted policy that keeps its packages waits for the window",
     removal_facts(ONE, present_count=0, is_deleted=True, keeps_packages=True, calendars=(NIGHT,)),
     "WindowClosed"),
    ("of a policy that keeps its packages waits where it is the last",
     removal_facts(ONE, present_count=0, keeps_packages=True), "TooManyRemovals"),
    ("of a stage that is no more goes where every stage is automatic",
     removal_facts(OrphanedVariant("p", "old")), ""),
    ("of no stage waits where a stage is not automatic",
     removal_facts(OrphanedVariant("p"), stages=(*STAGES[:3], BY_HAND[3])), "AutomationOff"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "removals", "reason"), ONES, ids=map(itemgetter(0), ONES))
def test_a_removal_waits_for_its_reason(_, removals, reason):
    assert reasons(removals) == {"p": reason}


LEVELS = [
    ("of one stage together", "prod prod", "prod prod"),
    ("the last stage first", "prod dev eu", "prod"),
    ("stages side by side together", "eu us dev", "eu us"),
    ("the first stage when nothing is left of the others", "dev", "dev"),
    ("an unknown stage after all others", "dev old", "dev"),
    ("no stage at all with the unknown ones", "old -", "old -"),
]


@pytest.mark.parametrize(("_", "present_stages", "go"), LEVELS, ids=map(itemgetter(0), LEVELS))
def test_level_by_level(_, present_stages, go):
    orphans = [
        OrphanedVariant(f"{of}{index}", of.strip("-"))
        for index, of in enumerate(present_stages.split())
    ]
    answer = evaluate_removals(removal_facts(*orphans))
    assert sorted(name.rstrip("0123456789") for name in answer.removable) == sorted(go.split())
    waiting = [holds for holds in answer.holds.values() if holds]
    assert {hold.reason for holds in waiting for hold in holds} <= {Reason.REMOVAL_AWAITS}


def test_a_level_waits_for_what_is_held_in_the_one_before():
    answer = evaluate_removals(removal_facts(EDITED, OrphanedVariant("d", "dev")))
    assert answer.removable == ()
    assert "p" in answer.holds["d"][0].message
    assert answer.holds["d"][0].who == answer.holds["p"][0].who != ""


def test_a_level_waits_for_the_sweep_that_removes_the_one_before():
    answer = evaluate_removals(removal_facts(ONE, OrphanedVariant("d", "dev")))
    assert answer.removable == ("p",)
    assert answer.holds["d"][0].who == gate_wording.NEXT_SWEEP


LIMITS = [
    ("three of ten and three, where a fifth is two", 10, 3, SHARE, ""),
    ("four of them are too many", 10, 4, SHARE, "TooManyRemovals"),
    ("a fifth of a hundred", 80, 20, SHARE, ""),
    ("one more than a fifth of a hundred", 79, 21, SHARE, "TooManyRemovals"),
    ("29 of 100 where 29 % may go", 71, 29, Fraction(29, 100), ""),
    ("30 of 100 where 29 % may go", 70, 30, Fraction(29, 100), "TooManyRemovals"),
    ("a number is as it is written", 100, 2, 1, "TooManyRemovals"),
    ("as many as the number", 100, 1, 1, ""),
    ("0 lets none go by itself", 100, 1, 0, "TooManyRemovals"),
    ("0 % lets none go by itself", 100, 1, Fraction(0), "TooManyRemovals"),
    ("all that there are, though few: a selector that matches nothing", 0, 2, SHARE,
     "TooManyRemovals"),
    ("the only one there is", 0, 1, 5, "TooManyRemovals"),
    ("all that there are, where the author lets all go", 0, 50, Fraction(1), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "present", "number", "limit", "reason"), LIMITS, ids=map(itemgetter(0), LIMITS)
)
def test_the_removal_limit_holds_a_larger_removal(_, present, number, limit, reason):
    many_facts = removal_facts(*many(number), present_count=present, limit=limit)
    assert set(reasons(many_facts).values()) == {reason}
    held = evaluate_removals(many_facts).limit
    assert (str(held.reason) if held else "") == reason


def test_too_many_go_when_a_person_confirms_them_and_no_others():
    orphans = many(12)
    confirmed = confirmation(*(one.name for one in orphans))
    assert set(reasons(removal_facts(*orphans, confirmations=(confirmed,))).values()) == {""}
    more = (*orphans, *many(6, "dev"))
    held_reasons = reasons(removal_facts(*more, confirmations=(confirmed,)))
    assert {held_reasons[one.name] for one in orphans} == {""}
    assert {held_reasons[one.name] for one in more[12:]} == {"TooManyRemovals"}


def test_the_end_of_a_window_is_the_next_instant():
    answer = evaluate_removals(removal_facts(ONE, calendars=(NIGHT,)))
    assert answer.next == at(24 * 60)
    assert evaluate_removals(removal_facts(ONE)).next is None


def test_a_word_from_the_future_counts_from_five_minutes_before_it_on():
    early = removal_facts(ONE, stages=BY_HAND, confirmations=(confirmation("p", when=70),))
    assert evaluate_removals(early).next == at(65)
    later = replace(early, facts=replace(early.facts, now=at(65)))
    assert evaluate_removals(later).removable == ("p",)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 100) | st.none(), st.data())
def test_an_allowed_removal_stays_allowed_while_it_proceeds(present, number, percent, data):
    """Removing some of those that may go never makes the others too many."""
    limit = data.draw(st.integers(0, 50)) if percent is None else Fraction(percent, 100)
    rest = data.draw(st.integers(0, number))
    if number <= compute_removal_limit(limit, present + number):
        assert rest <= compute_removal_limit(limit, present + rest)


NAMES = [f"s{index}" for index in range(7)]


@st.composite
def graphs(draw):
    """Stages, each after any of those before it, in any order."""
    edges = {
        name: draw(st.lists(st.sampled_from(NAMES[:index]), unique=True)) if index else []
        for index, name in enumerate(NAMES)
    }
    order = draw(st.permutations(NAMES))
    return [stage(name, after(*edges[name]) if edges[name] else None) for name in order]


@given(graphs())
def test_a_stage_is_above_all_that_wait_for_it_and_right_above_one(rules):
    ranks = compute_levels(rules)
    assert ranks.keys() == {rule.name for rule in rules}
    for rule in rules:
        waiting = [it.name for it in rules if it.after and rule.name in it.after.stages]
        assert ranks[rule.name] == max((ranks[name] + 1 for name in waiting), default=0)


@given(graphs(), st.lists(st.sampled_from([*NAMES, "old", ""]), max_size=12), st.randoms())
def test_pass_by_pass_everything_goes_and_never_before_what_waits_for_it(rules, stages, random):
    orphans = {f"v{index}": OrphanedVariant(f"v{index}", of) for index, of in enumerate(stages)}
    ranks = compute_levels(rules)
    passes = 0
    while orphans:
        orphan_facts = removal_facts(*orphans.values(), stages=tuple(rules), limit=Fraction(1))
        going = list(evaluate_removals(orphan_facts).removable)
        assert going, "something goes in every pass"
        for name in random.sample(going, random.randint(1, len(going))):
            rank = ranks.get(orphans.pop(name).stage, len(ranks))
            assert all(ranks.get(it.stage, len(ranks)) >= rank for it in orphans.values())
        passes += 1
    assert passes <= len(stages)


def test_stages_on_a_circle_have_no_level_and_are_no_end():
    rules = [stage("a", after("b")), stage("b", after("a")), stage("c", after("a"))]
    assert compute_levels(rules) == {"c": 0}
    order = group_by_level(rules, [OrphanedVariant("x", "a"), OrphanedVariant("y", "c")])
    assert [[one.name for one in level] for level in order] == [["y"], ["x"]]
