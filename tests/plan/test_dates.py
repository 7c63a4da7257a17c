"""Instants that count: of records that are dated behind or ahead, and of status lines."""

from datetime import UTC, datetime, timedelta

from gates.specification import counting_instants
from hypothesis import given
from hypothesis import strategies as st

from fanout.gates.facts import Answer, StageHistory
from fanout.gates.instants import from_the_future
from fanout.gates.rules import Verdict
from fanout.plan.book import Recorded
from fanout.plan.dates import corrected, dated, redated
from fanout.plan.facts import records
from fanout.plan.planner import PolicyPlan
from fanout.plan.status import GrantLine, PublishedLine, Status, VariantLine, changes, read_status
from fanout.values import replace

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MINUTES = st.integers(-120, 120)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def recorded(*minutes: float) -> list[Recorded]:
    return [Recorded(f"r{n}", at(it), "ci", "Evidence", {}) for n, it in enumerate(minutes)]


def minutes_of(records: tuple[Recorded, ...]) -> list[float]:
    return [(record.at - NOW) / timedelta(minutes=1) for record in records]


def test_a_record_is_never_dated_before_the_one_before_it():
    assert minutes_of(dated(recorded(-5, -60, -1), NOW)) == [-5, -5, -1]


def test_a_record_that_is_dated_ahead_raises_no_floor():
    assert minutes_of(dated(recorded(-5, 600, -3, -60), NOW)) == [-5, 600, -3, -3]


def test_five_minutes_ahead_raise_the_floor():
    assert minutes_of(dated(recorded(5, -3), NOW)) == [5, 5]


def test_a_record_that_was_seen_ahead_raises_no_floor_once_its_instant_has_come():
    """Else a promotion of before would be dated after the step that it was carried out by."""
    records = recorded(120, 1)
    assert minutes_of(dated(records, at(130), {"r0"})) == [120, 1]


@given(st.lists(MINUTES, max_size=6), st.lists(MINUTES, max_size=4), MINUTES)
def test_instants_are_those_of_the_specification(dates, passes, now):
    records, seen = recorded(*dates), set()
    for moment in passes:
        seen |= {it.name for it in records if from_the_future(it.at, at(moment))}
    found = minutes_of(dated(records, at(now), seen))
    wanted = counting_instants(dates, passes, now)
    ahead = [from_the_future(it.at, at(now)) for it in records]
    assert [None if late else it for it, late in zip(found, ahead, strict=True)] == wanted


LATER = at(600)
LINE = VariantLine(
    "edge",
    "sites/ams",
    GrantLine("v2", "c", "d", "t", LATER),
    PublishedLine("v1", "c", "d", "t", LATER),
    answers=(Answer("health", "d", Verdict.PASSED, LATER),),
)
AHEAD = Status(
    {"ams": LINE},
    {("dev", "v1"): StageHistory(LATER, LATER)},
    removed={"ber": LATER},
)


def test_what_a_pass_from_ahead_wrote_down_happened_when_it_is_noticed():
    found = corrected(AHEAD, NOW)
    line = found.variants["ams"]
    assert line.grant is not None
    assert line.published is not None
    instants = {line.grant.at, line.published.at, line.answers[0].at, found.removed["ber"]}
    past = found.history["dev", "v1"]
    assert {*instants, past.passed, past.left} == {NOW}
    assert found.noticed == {LATER: NOW}


def test_clocks_start_when_a_pass_first_noticed():
    noticed = replace(AHEAD, noticed={LATER: NOW})
    found = corrected(noticed, at(30))
    assert found.removed == {"ber": NOW}
    assert corrected(noticed, LATER).removed == {"ber": LATER}, "it has come"
    assert corrected(noticed, LATER).noticed == {}


def test_what_lies_ahead_stays_on_record_as_it_is():
    """Else a pass with a clock that runs behind would make a soak longer than it was."""
    status = corrected(AHEAD, NOW)
    planned = replace(status, revisions={"v1": "c"})
    plan = redated(PolicyPlan("default", "p", (), (), status, planned), AHEAD, status, frozenset())
    assert plan.before is AHEAD
    assert plan.planned == replace(AHEAD, revisions={"v1": "c"}, noticed={LATER: NOW})
    assert [str(action.detail) for action in plan.actions] == [
        "that what is on record for 2026-03-02T19:00:00Z is dated ahead"
    ]


def test_a_status_without_instants_ahead_is_the_same_object():
    assert corrected(AHEAD, LATER) is AHEAD


def test_instants_that_were_noticed_are_status_lines():
    lines = changes(Status(), Status(noticed={LATER: NOW}))
    assert lines == {"noticed/2026-03-02T19:00:00Z": {"at": "2026-03-02T09:00:00Z"}}
    assert read_status({key: line for key, line in lines.items() if line}).noticed == {LATER: NOW}


def test_records_seen_ahead_are_status_lines():
    lines = changes(Status(), Status(ahead=frozenset({"r0"})))
    assert lines == {"ahead/r0": {"ahead": True}}
    assert read_status({key: line for key, line in lines.items() if line}).ahead == {"r0"}
    assert changes(Status(ahead=frozenset({"r0"})), Status()) == {"ahead/r0": None}


def test_a_removal_that_is_dated_ahead_is_no_step_yet():
    """Else all approvals and answers of today were given before the variant's last step."""
    spec = {"action": "ConfirmRemoval", "variants": ["ams"]}
    said = [Recorded("r", LATER, "ann", "Decision", spec)]
    assert (records(said, NOW).removals, records(said, LATER).removals) == ({}, {"ams": LATER})
