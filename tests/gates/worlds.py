"""Small worlds for the gates: a policy's facts in a few words."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fanout.gates.answer import PolicyDecision
from fanout.gates.evaluate import evaluate
from fanout.gates.facts import Draft, Grant, PolicyFacts, Published, StageHistory, VariantFacts
from fanout.gates.records import Action, Approval, Decision, Evidence, Override, Records
from fanout.gates.rules import After, Amount, ApprovalRule, CheckRule, Require, StageRule, Verdict

T0 = datetime(2026, 1, 1, tzinfo=UTC)
PASSED, FAILED, PENDING = Verdict.PASSED, Verdict.FAILED, Verdict.PENDING
SIGNED = ApprovalRule("signed-off", 2, frozenset({"ann", "bob", "cid"}), ("sre",))


def at(minutes: float) -> datetime:
    """So many minutes after the beginning."""
    return T0 + timedelta(minutes=minutes)


def after(
    *stages: str, require: Require = Require.ALL, soak: float = 0, at_least: Amount | None = None
) -> After:
    """`after`, with the soak in minutes."""
    return After(stages, require, timedelta(minutes=soak), at_least)


def stage(name: str, upstream: After | None = None, **fields) -> StageRule:
    """A stage that automation promotes and that one check verifies."""
    checks = fields.pop("verification", ("e2e",))
    verification = tuple(CheckRule(it) if isinstance(it, str) else it for it in checks)
    return StageRule(name, upstream, verification, **{"automatic": True, **fields})


def published(revision: str, when: float = 0, inputs: str = "") -> Published:
    """A publication; its commit is named after the revision."""
    digest = f"digest-{revision}{inputs}"
    commits = frozenset({f"commit-{revision}{inputs}"})
    return Published(revision, digest, f"tree-{revision}{inputs}", at(when), commits)


def draft(revision: str, inputs: str = "", *, current: bool = True) -> Draft:
    """An open draft; its tree is named after the revision and its inputs."""
    return Draft(revision, f"digest-{revision}{inputs}", f"tree-{revision}{inputs}", current)


def grant(revision: str, inputs: str = "", when: float = 0) -> Grant:
    """A release on record."""
    return Grant(revision, f"digest-{revision}{inputs}", at(when))


def variant(name: str, of: str, has: Published | None = None, **fields) -> VariantFacts:
    """A variant of a stage."""
    return VariantFacts(name, of, f"Cluster/{name}", published=has, **fields)


_COUNT = iter(range(10**9))


def said(of: str, status: Verdict, revision: str = "v1", *, when: float = 1, **fields) -> Evidence:
    """Evidence about e2e of a stage, by ci."""
    name = f"evidence-{next(_COUNT)}"
    values = {"check": "e2e", "by": "ci", "revision": revision, **fields}
    return Evidence(name, at(when), stage=of, status=status, **values)


def approved(by: str, of: str = "prod", revision: str = "v1", **fields) -> Approval:
    """An approval of the draft that `draft(revision)` is."""
    values = {
        "name": f"approval-{next(_COUNT)}",
        "at": at(1),
        "check": "signed-off",
        "trees": frozenset({f"tree-{revision}"}),
        **fields,
    }
    return Approval(by=by, stage=of, revision=revision, **values)


def decided(action: Action, *overrides: Override, when: float = 1, **fields) -> Decision:
    """A person's decision."""
    name = fields.pop("name", f"decision-{next(_COUNT)}")
    by = fields.pop("by", "ann")
    return Decision(name, at(when), by, action, overrides=frozenset(overrides), **fields)


def facts(
    stages: Iterable[StageRule],
    variants: Iterable[VariantFacts],
    *records: Evidence | Approval | Decision,
    now: float = 10,
    **fields,
) -> PolicyFacts:
    """A policy's facts; v1 is all there is unless `revisions` says otherwise."""
    return PolicyFacts(
        name="monitoring",
        stages=tuple(stages),
        variants=tuple(variants),
        revisions=tuple(fields.pop("revisions", "v1").split()),
        records=Records(
            tuple(item for item in records if isinstance(item, Evidence)),
            tuple(item for item in records if isinstance(item, Approval)),
            tuple(item for item in records if isinstance(item, Decision)),
        ),
        history=fields.pop("history", {}),
        now=at(now),
        **fields,
    )


def passed(when: float, left: float | None = None) -> StageHistory:
    """A recorded verdict, and when the stage moved on if it did."""
    if left is None:
        return StageHistory(at(when))
    return StageHistory(at(when), at(left), timedelta(minutes=left - when))


def later(world: PolicyFacts, now: float, *records: Evidence, **fields) -> PolicyFacts:
    """The same world after a pass and some time: what it remembers, and what was said since."""
    history = evaluate(world).history
    known = world.records
    said_since = replace(known, evidence=(*known.evidence, *records))
    return replace(world, now=at(now), history=history, records=said_since, **fields)


def reasons_of(decision: PolicyDecision, name: str) -> list[str]:
    """The reasons of a variant's or a stage's holds."""
    item = decision.variants.get(name) or decision.stages[name]
    return [str(hold.reason) for hold in item.holds]


DEV, PROD = stage("dev"), stage("prod", after("dev"))
SIGNED_PROD = stage("prod", after("dev"), requires=(SIGNED,))
BY_HAND = stage("prod", after("dev"), automatic=False)
READY_DEV = variant("d", "dev", published("v1"))
OK = said("dev", PASSED)


def prod(*records, rule=PROD, has=None, open_draft="v1", now=10.0, world=None, **fields):
    """Prod's variant p behind dev, which is published at v1 and has what the records say."""
    p = variant("p", "prod", has, draft=draft(open_draft) if open_draft else None, **fields)
    return facts((DEV, rule), (READY_DEV, p), *records, now=now, **(world or {}))
