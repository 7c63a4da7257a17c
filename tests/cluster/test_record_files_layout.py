"""Where records lie in their branch: small directories, and the flat ones of earlier versions."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from fanout.cluster.record_files import build_record_name, encode_canonical, record_path
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordsKey, StatusChange, SubmittedRecord

KEY = RecordsKey("platform", "monitoring")
REF = "refs/heads/fanout/default/platform/monitoring"
JO = CommitIdentity("Jo", "jo@example.com")
KIM = CommitIdentity("Kim", "kim@example.com")
BY_JO = "Jo <jo@example.com>"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 20_000


def evidence(check="e2e"):
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "platform"},
        "spec": {
            "policy": "monitoring",
            "stage": "dev",
            "check": check,
            "status": "passed",
            "revision": "v1",
        },
    }


def flat_path(name):
    return f"records/{name}.json"


def add_flat(remote, *checks, at=AT):
    """Record evidence as earlier versions did: one file in one directory; return the names."""
    names = []
    for check in checks:
        data = encode_canonical(evidence(check))
        names.append(build_record_name(data, BY_JO, at))
        message = f"Record Evidence\n\nFanout-Record: {names[-1]}\n"
        remote.commit(REF, {flat_path(names[-1]): data}, JO, at, message)
    return names


def many_files(path):
    """Return files with the names of records of one month, by path."""
    return {
        path(f"{AT + timedelta(minutes=number):%Y%m%dt%H%M%Sz}-{digest(number)}"): b"%d\n" % number
        for number in range(MANY)
    }


def digest(number):
    return hashlib.sha256(b"%d" % number).hexdigest()[:12]


def added_bytes(remote, before):
    """Return the size on disk of the objects that came with the commits after `before`."""
    return int(remote.git("rev-list", "--objects", "--disk-usage", REF, f"^{before}"))


@pytest.mark.parametrize("path", [record_path, flat_path], ids=["present", "earlier"])
def test_a_record_adds_less_than_20_kb_to_twenty_thousand_of_the_same_month(remote, path):
    remote.commit(REF, many_files(path), KIM, AT)
    store = remote.process()
    for hour in range(3):
        before = remote.head(REF)
        store.append(KEY, [evidence()], JO, AT + timedelta(hours=hour))
        remote.git("repack", "-adq", "--window=0")  # each object by itself, as a push stores it
        assert added_bytes(remote, before) < 20_000, f"record {hour}"


def test_a_record_among_those_of_the_earlier_layout_takes_little_of_a_push(remote):
    remote.commit(REF, many_files(flat_path), KIM, AT)
    remote.git("config", "receive.unpackLimit", "1")  # what is received is one pack
    packs = {it.name for it in (remote.path / "objects/pack").iterdir()}
    remote.process().append(KEY, [evidence()], JO, AT)
    received = [it for it in (remote.path / "objects/pack").glob("*.pack") if it.name not in packs]
    assert sum(it.stat().st_size for it in received) < 20_000


def test_records_of_both_layouts_are_read_with_their_authors_times_and_order(remote):
    flat = add_flat(remote, "first", "second")
    long_running = remote.process()
    before = long_running.read([KEY])[KEY].records
    later = AT + timedelta(hours=1)
    (new,) = remote.process().append(KEY, [evidence("third")], KIM, later)
    for store in (long_running, remote.process()):
        state = store.read([KEY])[KEY]
        assert state.unreadable == ()
        assert state.records[:2] == before
        assert [it.name for it in state.records] == [*flat, new]
        assert (state.records[2].by, state.records[2].at) == ("Kim <kim@example.com>", later)


def test_the_flat_directory_is_put_aside_once_and_not_written_again(remote):
    add_flat(remote, "first", "second")
    flat = remote.git("rev-parse", f"{REF}:records")
    store = remote.process()
    for hour in (1, 2):
        (name,) = store.append(KEY, [evidence()], JO, AT + timedelta(hours=hour))
        assert remote.git("cat-file", "-e", f"{REF}:{record_path(name)}") == ""
        assert remote.git("rev-parse", f"{REF}:records/flat") == flat


def test_records_of_a_cluster_are_taken_in_beside_flat_ones(remote):
    flat = add_flat(remote, "first")
    submitted = [
        SubmittedRecord(uid=uid, manifest=evidence(uid), author=KIM) for uid in ("u1", "u2")
    ]
    entries = remote.process().append_once(KEY, submitted, AT)
    state = remote.process().read([KEY])[KEY]
    assert [it.name for it in state.records] == [*flat, *(it.name for it in entries)]
    assert remote.process().append_once(KEY, submitted, AT) == entries


def test_a_name_that_a_flat_record_has_is_not_given_again(remote):
    (flat,) = add_flat(remote, "e2e")
    store = remote.process()
    assert store.append(KEY, [evidence()], JO, AT) == (f"{flat}-2",)
    assert store.append(KEY, [evidence()], JO, AT) == (f"{flat}-3",)
    assert len(remote.process().read([KEY])[KEY].records) == 3


def test_a_status_alone_moves_no_records(remote):
    add_flat(remote, "first")
    store = remote.process()
    head = store.read([KEY])[KEY].head
    records = remote.git("rev-parse", f"{REF}:records")
    store.put_status({KEY: StatusChange(head, {"a": {"x": 1}})}, AT)
    assert remote.git("rev-parse", f"{REF}:records") == records
    assert [it.fields["check"] for it in store.read([KEY])[KEY].records] == ["first"]


def test_a_forged_message_changes_no_author_in_either_layout(remote):
    add_flat(remote, "first")
    (new,) = remote.process().append(KEY, [evidence("second")], JO, AT)
    message = f"forged\n\nFanout-Record: {new}\nFanout-Record: x\n"
    remote.commit(REF, {"records/x.json": encode_canonical(evidence("third"))}, KIM, AT, message)
    state = remote.process().read([KEY])[KEY]
    assert [(it.fields["check"], it.by[:3]) for it in state.records] == [
        ("first", "Jo "),
        ("second", "Jo "),
        ("third", "Kim"),
    ]
    assert state.unreadable == ()


def test_a_record_that_was_edited_or_removed_is_reported_in_either_layout(remote):
    (flat,) = add_flat(remote, "first")
    names = [flat, *remote.process().append(KEY, [evidence("a"), evidence("b")], JO, AT)]
    paths = [f"records/flat/{flat}.json", *map(record_path, names[1:])]
    forged = encode_canonical(evidence("forged"))
    remote.commit(REF, {paths[0]: forged, paths[1]: forged, paths[2]: None}, KIM, AT)
    state = remote.process().read([KEY])[KEY]
    assert state.records == ()
    assert [line.split(": ", 1)[1].split(" ")[0] for line in state.unreadable] == paths[:2]


def test_a_second_file_of_one_name_is_reported(remote):
    (name,) = remote.process().append(KEY, [evidence()], JO, AT)
    remote.commit(REF, {flat_path(name): encode_canonical(evidence("forged"))}, KIM, AT)
    state = remote.process().read([KEY])[KEY]
    assert state.records == ()
    assert len(state.unreadable) == 2


@pytest.mark.parametrize("directory", ["0", "0/0/0", "flat/a", "other"])
def test_a_record_in_another_directory_is_reported(remote, directory):
    remote.process().append(KEY, [evidence()], JO, AT)
    path = f"records/{directory}/20260301t120000z-abc.json"
    remote.commit(REF, {path: encode_canonical(evidence())}, KIM, AT)
    (sentence,) = remote.process().read([KEY])[KEY].unreadable
    assert f"{path} is not the file of a record" in sentence
