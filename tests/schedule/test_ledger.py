"""The times of sweeps that cannot be recorded are told once, and what was not written is kept."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from structlog.testing import capture_logs

from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.cluster.records_repository import RecordsRepository
from fanout.cluster.sweep_log import SweepLog
from fanout.git.mirror import create_bare
from fanout.git.store import MirrorStore
from fanout.plan.repository import Identity, Remote
from fanout.schedule.ledger import Ledger
from fanout.schedule.sweeps import Timed, Timetable
from fanout.telemetry.counters import Counters

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOURLY = Timed("default", "p", parse_schedule("@hourly"), parse_zone("UTC"), None, frozenset())


def sweep_log(root: Path) -> SweepLog:
    counters = Counters()
    secrets: Mapping[str, None] = {}
    store = MirrorStore(root / "mirrors", install="default", secrets=secrets.get, counters=counters)
    remote = Remote(str(root / "records.git"))
    return SweepLog(
        RecordsRepository(store, remote, counters), "default", Identity("f", "f@localhost")
    )


def test_a_refusal_is_told_once_and_its_end_too(tmp_path: Path):
    path = tmp_path / "records.git"
    create_bare(path)
    hook = path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    ledger = Ledger(sweep_log(tmp_path))
    table = Timetable(timed=(HOURLY,), kept=frozenset({HOURLY.key}))
    with capture_logs() as told:
        for _ in range(3):
            ledger.due(table, NOON)
    assert [line["event"] for line in told] == ["The time of a sweep could not be recorded"]
    hook.unlink()
    with capture_logs() as told:
        ledger.done({}, NOON)
        ledger.done({}, NOON)
    assert [line["event"] for line in told] == ["The times of sweeps are recorded again"]
    assert sweep_log(tmp_path).read() == {HOURLY.key: HOURLY.swept(NOON)}
