"""Holds by what a forge makes of merges: rules that forbid one, refusals, and accepted ones."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from fanout.api.promotion_policy import MergeStyle
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.plan import plan_wording
from fanout.plan.observation.merge_outcome import MergeabilityKind
from fanout.plan.observation.observed_request import (
    ForgeState,
    ObservedRequest,
    RequestFacts,
    StatusState,
)
from fanout.plan.records.policy_status import RequestLine

REFUSAL_PAUSE = timedelta(minutes=1)  # before a forge that refused is asked again
_MEETS_DEMANDS = "whoever can meet what the forge asks for; each pass asks it again"


def find_acceptance_hold(host: str, request: ObservedRequest) -> Hold | None:
    """Return the hold of a request whose merge the host has accepted and not made, or None."""
    if request.accepted is None:
        return None
    sentence = f"its pull request {request.number} is {request.accepted.describe()}"
    return Hold(Reason.MERGE_ACCEPTED, sentence, host)


def find_merge_hold(
    forge: ForgeState, facts: RequestFacts, line: RequestLine | None, style: MergeStyle
) -> Hold | None:
    """Return why the forge does not merge a request in this style, as far as it is known.

    What rules say comes first: it is known before anything is merged.
    """
    if (hold := find_rule_hold(forge, facts.request.base_branch, style)) is not None:
        return hold
    # A refusal on record is asked about again; while the host itself says no, nothing is.
    return find_mergeability_hold(forge, facts, line) or find_refusal_hold(facts, line)


def find_rule_hold(forge: ForgeState, branch: str, style: MergeStyle) -> Hold | None:
    """Return the hold of all merges to a branch in a style that rules forbid, or None.

    Rules that the host hides, or that were read long ago, forbid nothing: it refuses itself, then.
    """
    if forge.repository is None:  # nothing was read of late
        return None
    if style not in forge.repository.merge_styles:
        sentence = (
            f"{forge.repository.name} forbids merging by {style}; allow it there or change"
            " mergeStyle"
        )
        return Hold(Reason.MERGE_STYLE_FORBIDDEN, sentence, plan_wording.ADMINISTRATOR)
    rules = forge.branch
    if rules is None:
        return None
    reason, sentence = Reason.MERGE_STYLE_FORBIDDEN, ""
    if rules.allowed_styles is not None and style not in rules.allowed_styles:
        allowed = ", ".join(sorted(rules.allowed_styles)) or "none"
        sentence = (
            f"the branch {branch} forbids merging by {style}; set mergeStyle to one that it allows"
            f" ({allowed}), or allow {style} in its rules"
        )
    elif rules.requires_linear_history and style is MergeStyle.MERGE:
        sentence = (
            f"the branch {branch} requires a linear history, which forbids merging by {style}; set"
            " mergeStyle to Squash or Rebase, or remove the rule"
        )
    elif rules.requires_signatures and style is not MergeStyle.SQUASH:
        # A squash is a commit of the host's own, which it signs.
        reason = Reason.SIGNATURE_REQUIRED
        sentence = (
            f"the branch {branch} takes signed commits only, and fanout signs none; set mergeStyle"
            " to Squash, or remove the rule"
        )
    elif rules.requires_queue:
        reason = Reason.FORGE_REFUSES
        sentence = (
            f"the branch {branch} requires its merge queue; add the pull requests to it by hand, or"
            " let fanout's account merge past it"
        )
    return Hold(reason, sentence, plan_wording.ADMINISTRATOR) if sentence else None


def find_mergeability_hold(
    forge: ForgeState, facts: RequestFacts, line: RequestLine | None
) -> Hold | None:
    """Return the hold of a request that the forge would refuse to merge by its own words, or None.

    Nothing has to fail first. It has no instant: it ends when the forge says something else.
    """
    request, mergeability = facts.request, facts.request.mergeability
    if mergeability is None or not mergeability.is_refused(
        checks_when_merging=forge.checks_when_merging
    ):
        return None
    # Before its status is a success at this head, that status alone may be what blocks the merge.
    is_passed = (
        line is not None
        and line.head == request.head_commit
        and line.status.partition(":")[0] == StatusState.SUCCESS
    )
    if mergeability.kind is MergeabilityKind.BLOCKED and not is_passed:
        return None
    words = mergeability.words
    if mergeability.kind not in (MergeabilityKind.BLOCKED, MergeabilityKind.OTHER):
        words = f"{_EXPLANATIONS[mergeability.kind]} ({words})"
    sentence = f"its pull request {request.number} cannot be merged now: {words}"
    if mergeability.kind is MergeabilityKind.BLOCKED and forge.branch is not None:
        branch, rules = request.base_branch, forge.branch
        if required := rules.list_requirements():
            sentence += f"; the branch {branch} requires {', '.join(required)}"
        if unknown := rules.list_unknown():
            sentence += f"; it is hidden whether {branch} requires {', '.join(unknown)}"
    is_computing = mergeability.kind is MergeabilityKind.CHECKING
    who = plan_wording.NEXT_RUN if is_computing else _MEETS_DEMANDS
    return Hold(Reason.FORGE_REFUSES, sentence, who)


_EXPLANATIONS = {
    MergeabilityKind.BEHIND: "its head lacks commits of the branch",
    MergeabilityKind.CONFLICT: "it conflicts with the branch",
    MergeabilityKind.CHECKING: "the forge is computing whether it can be",
}


def find_refusal_hold(facts: RequestFacts, line: RequestLine | None) -> Hold | None:
    """Return the hold of a request whose head the forge has refused to merge, or None.

    It stands until the forge takes the merge, or the branch has another head. It has no end that
    time brings, but for the first answer that promises one: most refusals last until a person does
    something.
    """
    if line is None or line.refused is None or line.head != facts.request.head_commit:
        return None
    since = line.refused_since or line.refused
    if line.retryable and since == line.refused:
        until = line.refused + REFUSAL_PAUSE
        return Hold(line.refusal_reason, line.refusal, plan_wording.NEXT_RUN, since, until)
    return Hold(
        line.refusal_reason,
        line.refusal,
        _MEETS_DEMANDS,
        since,
    )


def find_retry_time(lines: Iterable[RequestLine], now: datetime) -> datetime | None:
    """Return when the first of the refused merges is asked for again, or None."""
    times = (it.refused + REFUSAL_PAUSE for it in lines if it.refused is not None)
    return min((it for it in times if it > now), default=None)
