"""The two forms of a record: the document that is written, and the value that the gates read."""

from datetime import UTC, datetime

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from fanout.api.gate_vocabulary import Action, OverridableGate, Verdict
from fanout.api.object_meta import yaml_name
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.api.validators.object_validation import validate_object
from fanout.gates.record_facts import ApprovalFacts, DecisionFacts, EvidenceFacts
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.records.policy_records import RecordEntry, RecordSpec

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
TREE, COMMIT = "a" * 40, "b" * 40
FORMS = [
    (EvidenceFacts, EvidenceSpec),
    (ApprovalFacts, ApprovalSpec),
    (DecisionFacts, DecisionSpec),
]
OF_THE_COMMIT = {"name", "at", "by", "groups", "withdrawn"}

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


@pytest.mark.parametrize(("value", "document"), FORMS)
def test_every_field_that_the_gates_read_is_one_of_the_document(value, document):
    read_fields = set(value.__struct_fields__) - OF_THE_COMMIT
    assert read_fields <= document.model_fields.keys()


@pytest.mark.parametrize(
    ("kind", "value", "spec"),
    [
        ("Evidence", EvidenceFacts, EVIDENCE),
        ("Evidence", EvidenceFacts, OF_A_COMMIT),
        ("Approval", ApprovalFacts, APPROVAL),
        ("Decision", DecisionFacts, DECISION),
    ],
)
def test_every_stated_field_is_read(kind, value, spec):
    document = {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "spec": spec}
    assert validate_object(document)[1] == ()
    record = read(kind, spec)
    assert (record.name, record.at, record.by) == ("one", NOW, "ann@example.com")
    for it in fields(value):
        default = "" if it.default is NODEFAULT else it.default
        if spec.get(yaml_name(it.name)):
            assert getattr(record, it.name) not in (default, frozenset())


def test_fields_have_the_types_that_the_gates_compare():
    assert read("Evidence", EVIDENCE).status is Verdict.FAILED
    assert read("Approval", APPROVAL).trees == frozenset({TREE})
    decision = read("Decision", DECISION)
    assert decision.action is Action.PUBLISH
    assert decision.overrides == frozenset({OverridableGate.SOAK})
    assert (decision.variants, decision.accept_conflicts) == (("a",), True)
    assert decision.expires == datetime(2030, 1, 8, 11, tzinfo=UTC)


@pytest.mark.parametrize("empty", [{}, {"stage": "", "variants": [], "revision": None}])
def test_a_field_that_is_left_out_is_as_an_empty_one(empty):
    evidence = read("Evidence", {"check": "e2e", "status": "passed", **empty})
    assert (evidence.stage, evidence.variants, evidence.revision) == ("", (), "")
    decision = read("Decision", {"action": "Suspend", **empty})
    assert (decision.stage, decision.trees, decision.expires) == ("", frozenset(), None)
