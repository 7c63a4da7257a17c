"""Settings of pull requests, and holds of their drafts.

Held are drafts whose request cannot be merged yet, and variants that would join a request that is
ready, or that anybody approved.

A request that a person closed, or whose branch a person deleted, is declined. That is a no to the
revisions of the variants in it. They keep slot and state, and no request for the same revision is
opened until somebody reopens it, decides `fanout resume`, or a newer revision comes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Action
from fanout.api.promotion_policy import MergeMethod, MergeStyle, PromotionPolicy, PullRequest
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.record_facts import DecisionFacts
from fanout.plan import plan_wording
from fanout.plan.evidence.review_approvals import find_standing_approvals
from fanout.plan.observation.observed_request import RequestFacts, RequestState
from fanout.plan.observation.repository_state import OpenDraft, RepositoryState
from fanout.plan.observed_variant import DeclinedRequest, ObservedVariant
from fanout.plan.pull_requests.merge_holds import (
    REFUSAL_PAUSE,
    find_acceptance_hold,
    find_merge_hold,
    find_refusal_hold,
)
from fanout.plan.records.policy_status import RecordedStatus, RequestKey, RequestLine
from fanout.values import Value, field, replace


def is_closed_by_person(state: RepositoryState, ref: str) -> bool:
    """Return whether somebody other than fanout closed the pull request without merging it."""
    facts = state.find_request(ref)
    if state.forge is None or facts is None:
        return False
    is_closed = facts.request.state is RequestState.CLOSED
    return is_closed and not state.forge.account.is_named(facts.closed_by)


def find_declined(variants: Sequence[ObservedVariant]) -> Mapping[RequestKey, Mapping[str, str]]:
    """Return the revision of each variant in a request that a person has closed, by request."""
    declined: dict[RequestKey, dict[str, str]] = {}
    for variant in variants:
        state, ref = variant.repository_state, variant.draft_ref
        if is_closed_by_person(state, ref) and (revision := _requested_revision(variant)):
            declined.setdefault((state.identity, ref), {})[variant.spec.name] = revision
    return declined


def _requested_revision(variant: ObservedVariant) -> str:
    """Return the revision that the variant's request is for; "" if it is in none."""
    if variant.draft is not None:
        return variant.draft.trailers.revision
    grant = variant.status_line.grant
    return grant.revision if grant is not None else ""


def mark_declined(
    variants: tuple[ObservedVariant, ...],
    status: RecordedStatus,
    decisions: Sequence[DecisionFacts],
) -> tuple[ObservedVariant, ...]:
    """Return the variants, with the revision that a person declined where one did."""
    observed = find_declined(variants)
    # Most passes see none, and their variants stay the objects that memos know.
    if not status.requests and not observed:
        return variants
    marked = []
    for variant in variants:
        spec, state, ref = variant.spec, variant.repository_state, variant.draft_ref
        line = status.requests.get((state.identity, ref))
        revision = observed.get((state.identity, ref), {}).get(spec.name, "")
        facts = state.find_request(ref)
        is_open = facts is not None and facts.request.state is RequestState.OPEN
        is_later = facts is not None and line is not None and facts.request.number != line.number
        # Forges close a request some time after its branch has gone, and only then say who removed
        # the branch.
        if is_open and ref not in state.refs:
            revision = _requested_revision(variant)
        elif line is not None and not is_open and not is_later:
            # Who is not in a request closed on record came to the branch after the closing.
            revision = "" if line.state == RequestState.CLOSED else revision
            revision = line.declined.get(spec.name, revision)
        if not revision or (
            line is not None and is_resumed(spec.stage, spec.name, line.closed, decisions)
        ):
            marked.append(variant)
            continue
        marked.append(replace(variant, declined=describe_declined(state, ref, line, revision)))
    return tuple(marked)


def describe_declined(
    state: RepositoryState, ref: str, line: RequestLine | None, revision: str = ""
) -> DeclinedRequest:
    """Return the declined request for a revision, as the forge shows it, else as it is on record.

    `revision`: "" for a request that removes packages.
    """
    facts = state.find_request(ref)
    if state.forge is None or facts is None:
        assert line is not None, "what the forge does not show is on record"
        return DeclinedRequest(
            revision=revision, number=line.number, url=line.url, by=line.closed_by
        )
    request = facts.request
    return DeclinedRequest(
        revision=revision,
        number=request.number,
        url=request.url,
        by=f"{state.forge.host}/{facts.closed_by}" if facts.closed_by else "",
        is_closed=request.state is not RequestState.OPEN,
    )


def is_resumed(
    stage: str, variant: str, closed: datetime | None, decisions: Sequence[DecisionFacts]
) -> bool:
    """Return whether somebody has decided since the closing that the variant goes on."""
    return closed is not None and any(
        decision.spec.action is Action.RESUME
        and decision.at >= closed
        and decision.spec.stage in ("", stage)
        and (not decision.spec.variants or variant in decision.spec.variants)
        for decision in decisions
    )


def declined_hold(variant: ObservedVariant, declined: DeclinedRequest) -> Hold:
    """Return the hold of a variant whose request for a revision a person closed."""
    spec = variant.spec
    # One written by hand is its own policy, and has no stage that a command can name.
    stage = spec.stage if spec.policy else ""
    command = plan_wording.format_decision_command("resume", spec.policy or spec.name, stage)
    subject = f"of {spec.name} at {declined.revision}"
    return describe_declined_hold(declined, subject, command, spec.repository)


def describe_declined_hold(
    declined: DeclinedRequest, subject: str, command: str, repository: str
) -> Hold:
    """Return the hold of what a person declined with a request; `command` asks for it again."""
    request = f"pull request {declined.number} ({declined.url}) {subject}"
    sentence = f"a person deleted the branch of {request}; run `{command}`"
    if declined.is_closed:
        sentence = f"{declined.by or 'a person'} closed {request}; reopen it or run `{command}`"
    return Hold(Reason.REQUEST_CLOSED, sentence, plan_wording.format_maintainers(repository))


HOLD_LABEL = "fanout/hold"


class RequestSettings(Value):
    """Settings of the pull requests of one policy: who merges them, and what is declared."""

    merge: MergeMethod = MergeMethod.DIRECT
    declared: PullRequest = field(default_factory=PullRequest)

    def choose_style(self, state: RepositoryState, head_ref: str) -> MergeStyle:
        """Return the style in which the request of a branch is merged.

        A forge that rebases leaves out commits with several parents, and what they change. A
        squash has the whole branch, and a history as straight.
        """
        branch, style = state.sets.get(head_ref), self.declared.merge_style
        has_joints = branch is not None and branch.has_joints
        return MergeStyle.SQUASH if has_joints and style is MergeStyle.REBASE else style


class RequestHoldInputs(Value):
    """Inputs of the holds of one policy's requests in one pass."""

    settings: RequestSettings
    lines: Mapping[RequestKey, RequestLine]
    now: datetime
    is_publishing: bool = True

    def is_asked_again(self, state: RepositoryState, head_ref: str, hold: Hold | None) -> bool:
        """Return whether the hold is a refusal of the forge, which is asked again in this pass."""
        facts, line = state.find_request(head_ref), self.lines.get((state.identity, head_ref))
        if hold is None or facts is None or line is None or line.refused is None:
            return False
        if hold != find_refusal_hold(facts, line):
            return False
        return line.refused + REFUSAL_PAUSE <= self.now or facts.request.updated > line.refused


def find_label_hold(facts: RequestFacts) -> Hold | None:
    """Return the hold that a label on the pull request asks for, or None."""
    if HOLD_LABEL not in facts.request.labels:
        return None
    sentence = (
        f"its pull request {facts.request.number} has the label {HOLD_LABEL}; remove the label"
    )
    return Hold(Reason.REQUEST_HELD, sentence, who="the person who set the label")


def find_request_hold(
    state: RepositoryState, head_ref: str, head: str, repository: str, inputs: RequestHoldInputs
) -> Hold | None:
    """Return why the request of a branch cannot be merged now although the gates let it, or None.

    `head` is the commit of the branch that was judged, `repository` the name of its Repository.
    """
    forge = state.forge
    if forge is None:
        return None
    if forge.failure is not None:
        actor = plan_wording.format_maintainers(repository)
        return Hold(forge.failure.reason, str(forge.failure), actor)
    facts = forge.requests.get(head_ref)
    if facts is None or facts.request.state is not RequestState.OPEN:
        return _pending_hold(plan_wording.REQUEST_NOT_OPEN)
    request, branch = facts.request, state.branch.removeprefix("refs/heads/")
    if request.base_branch != branch:
        return _pending_hold(
            f"its pull request {request.number} ({request.url}) is to branch"
            f" {request.base_branch}, not to {branch}; the next sweep sets it back"
        )
    if not head or request.head_commit != head:
        return _pending_hold("the forge and Git show different heads of its pull request")
    hold = find_label_hold(facts) or find_acceptance_hold(forge.host, request)
    if hold is not None:
        return hold
    if inputs.settings.merge is MergeMethod.MANUAL:
        sentence = f"its pull request {facts.request.number} is ready to be merged by a person"
        actor = plan_wording.format_maintainers(repository)
        return Hold(Reason.MERGE_AWAITED, sentence, actor)
    line = inputs.lines.get((state.identity, head_ref))
    style = inputs.settings.choose_style(state, head_ref)
    return find_merge_hold(forge, facts, line, style)


def _pending_hold(sentence: str) -> Hold:
    return Hold(Reason.REQUEST_PENDING, sentence, plan_wording.NEXT_RUN)


def find_join_hold(variant: ObservedVariant, draft: OpenDraft) -> Hold | None:
    """Return the hold of a variant that would join a request that is under review, or None.

    A variant whose package is in the request stays in it, and a newer revision forms the group
    anew.
    """
    state, ref, revision = variant.repository_state, variant.draft_ref, draft.trailers.revision
    if state.forge is None or not variant.shares_draft or variant.draft is not None:
        return None
    facts, branch = state.find_request(ref), state.sets.get(ref)
    if facts is None or branch is None:
        return None
    if all(it.trailers.revision != revision for it in branch.drafts.values()):
        return None
    if is_closed_by_person(state, ref):
        return declined_hold(variant, describe_declined(state, ref, None, revision))
    if facts.request.state is not RequestState.OPEN:
        return None
    if facts.request.is_draft and not find_standing_approvals(facts.reviews):
        return None
    sentence = (
        f"pull request {facts.request.number} of its stage is under review; the variant is in the"
        " next one"
    )
    actor = plan_wording.format_maintainers(variant.spec.repository)
    return Hold(Reason.REQUEST_OPEN, sentence, actor)


def read_request_settings(promotions: Sequence[PromotionPolicy]) -> RequestSettings:
    """Return the settings of a policy, from the PromotionPolicies that govern it.

    `pullRequest` is that of the first one by name that has it. People merge where any says so.
    """
    by_name = sorted(promotions, key=lambda promotion: promotion.metadata.name)
    declared = (it.spec.pull_request for it in by_name if it.spec.pull_request is not None)
    is_manual = any(it.spec.merge is MergeMethod.MANUAL for it in promotions)
    merge = MergeMethod.MANUAL if is_manual else MergeMethod.DIRECT
    return RequestSettings(merge, next(declared, PullRequest()))
