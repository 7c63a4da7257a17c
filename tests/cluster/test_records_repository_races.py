"""Races about a branch of the records that are lost are run again, for half a minute."""

from datetime import UTC, datetime

from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordsKey

KEY = RecordsKey("platform", "monitoring")
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
JO = CommitIdentity("Jo", "jo@example.com")
KIM = CommitIdentity("Kim", "kim@example.com")


def evidence(check="e2e"):
    spec = {"policy": "monitoring", "stage": "dev", "check": check, "status": "passed"}
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "platform"},
        "spec": {**spec, "revision": "v1"},
    }


def test_a_record_goes_through_though_others_win_many_races(remote, monkeypatch):
    records = remote.process()
    lost: list[object] = []
    change = records._push_commits

    def late(commits, by):
        if len(lost) < 12:
            lost.append(remote.process().append(KEY, [evidence(f"check-{len(lost)}")], KIM, AT))
        return change(commits, by)

    monkeypatch.setattr("fanout.retries._MAX_PAUSE", 0.1)
    monkeypatch.setattr(records, "_push_commits", late)
    records.append(KEY, [evidence()], JO, AT)
    assert len(remote.process().read([KEY])[KEY].records) == 13
