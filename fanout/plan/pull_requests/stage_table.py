"""State of the stages of a policy for the text of a request, and the requests beside it.

Numbers that move with every publication are left out: a text that had them would be written again
for each. A stage is ready as a whole, in part, or not at all.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.view_base import RequestView
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.revision_history import NO_HISTORY
from fanout.plan.decided_variant import DecidedVariant
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_values import StageEvidence, StageLine

_MAX_EVIDENCE: Final = 5  # of a stage
_MAX_REVISIONS: Final = 3  # of a stage
_MAX_SIBLINGS: Final = 10
_ANSWERS: Final = frozenset({Verdict.PASSED, Verdict.FAILED})


def build_stage_lines(
    facts: PolicyFacts, evaluation: PolicyEvaluation, revisions: Collection[str], own_stage: str
) -> tuple[StageLine, ...]:
    """Return the line of each stage, as far as it concerns these revisions of a request.

    None for a policy of one stage, which the request itself is about.
    """
    if len(facts.stages) <= 1:
        return ()
    lines: list[StageLine] = []
    for rule in facts.stages:
        variants = [it for it in facts.variants if it.stage == rule.name]
        published = [it.published for it in variants if it.published is not None]
        names = {it.revision for it in published}
        ranked = [it for it in reversed(facts.revisions) if it in names]
        ranked += sorted(names.difference(ranked))
        updated = [
            it for it in variants if it.published is not None and it.published.revision in revisions
        ]
        states = [evaluation.variants[it.name].state for it in updated]
        ready = states.count(VariantState.READY)
        # In words that rarely move; a stage that joins others has none.
        readiness = "all" if ready == len(variants) else "some" if ready else "none"
        readiness += f" of {len(variants)}"
        if VariantState.FAILED in states:
            readiness += ", some failed"
        lines.append(
            StageLine(
                name=rule.name,
                revisions=tuple(ranked[:_MAX_REVISIONS]),
                readiness=readiness if variants else "",
                since=_find_since(rule.name, facts, evaluation, revisions),
                evidence=()
                if rule.name == own_stage
                else _find_evidence(rule.name, facts, evaluation, revisions),
                is_own=rule.name == own_stage,
            )
        )
    return tuple(lines)


def _find_since(
    stage: str, facts: PolicyFacts, evaluation: PolicyEvaluation, revisions: Collection[str]
) -> datetime | None:
    """Return when the stage passed one of the revisions first, else since when it has one."""
    histories = (evaluation.history.get((stage, it), NO_HISTORY) for it in revisions)
    passed = min((it.passed for it in histories if it.passed is not None), default=None)
    if passed is not None:
        return passed
    published = (it.published for it in facts.variants if it.stage == stage)
    return min(
        (it.since or it.at for it in published if it is not None and it.revision in revisions),
        default=None,
    )


def _find_evidence(
    stage: str, facts: PolicyFacts, evaluation: PolicyEvaluation, revisions: Collection[str]
) -> tuple[StageEvidence, ...]:
    """Return the answers to the checks of a stage about its publications of the revisions."""
    commits: set[str] = set()
    answers: dict[tuple[str, Verdict], None] = {}
    for variant in facts.variants:
        published = variant.published
        if variant.stage == stage and published is not None and published.revision in revisions:
            commits |= published.commits
            for check in evaluation.variants[variant.name].checks:
                if check.verdict in _ANSWERS:
                    answers[check.name, check.verdict] = None
    urls: Mapping[tuple[str, Verdict], str] = {
        (it.spec.check, it.spec.status): it.spec.link
        for it in facts.records.evidence  # the newest last
        if it.spec.stage == stage
        and it.withdrawn is None
        and (it.spec.revision in revisions or it.spec.commit in commits)
        and it.spec.link
    }
    return tuple(StageEvidence(*it, urls.get(it, "")) for it in list(answers)[:_MAX_EVIDENCE])


def find_siblings(
    group: RequestGroup,
    groups: Sequence[RequestGroup],
    steps: Iterable[DecidedVariant],
    revisions: Collection[str],
) -> tuple[tuple[RequestView, ...], int]:
    """Return the requests of the same stage in other repositories, and the number of further ones.

    Open ones, and those of the same revisions that were merged or declined. They begin with the
    repository after that of the request, so that each of many is named by few.
    """
    closed: set[tuple[str, str]] = set()
    for step in steps:
        observed = step.rendered.observed
        if step.rendered.spec.stage == group.stage:
            identity = observed.repository_state.identity
            if observed.published is not None and observed.published.revision in revisions:
                closed.add((identity, RequestState.MERGED))
            if observed.declined is not None and observed.declined.revision in revisions:
                closed.add((identity, RequestState.CLOSED))
    requests: dict[tuple[str, int], RequestView] = {}
    for other in groups:
        # Of a request whose branch is gone, only the line on record tells.
        shown = other.facts.request if other.facts is not None else other.line
        identity = other.state.identity
        if (
            shown is not None
            and shown.number
            and other.stage == group.stage
            and not other.removals
            and identity != group.state.identity
            and (shown.state == RequestState.OPEN or (identity, shown.state) in closed)
        ):
            requests[other.repository, shown.number] = RequestView(
                other.repository, shown.number, shown.url, str(shown.state)
            )
    names = sorted(requests)
    later = [it for it in names if it[0] > group.repository]
    ordered = [*later, *(it for it in names if it[0] <= group.repository)]
    named = sorted(ordered[:_MAX_SIBLINGS])
    return tuple(requests[it] for it in named), len(ordered) - len(named)
