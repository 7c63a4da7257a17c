"""What can be wrong with what is on record: fail closed, for its policy alone, and say so."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import POLICY, Fleet, Repo

from fanout.cluster.policy_state_store import PolicyStateStore
from fanout.cluster.records_repository import RECORDS_REMEDY
from fanout.git.git_errors import CHANGED_REMEDY

RECORDS_BRANCH = "fanout/default/default/monitoring"
FORGED = {
    "apiVersion": "fanout.dev/v1alpha1",
    "kind": "Evidence",
    "metadata": {"namespace": "default"},
    "spec": {
        "policy": "monitoring",
        "stage": "dev",
        "check": "e2e",
        "status": "passed",
        "revision": "v1",
    },
}
NAME = "records/20260302t090000z-aaaaaaaaaaaa.json"


def first(repo: Repo, folder: str) -> str:
    return next(path for path in repo.files(RECORDS_BRANCH) if path.startswith(folder))


def newer(repo: Repo) -> dict[str, str | None]:
    """The status file with the line of ams, as a release to come might write it."""
    for path in repo.files(RECORDS_BRANCH):
        text = repo.file(RECORDS_BRANCH, path)
        if path.startswith("status") and "variant/monitoring-ams-" in text:
            return {path: text.replace('"at"', '"when"')}
    raise AssertionError("ams is on record")


# What a person with push rights does to the branch, and what is said.
DAMAGES: list[tuple[str, Callable[[Repo], dict[str, str | None]], str]] = [
    ("a record that is no JSON", lambda _: {NAME: "{"}, f"{NAME} is not JSON"),
    ("a record that was changed", lambda repo: {first(repo, "records"): "{}"},
     "was changed after it was recorded"),
    ("a record of another policy",
     lambda _: {NAME: json.dumps(FORGED).replace('"monitoring"', '"other"')},
     "belongs to policy default/other"),
    ("a record with an unknown field",
     lambda _: {NAME: json.dumps(FORGED).replace('"link"', '"lnik"').replace("stage", "stag")},
     "is not valid: spec.stag: "),
    ("a file that is no record", lambda _: {"records/notes.txt": "hello\n"},
     "records/notes.txt is"),
    ("a status that is no JSON", lambda repo: {first(repo, "status"): "nonsense\n"},
     "is not JSON"),
    ("a status line of a newer release", newer,
     "variant/monitoring-ams-"),
]  # fmt: skip


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Two policies and something on record, for damages that are repaired again."""
    fleet = Fleet.build(tmp_path_factory.mktemp("company"), {"ams": ("dev", "edge")})
    fleet.policy("other")
    fleet.settle()
    fleet.report("dev", "v1")
    return fleet.later(hours=2)


@pytest.mark.parametrize(
    ("number", "damage", "words"),
    [(number, *row[1:]) for number, row in enumerate(DAMAGES, start=2)],
    ids=[row[0] for row in DAMAGES],
)
def test_unreadable_records_hold_their_policy_and_no_other(company: Fleet, number, damage, words):
    records, edge = company.records(), company.repos["edge"]
    head = records.refs()[f"refs/heads/{RECORDS_BRANCH}"]
    before = edge.refs("refs/tags/sites")
    damaged = records.commit(RECORDS_BRANCH, damage(records))
    company.release(f"v{number}")
    swept = company.sweep()
    assert swept.code == 3
    assert words in swept.err
    assert "default/monitoring: " in swept.err
    assert company.plan("-o", "json").problems == [("", "RecordUnreadable")]
    draft = edge.file("drafts/default/other/ams/other", "other/ams/deployment.yaml")
    assert f"replicas: {number}" in draft, "the other policy goes on"
    assert "sites/ams/monitoring" not in edge.drafts()
    assert edge.refs("refs/tags/sites") == before
    assert records.refs()[f"refs/heads/{RECORDS_BRANCH}"] == damaged
    explained = company.run("explain", "monitoring", "-o", "json").json
    assert explained["status"]["state"] == "Stopped"
    assert explained["status"]["blockers"][0]["reason"] == "RecordUnreadable"
    records.git("update-ref", f"refs/heads/{RECORDS_BRANCH}", head)


def test_evidence_that_is_forged_by_a_commit_counts_from_its_commit(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """Nothing can be back-dated: the name says nine o'clock, the commit says what time it was."""
    fleet.settle()
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-03-02T12:00:00Z")
    fleet.records().commit(RECORDS_BRANCH, {NAME: json.dumps(FORGED)})
    fleet.settle()
    assert fleet.condition("sites/ams")[0] == "FromTheFuture"


def test_evidence_from_the_future_waits_and_is_reported(fleet: Fleet):
    fleet.settle()
    fleet.later(hours=1).report("dev", "v1")
    fleet.later(minutes=-10)
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "FromTheFuture"
    assert "2026-03-02T10:00:00Z" in sentence
    fleet.later(minutes=9).settle()
    assert fleet.condition("sites/ams")[0] == "VerificationPending"
    fleet.later(minutes=1).settle()
    assert fleet.states()["sites/ams"] == "Ready"


REPORTS = [
    ("before anything is published", "dev", "e2e", "v1", False, "nothing is published"),
    ("about another revision", "dev", "e2e", "v9", True, "published there: v1"),
    ("about an unknown check", "dev", "smoke", "v1", True, "it has: e2e"),
    ("about a stage that verifies nothing", "prod", "e2e", "v1", True, "it has none"),
]


@pytest.mark.parametrize(
    ("_", "stage", "check", "revision", "published", "words"), REPORTS, ids=[r[0] for r in REPORTS]
)
def test_evidence_that_could_never_count_is_refused(
    fleet: Fleet, _, stage, check, revision, published, words
):
    if published:
        fleet.settle()
    before = fleet.records().refs() if published else None
    result = fleet.run(
        "report", "monitoring", "--stage", stage, "--check", check, "--status", "passed",
        "--revision", revision, "--by", "Ci <ci@example.com>",
    )  # fmt: skip
    assert result.code in (1, 4)
    assert words in result.err
    assert before is None or fleet.records().refs() == before


def test_evidence_for_the_revision_before_does_not_count_for_the_next(fleet: Fleet):
    fleet.settle()
    fleet.later(minutes=1).report("dev", "v1")
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ams"] == "v2"
    assert fleet.states()["sites/ams"] == "Verifying"


def test_a_commit_that_was_tested_counts_for_what_was_published_with_it(fleet: Fleet):
    fleet.settle()
    head = fleet.repos["edge"].refs()["refs/heads/main"]
    assert fleet.states()["sites/ams"] == "Verifying"
    result = fleet.later(minutes=1).run(
        "report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed",
        "--commit", head, "--by", "Ci <ci@example.com>",
    )  # fmt: skip
    assert result.code == 0
    assert fleet.states()["sites/ams"] == "Ready"


def test_records_that_move_in_between_are_observed_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    put, moved = PolicyStateStore.put_status, []

    def late(self, *args):
        if not moved:
            text = json.dumps(FORGED)
            moved.append(fleet.records().commit(RECORDS_BRANCH, {NAME: text}))
        return put(self, *args)

    fleet.run("suspend", "monitoring", "--stage", "prod", "--reason", "x", "--by", "A <a@b.c>")
    monkeypatch.setattr(PolicyStateStore, "put_status", late)
    monkeypatch.setenv("GIT_COMMITTER_DATE", fleet.now.isoformat())
    swept = fleet.sweep()
    assert (swept.code, swept.out) == (0, "1 released, 1 published\n")
    assert NAME in fleet.records().files(RECORDS_BRANCH)
    fleet.records().git("merge-base", "--is-ancestor", moved[0], RECORDS_BRANCH)
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def test_records_that_always_move_end_the_pass_before_anything_is_published(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    fleet.sweep("--drafts-only")
    fleet.run("suspend", "monitoring", "--stage", "prod", "--reason", "x", "--by", "A <a@b.c>")
    put = PolicyStateStore.put_status

    def late(self, *args):
        fleet.records().commit(
            RECORDS_BRANCH, {"README.md": fleet.records().git("rev-parse", RECORDS_BRANCH)}
        )
        return put(self, *args)

    monkeypatch.setattr(PolicyStateStore, "put_status", late)
    monkeypatch.setattr("fanout.retries.RETRY_TIMEOUT", 0.5)
    before = fleet.refs()
    swept = fleet.sweep()
    assert swept.code == 1
    assert "records.git" in swept.err
    assert CHANGED_REMEDY in swept.err
    assert fleet.refs() == before


def test_records_that_are_lost_are_made_again_from_what_git_shows(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    fleet.settle()
    fleet.report("dev", "v1")
    fleet.settle()
    before, published = fleet.refs(), fleet.published()
    assert set(published.values()) == {"v1"}
    shutil.rmtree(fleet.records().path)
    assert fleet.sweep("--new-records").code == 0
    fleet.settle()
    assert (fleet.refs(), fleet.published()) == (before, published)


def test_records_out_of_reach_stop_the_pass(fleet: Fleet, tmp_path: Path):
    fleet.settle()
    fleet.release("v2")
    before = fleet.refs()
    (fleet.records().path / "HEAD").unlink()
    swept = fleet.sweep()
    assert swept.code == 1
    assert f"{fleet.records().path}: " in swept.err
    assert RECORDS_REMEDY in swept.err
    assert "spec.url" not in swept.err, "no Repository object is at fault"
    assert fleet.refs() == before
