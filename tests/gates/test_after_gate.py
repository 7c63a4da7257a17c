"""The fold over the stages before, and the soak of each of them."""

from datetime import timedelta
from operator import itemgetter

import pytest
from gates.worlds import FAILED, PASSED, PENDING, T0, after, at, passed
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import OverridableGate, Require
from fanout.gates.after_gate import UpstreamStage, aggregate_verdicts, evaluate_after
from fanout.gates.revision_history import (
    NO_HISTORY,
    RevisionHistory,
    compute_soak,
    end_stretch,
    soak_ends_at,
)
from fanout.gates.stage_verdicts import StageVerdicts

ALL, ANY = Require.ALL, Require.ANY

FOLDS = [
    ("all of two, both passed", ALL, "passed passed", PASSED),
    ("all of two, one pending, waits", ALL, "passed pending", PENDING),
    ("all of two, one failed, is lost", ALL, "passed failed", FAILED),
    ("all of two, one failed before the other is known", ALL, "pending failed", FAILED),
    ("any of two passes with the first", ANY, "passed pending", PASSED),
    ("any of two passes beside a failure", ANY, "failed passed", PASSED),
    ("any of two, one failed, still waits", ANY, "failed pending", PENDING),
    ("any of two, both failed, is lost", ANY, "failed failed", FAILED),
    ("a stage without a verdict is pending", ALL, "passed ?", PENDING),
]


def stages_in(states, require):
    state_by_number = dict(enumerate(states))
    rule = after(*(f"s{number}" for number in state_by_number), require=require)
    verdicts = {"passed": PASSED, "failed": FAILED, "pending": PENDING}
    return rule, {
        f"s{n}": verdicts[state] for n, state in state_by_number.items() if state in verdicts
    }


@pytest.mark.parametrize(
    ("sentence", "require", "states", "expected"), FOLDS, ids=map(itemgetter(0), FOLDS)
)
def test_fold(sentence, require, states, expected):
    rule, verdicts = stages_in(states.split(), require)
    assert aggregate_verdicts(rule, verdicts) is expected


RANK = {FAILED: 0, PENDING: 1, PASSED: 2}


@given(
    st.sampled_from(Require),
    st.lists(st.sampled_from([PASSED, FAILED, PENDING]), min_size=1, max_size=5),
    st.data(),
)
def test_a_better_stage_never_makes_the_gate_worse(require, verdicts, data):
    names = [f"s{number}" for number in range(len(verdicts))]
    rule = after(*names, require=require)
    before = dict(zip(names, verdicts, strict=True))
    name = data.draw(st.sampled_from(names))
    better = data.draw(st.sampled_from([v for v in RANK if RANK[v] >= RANK[before[name]]]))
    assert (
        RANK[aggregate_verdicts(rule, before | {name: better})]
        >= RANK[aggregate_verdicts(rule, before)]
    )


SOAKS = [
    ("no verdict, no time", NO_HISTORY, 10, 0),
    ("ready since the verdict", passed(4), 10, 6),
    ("what it showed when the stage moved on stands", passed(4, 7), 100, 3),
    ("a clock that was set back shows nothing, not less", passed(20), 10, 0),
    ("the longest of two times counts", RevisionHistory(at(8), None, timedelta(minutes=5)), 10, 5),
]


@pytest.mark.parametrize(
    ("sentence", "history", "now", "minutes"), SOAKS, ids=map(itemgetter(0), SOAKS)
)
def test_soak(sentence, history, now, minutes):
    assert compute_soak(history, at(now)) == timedelta(minutes=minutes)


def test_a_clock_runs_only_while_the_stage_is_there():
    assert soak_ends_at(passed(4), timedelta(minutes=60)) == at(64)
    assert soak_ends_at(passed(4, 7), timedelta(minutes=60)) is None
    assert soak_ends_at(NO_HISTORY, timedelta(minutes=60)) is None
    assert end_stretch(passed(4), at(7)) == passed(4, 7)


def upstream(verdict, history=NO_HISTORY, *, coming=True):
    return UpstreamStage(StageVerdicts({"v1": verdict}, {"v1": history}), coming, "somebody")


STEPS = [
    ("a stage that passed, no soak asked", upstream(PASSED, passed(4)), 0, "", PASSED, ""),
    ("pending waits", upstream(PENDING), 0, "", PENDING, "AfterPending"),
    ("failed is lost", upstream(FAILED), 0, "", FAILED, "AfterFailed"),
    ("a soak runs", upstream(PASSED, passed(4)), 60, "", PENDING, "SoakRunning"),
    ("a soak is over at its last instant", upstream(PASSED, passed(4)), 6, "", PASSED, ""),
    ("a soak was cut short", upstream(PASSED, passed(4, 5)), 6, "", PENDING, "SoakCutShort"),
    ("a soak was long enough when it ended", upstream(PASSED, passed(1, 9)), 6, "", PASSED, ""),
    ("`after` lifted lifts a failure", upstream(FAILED), 0, "after", PASSED, ""),
    ("`after` lifted is not the soak", upstream(PENDING), 6, "after", PENDING, "AfterPending"),
    ("both lifted lift both", upstream(FAILED), 6, "after soak", PASSED, ""),
    ("the soak lifted", upstream(PASSED, passed(4)), 60, "soak", PASSED, ""),
    ("the soak lifted is not `after`", upstream(PENDING), 60, "soak", PENDING, "AfterPending"),
    ("what is lifted is named", upstream(PENDING), 0, "requires", PENDING, "AfterPending"),
]


@pytest.mark.parametrize(
    ("sentence", "before", "soak", "lifted", "verdict", "reason"),
    STEPS,
    ids=map(itemgetter(0), STEPS),
)
def test_a_single_upstream_stage_decides_the_gate(sentence, before, soak, lifted, verdict, reason):
    lifts = frozenset(map(OverridableGate, lifted.split()))
    gate = evaluate_after(after("dev", soak=soak), "v1", {"dev": before}, at(10), lifts)
    assert gate.verdict is verdict
    assert [hold.reason for hold in gate.holds] == ([reason] if reason else [])


def test_verdict_and_soak_must_come_from_the_same_stage():
    rule = after("one", "two", require=ANY, soak=30)
    stages = {"one": upstream(PASSED, passed(5)), "two": upstream(PENDING)}
    assert evaluate_after(rule, "v1", stages, at(34)).verdict is PENDING
    assert evaluate_after(rule, "v1", stages, at(35)).verdict is PASSED


def test_a_running_soak_says_until_when_and_a_cut_one_can_pass_no_more():
    running = evaluate_after(
        after("dev", soak=60), "v1", {"dev": upstream(PASSED, passed(4))}, at(10)
    )
    assert (running.next, running.possible) == (at(64), True)
    cut = evaluate_after(
        after("dev", soak=60), "v1", {"dev": upstream(PASSED, passed(4, 5))}, at(10)
    )
    assert (cut.next, cut.possible) == (None, False)


def test_a_failed_quorum_waits_for_no_soak():
    stages = {"one": upstream(PASSED, passed(4)), "two": upstream(FAILED)}
    gate = evaluate_after(after("one", "two", soak=60), "v1", stages, at(10))
    assert (gate.verdict, gate.next) == (FAILED, None)
    assert [(hold.reason, hold.who) for hold in gate.holds] == [("AfterFailed", "somebody")]


def test_without_after_every_revision_passes():
    assert evaluate_after(None, "v1", {}, T0).verdict is PASSED
