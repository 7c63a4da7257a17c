"""Small worlds for the gates: a policy's facts in a few words."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from fanout.api.gate_vocabulary import Action, CheckMethod, OverridableGate, Require, Verdict
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.api.stages import After, Check
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import (
    DraftFacts,
    Grant,
    PolicyEvaluation,
    PolicyFacts,
    Publication,
    VariantFacts,
)
from fanout.gates.gate_rules import (
    ApprovalRule,
    CheckRule,
    StageRule,
)
from fanout.gates.percentages import Amount
from fanout.gates.record_facts import ApprovalFacts, DecisionFacts, EvidenceFacts, RecordFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.values import replace

T0 = datetime(2026, 1, 1, tzinfo=UTC)
PASSED, FAILED, PENDING = Verdict.PASSED, Verdict.FAILED, Verdict.PENDING
SIGNED = ApprovalRule("signed-off", 2, frozenset({"ann", "bob", "cid"}), ("sre",))


def at(minutes: float) -> datetime:
    """So many minutes after the beginning."""
    return T0 + timedelta(minutes=minutes)


def after(
    *stages: str,
    require: Require = Require.ALL,
    soak: float = 0,
    at_least: Amount | None = None,
) -> After:
    """`after`, with the soak in minutes."""
    # Without validation: some tests name stages by what happens in them.
    return After.model_construct(
        stages=stages, require=require, soak=timedelta(minutes=soak), at_least=at_least
    )


def check_rule(
    name: str,
    method: CheckMethod = CheckMethod.REPORT,
    *,
    names_revision: bool = False,
    **fields,
) -> CheckRule:
    """A check; `fields` are those of its spec."""
    spec = Check.model_construct(name=name, **fields)
    return CheckRule(name, method, spec, names_revision)


def stage(name: str, upstream: After | None = None, **fields) -> StageRule:
    """A stage that automation promotes and that one check verifies."""
    checks = fields.pop("verification", ("e2e",))
    verification = tuple(check_rule(it) if isinstance(it, str) else it for it in checks)
    return StageRule(name, upstream, verification, **{"automatic": True, **fields})


def published(revision: str, when: float = 0, inputs: str = "") -> Publication:
    """A publication; its commit is named after the revision."""
    digest = f"digest-{revision}{inputs}"
    commits = frozenset({f"commit-{revision}{inputs}"})
    return Publication(revision, digest, f"tree-{revision}{inputs}", at(when), commits)


def draft(revision: str, inputs: str = "", *, current: bool = True) -> DraftFacts:
    """An open draft; its tree is named after the revision and its inputs."""
    return DraftFacts(revision, f"digest-{revision}{inputs}", f"tree-{revision}{inputs}", current)


def grant(revision: str, inputs: str = "", when: float = 0) -> Grant:
    """A release on record."""
    return Grant(revision, f"digest-{revision}{inputs}", at(when))


def variant(name: str, of: str, has: Publication | None = None, **fields) -> VariantFacts:
    """A variant of a stage."""
    return VariantFacts(name, of, f"Cluster/{name}", published=has, **fields)


_COUNT = iter(range(10**9))


def evidence_of(
    of: str, status: Verdict, revision: str = "v1", *, when: float = 1, **fields
) -> EvidenceFacts:
    """Evidence about e2e of a stage, by ci."""
    order = next(_COUNT)
    name, by = f"evidence-{order}", fields.pop("by", "ci")
    withdrawn = fields.pop("withdrawn", None)
    values = {"check": "e2e", "revision": revision, **fields}
    spec = EvidenceSpec.model_construct(stage=of, status=status, **values)
    return EvidenceFacts(name, at(when), by, spec, order, withdrawn)


def approved(by: str, of: str = "prod", revision: str = "v1", **fields) -> ApprovalFacts:
    """An approval of the draft that `draft(revision)` is."""
    name = fields.pop("name", f"approval-{next(_COUNT)}")
    when, groups = fields.pop("at", at(1)), fields.pop("groups", frozenset())
    trees = fields.pop("trees", frozenset({f"tree-{revision}"}))
    values = {"stage": of, "check": "signed-off", "revision": revision, **fields}
    return ApprovalFacts(name, when, by, ApprovalSpec.model_construct(**values), trees, groups)


def decided(
    action: Action, *overrides: OverridableGate, when: float = 1, **fields
) -> DecisionFacts:
    """A person's decision."""
    order = next(_COUNT)
    name, by = fields.pop("name", f"decision-{order}"), fields.pop("by", "ann")
    trees = fields.pop("trees", frozenset())
    spec = DecisionSpec.model_construct(action=action, overrides=overrides, **fields)
    return DecisionFacts(name, at(when), by, spec, order, trees)


def with_spec(record, **fields):
    """The record with other fields of its spec."""
    return replace(record, spec=record.spec.model_copy(update=fields))


def in_order(records: Iterable, kind: type) -> tuple:
    """The records of a kind, each with its place among them."""
    return tuple(
        replace(it, order=place)
        for place, it in enumerate(it for it in records if isinstance(it, kind))
    )


def facts(
    stages: Iterable[StageRule],
    variants: Iterable[VariantFacts],
    *records: EvidenceFacts | ApprovalFacts | DecisionFacts,
    now: float = 10,
    **fields,
) -> PolicyFacts:
    """A policy's facts; v1 is all there is unless `revisions` says otherwise."""
    return PolicyFacts(
        name="monitoring",
        stages=tuple(stages),
        variants=tuple(variants),
        revisions=tuple(fields.pop("revisions", "v1").split()),
        records=RecordFacts(
            in_order(records, EvidenceFacts),
            tuple(item for item in records if isinstance(item, ApprovalFacts)),
            in_order(records, DecisionFacts),
        ),
        history=fields.pop("history", {}),
        now=at(now),
        **fields,
    )


def passed(when: float, left_at: float | None = None) -> RevisionHistory:
    """A recorded verdict, and when the stage moved on if it did."""
    if left_at is None:
        return RevisionHistory(at(when))
    return RevisionHistory(at(when), at(left_at), timedelta(minutes=left_at - when))


def later(policy_facts: PolicyFacts, now: float, *records: EvidenceFacts, **fields) -> PolicyFacts:
    """Return the world after a pass and some time, with its memory and new records."""
    history = evaluate_gates(policy_facts).history
    records_before = policy_facts.records
    said_since = replace(records_before, evidence=(*records_before.evidence, *records))
    return replace(policy_facts, now=at(now), history=history, records=said_since, **fields)


def reasons_of(decision: PolicyEvaluation, name: str) -> list[str]:
    """The reasons of a variant's or a stage's holds."""
    item = decision.variants.get(name) or decision.stages[name]
    return [str(hold.reason) for hold in item.holds]


DEV, PROD = stage("dev"), stage("prod", after("dev"))
SIGNED_PROD = stage("prod", after("dev"), requires=(SIGNED,))
BY_HAND = stage("prod", after("dev"), automatic=False)
READY_DEV = variant("d", "dev", published("v1"))
OK = evidence_of("dev", PASSED)


def prod(*records, rule=PROD, has=None, open_draft="v1", now=10.0, policy_fields=None, **fields):
    """Prod's variant p behind dev, which is published at v1 and has what the records say."""
    if isinstance(open_draft, str):
        open_draft = draft(open_draft) if open_draft else None
    p = variant("p", "prod", has, draft=open_draft, **fields)
    return facts((DEV, rule), (READY_DEV, p), *records, now=now, **(policy_fields or {}))
