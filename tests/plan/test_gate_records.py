"""Records as the gates read them: the spec of the document, and what is resolved beside it."""

from datetime import UTC, datetime

import pytest
from pydantic.alias_generators import to_snake

from fanout.api.gate_vocabulary import Action, OverridableGate, Verdict
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.api.validators.object_validation import validate_object
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.records.policy_records import RecordEntry, RecordSpec

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
TREE, COMMIT = "a" * 40, "b" * 40
EVIDENCE = {"policy": "p", "stage": "dev", "variants": ["a"], "check": "e2e", "status": "failed",
            "revision": "v1", "link": "https://example.com"}  # fmt: skip
OF_A_COMMIT = {"policy": "p", "stage": "dev", "check": "e2e", "status": "passed", "commit": COMMIT}
APPROVAL = {"policy": "p", "stage": "dev", "variants": ["a"], "check": "signed", "revision": "v1",
            "trees": [TREE], "revokes": "earlier"}  # fmt: skip
DECISION = {"policy": "p", "stage": "dev", "variants": ["a"], "action": "Publish",
            "revision": "v1", "overrides": ["soak"], "trees": [TREE], "acceptConflicts": True,
            "reason": "why", "expires": "2030-01-08T12:00:00+01:00"}  # fmt: skip


def read(kind, spec):
    documents: dict[str, type[RecordSpec]]
    documents = {"Evidence": EvidenceSpec, "Approval": ApprovalSpec, "Decision": DecisionSpec}
    parsed = documents[kind].model_validate(spec)
    entry = RecordEntry(name="one", at=NOW, by="Ann <ANN@example.com>", spec=parsed)
    records = build_gate_records([entry], NOW)
    one: list[object] = [*records.evidence, *records.approvals, *records.decisions]
    [record] = one
    return record


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Evidence", EVIDENCE),
        ("Evidence", OF_A_COMMIT),
        ("Approval", APPROVAL),
        ("Decision", DECISION),
    ],
)
def test_a_record_has_the_spec_of_its_document(kind, spec):
    document = {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "spec": spec}
    assert validate_object(document)[1] == ()
    record = read(kind, spec)
    assert (record.name, record.at, record.by) == ("one", NOW, "ann@example.com")
    assert record.spec.model_fields_set == {to_snake(it) for it in spec}


def test_fields_have_the_types_that_the_gates_compare():
    assert read("Evidence", EVIDENCE).spec.status is Verdict.FAILED
    assert read("Approval", APPROVAL).trees == frozenset({TREE})
    decision = read("Decision", DECISION)
    assert decision.spec.action is Action.PUBLISH
    assert decision.spec.overrides == (OverridableGate.SOAK,)
    assert (decision.spec.variants, decision.spec.accept_conflicts) == (("a",), True)
    assert decision.spec.expires == datetime(2030, 1, 8, 11, tzinfo=UTC)


@pytest.mark.parametrize("empty", [{}, {"stage": "", "variants": [], "revision": None}])
def test_a_field_that_is_left_out_is_as_an_empty_one(empty):
    evidence = read("Evidence", {"check": "e2e", "status": "passed", **empty})
    assert (evidence.spec.stage, evidence.spec.variants, evidence.spec.revision) == ("", (), None)
    decision = read("Decision", {"action": "Suspend", **empty})
    assert (decision.spec.stage, decision.trees, decision.revision) == ("", frozenset(), "")
    assert decision.spec.expires is None
