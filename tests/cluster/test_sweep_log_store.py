"""The times of scheduled sweeps, on real Git: a commit each; the later sweep wins."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from fanout.errors import InvalidInput
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.logged_sweep import LoggedSweep

REF = "refs/heads/fanout/default/_sweeps"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAME = "platform/production"
JO = CommitIdentity("Jo", "jo@example.com")


def hourly(at):
    return LoggedSweep(at, "@hourly", "UTC")


def test_the_log_of_a_missing_repository_is_empty_and_reading_creates_no_repository(remote):
    remote.remove()
    assert remote.sweep_log().read() == {}
    assert not remote.path.exists()


def test_a_written_log_is_read_by_the_next_process(remote):
    remote.remove()
    remote.sweep_log().write({NAME: hourly(NOON)}, NOON)
    assert remote.sweep_log().read() == {NAME: hourly(NOON)}


def test_each_write_is_a_commit_on_the_one_before(remote):
    """Also where the server refuses every push that is forced."""
    remote.git("config", "receive.denyNonFastForwards", "true")
    remote.git("config", "receive.denyDeletes", "true")
    log = remote.sweep_log()
    for hours in range(3):
        log.write({NAME: hourly(NOON + hours * HOUR)}, NOON + hours * HOUR)
    assert remote.git("rev-list", "--count", REF) == "3"
    assert json.loads(remote.git("show", f"{REF}:sweeps.json")) == {
        NAME: {"at": "2026-03-01T14:00:00Z", "schedule": "@hourly", "timeZone": "UTC"}
    }


def test_the_single_commit_of_an_older_fanout_is_continued(remote):
    line = {"at": "2026-03-01T12:00:00Z", "schedule": "@hourly", "timeZone": "UTC"}
    remote.commit(REF, {"sweeps.json": json.dumps({NAME: line}).encode()}, JO, NOON)
    remote.git("config", "receive.denyNonFastForwards", "true")
    assert remote.sweep_log().read() == {NAME: hourly(NOON)}
    remote.sweep_log().write({NAME: hourly(NOON + HOUR)}, NOON + HOUR)
    assert remote.sweep_log().read() == {NAME: hourly(NOON + HOUR)}
    assert remote.git("rev-list", "--count", REF) == "2"


def test_unchanged_sweep_times_are_not_written(remote):
    log = remote.sweep_log()
    log.write({NAME: hourly(NOON)}, NOON)
    before = remote.head(REF), remote.counters.read()["pushes"]
    log.write({NAME: hourly(NOON)}, NOON + HOUR)
    log.write({"platform/gone": None}, NOON + HOUR)
    assert (remote.head(REF), remote.counters.read()["pushes"]) == before


def test_two_processes_keep_each_other_s_sweeps(remote):
    one, two = remote.sweep_log(), remote.sweep_log()
    one.write({"a/x": hourly(NOON)}, NOON)
    two.write({"b/y": hourly(NOON)}, NOON)
    one.write({"a/x": hourly(NOON + HOUR)}, NOON + HOUR)
    assert two.read() == {"a/x": hourly(NOON + HOUR), "b/y": hourly(NOON)}


def test_the_records_of_policies_are_not_touched(remote):
    remote.commit("refs/heads/fanout/default/platform/monitoring", {"note": b"kept"}, JO, NOON)
    before = remote.git("for-each-ref")
    remote.sweep_log().write({NAME: hourly(NOON)}, NOON)
    assert [line for line in remote.git("for-each-ref").split("\n") if "_sweeps" not in line] == [
        before
    ]


WRITES = [
    ("a later sweep replaces an earlier one", hourly(NOON + HOUR), True),
    ("an earlier sweep of another process does not", hourly(NOON - HOUR), False),
    (
        "another schedule does, though it begins earlier",
        LoggedSweep(NOON - HOUR, "@daily", "UTC"),
        True,
    ),
    ("so does another zone", LoggedSweep(NOON - HOUR, "@hourly", "Europe/Oslo"), True),
    ("a policy that is gone is removed", None, True),
]


@pytest.mark.parametrize(("sentence", "new", "wins"), WRITES, ids=[row[0] for row in WRITES])
def test_write(remote, sentence, new, wins):
    remote.sweep_log().write({NAME: hourly(NOON)}, NOON)
    remote.sweep_log().write({NAME: new}, NOON + HOUR)
    expected = new if wins else hourly(NOON)
    assert remote.sweep_log().read() == ({NAME: expected} if expected else {})


def test_a_time_from_the_future_does_not_stay_for_ever(remote):
    remote.sweep_log().write({NAME: hourly(NOON + 9999 * HOUR)}, NOON + 9999 * HOUR)
    remote.sweep_log().write({NAME: hourly(NOON)}, NOON)
    assert remote.sweep_log().read() == {NAME: hourly(NOON)}


@pytest.mark.parametrize(
    "content",
    [
        b"no json",
        b"[1]",
        b'{"a/b": {}}',
        b'{"a/b": {"at": "yesterday"}}',
        b'{"a/\xff": {}}',
        b'{"a/b": ' * 10_000,
    ],
    ids=range(6),
)
def test_an_unreadable_log_is_reported_and_replaced_by_the_next_write(remote, content):
    remote.commit(REF, {"sweeps.json": content}, JO, NOON)
    with pytest.raises(InvalidInput, match=r"sweeps\.json on branch fanout/default/_sweeps"):
        remote.sweep_log().read()
    remote.sweep_log().write({NAME: hourly(NOON)}, NOON)
    assert remote.sweep_log().read() == {NAME: hourly(NOON)}
