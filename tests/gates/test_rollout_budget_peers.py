"""Defects of other rollout engines, played here: each test names the issue it is reported in.

The docstring says what went wrong there; the name says what is right.
"""

from datetime import timedelta
from fractions import Fraction

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    later,
    published,
    reasons_of,
    stage,
    variant,
)
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Action, CheckMethod, RolloutStrategy, VariantState
from fanout.api.results import CheckAnswer
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import PropagationCondition
from fanout.gates.percentages import compute_budget, compute_tolerance
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace

ONE = Rollout(max_in_flight=1)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def waiting(name, **fields):
    """At v1, with a draft of v2."""
    return variant(name, "prod", published("v1"), draft=draft("v2"), **fields)


def at_v2(name, when=5.0, **fields):
    return variant(name, "prod", published("v2", when), **fields)


def ok(*names, when=6.0):
    return evidence_of("prod", PASSED, "v2", when=when, variants=names)


def bad(*names, when=6.0):
    return evidence_of("prod", FAILED, "v2", when=when, variants=names)


def build_facts(rollout, variants, *records, rule=None, **fields):
    prod = stage("prod", rollout=rollout, **(rule or {}))
    return facts(
        [prod], variants, evidence_of("prod", PASSED), *records, revisions="v1 v2", **fields
    )


def released(it) -> str:
    return "".join(evaluate_gates(it).stages["prod"].released)


# ---- Argo CD -------------------------------------------------------------------------------------

HEALTH = check_rule("health", CheckMethod.OBJECT)


def healthy(revision: str, inputs: str = "") -> CheckReading:
    return CheckReading("health", f"digest-{revision}{inputs}", PASSED, "Synced, Healthy", revision)


def test_argo_29410_health_that_was_read_before_the_change_completes_no_step():
    """A step was complete on what the cache said of the state before: prod went before dev."""
    first = variant("a", "prod", published("v2", 5), readings=(healthy("v1"),))
    other = waiting("b", answers=(answer("v1"),))
    it = build_facts(ONE, [first, other], rule={"verification": (HEALTH,)})
    assert evaluate_gates(it).variants["a"].state is VariantState.VERIFYING
    assert released(it) == ""
    seen = replace(first, readings=(healthy("v2"),))
    assert released(replace(it, variants=(seen, other))) == "b"


def answer(revision: str) -> CheckAnswer:
    return CheckAnswer("health", f"digest-{revision}", PASSED, at(3), "Synced, Healthy")


def test_argo_29410_an_answer_on_record_is_about_its_digest_alone():
    """The same with the answer that is on record, and with other inputs at one revision."""
    changed = variant("a", "prod", published("v2", 5, "-new"), answers=(answer("v2"),))
    it = build_facts(ONE, [changed], rule={"verification": (HEALTH,)})
    assert evaluate_gates(it).variants["a"].state is VariantState.VERIFYING


@pytest.mark.parametrize(
    "memory", [{}, {"history": {}, "now": 500.0}], ids=["at once", "a long time after"]
)
def test_argo_12459_the_next_step_begins_because_the_first_is_healthy_not_because_it_became_so(
    memory,
):
    """The next step waited for the event of a change that had been over before it looked."""
    groups = [at_v2("a", group=0), waiting("b", group=1)]
    assert released(build_facts(Rollout(), groups, ok("a"), **memory)) == "b"


def test_argo_12202_asking_again_changes_nothing():
    """Conditions were overwritten in each pass, and the rollout was stuck between two steps."""
    it = build_facts(ONE, [at_v2("a"), waiting("b")], ok("a"))
    assert evaluate_gates(later(it, 10)) == evaluate_gates(later(later(it, 10), 10))


def test_argo_16881_many_passes_before_anything_has_changed_release_no_more_than_one():
    """More were updated at once than maxUpdate said: each pass counted what it had last seen."""
    variants = [waiting(name) for name in "abcde"]
    first = build_facts(Rollout(max_in_flight=2), variants)
    assert released(first) == "ab"
    granted = [replace(it, grant=grant("v2")) if it.name in "ab" else it for it in variants]
    for _ in range(3):
        assert released(replace(first, variants=tuple(granted))) == ""


@given(
    state=st.lists(st.sampled_from("wvrf"), min_size=3, max_size=9),
    groups=st.lists(st.integers(0, 2), min_size=9, max_size=9),
    borne=st.integers(0, 3),
)
def test_argo_22558_no_step_begins_before_those_that_come_first(state, groups, borne):
    """Steps ran out of their order."""
    names = [chr(ord("a") + index) for index in range(len(state))]
    variants, reports = [], []
    for name, mark, group in zip(names, state, groups, strict=False):
        variants.append(waiting(name, group=group) if mark == "w" else at_v2(name, group=group))
        reports += [ok(name)] if mark == "r" else [bad(name)] if mark == "f" else []
    decision = evaluate_gates(build_facts(Rollout(max_failures=borne), variants, *reports))
    unfinished = [it.group for it, mark in zip(variants, state, strict=True) if mark in "wv"]
    by_name = {it.name: it.group for it in variants}
    for name in decision.stages["prod"].released:
        assert by_name[name] == min(unfinished)


def test_argo_19535_a_newer_revision_in_mid_rollout_does_not_leave_it_waiting_for_ever():
    """Those in flight stayed pending for the revision that nobody wanted any more."""
    rollout = Rollout(max_in_flight=1)
    old = variant("a", "prod", published("v2", 5), draft=draft("v3"))
    it = facts(
        [stage("prod", rollout=rollout)],
        [old, variant("b", "prod", published("v1"), draft=draft("v3"))],
        evidence_of("prod", PASSED), revisions="v1 v2 v3",
    )  # fmt: skip
    assert released(it) == "a", "in the slot that it has"


def test_argo_19771_what_completes_a_step_is_what_its_author_says():
    """An application that is healthy and meant to differ from Git kept its step open for ever."""
    differs = CheckReading("health", "digest-v2", PASSED, "OutOfSync, Healthy", "v2")
    first = variant("a", "prod", published("v2", 5), readings=(differs,))
    it = build_facts(
        ONE,
        [first, variant("b", "prod", published("v1"), draft=draft("v2"), answers=(answer("v1"),))],
        rule={"verification": (HEALTH,)},
    )
    assert released(it) == "b"


def test_argo_10048_inputs_that_all_share_go_by_the_budget_too():
    """Values that every application shares changed all of them at once, outside the rollout."""
    shared = [
        variant(name, "prod", published("v2"), draft=draft("v2", "-shared")) for name in "abc"
    ]
    it = build_facts(ONE, shared, evidence_of("prod", PASSED, "v2"))
    assert released(it) == "a"
    assert reasons_of(evaluate_gates(it), "b") == ["BudgetExhausted"]


# T0 is midnight, the first of January 2026, UTC
MORNING = build_window("0 1 * * *", "UTC", duration=minutes(60))


def test_argo_21692_the_end_of_a_denied_time_is_a_next_instant_and_opens_the_gate():
    """When a denied time ended nothing happened until something else did."""
    it = build_facts(
        ONE, [waiting("a")], now=90, calendars=(PublicationCalendar("freeze", deny=(MORNING,)),)
    )
    assert released(it) == ""
    assert evaluate_gates(it).next == at(120)
    assert released(replace(it, now=at(120))) == "a"


def test_argo_11817_a_rollout_goes_by_the_windows_in_each_of_its_steps():
    """The rolling sync did not ask the windows at all."""
    closed = {"now": 10.0, "calendars": (PublicationCalendar("office", allow=(MORNING,)),)}
    assert released(build_facts(ONE, [at_v2("a"), waiting("b")], ok("a"), **closed)) == ""
    assert (
        released(build_facts(ONE, [at_v2("a"), waiting("b")], ok("a"), **{**closed, "now": 60}))
        == "b"
    )


def test_argo_26215_what_a_closing_window_caught_goes_on_when_it_opens():
    """An operation that the end of its window had caught was stuck, and was begun anew by hand."""
    office = (PublicationCalendar("office", allow=(MORNING,)),)
    caught = waiting("a", grant=grant("v2"))
    shut = build_facts(ONE, [caught, waiting("b")], now=120, calendars=office)
    assert not evaluate_gates(shut).variants["a"].publish
    assert evaluate_gates(replace(shut, now=at(60 + 1440))).variants["a"].publish


# ---- Rancher Fleet -------------------------------------------------------------------------------

AWAY = [
    pytest.param({"suspended": True}, "Suspended", id="suspended"),
    pytest.param({"offline": True}, "Offline", id="offline"),
]


@pytest.mark.parametrize(("fields", "reason"), AWAY)
def test_fleet_594_who_is_away_counts_in_no_share_and_is_shown(fields, reason):
    """Paused clusters counted as unavailable: they used the budget up and blocked the others."""
    variants = [waiting(name, **fields) for name in "abc"] + [waiting(name) for name in "de"]
    it = build_facts(Rollout(max_in_flight=Fraction(1, 2)), variants)
    assert released(it) == "d", "half of the two that count is one"
    assert evaluate_gates(it).stages["prod"].aggregates.total == 2
    assert reasons_of(evaluate_gates(it), "a") == [reason]
    done = [*variants[:3], at_v2("d"), at_v2("e")]
    assert evaluate_gates(build_facts(ONE, done, ok("d", "e"))).stages["prod"].verdict is PASSED


def test_fleet_192_an_unreachable_target_blocks_nobody():
    """One device that was switched off held back all the others."""
    it = build_facts(ONE, [waiting("a", offline=True), *map(waiting, "bc")])
    assert released(it) == "b"


def test_fleet_2672_partitions_are_in_order_the_rest_comes_last_and_nobody_is_left_out():
    """It was not said whether partitions are ordered; who was in none was never updated."""
    rest = 9  # who is in no group is after all of them
    variants = [waiting("a", group=rest), waiting("b", group=1), waiting("c", group=0)]
    seen = ""
    for _ in variants:
        it = build_facts(Rollout(), variants, *[ok(name) for name in seen])
        seen += released(it)
        variants = [at_v2(one.name, group=one.group) if one.name in seen else one
                    for one in variants]  # fmt: skip
    assert seen == "cba"


def test_fleet_3829_what_is_new_takes_a_slot_like_what_is_changed():
    """Creation used no budget: with two allowed, fifty were made at once."""
    new = [variant(name, "prod", draft=draft("v2")) for name in "abcd"]
    assert released(build_facts(Rollout(max_in_flight=2), new)) == "ab"


# ---- Open Cluster Management ---------------------------------------------------------------------

SOAKING = Rollout(max_in_flight=1, min_ready=minutes(10))


def test_ocm_1201_min_ready_runs_from_the_success_of_this_revision():
    """On an update the time of the success before was taken: no soak at all."""
    old = evidence_of("prod", PASSED, "v1", when=1)
    it = build_facts(SOAKING, [at_v2("a", 5), waiting("b")], old, ok("a", when=6), now=12)
    assert evaluate_gates(it).variants["a"].state is VariantState.VERIFYING
    assert released(it) == ""
    assert released(replace(it, now=at(16))) == "b"


def test_ocm_327_the_next_goes_at_the_end_of_min_ready_which_is_a_next_instant():
    """After the soak nothing looked again, so the next group never began."""
    groups = [at_v2("a", group=0), waiting("b", group=1)]
    it = build_facts(SOAKING, groups, ok("a", when=6), now=12)
    assert evaluate_gates(it).next == at(16)
    assert released(replace(it, now=at(16))) == "b"


def test_ocm_327_more_failures_than_may_be_stop_the_rollout():
    """maxFailures stopped nothing."""
    rollout = Rollout(max_in_flight=3, max_failures=1)
    it = build_facts(rollout, [at_v2("a"), at_v2("b"), waiting("c")], bad("a"), bad("b"))
    assert evaluate_gates(it).stages["prod"].halted
    assert reasons_of(evaluate_gates(it), "c") == ["Halted"]


def test_ocm_defect_1_to_bear_more_than_there_are_is_to_bear_all():
    """5 of 3 was out of range, and what is out of range was none."""
    it = build_facts(Rollout(max_failures=5), [at_v2("a"), at_v2("b"), waiting("c")], bad("a", "b"))
    assert released(it) == "c"


def test_ocm_defect_2_a_failed_one_holds_no_slot():
    """Without a deadline a failed cluster kept its slot for ever."""
    it = build_facts(Rollout(max_in_flight=1, max_failures=1), [at_v2("a"), waiting("b")], bad("a"))
    assert released(it) == "b"


def test_ocm_defect_3_a_time_that_is_missing_is_recorded_when_it_is_first_seen():
    """Counted from now in every pass, a deadline or soak never came to its end."""
    reading = CheckReading("health", "digest-v2", PASSED, "Healthy", "v2")
    it = build_facts(
        SOAKING, [replace(at_v2("a"), readings=(reading,))], rule={"verification": (HEALTH,)}, now=7
    )
    [kept] = evaluate_gates(it).variants["a"].answers
    assert kept.at == at(7)
    again = replace(it, variants=(replace(it.variants[0], answers=(kept,)),), now=at(17))
    assert evaluate_gates(again).variants["a"].state is VariantState.READY


def test_ocm_defect_4_a_group_that_timed_out_lets_one_group_begin_not_two():
    """Who had timed out was subtracted from a list they were not in: two groups began at once."""
    rollout = Rollout(max_failures=2, progress_deadline=minutes(10))
    first = [at_v2(name, 5, group=0) for name in "xyz"]
    others = [waiting("b", group=1), waiting("c", group=1), waiting("d", group=2)]
    it = build_facts(rollout, [*first, *others], ok("x"), now=30)
    assert released(it) == "bc"
    assert reasons_of(evaluate_gates(it), "d") == ["GroupAwaits"]


def test_ocm_defect_5_failures_are_counted_though_all_slots_are_taken():
    """Counting ended at the last slot: what had failed behind it was seen a pass too late."""
    rollout = Rollout(max_in_flight=2)
    it = build_facts(rollout, [at_v2("a"), at_v2("b"), at_v2("z"), waiting("c")], bad("z"))
    assert evaluate_gates(it).stages["prod"].halted


@pytest.mark.parametrize(
    ("percent", "total", "expected"),
    [(7, 100, 7), (14, 50, 7), (28, 25, 7), (55, 100, 55), (29, 100, 29)],
)
def test_ocm_defect_6_shares_are_whole_numbers_counted_exactly(percent, total, expected):
    """Counted with floats, 7 % of 100 was 8."""
    share = Fraction(percent, 100)
    assert compute_budget(share, total) == compute_tolerance(share, total) == expected


def test_ocm_defect_8_is_1201_for_the_deadline_too():
    """A deadline counted from the step before is over before it has begun."""
    rollout = Rollout(progress_deadline=minutes(10))
    it = build_facts(rollout, [at_v2("a", 100)], now=105)
    assert evaluate_gates(it).variants["a"].state is VariantState.VERIFYING
    assert evaluate_gates(it).next == at(110)


# ---- Sveltos -------------------------------------------------------------------------------------


def test_sveltos_657_who_is_suspended_is_given_no_slot():
    """A paused cluster was picked into a slot, and nobody else ever was."""
    assert released(build_facts(ONE, [waiting("a", suspended=True), waiting("b")])) == "b"


def test_sveltos_1409_a_variant_that_is_reported_ready_twice_is_one():
    """The list of the updated had duplicates, so that more seemed to be through than were."""
    rollout = Rollout(strategy=RolloutStrategy.EXPONENTIAL)
    reports = [ok("a", when=minute) for minute in (6, 7, 8)]
    it = build_facts(rollout, [at_v2("a"), *map(waiting, "bcd")], *reports)
    assert evaluate_gates(it).stages["prod"].aggregates.ready == 1
    assert released(it) == "b"


# ---- kro -----------------------------------------------------------------------------------------

NO = PropagationCondition("stage.failed > 9", lambda _: False)
ERROR = PropagationCondition(
    "target.nope", lambda _: ExpressionFailure("ExpressionError", "no field nope")
)


@pytest.mark.parametrize(
    "conditions",
    [(ERROR,), (NO, ERROR), (ERROR, NO)],
    ids=["alone", "behind one that is false", "before one that is false"],
)
def test_kro_924_an_expression_that_fails_is_reported_and_is_not_false(conditions):
    """An error in an expression was taken for no, and the resource was left out in silence."""
    it = build_facts(Rollout(), [waiting("a")], rule={"propagate_when": conditions})
    assert released(it) == ""
    held = reasons_of(evaluate_gates(it), "a")
    assert "ExpressionError" in held
    assert ("PropagationHeld" in held) is (NO in conditions), "nor does it hide what is false"


def test_kro_861_a_held_variant_blocks_nobody_behind_it():
    """By an index in a list, all that came after one that was held waited with it."""
    held = decided(Action.SUSPEND, stage="prod", variants=("a",))
    rollout = Rollout(strategy=RolloutStrategy.EXPONENTIAL)
    assert released(build_facts(rollout, [waiting("a"), waiting("b")], held)) == "b"


def test_kro_861_who_joins_at_the_newest_revision_opens_no_batch_for_the_others():
    """Three that were new at the end of the list counted as a prefix: six old ones went at once."""
    rollout = Rollout(strategy=RolloutStrategy.LINEAR, step=3)
    old = [waiting(f"n{index}") for index in range(7)]
    new = [at_v2(f"n{index}") for index in (7, 8, 9)]
    it = build_facts(rollout, [*old, *new], evidence_of("prod", PENDING, "v2", when=6))
    assert released(it) == "", "three are in flight"
