"""Lines of the stages in a request, and the requests of the same stage beside it."""

from datetime import UTC, datetime, timedelta

import pytest

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.record_objects import EvidenceSpec
from fanout.api.results import CheckResult, VariantResult
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts, Publication, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import EvidenceFacts, RecordFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.pull_requests.request_values import StageEvidence
from fanout.plan.pull_requests.stage_table import build_stage_lines

MORNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
READY, FAILED, VERIFYING = VariantState.READY, VariantState.FAILED, VariantState.VERIFYING
COMMIT = "c" * 40


def build_lines(variants, *, checks=(), evidence=(), history=(), stages=("dev", "prod")):
    """The lines of stages with variants, each as stage, published revision and state."""
    facts, results = [], {}
    for number, (stage, revision, state) in enumerate(variants):
        name, at = f"v{number}", MORNING + timedelta(hours=number)
        published = Publication(revision, "d", "t", at, commits=frozenset({COMMIT}))
        facts.append(VariantFacts(name, stage, "t", published=published if revision else None))
        results[name] = VariantResult(state=state, checks=tuple(checks))
    records = RecordFacts(
        evidence=tuple(
            EvidenceFacts(
                f"e{number}", MORNING, "ci", EvidenceSpec.model_validate(it), number, gone
            )
            for order, (it, gone) in enumerate(evidence)
        )
    )
    return build_stage_lines(
        PolicyFacts(
            name="app",
            stages=tuple(map(StageRule, stages)),
            variants=tuple(facts),
            revisions=("v1", "v2", "v3"),
            records=records,
            history={},
            now=MORNING,
        ),
        PolicyEvaluation({}, results, dict(history)),
        {"v2"},
        "prod",
    )


READINESS = [
    ("all", [("dev", "v2", READY)] * 2, "all of 2"),
    ("some", [("dev", "v2", READY), ("dev", "v2", VERIFYING)], "some of 2"),
    ("some have another revision", [("dev", "v2", READY), ("dev", "v1", READY)], "some of 2"),
    ("none", [("dev", "v1", READY), ("dev", "", VERIFYING)], "none of 2"),
    ("failed", [("dev", "v2", READY), ("dev", "v2", FAILED)], "some of 2, some failed"),
    ("failed at another revision", [("dev", "v1", FAILED)], "none of 1"),
    ("no variants", [], ""),
]


@pytest.mark.parametrize(
    ("variants", "expected"), [it[1:] for it in READINESS], ids=[it[0] for it in READINESS]
)
def test_readiness(variants, expected):
    line, own = build_lines(variants)
    assert line.readiness == expected
    assert (line.name, line.is_own, own.name, own.is_own) == ("dev", False, "prod", True)


def test_a_policy_of_one_stage_has_no_table():
    assert build_lines([("prod", "v2", READY)], stages=("prod",)) == ()


def test_revisions_are_in_the_order_of_the_policy_and_few():
    variants = [("dev", it, READY) for it in ("v1", "old", "v3", "v1", "v2")]
    assert build_lines(variants)[0].revisions == ("v3", "v2", "v1")


def test_since_when_a_stage_has_or_has_passed_the_revision():
    variants = [("dev", "v1", READY), ("dev", "v2", READY), ("dev", "v2", READY)]
    assert build_lines(variants)[0].since == MORNING + timedelta(hours=1)
    assert build_lines(variants[:1])[0].since is None
    noon = MORNING + timedelta(hours=3)
    passed = {("dev", "v2"): RevisionHistory(passed=noon), ("dev", "v1"): RevisionHistory(MORNING)}
    assert build_lines(variants, history=passed)[0].since == noon


CHECKS = (
    CheckResult("e2e", Verdict.PASSED, "by ci"),
    CheckResult("soak", Verdict.PENDING, ""),
    CheckResult("load", Verdict.FAILED, ""),
)


def report(check, status, link, **subject):
    return {"stage": "dev", "check": check, "status": status, "link": link, **subject}


def test_evidence_of_other_stages_with_the_link_of_its_newest_report():
    links = [f"https://ci.example.com/{number}" for number in range(6)]
    evidence = [
        (report("e2e", "passed", links[0], revision="v2"), None),
        (report("e2e", "passed", links[1], commit=COMMIT), None),
        (report("e2e", "passed", links[2], revision="v1"), None),
        (report("e2e", "failed", links[3], revision="v2"), None),
        (report("load", "failed", links[4], revision="v2"), MORNING),
        (report("e2e", "passed", links[5], revision="v2") | {"stage": "prod"}, None),
    ]
    variants = [("dev", "v2", READY), ("prod", "v2", READY)]
    line, own = build_lines(variants, checks=CHECKS, evidence=evidence)
    assert line.evidence == (
        StageEvidence("e2e", Verdict.PASSED, links[1]),
        StageEvidence("load", Verdict.FAILED),
    )
    assert own.evidence == ()
    assert build_lines([("dev", "v1", READY)], checks=CHECKS, evidence=evidence)[0].evidence == ()
