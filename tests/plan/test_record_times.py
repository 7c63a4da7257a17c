"""Instants that count: of records that are dated behind or ahead, and of status lines."""

from datetime import UTC, datetime, timedelta

from gates.specification import counting_instants
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Action, Verdict
from fanout.api.record_objects import DecisionSpec, EvidenceSpec
from fanout.api.results import CheckAnswer
from fanout.gates.record_facts import is_from_the_future
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.evidence.record_times import (
    correct_status,
    effective_records,
    restore_recorded_times,
)
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.policy_status import (
    GrantLine,
    PublishedLine,
    RecordedStatus,
    VariantLine,
    changed_lines,
    parse_status,
)
from fanout.values import replace

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTES = st.integers(-120, 120)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


RESULT = EvidenceSpec(check="e2e", status=Verdict.PASSED)


def recorded(*minutes: float) -> list[RecordEntry]:
    return [
        RecordEntry(name=f"r{n}", at=at(it), by="ci", spec=RESULT) for n, it in enumerate(minutes)
    ]


def minutes_of(records: tuple[RecordEntry, ...]) -> list[float]:
    return [(record.at - NOW) / timedelta(minutes=1) for record in records]


def test_a_record_is_never_dated_before_the_one_before_it():
    assert minutes_of(effective_records(recorded(-5, -60, -1), NOW)) == [-5, -5, -1]


def test_a_record_that_is_dated_ahead_raises_no_floor():
    assert minutes_of(effective_records(recorded(-5, 600, -3, -60), NOW)) == [-5, 600, -3, -3]


def test_five_minutes_ahead_raise_the_floor():
    assert minutes_of(effective_records(recorded(5, -3), NOW)) == [5, 5]


def test_a_record_that_was_seen_ahead_raises_no_floor_once_its_instant_has_come():
    """Else a promotion of before would be dated after the step that it was carried out by."""
    records = recorded(120, 1)
    assert minutes_of(effective_records(records, at(130), {"r0"})) == [120, 1]


@given(st.lists(MINUTES, max_size=6), st.lists(MINUTES, max_size=4), MINUTES)
def test_instants_are_those_of_the_specification(dates, passes, now):
    records, seen = recorded(*dates), set()
    for moment in passes:
        seen |= {it.name for it in records if is_from_the_future(it.at, at(moment))}
    instants = minutes_of(effective_records(records, at(now), seen))
    wanted = counting_instants(dates, passes, now)
    ahead = [is_from_the_future(it.at, at(now)) for it in records]
    assert [None if late else it for it, late in zip(instants, ahead, strict=True)] == wanted


LATER = at(600)
LINE = VariantLine(
    repository="edge",
    path="sites/ams",
    grant=GrantLine(revision="v2", commit="c", digest="d", tree="t", at=LATER, since=LATER),
    published=PublishedLine(revision="v1", commit="c", digest="d", tree="t", at=LATER),
    answers=(CheckAnswer("health", "d", Verdict.PASSED, LATER),),
)
AHEAD = RecordedStatus(
    variants={"ams": LINE},
    history={("dev", "v1"): RevisionHistory(LATER, LATER)},
    removed={"ber": LATER},
)


def test_future_instants_of_a_status_become_the_instant_of_their_notice():
    corrected = correct_status(AHEAD, NOW)
    line = corrected.variants["ams"]
    assert line.grant is not None
    assert line.published is not None
    instants = {
        line.grant.at,
        line.grant.since,
        line.published.at,
        line.answers[0].at,
        corrected.removed["ber"],
    }
    past = corrected.history["dev", "v1"]
    assert {*instants, past.passed, past.left} == {NOW}
    assert corrected.noticed_at == {LATER: NOW}


def test_clocks_start_when_a_pass_first_noticed():
    noticed = replace(AHEAD, noticed_at={LATER: NOW})
    corrected = correct_status(noticed, at(30))
    assert corrected.removed == {"ber": NOW}
    assert correct_status(noticed, LATER).removed == {"ber": LATER}, "it has come"
    assert correct_status(noticed, LATER).noticed_at == {}


def test_future_instants_stay_on_record_unchanged():
    """Else a pass with a clock that runs behind would make a soak longer than it was."""
    status = correct_status(AHEAD, NOW)
    planned = replace(status, revisions={"v1": "c"})
    plan = restore_recorded_times(
        PolicyPlan(
            namespace="default", name="p", steps=(), actions=(), recorded=status, planned=planned
        ),
        AHEAD,
        status,
        frozenset(),
    )
    assert plan.recorded is AHEAD
    assert plan.planned == replace(AHEAD, revisions={"v1": "c"}, noticed_at={LATER: NOW})
    assert [str(action.detail) for action in plan.actions] == [
        "that the status of 2026-03-02T19:00:00Z is dated in the future"
    ]


def test_a_status_without_instants_ahead_is_the_same_object():
    assert correct_status(AHEAD, LATER) is AHEAD


def test_instants_that_were_noticed_are_status_lines():
    lines = changed_lines(RecordedStatus(), RecordedStatus(noticed_at={LATER: NOW}))
    assert lines == {"noticed/2026-03-02T19:00:00Z": {"at": "2026-03-02T09:00:00Z"}}
    assert parse_status({key: line for key, line in lines.items() if line}).noticed_at == {
        LATER: NOW
    }


def test_records_seen_ahead_are_status_lines():
    lines = changed_lines(RecordedStatus(), RecordedStatus(records_ahead=frozenset({"r0"})))
    assert lines == {"ahead/r0": {"ahead": True}}
    assert parse_status({key: line for key, line in lines.items() if line}).records_ahead == {"r0"}
    assert changed_lines(RecordedStatus(records_ahead=frozenset({"r0"})), RecordedStatus()) == {
        "ahead/r0": None
    }


def test_a_removal_that_is_dated_ahead_is_no_step_yet():
    """Else all approvals and answers of today were given before the variant's last step."""
    spec = DecisionSpec(action=Action.CONFIRM_REMOVAL, variants=("ams",))
    entries = [RecordEntry(name="r", at=LATER, by="ann", spec=spec)]
    assert (
        build_gate_records(entries, NOW).removals,
        build_gate_records(entries, LATER).removals,
    ) == (
        {},
        {"ams": LATER},
    )
