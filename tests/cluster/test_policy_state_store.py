"""The records repository, on real Git: what was said stays said, and nobody overwrites anybody."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from fanout.cluster.record_files import (
    encode_canonical,
    encode_shard,
    record_path,
    shard_path,
)
from fanout.cluster.records_repository import RecordsRepository
from fanout.errors import Conflict, InvalidInput
from fanout.plan.evidence.record_times import effective_records
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey, StatusChange
from fanout.plan.records.policy_status import RecordedStatus
from fanout.values import replace

KEY = RecordsKey("platform", "monitoring")
OTHER = RecordsKey("platform", "logging")
REF = "refs/heads/fanout/default/platform/monitoring"
OTHER_REF = "refs/heads/fanout/default/platform/logging"
JO = CommitIdentity("Jo", "jo@example.com")
KIM = CommitIdentity("Kim", "kim@example.com")
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def evidence(check="e2e", policy="monitoring"):
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "platform"},
        "spec": {
            "policy": policy,
            "stage": "dev",
            "check": check,
            "status": "passed",
            "revision": "v1",
        },
    }


def status(head, **commits):
    """A change of the commits of revisions; None removes a line."""
    return {KEY: StatusChange(head, revisions(**commits))}


def revisions(**commits):
    return {
        f"revision/{name}": {"commit": commit} if commit is not None else None
        for name, commit in commits.items()
    }


def test_records_of_a_missing_repository_are_empty_and_reading_creates_no_repository(remote):
    remote.remove()
    assert remote.process().read([KEY, OTHER]) == {KEY: PolicyRecords(), OTHER: PolicyRecords()}
    assert not remote.path.exists()


def test_the_first_write_makes_the_repository(remote):
    remote.remove()
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    assert len(records.read([KEY])[KEY].records) == 1


def test_a_record_says_when_and_by_whom_it_was_recorded(remote):
    (name,) = remote.process().append(KEY, [evidence()], JO, AT)
    (record,) = remote.process().read([KEY])[KEY].records
    assert record.name == name
    assert (record.at, record.by) == (AT, "Jo <jo@example.com>")
    assert (record.kind, record.fields) == ("Evidence", evidence()["spec"])


def test_a_record_is_one_readable_file_in_git(remote):
    (name,) = remote.process().append(KEY, [evidence()], JO, AT)
    assert name.startswith("20260301t120000z-")
    path = remote.git("ls-tree", "-r", "--name-only", REF)
    assert path == record_path(name)
    assert path.endswith(f"/{name}.json")
    assert remote.git("show", f"{REF}:{path}") == encode_canonical(evidence()).decode().strip()
    assert remote.git("log", "-1", "--format=%s%n%cn <%ce>%n%ct", REF).split("\n") == [
        "Record Evidence",
        "Jo <jo@example.com>",
        str(int(AT.timestamp())),
    ]


def test_records_stand_in_the_order_in_which_they_were_recorded(remote):
    records = remote.process()
    later = AT + timedelta(hours=1)
    for check, at in (("second", later), ("first", AT), ("third", later)):
        records.append(KEY, [evidence(check)], JO, at)
    seen = remote.process().read([KEY])[KEY].records
    assert [record.fields["check"] for record in seen] == ["second", "first", "third"]


def test_an_instant_is_never_before_the_one_before_it(remote):
    records = remote.process()
    for at in (AT, AT - timedelta(days=2), AT + timedelta(minutes=1)):
        records.append(KEY, [evidence()], JO, at)
    seen = remote.process().read([KEY])[KEY].records
    dates = [AT, AT - timedelta(days=2), AT + timedelta(minutes=1)]
    assert [record.at for record in seen] == dates
    assert [record.at for record in effective_records(seen, AT)] == [
        AT,
        AT,
        AT + timedelta(minutes=1),
    ]


def test_author_and_time_of_a_record_come_from_its_commit(remote):
    remote.commit(REF, {"records/20200101t000000z-abc.json": encode_canonical(evidence())}, KIM, AT)
    (record,) = remote.process().read([KEY])[KEY].records
    assert (record.at, record.by) == (AT, "Kim <kim@example.com>")


def test_two_people_who_say_the_same_in_one_second_are_two_records(remote):
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    records.append(KEY, [evidence()], KIM, AT)
    seen = records.read([KEY])[KEY].records
    assert [record.by for record in seen] == ["Jo <jo@example.com>", "Kim <kim@example.com>"]


def test_an_equal_record_within_a_second_is_another_record(remote):
    names = [remote.process().append(KEY, [evidence()], JO, AT)[0] for _ in range(3)]
    assert names[1:] == [f"{names[0]}-2", f"{names[0]}-3"]
    seen = remote.process().read([KEY])[KEY]
    assert ([record.name for record in seen.records], seen.unreadable) == (names, ())


def test_a_race_that_is_run_again_writes_nothing_twice(remote, monkeypatch):
    """The push arrives and its answer does not: the second attempt finds the record there."""
    records = remote.process()
    change, answers = RecordsRepository.change, [Conflict("the answer was lost")]

    def deaf(self, *args):
        written = change(self, *args)
        if answers:
            raise answers.pop()
        return written

    monkeypatch.setattr(RecordsRepository, "change", deaf)
    names = records.append(KEY, [evidence()], JO, AT)
    assert tuple(record.name for record in records.read([KEY])[KEY].records) == names
    assert remote.counters.read()["record_writes"] == 1


def test_several_records_are_one_commit(remote):
    names = remote.process().append(KEY, [evidence("a"), evidence("b"), evidence("a")], JO, AT)
    assert len(names) == 3
    assert len(set(names)) == 2
    assert remote.git("rev-list", "--count", REF) == "1"


@pytest.mark.parametrize(
    "record",
    [
        evidence() | {"spec": {"check": "e2e"}},
        evidence() | {"kind": "Repository"},
        evidence(policy="logging"),
    ],
    ids=["one that is not complete", "an object that is no record", "one of another policy"],
)
def test_a_record_that_could_not_be_read_back_is_refused(remote, record):
    with pytest.raises(InvalidInput):
        remote.process().append(KEY, [evidence(), record], JO, AT)
    assert remote.head(REF) == ""


def test_two_who_append_at_once_both_get_through(remote):
    def work(by):
        records = remote.process()
        for number in range(4):
            records.append(KEY, [evidence(f"check-{number}")], by, AT)

    threads = [threading.Thread(target=work, args=(by,)) for by in (JO, KIM)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = remote.process().read([KEY])[KEY].records
    assert sorted((record.by[:3], record.fields["check"]) for record in seen) == [
        (who, f"check-{number}") for who in ("Jo ", "Kim") for number in range(4)
    ]


def test_status_is_read_back_by_a_fresh_process(remote):
    commits = {f"v{number}": f"{number:x}" for number in range(600)}
    remote.process().put_status(status("", **commits), AT)
    policy_state = remote.process().read([KEY])[KEY]
    assert policy_state.status == RecordedStatus(revisions=commits)
    assert list(policy_state.status.revisions) == sorted(commits)
    assert policy_state.head == remote.head(REF)


def test_status_and_records_do_not_touch_each_other(remote):
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    head = records.read([KEY])[KEY].head
    records.put_status(status(head, a="1"), AT + timedelta(hours=1))
    records.append(KEY, [evidence("other")], JO, AT + timedelta(hours=2))
    policy_state = records.read([KEY])[KEY]
    assert len(policy_state.records) == 2
    assert policy_state.status.revisions == {"a": "1"}
    assert remote.process().read([KEY])[KEY] == policy_state


def test_writing_a_status_returns_the_commits_of_its_branch(remote):
    records = remote.process()
    head = records.put_status(status("", a="1"), AT)[KEY]
    assert head == remote.head(REF)
    head = records.put_status(status(head, a="2"), AT)[KEY]
    assert head == remote.head(REF)
    assert records.read([KEY])[KEY].status.revisions == {"a": "2"}


def test_an_unchanged_status_is_not_written(remote):
    records = remote.process()
    head = records.put_status({KEY: StatusChange("", {"a": {"x": [1, 2]}})}, AT)[KEY]
    lines = {"a": {"x": (1, 2)}, "b": None}
    assert records.put_status({KEY: StatusChange(head, lines)}, AT) == {KEY: head}
    assert records.put_status(status(head), AT) == {KEY: head}
    assert records.put_status({}, AT) == {}
    assert remote.head(REF) == head
    assert remote.counters.read()["record_writes"] == 1


def test_only_the_files_of_the_changed_lines_change(remote):
    records = remote.process()
    commits = {f"v{number}": f"{number}" for number in range(300)}
    records.put_status(status("", **commits), AT)
    head = records.read([KEY])[KEY].head
    records.put_status(status(head, v7="-7"), AT)
    assert remote.git("diff-tree", "-r", "--name-only", head, REF) == shard_path("revision/v7")
    assert records.read([KEY])[KEY].status.revisions == commits | {"v7": "-7"}


def test_lines_are_removed_and_with_the_last_one_the_file(remote):
    records = remote.process()
    records.put_status(status("", a="1", b="1"), AT)
    head = records.read([KEY])[KEY].head
    records.put_status(status(head, a=None), AT)
    policy_state = records.read([KEY])[KEY]
    assert policy_state.status.revisions == {"b": "1"}
    assert remote.git("ls-tree", "-r", "--name-only", REF) == shard_path("revision/b")
    records.put_status(status(policy_state.head, b=None), AT)
    assert remote.process().read([KEY])[KEY].status == RecordedStatus()


def test_statuses_of_all_policies_are_written_or_none(remote):
    records = remote.process()
    both = {
        KEY: StatusChange("", revisions(a="1")),
        OTHER: StatusChange("", revisions(b="1")),
    }
    records.put_status(both, AT)
    states = records.read([KEY, OTHER])
    assert states[KEY].status.revisions == {"a": "1"}
    assert states[OTHER].status.revisions == {"b": "1"}
    remote.process().append(OTHER, [evidence(policy="logging")], KIM, AT)
    heads = remote.head(REF), remote.head(OTHER_REF)
    changes = {
        key: StatusChange(policy_state.head, revisions(c="1"))
        for key, policy_state in states.items()
    }
    with pytest.raises(Conflict):
        records.put_status(changes, AT)
    assert (remote.head(REF), remote.head(OTHER_REF)) == heads


def test_a_branch_that_was_created_in_between_is_a_conflict(remote):
    records = remote.process()
    assert records.read([KEY])[KEY].head == ""
    remote.process().append(KEY, [evidence()], KIM, AT)
    with pytest.raises(Conflict):
        records.put_status(status("", a="1"), AT)
    assert records.read([KEY])[KEY].status == RecordedStatus()


def test_unchanged_records_are_not_read_again(remote):
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    policy_state = records.read([KEY])[KEY]
    before = remote.counters.read()
    assert records.read([KEY])[KEY] is policy_state
    after = remote.counters.read()
    assert {name: after[name] - before[name] for name in after if after[name] > before[name]} in (
        {"listings": 1},
        {"listings": 1, "git_processes": 1},
    )


def test_a_long_running_process_and_a_fresh_one_see_the_same(remote):
    records = remote.process()
    for number in range(5):
        records.append(KEY, [evidence(f"c{number}")], JO, AT - timedelta(hours=number))
        head = records.read([KEY])[KEY].head
        records.put_status(status(head, **{f"v{number}": "1"}), AT)
        assert records.read([KEY]) == remote.process().read([KEY])


def test_a_rewritten_branch_is_read_anew(remote):
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    records.read([KEY])
    (path,) = remote.git("ls-tree", "-r", "--name-only", REF).split()
    remote.git("update-ref", "-d", REF)
    remote.commit(REF, {path: encode_canonical(evidence("other"))}, KIM, AT + timedelta(days=1))
    (record,) = records.read([KEY])[KEY].records
    assert (record.by, record.fields["check"]) == ("Kim <kim@example.com>", "other")
    assert record.at == AT + timedelta(days=1)


def test_a_deleted_branch_has_no_records(remote):
    records = remote.process()
    records.append(KEY, [evidence()], JO, AT)
    records.read([KEY])
    remote.git("update-ref", "-d", REF)
    policy_state = records.read([KEY])[KEY]
    assert replace(policy_state, rewound=None) == PolicyRecords()
    assert policy_state.rewound is not None, "and it was one before"


UNREADABLE = [
    ("a file that is not JSON", {"records/x.json": b"{"}, "records/x.json is not JSON"),
    ("an object that is no record", {"records/x.json": b"{}"}, "is none of Evidence"),
    ("a file that is none of ours", {"records/notes.txt": b"x"}, "*.json"),
    ("a directory in records", {"records/a/x.json": b"{}"}, "*.json"),
    ("records that is a file", {"records": b""}, "records"),
    ("a status that is not JSON", {"status/00.jsonl": b"{"}, "status/00.jsonl in line 1"),
    ("a status in the wrong file", {"status/00.jsonl": b'{"key":"a"}\n'}, "'a'"),
]


@pytest.mark.parametrize(
    ("files", "problem"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
def test_unreadable_records_are_reported_and_other_records_are_read(remote, files, problem):
    lines = {shard_path(key): encode_shard({key: line}) for key, line in revisions(a="1").items()}
    remote.commit(REF, {**lines, **files}, KIM, AT)
    remote.process().append(OTHER, [evidence(policy="logging")], JO, AT)
    states = remote.process().read([KEY, OTHER])
    (sentence,) = states[KEY].unreadable
    assert problem in sentence
    assert "branch fanout/default/platform/monitoring" in sentence
    assert states[KEY].status.revisions == {"a": "1"}
    assert (len(states[OTHER].records), states[OTHER].unreadable) == (1, ())


def test_a_record_without_effect_from_before_the_rule_is_read(remote):
    decision = {"policy": "monitoring", "stage": "dev", "action": "Publish", "reason": "why"}
    record = {**evidence(), "kind": "Decision", "spec": decision}
    remote.commit(REF, {"records/20200101t000000z-abc.json": encode_canonical(record)}, KIM, AT)
    policy_state = remote.process().read([KEY])[KEY]
    assert ([it.fields for it in policy_state.records], policy_state.unreadable) == ([decision], ())


def test_a_record_that_was_edited_is_unreadable_and_one_that_was_removed_is_gone(remote):
    records = remote.process()
    names = records.append(KEY, [evidence("a"), evidence("b"), evidence("c")], JO, AT)
    paths = [record_path(name) for name in names]
    records.read([KEY])
    remote.commit(REF, {paths[0]: encode_canonical(evidence("forged")), paths[1]: None}, KIM, AT)
    for process in (records, remote.process()):
        policy_state = process.read([KEY])[KEY]
        assert [record.fields["check"] for record in policy_state.records] == ["c"]
        assert [record.by for record in policy_state.records] == ["Jo <jo@example.com>"]
        (sentence,) = policy_state.unreadable
        assert f"{paths[0]} was changed after it was recorded" in sentence


def test_a_commit_message_that_names_others_records_does_not_make_them_its_own(remote):
    (name,) = remote.process().append(KEY, [evidence()], JO, AT)
    claim = f"forged\n\nFanout-Record: {name}\nFanout-Record: other\n"
    remote.git("update-ref", "-d", REF)
    path = f"records/{name}.json"
    remote.commit(REF, {"records/other.json": encode_canonical(evidence("o"))}, KIM, AT, claim)
    remote.commit(REF, {path: encode_canonical(evidence())}, JO, AT + timedelta(hours=1))
    seen = remote.process().read([KEY])[KEY]
    assert [(record.name, record.by[:3], record.at.hour) for record in seen.records] == [
        ("other", "Kim", 12),
        (name, "Jo ", 13),
    ]
    assert seen.unreadable == ()


def test_a_file_that_the_commit_message_forgets_is_seen(remote):
    (name,) = remote.process().append(KEY, [evidence()], JO, AT)
    files = {
        f"records/{name}.json": encode_canonical(evidence()),
        "records/x.json": encode_canonical(evidence()),
    }
    remote.git("update-ref", "-d", REF)
    remote.commit(REF, files, JO, AT, f"amended\n\nFanout-Record: {name}\n")
    seen = remote.process().read([KEY])[KEY].records
    assert [record.name for record in seen] == [name, "x"]


@pytest.mark.parametrize("who", ["Sam Jr.", "Zoë  Ångström", '"Q"'])
def test_names_that_git_writes_another_way_are_read_back(remote, who):
    remote.process().append(KEY, [evidence()], CommitIdentity(who, "q@example.com"), AT)
    policy_state = remote.process().read([KEY])[KEY]
    assert policy_state.unreadable == ()
    assert "<q@example.com>" in policy_state.records[0].by


def test_a_symlink_is_no_record(remote):
    remote.commit(REF, {"records/x.json": ("120000", b"../../etc/passwd")}, KIM, AT)
    (sentence,) = remote.process().read([KEY])[KEY].unreadable
    assert "records/x.json is a symlink" in sentence


def test_a_status_that_cannot_be_read_is_not_overwritten(remote):
    remote.commit(REF, {shard_path("a"): b"{"}, KIM, AT)
    records = remote.process()
    head = records.read([KEY])[KEY].head
    with pytest.raises(InvalidInput, match="is not JSON"):
        records.put_status(status(head, a="1"), AT)
    assert remote.head(REF) == head


def test_two_installations_do_not_see_each_other(remote):
    remote.process("eu").append(KEY, [evidence()], JO, AT)
    assert remote.process("us").read([KEY])[KEY] == PolicyRecords()
