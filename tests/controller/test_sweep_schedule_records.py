"""The times of sweeps that cannot be recorded are told once, and what was not written is kept."""

from datetime import UTC, datetime
from pathlib import Path

from structlog.testing import capture_logs

from fanout.calendar.cron_schedule import parse_schedule
from fanout.calendar.time_zone import parse_zone
from fanout.cluster.records_repository import RecordsRepository
from fanout.cluster.sweep_log_store import SweepLogStore
from fanout.controller.sweep_schedule import ScheduledSweep, SweepState, SweepTimetable
from fanout.git.mirror import create_bare
from fanout.git.mirror_store import MirrorStore
from fanout.plan.observation.repository_state import CommitIdentity, Remote
from fanout.reconcile.pass_scope import PassSubject
from fanout.telemetry.metrics import Counters

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOURLY = ScheduledSweep(
    PassSubject("default", "p"), parse_schedule("@hourly"), parse_zone("UTC"), None, frozenset()
)


def sweep_log(root: Path) -> SweepLogStore:
    counters = Counters()
    store = MirrorStore(
        root / "mirrors", install="default", secrets=lambda *_: None, counters=counters
    )
    remote = Remote(str(root / "records.git"))
    return SweepLogStore(
        RecordsRepository(store, remote, counters), "default", CommitIdentity("f", "f@localhost")
    )


def test_a_refusal_is_reported_once_and_its_end_too(tmp_path: Path):
    path = tmp_path / "records.git"
    create_bare(path)
    hook = path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    ledger = SweepState(sweep_log(tmp_path))
    table = SweepTimetable(schedules=(HOURLY,), promotion_policies=frozenset({HOURLY.key}))
    with capture_logs() as log_lines:
        for _ in range(3):
            ledger.find_due(table, NOON)
    assert [line["event"] for line in log_lines] == ["The time of a sweep cannot be recorded"]
    hook.unlink()
    with capture_logs() as log_lines:
        ledger.mark_done({}, NOON)
        ledger.mark_done({}, NOON)
    assert [line["event"] for line in log_lines] == ["The times of sweeps are recorded again"]
    assert sweep_log(tmp_path).read() == {HOURLY.key: HOURLY.log_entry(NOON)}
