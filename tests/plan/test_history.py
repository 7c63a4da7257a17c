"""History of publications, derived from the revisions of a recorded status and from commits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Action
from fanout.api.publication_view import AdmissionType
from fanout.api.record_objects import DecisionSpec
from fanout.plan.history.admission import build_admission, find_admission, format_person
from fanout.plan.history.recorded_publications import (
    HistoryEntry,
    PublicationCommit,
    RecordedPublication,
    StatusRevision,
    derive_history,
    group_by_stage,
    merge_publications,
    parse_publication_commit,
)
from fanout.plan.observation.repository_state import Commit
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.records.policy_status import PublishedLine

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PLACE = {"repository": "/edge.git#refs/heads/main", "path": "sites/ams", "stage": "dev"}
FANOUT, BOB, ANN = "fanout <f@localhost>", "Bob <bob@example.com>", "Ann <ann@example.com>"


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def step(revision: str, minutes: int, **more: Any) -> dict[str, Any]:
    """Return a release or a publication as a status line has it."""
    common = {"revision": revision, "commit": "c", "digest": f"d{revision}", "tree": f"t{revision}"}
    return {**common, "at": format_instant(at(minutes)), **more}


def revised(*lines: dict[str, Any] | None, key: str = "variant/ams") -> list[StatusRevision]:
    """Return revisions of the status, a minute apart, each with a line of the variant."""
    return [
        StatusRevision(at(minute), {key: {**PLACE, **line} if line is not None else None})
        for minute, line in enumerate(lines)
    ]


def publications(*lines: dict[str, Any] | None) -> list[RecordedPublication]:
    return list(derive_history(revised(*lines)).publications)


# ---- publications ------------------------------------------------------------------------------


def test_a_release_belongs_to_the_publication_that_follows():
    [first, second] = publications(
        {"grant": step("v1", 0)},
        {"published": step("v1", 1, merge="m1")},
        {"published": step("v1", 1, merge="m1"), "grant": step("v2", 2)},
        {"published": step("v2", 3, merge="m2")},
    )
    assert first.grant is not None
    assert second.grant is not None
    assert (first.grant.at, first.until, second.grant.at, second.until) == (
        at(0),
        at(3),
        at(2),
        None,
    )
    assert second.previous == first.line
    assert not first.is_recovered


SAME = [
    ("a tag that is filled in later", {"merge": "m1"}, {"merge": "m1", "tag": "sites/ams/v1"}, 1),
    ("a commit that is filled in later", {"tag": "a/v1"}, {"merge": "m1", "tag": "a/v1"}, 1),
    ("other inputs of the same package", {"merge": "m1"}, {"merge": "m1", "digest": "x"}, 1),
    ("the same revision merged again", {"merge": "m1"}, {"merge": "m2"}, 2),
]


@pytest.mark.parametrize(("_", "before", "after", "count"), SAME, ids=[row[0] for row in SAME])
def test_a_changed_line_is_a_publication_only_if_something_was_merged(_, before, after, count):
    lines = [{"published": step("v1", 1, **it)} for it in (before, after)]
    assert len(publications(*lines)) == count


def test_another_revision_of_the_same_package_is_unchanged():
    merged = {"merge": "m1", "tag": "sites/ams/v1"}
    [_, second] = publications(
        {"published": step("v1", 1, **merged)}, {"published": step("v2", 2, **merged)}
    )
    assert second.is_unchanged
    assert find_admission(second, None, ()).type is AdmissionType.UNCHANGED


@pytest.mark.parametrize("last", [None, {}], ids=["line removed", "not published"])
def test_a_removed_package_ends_its_publication(last):
    [first] = publications({"published": step("v1", 1, merge="m1")}, last)
    assert (first.until, first.is_removed) == (at(1), True)


def test_a_move_keeps_the_place_of_each_publication():
    [old, new] = publications(
        {"published": step("v1", 1, merge="m1")},
        {"path": "eu/ams", "published": step("v1", 2, merge="m2")},
    )
    assert (old.path, old.until, new.path) == ("sites/ams", at(2), "eu/ams")


def test_lines_that_cannot_be_read_are_left_out():
    readable = {**PLACE, "published": step("v1", 1, merge="m1")}
    lines: dict[str, Any] = {
        "variant/bad": {"published": 7},
        "unheard/of": {},
        "variant/ams": readable,
    }
    [only] = derive_history([StatusRevision(at(0), lines)]).publications
    assert only.variant == "ams"


# ---- admissions --------------------------------------------------------------------------------

_DECISIONS: list[tuple[str, int, str, dict[str, Any]]] = [
    ("stage", 2, "Publish", {"stage": "dev", "reason": "urgent"}),
    ("other", 2, "Publish", {"stage": "prod"}),
    ("back", 2, "Rollback", {"stage": "dev"}),
    ("early", 0, "Publish", {"stage": "dev"}),
    ("tree", 2, "Publish", {"stage": "dev", "trees": ["f" * 40]}),
    ("ber", 2, "Publish", {"stage": "dev", "variants": ["ber"]}),
]
DECISIONS = tuple(
    RecordEntry(
        name=name,
        at=at(minute),
        by=ANN,
        spec=DecisionSpec(action=Action(action), policy="p", revision="v2", **more),
    )
    for name, minute, action, more in _DECISIONS
)
WITHDRAWN = RecordEntry(
    name="w", at=at(2), by=ANN, spec=DecisionSpec(action=Action.WITHDRAW, withdraws="stage")
)
BY_NAME = {it.name: it for it in DECISIONS} | {"w": WITHDRAWN}
OWN = PublicationCommit(at(3), is_own=True)
HIS = PublicationCommit(at(3), is_own=False, author=BOB)

ADMISSIONS = [
    ("a release names its PromotionPolicies", ["PromotionPolicy/x"], "", OWN, "Automatic"),
    ("a release names its decision", ["Decision/stage"], "stage", OWN, "Promoted"),
    ("a release names a rollback", ["Decision/back"], "back", OWN, "RolledBack"),
    ("a release names a pin", ["UpstreamPolicy/p"], "", OWN, "Pinned"),
    ("a person merged it on a forge", ["PromotionPolicy/x"], "", HIS, "Merged"),
    ("its repository cannot be read", ["PromotionPolicy/x"], "", None, "Automatic"),
    ("an old release after a decision of its stage", [], "stage", OWN, "Promoted"),
    ("an old release after a rollback", [], "back", OWN, "RolledBack"),
    ("an old release without a decision", [], "", OWN, "Unknown"),
    ("a decision of another stage", [], "other", OWN, "Unknown"),
    ("a decision that the publication before used up", [], "early", OWN, "Unknown"),
    ("a decision about another draft", [], "tree", OWN, "Unknown"),
    ("a decision about another variant", [], "ber", OWN, "Unknown"),
    ("a decision that was withdrawn", [], "stage w", OWN, "Unknown"),
]


@pytest.mark.parametrize(
    ("_", "by", "names", "commit", "expected"), ADMISSIONS, ids=[row[0] for row in ADMISSIONS]
)
def test_a_publication_has_the_admission_of_its_record(_, by, names, commit, expected):
    [_, second] = publications(
        {"published": step("v1", 1, merge="m1"), "grant": step("v2", 2, by=by)},
        {"published": step("v1", 1, merge="m1"), "grant": step("v2", 2, by=by)},
        {"published": step("v2", 3, merge="m2")},
    )
    records = [BY_NAME[name] for name in names.split()]
    assert find_admission(second, commit, records).type == expected


def test_a_publication_without_a_release_is_not_on_record():
    [only] = publications({"published": step("v1", 1, merge="m1")})
    assert only.is_recovered
    assert find_admission(only, HIS, DECISIONS).type is AdmissionType.UNKNOWN


def test_a_merge_without_the_gates_is_out_of_band():
    [only] = publications({"published": step("v1", 1, merge="m1", out_of_band=True)})
    assert find_admission(only, HIS, DECISIONS) == build_admission(AdmissionType.OUT_OF_BAND, BOB)


PHRASES = [
    (build_admission(AdmissionType.AUTOMATIC, promotion_policies=("x", "y")),
     "automatic (x, y)"),
    (build_admission(AdmissionType.PROMOTED, ANN, BY_NAME["stage"]),
     "Ann, promote: urgent"),
    (build_admission(AdmissionType.ROLLED_BACK, ANN, BY_NAME["back"]), "Ann, rollback"),
    (build_admission(AdmissionType.PINNED, policy="p"), "pinned in UpstreamPolicy p"),
    (build_admission(AdmissionType.MERGED, BOB), "merged on the forge by Bob"),
    (build_admission(AdmissionType.MERGED, BOB, BY_NAME["back"]),
     "Ann, rollback (merged on the forge by Bob)"),
    (build_admission(AdmissionType.MERGED), "merged on the forge by a person"),
    (build_admission(AdmissionType.OUT_OF_BAND, BOB), "out of band: merged by Bob"),
    (build_admission(AdmissionType.UNCHANGED), "package unchanged"),
    (build_admission(AdmissionType.UNKNOWN), "not recorded"),
]  # fmt: skip


@pytest.mark.parametrize(("admission", "phrase"), PHRASES, ids=[row[1] for row in PHRASES])
def test_the_phrase_of_an_admission(admission, phrase):
    assert admission.message == phrase


def test_a_person_without_a_name_has_an_address():
    assert format_person(" <bob@example.com>") == "bob@example.com"


# ---- commits -----------------------------------------------------------------------------------

PUBLISHED = "Publish sites/ams\n\nFanout-Policy: default/p\nFanout-Records: none\n"
DRAFT = "Update\n\n" + "".join(
    f"Fanout-{key}: x\n"
    for key in ("Install", "Policy", "Variant", "Stage", "Revision", "Commit", "Digest", "Onto",
                "Tree", "Conflicts")
)  # fmt: skip
COMMITS = [
    ("fanout's", PUBLISHED, FANOUT, FANOUT, (True, "")),
    ("a forge's with fanout's message", PUBLISHED, "bot <b@x>", "forge <f@x>", (True, "")),
    ("a person's merge", "Merge branch\n", BOB, BOB, (False, BOB)),
    ("a squash in fanout's name", "Squashed\n", FANOUT, BOB, (False, BOB)),
    ("a draft that the branch was moved to", DRAFT, FANOUT, FANOUT, (False, "")),
]


@pytest.mark.parametrize(
    ("_", "message", "author", "committer", "expected"),
    COMMITS,
    ids=[row[0] for row in COMMITS],
)
def test_the_author_of_a_publication_is_parsed_from_its_commit(
    _, message, author, committer, expected
):
    commit = Commit(
        oid="m", tree="t", parents=(), timestamp=0, committer=committer, message=message,
        author=author,
    )  # fmt: skip
    parsed = parse_publication_commit(commit, FANOUT)
    assert (parsed.is_own, parsed.author) == expected


def test_reviews_that_counted_are_in_the_message():
    message = f"{PUBLISHED}Fanout-Approved-By: {ANN}\nFanout-Approved-By: {BOB}\n"
    commit = Commit(oid="m", tree="t", parents=(), timestamp=0, committer=FANOUT, message=message)
    assert parse_publication_commit(commit, FANOUT).approvers == (ANN, BOB)


# ---- over time ---------------------------------------------------------------------------------


def published(variant: str, revision: str, minutes: int) -> RecordedPublication:
    line = PublishedLine(revision=revision, commit="c", digest="d", tree="t", at=at(minutes))
    return RecordedPublication(
        variant=variant, stage="dev", repository="r", path=variant, line=line
    )


def entry(
    publication: RecordedPublication, kind: AdmissionType = AdmissionType.AUTOMATIC
) -> HistoryEntry:
    return HistoryEntry(publication, build_admission(kind))


def test_publications_from_repositories_fill_gaps():
    merged = merge_publications([published("a", "v2", 5)], [published("a", "v1", 1)])
    assert [(it.line.revision, it.until) for it in merged] == [("v1", at(5)), ("v2", None)]
    assert merged[1].previous == merged[0].line


def test_a_stage_has_one_stretch_for_a_revision():
    linked = merge_publications(
        [published("a", "v1", 0), published("b", "v1", 1), published("a", "v2", 2)], []
    )
    groups = group_by_stage(map(entry, linked), ())
    assert [(it.revision, sorted(it.variants), it.ended) for it in groups] == [
        ("v1", ["a", "b"], None),
        ("v2", ["a"], None),
    ]


def test_a_revision_that_comes_back_is_a_stretch_of_its_own():
    linked = merge_publications(
        [published("a", it, n) for n, it in enumerate(["v1", "v2", "v1"])], []
    )
    groups = group_by_stage(map(entry, linked), ())
    assert [(it.revision, it.number) for it in groups] == [("v1", 1), ("v2", 1), ("v1", 2)]


def test_a_rollback_is_a_stretch_of_its_own():
    linked = merge_publications([published("a", "v1", 0), published("b", "v1", 1)], [])
    kinds = [AdmissionType.AUTOMATIC, AdmissionType.ROLLED_BACK]
    groups = group_by_stage(map(entry, linked, kinds), ())
    assert [it.number for it in groups] == [1, 2]


def test_a_stage_passes_in_the_stretch_in_which_it_was_recorded():
    revisions = [
        StatusRevision(at(2), {"stage/dev/v1": {"passed": format_instant(at(2))}}),
        StatusRevision(at(9), {"stage/join/v1": {"passed": format_instant(at(9))}}),
    ]
    linked = merge_publications(
        [published("a", it, 4 * n) for n, it in enumerate(["v1", "v2", "v1"])], []
    )
    groups = group_by_stage(map(entry, linked), derive_history(revisions).verdicts)
    assert [(it.stage, it.revision, it.passed) for it in groups] == [
        ("dev", "v1", at(2)),
        ("dev", "v2", None),
        ("dev", "v1", None),
        ("join", "v1", at(9)),
    ]


def test_a_release_of_another_revision_is_not_the_publications():
    [only] = publications({"grant": step("v1", 0)}, {"published": step("v2", 1, merge="m")})
    assert only.grant is None
