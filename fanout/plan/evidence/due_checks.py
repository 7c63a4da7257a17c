"""Checks that are due in a pass, and the readings that their responses come to.

Pure: the caller passes responses in as data. `gates` turns readings into verdicts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from datetime import datetime, timedelta
from typing import Any

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.stages import Check, Stage
from fanout.gates.gate_facts import CheckReading
from fanout.gates.gate_rules import Variables, Verdict
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeResponse
from fanout.plan.observed_variant import ObservedVariant
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import frozen

_NOT_BOOLEAN = "is neither true nor false"

# Variables of `cel` and `observedRevision`, by method.
RESPONSE_VARIABLES: Mapping[str, str] = {
    CheckMethod.OBJECT: "object",
    CheckMethod.PROMETHEUS: "result",
    CheckMethod.HTTP: "response",
}
_COMMIT = re.compile(r"(?:.*[@:/])?([0-9a-f]{40})", re.DOTALL)
_MAX_REVISION = 128  # characters of an observed revision
_INDEX = re.compile(r"\bresult\s*\[")
_MAX_QUOTED = 120  # characters of quoted foreign text in a message

ProbeResult = ProbeResponse | ProbeFailure


@frozen
class DueCheck:
    """One check that is due for one variant, with its subject and variables.

    `digest` is that of the publication or draft in question; `draft_commit` is "" for a
    publication.
    """

    _: KW_ONLY
    variant: str
    check: Check
    digest: str
    variables: Variables
    namespace: str  # of the policy
    repository: str  # the downstream Repository
    draft_commit: str = ""  # commit of the draft in question


def machine_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that a machine answers."""
    return tuple(it for it in checks if it.approval is None and it.method is not CheckMethod.REPORT)


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
    publication, grant = variant.published, variant.status_line.grant
    is_published = publication is not None and (publication.revision, publication.digest) == subject
    since = (
        publication.at if publication is not None and is_published else grant.at if grant else now
    )
    check_variables = dict(variables.get(variant.spec.name, {}))
    check_variables["upstream"] = {**check_variables.get("upstream", {}), "revision": revision}
    for check in checks:
        # Until then a controller may still report the state of the previous revision.
        if now >= since + (check.settle or timedelta(0)):
            commit = variant.draft.commit if variant.draft is not None and not is_published else ""
            spec = variant.spec
            yield DueCheck(
                variant=spec.name,
                check=check,
                digest=digest,
                variables=check_variables,
                namespace=spec.namespace,
                repository=spec.repository,
                draft_commit=commit,
            )


def unusable_response(due_check: DueCheck, response: ProbeResponse) -> str:
    """Return why a response is unusable for any expression, or "" if it is usable.

    The order of the series in a vector is arbitrary, so an index would choose one by
    chance.
    """
    machine_check = due_check.check.machine_check
    series = (
        len(response.value)
        if due_check.check.method is CheckMethod.PROMETHEUS and isinstance(response.value, list)
        else 1
    )
    if machine_check is None or series < 2:
        return ""
    texts = (machine_check.cel, machine_check.observed_revision or "")
    if any(_INDEX.search(text) for text in texts):
        return (
            f"the query yields {series} series, and which one is meant by an index is chance;"
            " aggregate in the query, or use result.all(...)"
        )
    return ""


def build_reading(
    due_check: DueCheck, subject: str, response: ProbeResponse, outcome: object, observed: object
) -> CheckReading:
    """Build the reading of a response.

    `outcome` is the value of the expression `cel`, `observed` that of `observedRevision`. A
    value that is not a boolean makes the reading pending, and so does a revision that
    cannot be read.
    """
    machine_check = due_check.check.machine_check
    assert machine_check is not None, "an answer that came was asked for"
    if machine_check.observed_revision is not None and not (isinstance(observed, str) and observed):
        cause = _expression_problem(
            machine_check.observed_revision, observed, "yields no text", response
        )
        return pending_reading(
            due_check, f"{subject}: which revision it has seen is not known: {cause}"
        )
    if not isinstance(outcome, bool):
        return pending_reading(
            due_check,
            f"{subject}: {_expression_problem(machine_check.cel, outcome, _NOT_BOOLEAN, response)}",
        )
    sentence = f"{subject}: {_shorten(machine_check.cel)} is {'true' if outcome else 'false'}"
    if not outcome and (message := _ready_message(response.value)):
        sentence = f"{sentence}; it says: {message}"
    verdict = Verdict.PASSED if outcome else Verdict.FAILED
    commit = parse_commit(observed) if isinstance(observed, str) else ""
    # A controller that applies a draft branch reports the draft's commit, which
    # stands for the upstream revision that the draft was rendered for.
    if commit and commit == due_check.draft_commit:
        commit = str(due_check.variables["upstream"]["revision"])
    return CheckReading(due_check.check.name, due_check.digest, verdict, sentence, commit)


def pending_reading(due_check: DueCheck, sentence: str) -> CheckReading:
    """Build a pending reading, with the reason why there is no answer."""
    return CheckReading(due_check.check.name, due_check.digest, Verdict.PENDING, sentence)


def parse_commit(observed: str) -> str:
    """Parse the commit in an observed revision; without one, return the text, cut.

    Flux writes `main@sha1:<commit>`, earlier `main/<commit>`; Argo CD the commit alone.
    """
    text = observed.strip()
    match = _COMMIT.fullmatch(text)
    return match[1] if match else text[:_MAX_REVISION]


def _expression_problem(text: str, value: object, complaint: str, response: ProbeResponse) -> str:
    if isinstance(value, ExpressionFailure):
        problem = f"{_shorten(text)}: {value.problem}"
        return f"{problem}; {response.note}" if response.note else problem
    return f"{_shorten(text)} {complaint}"


def _ready_message(value: Any) -> str:
    """Return the message of an object's Ready condition, which most controllers write."""
    try:
        conditions = value["status"]["conditions"]
        message = next(it["message"] for it in conditions if it.get("type") == "Ready")
    except (KeyError, TypeError, AttributeError, StopIteration):
        return ""
    return _shorten(message) if isinstance(message, str) else ""


def _shorten(text: str) -> str:
    """Return the text on one line; the middle is cut, since branches differ at the end."""
    line = " ".join(text.split())
    half = _MAX_QUOTED // 2
    return line if len(line) <= _MAX_QUOTED else f"{line[:half]}…{line[-half:]}"
