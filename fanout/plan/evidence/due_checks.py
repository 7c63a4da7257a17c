"""Checks that machines answer and that are due in a pass."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.stages import Check, ObjectCheck, Stage
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import Variables
from fanout.plan.evidence.status_readings import read_commit_status
from fanout.plan.observed_variant import ObservedVariant
from fanout.values import Value


class DueCheck(Value, kw_only=True):
    """One check that is due for one variant, with its subject and variables."""

    variant: str
    check: Check
    digest: str  # of the publication or draft in question
    variables: Variables
    namespace: str  # of the policy
    draft_commit: str = ""  # commit of the draft in question; "": it is a publication
    reading: CheckReading | None = None  # by statuses of commits; None: it is to be asked


def machine_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that a machine answers."""
    return tuple(it for it in checks if it.approval is None and it.method is not CheckMethod.REPORT)


def list_namespaces(check: ObjectCheck, policy_namespace: str) -> tuple[str, ...]:
    """Return the namespaces in which a check looks for its object, in this order."""
    # An object of a cluster-scoped kind has the namespace "".
    return (check.namespace,) if check.namespace else (policy_namespace, "")


def has_machine_checks(stage: Stage) -> bool:
    """Return whether the stage has any check that a machine answers."""
    return bool(machine_checks(stage.verification) or machine_checks(stage.requires))


def find_due_checks(
    stages: Sequence[Stage],
    variants: Sequence[ObservedVariant],
    variables: Mapping[str, Variables],
    now: datetime,
) -> Iterator[DueCheck]:
    """Yield the checks that are due: of publications, and of released drafts.

    `variables` are those of expressions, by variant name. A check is due for as long as the
    revision is there, also after it has passed: it may fail later.
    """
    checks_by_stage = {
        stage.name: (machine_checks(stage.verification), machine_checks(stage.requires))
        for stage in stages
    }
    for variant in variants:
        verification, requires = checks_by_stage.get(variant.spec.stage, ((), ()))
        published, draft, grant = variant.published, variant.draft, variant.status_line.grant
        if verification and published is not None:
            yield from _due_checks_of(
                variant, verification, variables, (published.revision, published.digest), now
            )
        if requires and draft is not None and grant is not None and variant.is_granted:
            subject = draft.trailers.revision, draft.trailers.digest
            yield from _due_checks_of(variant, requires, variables, subject, now)


def _due_checks_of(
    variant: ObservedVariant,
    checks: Sequence[Check],
    variables: Mapping[str, Variables],
    subject: tuple[str, str],
    now: datetime,
) -> Iterator[DueCheck]:
    revision, digest = subject
    spec, publication, grant = variant.spec, variant.published, variant.status_line.grant
    is_published = publication is not None and (publication.revision, publication.digest) == subject
    draft = variant.draft if not is_published else None
    since = (
        publication.at if publication is not None and is_published else grant.at if grant else now
    )
    check_variables = dict(variables.get(spec.name, {}))
    check_variables["upstream"] = {**check_variables.get("upstream", {}), "revision": revision}
    for check in checks:
        # Until then a controller may still report the state of the previous revision.
        if now < since + (check.settle or timedelta(0)):
            continue
        reading = None
        if check.commit_status is not None:
            is_drafted = draft is not None
            reading = read_commit_status(check, variant, digest, is_drafted=is_drafted)
        yield DueCheck(
            variant=spec.name,
            check=check,
            digest=digest,
            variables=check_variables,
            namespace=spec.namespace,
            draft_commit=draft.commit if draft is not None else "",
            reading=reading,
        )
