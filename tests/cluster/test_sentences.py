"""Sentences about files, secrets and records, word for word, where they are raised."""

from datetime import UTC, datetime

import pytest

from fanout.cluster.file_cluster import FileCluster, MergedObjects, merge_declared
from fanout.cluster.file_secrets import FileSecrets
from fanout.cluster.manifest_discovery import ManifestDiscovery
from fanout.cluster.record_files import (
    UnreadableStateError,
    check_record,
    encode_shard,
    shard_path,
)
from fanout.declared.declared_objects import ObjectKey
from fanout.errors import FanoutError
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import RecordsKey, StatusChange
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.telemetry.redaction import Redactor

KEY = RecordsKey("default", "monitoring")
REF = "refs/heads/fanout/default/default/monitoring"
JO = CommitIdentity("Jo", "jo@example.com")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = {"revision/v1": {"commit": "c1"}}
STATUS = {shard_path("revision/v1"): encode_shard(LINES)}
OBJECT = "apiVersion: v1\nkind: {}\nmetadata: {{name: one, namespace: default}}\n"


def test_a_directory_that_cannot_be_listed(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.scandir", refuse)
    [finding] = ManifestDiscovery([tmp_path]).findings
    monkeypatch.undo()
    assert (finding.problem, finding.remedy) == (
        "cannot be listed: Permission denied",
        "make it readable",
    )


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "a.yaml").symlink_to(tmp_path / "gone.yaml")
    [finding] = ManifestDiscovery([tmp_path]).findings
    assert (finding.problem, finding.remedy) == (
        "cannot be read: No such file or directory",
        "remove it, or make it readable",
    )


ALREADY = "is already declared in namespace default at {0}/a.yaml:3; none of them is used"
DECLARED = [
    ({"a": 1, "b": 1}, "ConfigMap/one, which is declared 2 times", [ALREADY]),
    ({"a": 2, "b": 1}, "ConfigMap/one, which is declared 3 times", [ALREADY, ALREADY]),
]


@pytest.mark.parametrize(("counts", "source", "problems"), DECLARED)
def test_an_object_that_is_declared_several_times(tmp_path, counts, source, problems):
    for name, count in counts.items():
        text = "---\n".join([OBJECT.format("ConfigMap")] * count)
        (tmp_path / f"{name}.yaml").write_text(text)
    declared = FileCluster([tmp_path]).read()
    assert [it.source for it in declared.unusable] == [source]
    assert [it.problem for it in declared.faults] == [it.format(tmp_path) for it in problems]


UNLOCATED = [
    (["a.yaml"], "is declared more than once in namespace default; none of them is used"),
    (["a.yaml", "b.yaml", "c.yaml"],
     ("is declared more than once in namespace default, also in b.yaml, c.yaml; none of them is"
      " used")),
]  # fmt: skip


@pytest.mark.parametrize(("files", "problem"), UNLOCATED)
def test_an_object_that_is_declared_several_times_in_files_that_changed_since(files, problem):
    """The files are read once more for the positions, and may not have it any more by then."""
    key = ObjectKey("", "ConfigMap", "default", "one")
    merged = MergedObjects(ClusterObjectIndex(()), {key: tuple(files)}, frozenset())
    declared = merge_declared({}, (), merged, lambda _: {})
    assert [it.problem for it in declared.faults] == [problem]
    assert [it.source for it in declared.unusable] == [
        "ConfigMap/one, which is declared more than once"
    ]


def test_a_secret_that_is_no_text(tmp_path):
    (tmp_path / "edge").write_bytes(b"\xff")
    with pytest.raises(FanoutError) as error:
        FileSecrets(Redactor(), tmp_path, {}).get("default", "edge")
    assert error.value.problem == f"secret 'edge' is not UTF-8 text ({tmp_path}/edge)"


def evidence(**fields):
    spec = {"policy": "monitoring", "stage": "dev", "check": "e2e", "status": "passed",
            "revision": "v1"}  # fmt: skip
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "Evidence",
        "metadata": {"namespace": "default"},
        "spec": spec | fields,
    }


RECORDS = [
    ({"kind": "Pod"}, "is none of Evidence, Approval, Decision"),
    (evidence(extra=1), "is not valid: spec.extra: "),
    (evidence(policy="web"), "belongs to policy default/web"),
]


@pytest.mark.parametrize(("record", "sentence"), RECORDS, ids=[it[1] for it in RECORDS])
def test_a_record_that_does_not_count(record, sentence):
    with pytest.raises(UnreadableStateError) as error:
        check_record(record, KEY)
    assert str(error.value).startswith(sentence)


def read(remote):
    return remote.process().read([KEY])[KEY]


UNREADABLE = [
    ({"status/00.jsonl": ("120000", b"x")},
     "status/00.jsonl is a symlink; restore it from an earlier commit"),
    ({"records": b""}, "records: records is a file; move it away"),
    ({"status": b""}, "status: status is a file; move it away"),
    ({"records/a.json": ("120000", b"x")},
     "records/a.json is a symlink; restore it, or remove it with git"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "sentence"), UNREADABLE, ids=[it[1] for it in UNREADABLE])
def test_a_file_that_cannot_be_read_on_a_branch_of_records(remote, files, sentence):
    remote.commit(REF, {"README.md": b"", **files}, JO, NOON)
    [problem] = read(remote).unreadable
    assert problem.endswith(sentence)


def test_a_status_is_not_written_over_one_that_cannot_be_read(remote):
    remote.commit(REF, {**STATUS, "status/00.jsonl": ("120000", b"x")}, JO, NOON)
    records = remote.process()
    head = records.read([KEY])[KEY].head
    with pytest.raises(FanoutError) as error:
        records.put_status({KEY: StatusChange(head, {"revision/v2": {"commit": "c2"}})}, NOON)
    assert error.value.problem == (
        f"cannot read the status on branch {REF}: status/00.jsonl is a symlink; restore it from an"
        " earlier commit"
    )


def test_a_repository_without_records(remote):
    assert remote.process().empty_problem() == f"{remote.path} has no records of this installation"
    remote.remove()
    assert remote.process().empty_problem() == f"there is no records repository {remote.path}"


def test_a_log_of_sweeps_that_is_no_json(remote):
    remote.commit("refs/heads/fanout/default/_sweeps", {"sweeps.json": b"x"}, JO, NOON)
    with pytest.raises(FanoutError) as error:
        remote.sweep_log().read()
    assert error.value.problem.startswith(
        f"cannot read sweeps.json on branch fanout/default/_sweeps of {remote.path}: "
    )
