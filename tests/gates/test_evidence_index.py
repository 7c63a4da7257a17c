"""Evidence to verdict: every rule of docs/concepts/checks.md is a row."""

from operator import itemgetter

import pytest
from gates.worlds import FAILED, PASSED, PENDING, T0, at, evidence_of, published
from hypothesis import given
from hypothesis import strategies as st

from fanout.gates import gate_wording
from fanout.gates.evidence_index import EvidenceIndex
from fanout.values import replace

NOW = at(10)

ROWS = [
    ("without evidence the check is pending", [], PENDING, "VerificationPending", ""),
    (
        "an answer about the stage counts for its variants",
        [evidence_of("dev", PASSED)],
        PASSED,
        "",
        "ci",
    ),
    ("a failure fails", [evidence_of("dev", FAILED)], FAILED, "VerificationFailed", "ci"),
    (
        "a reporter's later answer replaces its earlier one",
        [evidence_of("dev", FAILED), evidence_of("dev", PASSED)],
        PASSED,
        "",
        "",
    ),
    (
        "also when it takes a pass back",
        [evidence_of("dev", PASSED), evidence_of("dev", FAILED)],
        FAILED,
        "VerificationFailed",
        "",
    ),
    (
        "order is that of the records, not of their instants",
        [evidence_of("dev", FAILED, when=5), evidence_of("dev", PASSED, when=2)],
        PASSED,
        "",
        "",
    ),
    (
        "reporters that contradict each other are a failure with its own reason",
        [evidence_of("dev", PASSED), evidence_of("dev", FAILED, by="ann")],
        FAILED,
        "Contradiction",
        "ann",
    ),
    (
        "one that is pending keeps the check pending",
        [evidence_of("dev", PASSED), evidence_of("dev", PENDING, by="ann")],
        PENDING,
        "VerificationPending",
        "ann",
    ),
    (
        "a failure is a failure whoever else is still at work",
        [evidence_of("dev", FAILED), evidence_of("dev", PENDING, by="ann")],
        FAILED,
        "VerificationFailed",
        "",
    ),
    (
        "evidence for another revision does not count and is named",
        [evidence_of("dev", PASSED, "v0")],
        PENDING,
        "VerificationPending",
        "is about v0",
    ),
    (
        "evidence for a commit of the publication counts",
        [evidence_of("dev", PASSED, "", commit="commit-v1")],
        PASSED,
        "",
        "",
    ),
    (
        "evidence for another commit does not",
        [evidence_of("dev", PASSED, "", commit="abc")],
        PENDING,
        "VerificationPending",
        "is about commit abc, where the package differs from the published one",
    ),
    (
        "evidence that names both must be right in both",
        [evidence_of("dev", PASSED, "v0", commit="commit-v1")],
        PENDING,
        "VerificationPending",
        "",
    ),
    (
        "evidence that names neither is about nothing",
        [evidence_of("dev", PASSED, "")],
        PENDING,
        "VerificationPending",
        "names no revision and no commit",
    ),
    (
        "evidence from before the publication does not count",
        [evidence_of("dev", PASSED, when=-1)],
        PENDING,
        "VerificationPending",
        "was recorded before v1 was published",
    ),
    ("evidence of the very second counts", [evidence_of("dev", PASSED, when=0)], PASSED, "", ""),
    (
        "evidence for this variant counts",
        [evidence_of("dev", PASSED, variants=("x", "a"))],
        PASSED,
        "",
        "",
    ),
    (
        "evidence for another variant does not",
        [evidence_of("dev", PASSED, variants=("x",))],
        PENDING,
        "VerificationPending",
        "",
    ),
    (
        "evidence for another check does not",
        [evidence_of("dev", PASSED, check="lint")],
        PENDING,
        "",
        "",
    ),
    ("evidence for another stage does not", [evidence_of("prod", PASSED)], PENDING, "", ""),
    (
        "what is said of a variant and of its stage is one record order",
        [evidence_of("dev", FAILED, variants=("a",)), evidence_of("dev", PASSED)],
        PASSED,
        "",
        "",
    ),
    (
        "evidence that is dated ahead counts from its own instant",
        [evidence_of("dev", PASSED, when=15)],
        PENDING,
        "VerificationPending",
        "check e2e: the report by ci is dated ahead and counts from then on",
    ),
    (
        "a failure counts at once, five minutes ahead",
        [evidence_of("dev", PASSED), evidence_of("dev", FAILED, when=15)],
        FAILED,
        "VerificationFailed",
        "",
    ),
    (
        "what is dated ahead and agrees holds nothing",
        [evidence_of("dev", PASSED), evidence_of("dev", PASSED, when=12, by="ann")],
        PASSED,
        "",
        "",
    ),
    (
        "what is dated ahead takes no failure back yet",
        [evidence_of("dev", FAILED), evidence_of("dev", PASSED, when=12)],
        FAILED,
        "VerificationFailed",
        "",
    ),
    (
        "more than five minutes ahead holds",
        [evidence_of("dev", PASSED, when=16)],
        PENDING,
        "FromTheFuture",
        "check e2e: the report by ci is dated in the future and does not count yet",
    ),
    (
        "it counts for nothing beside an answer that passed",
        [evidence_of("dev", PASSED), evidence_of("dev", FAILED, when=16, by="ann")],
        PASSED,
        "",
        "ci",
    ),
    (
        "nor before an answer of the same reporter that passed",
        [evidence_of("dev", FAILED, when=900), evidence_of("dev", PASSED)],
        PASSED,
        "",
        "ci",
    ),
    (
        "evidence that was withdrawn says nothing",
        [replace(evidence_of("dev", PASSED), withdrawn=at(2))],
        PENDING,
        "VerificationPending",
        "check e2e is not reported for v1 yet",
    ),
    (
        "it does not hide a failure",
        [evidence_of("dev", FAILED), evidence_of("dev", PASSED, when=16)],
        FAILED,
        "VerificationFailed",
        "",
    ),
    (
        "a wrong clock does not hold what others say later",
        [evidence_of("prod", PASSED, when=900), evidence_of("dev", PASSED)],
        PASSED,
        "",
        "",
    ),
]


@pytest.mark.parametrize(
    ("sentence", "evidence", "verdict", "reason", "expected_sentence"),
    ROWS,
    ids=map(itemgetter(0), ROWS),
)
def test_check(sentence, evidence, verdict, reason, expected_sentence):
    view = EvidenceIndex(evidence, NOW).evaluate("dev", "e2e", "a", published("v1"))
    assert view.verdict is verdict
    assert view.reason == reason or not reason
    assert expected_sentence in view.message


def test_a_check_says_who_can_answer_it():
    view = EvidenceIndex([], NOW).evaluate("dev", "e2e", "a", published("v1"))
    assert view.who == gate_wording.format_reporter("e2e", "dev")
    assert view.at == T0


def test_a_check_held_by_the_future_says_when_it_counts():
    view = EvidenceIndex([evidence_of("dev", PASSED, when=30)], NOW).evaluate(
        "dev", "e2e", "a", published("v1")
    )
    assert view.until == view.passes_at == at(30)


SINCE = [
    ("a second reporter who agrees changes nothing", [(2, PASSED, "ci"), (5, PASSED, "ann")], 2),
    ("nor does who says it again", [(2, PASSED, "ci"), (5, PASSED, "ci")], 2),
    ("a failure is a break", [(2, PASSED, "ci"), (4, FAILED, "ci"), (5, PASSED, "ci")], 5),
    ("so is another's failure", [(2, PASSED, "ci"), (4, FAILED, "ann"), (5, PASSED, "ann")], 5),
    ("so is somebody at work", [(2, PASSED, "ci"), (4, PENDING, "ann"), (5, PASSED, "ann")], 5),
    ("all have to agree", [(2, PASSED, "ci"), (1, PENDING, "ann"), (7, PASSED, "ann")], 7),
]


@pytest.mark.parametrize(("_", "course", "since"), SINCE, ids=map(itemgetter(0), SINCE))
def test_a_check_has_passed_since(_, course, since):
    evidence = [evidence_of("dev", status, when=when, by=by) for when, status, by in course]
    assert EvidenceIndex(evidence, NOW).evaluate("dev", "e2e", "a", published("v1")).at == at(since)


def test_a_check_has_passed_since_its_last_failure_was_to_be_tried_again():
    evidence = [evidence_of("dev", PASSED, when=2), evidence_of("dev", FAILED, when=4, by="ann")]
    index = EvidenceIndex(evidence, NOW)
    assert index.evaluate("dev", "e2e", "a", published("v1"), at(6)).at == at(6)


FUTURE = [
    ("who passes", [(12, PASSED, "ci")], 12),
    ("who passes, after somebody else", [(13, PASSED, "ci"), (12, PENDING, "ann")], None),
    ("who fails after that", [(12, PASSED, "ci"), (30, FAILED, "ci")], 12),
    ("who takes a failure back", [(5, FAILED, "ci"), (40, PASSED, "ci")], 40),
    ("who does not answer for another", [(5, FAILED, "ann"), (12, PASSED, "ci")], None),
]


@pytest.mark.parametrize(("_", "course", "passes"), FUTURE, ids=map(itemgetter(0), FUTURE))
def test_a_check_knows_when_it_will_have_passed(_, course, passes):
    evidence = [evidence_of("dev", status, when=when, by=by) for when, status, by in course]
    view = EvidenceIndex(evidence, NOW).evaluate("dev", "e2e", "a", published("v1"))
    assert view.passes_at == (at(passes) if passes else None)


def test_an_answer_is_not_shared_between_variants_published_at_different_times():
    index = EvidenceIndex([evidence_of("dev", PASSED, when=3)], NOW)
    assert index.evaluate("dev", "e2e", "a", published("v1", 2)).verdict is PASSED
    assert index.evaluate("dev", "e2e", "b", published("v1", 4)).verdict is PENDING


def test_commits_tell_variants_apart():
    index = EvidenceIndex([evidence_of("dev", PASSED, "", commit="commit-v1")], NOW)
    assert index.evaluate("dev", "e2e", "a", published("v1")).verdict is PASSED
    assert index.evaluate("dev", "e2e", "b", published("v1", 0, "x")).verdict is PENDING


EVIDENCE = st.lists(
    st.builds(
        evidence_of,
        st.just("dev"),
        st.sampled_from([PASSED, FAILED, PENDING]),
        st.sampled_from(["v0", "v1"]),
        when=st.integers(-3, 25),
        by=st.sampled_from(["ci", "ann"]),
        variants=st.sampled_from([(), ("a",), ("b",)]),
    ),
    max_size=6,
)


@given(EVIDENCE, st.sampled_from(["ci", "ann", "bob"]))
def test_an_additional_failure_never_makes_a_check_pass(evidence, by):
    more = [*evidence, evidence_of("dev", FAILED, when=9, by=by)]
    view = EvidenceIndex(more, NOW).evaluate("dev", "e2e", "a", published("v1"))
    assert view.verdict is FAILED


@given(EVIDENCE)
def test_evidence_about_others_changes_nothing(evidence):
    mine = [e for e in evidence if e.spec.variants != ("b",)]
    for revision in ("v0", "v1"):
        full, own = (
            EvidenceIndex(items, NOW).evaluate("dev", "e2e", "a", published(revision, -9)).verdict
            for items in (evidence, mine)
        )
        assert full is own
