"""Records about pull requests: what a pass observes, and what comes of its calls."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.evidence.review_approvals import find_rejections
from fanout.plan.observation.observed_request import (
    ObservedRequest,
    RequestState,
)
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_holds import (
    describe_declined,
    find_declined,
    is_closed_by_person,
)
from fanout.plan.records.policy_status import RecordedStatus, RequestKey, RequestLine
from fanout.values import replace

OPENING_PATIENCE = timedelta(minutes=1)
_MAX_EARLIER = 16  # closed requests whose reviews are read; each takes a call
_STATE_WORDS = {
    RequestState.OPEN: "open again",
    RequestState.CLOSED: "closed by a person",
    RequestState.MERGED: "merged",
}


def observe_request_lines(
    status: RecordedStatus,
    variants: Sequence[ObservedVariant],
    removals: Sequence[PlannedSet],
    now: datetime,
) -> tuple[Mapping[RequestKey, RequestLine], tuple[str, ...]]:
    """Return the lines about requests as this pass observes them, and what is new in words.

    Requests that fanout closed itself are forgotten. Of those that a person closed, the lines say
    what was declined: revisions of variants, or the removal of packages.
    """
    declined = dict(find_declined(variants))
    for plan in removals:
        if is_closed_by_person(plan.state, plan.ref):
            declined[plan.state.identity, plan.ref] = {it.path: it.tree for it in plan.removals}
    every = [it.repository_state for it in variants] + [it.state for it in removals]
    states = {state.identity: state for state in every}
    # A branch has another name when `draftPer`, the stage or the path is changed. The request from
    # the former one is closed, and what people requested there is not answered by that.
    earlier: dict[RequestKey, set[int]] = {}
    for variant in variants:
        state = variant.repository_state
        for misplaced in variant.misplaced_drafts:
            line = status.requests.get((state.identity, misplaced.draft.ref))
            if line is None or misplaced.repository_state is not state:
                continue
            facts = state.find_request(misplaced.draft.ref)
            if line.earlier or (facts is not None and find_rejections(facts.reviews)):
                numbers = earlier.setdefault((state.identity, variant.draft_ref), set())
                numbers.update((*line.earlier, line.number))
    # Lines about unopened requests of branches that no variant has any more are left out.
    present = {(it.repository_state.identity, it.draft_ref) for it in variants}
    lines = {key: it for key, it in status.requests.items() if it.number or key in present}
    for key, numbers in earlier.items():
        line = lines.get(key) or RequestLine(number=0, state=RequestState.OPEN.value)
        numbers -= {0, line.number, *line.earlier}
        kept = (*line.earlier, *sorted(numbers))[-_MAX_EARLIER:]
        lines[key] = replace(line, earlier=kept)
    details: list[str] = []
    for key in sorted({*lines, *declined}):
        repository = states.get(key[0])
        facts = repository.find_request(key[1]) if repository is not None else None
        if repository is None or facts is None:
            continue
        line = _observe_line(
            lines.get(key), facts.request, repository, key[1], declined.get(key, {}), now
        )
        if line == lines.get(key):
            continue
        if line is None:
            del lines[key]
        else:
            lines[key] = line
        words = _STATE_WORDS[RequestState(line.state)] if line is not None else "closed by fanout"
        details.append(f"that pull request {facts.request.number} is {words}")
    return lines, tuple(details)


def _observe_line(
    line: RequestLine | None,
    request: ObservedRequest,
    state: RepositoryState,
    ref: str,
    declined: Mapping[str, str],
    now: datetime,
) -> RequestLine | None:
    if is_closed_by_person(state, ref):
        if line is None or line.number != request.number:
            line = _begin_line(line, request.number, request.url)
        if line.state == RequestState.CLOSED:
            return line
        return replace(
            line,
            state=RequestState.CLOSED.value,
            declined=declined,
            closed=request.closed or now,
            closed_by=describe_declined(state, ref, line).by,
        )
    if request.state is RequestState.CLOSED:
        return line if line is not None and not line.number else None
    # A merge stays open on record until its publications are: whoever merged, and whether the gates
    # let it through, is asked again by the next pass if this one ends before.
    is_begun = line is not None and not line.number and request.state is RequestState.OPEN
    if line is None or (line.state != RequestState.CLOSED and not is_begun):
        return line
    if line.number != request.number:
        return _begin_line(line, request.number, request.url)
    return replace(line, state=RequestState.OPEN.value, declined={}, closed=None, closed_by="")


def _begin_line(former: RequestLine | None, number: int, url: str) -> RequestLine:
    """Return the line about an open request, which may be in place of a former one."""
    earlier = (*former.earlier, former.number) if former is not None else ()
    earlier = tuple(it for it in earlier if it not in (0, number))[-_MAX_EARLIER:]
    return RequestLine(number=number, state=RequestState.OPEN.value, url=url, earlier=earlier)


def find_begun(
    openings: Mapping[RequestKey, datetime], groups: Sequence[RequestGroup], now: datetime
) -> Mapping[RequestKey, datetime]:
    """Return the openings on record that another pass may be making now.

    A forge may take the same request twice if two passes ask at once, so it is opened by the one
    whose opening is on record. If that pass ended before it opened, the next one after
    OPENING_PATIENCE does.
    """
    unopened = {group.key for group in groups if group.open_request is None}
    return {
        key: at
        for key, at in openings.items()
        if key in unopened and timedelta() <= now - at < OPENING_PATIENCE
    }


def apply_result(line: RequestLine | None, latest: RequestLine) -> RequestLine | None:
    """Return the line about a request after the calls of a pass; None: it is forgotten.

    `latest` is what is known after the calls.
    """
    if latest.state == RequestState.CLOSED:
        return None
    if line is None or line.number != latest.number:
        line = _begin_line(line, latest.number, latest.url)
    if latest.head and latest.head != line.head:
        line = replace(line, **_NO_ANSWER)
    if latest.head:
        line = replace(line, head=latest.head, status=latest.status)
    if latest.state == RequestState.MERGED:
        return replace(line, state=latest.state)
    if latest.accepted is not None:
        return replace(line, **{**_NO_ANSWER, "accepted": latest.accepted})
    if latest.refused is None:  # the forge was not asked to merge, or did not answer
        return line
    return replace(
        line,
        refused=latest.refused,
        refused_since=line.refused_since or line.refused or latest.refused,
        refusal_reason=latest.refusal_reason,
        refusal=latest.refusal,
        retryable=latest.retryable,
        accepted=None,
    )


# What a line says of the forge's answers to merges, before there is any.
_NO_ANSWER: Mapping[str, Any] = {
    "refused": None,
    "refused_since": None,
    "refusal_reason": "",
    "refusal": "",
    "retryable": False,
    "accepted": None,
}
