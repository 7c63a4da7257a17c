"""Pull requests that a person declined: closed, or their branch deleted.

That is a no to the revisions of the variants in them. They keep slot and state, and no request
for the same revision is opened until somebody reopens it, decides `fanout resume`, or a newer
revision comes (docs/concepts/pull-requests.md).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.record_facts import DecisionFacts
from fanout.plan import plan_wording
from fanout.plan.observation.forge_state import ForgeState, RequestFacts
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observed_variant import DeclinedRequest, ObservedVariant
from fanout.plan.records.policy_status import RecordedStatus, RequestKey
from fanout.values import replace


def is_closed_by_person(facts: RequestFacts, forge: ForgeState) -> bool:
    """Return whether somebody other than fanout closed the pull request without merging it."""
    return facts.request.state is RequestState.CLOSED and facts.closed_by != forge.login


def find_declined(variants: Sequence[ObservedVariant]) -> Mapping[RequestKey, Mapping[str, str]]:
    """Return the revision of each variant in a request that a person has closed, by request."""
    declined: dict[RequestKey, dict[str, str]] = {}
    for variant in variants:
        state, ref = variant.repository_state, variant.draft_ref
        facts = state.find_request(ref)
        if facts is None or state.forge is None or not is_closed_by_person(facts, state.forge):
            continue
        if revision := _requested_revision(variant):
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
        if state.forge is not None and facts is not None:
            declined = describe_declined(facts, state.forge, revision)
        else:
            assert line is not None, "what the forge does not show is on record"
            declined = DeclinedRequest(
                revision=revision, number=line.number, url=line.url, by=line.closed_by
            )
        marked.append(replace(variant, declined=declined))
    return tuple(marked)


def describe_declined(facts: RequestFacts, forge: ForgeState, revision: str) -> DeclinedRequest:
    """Return the declined request for a revision, of what the forge shows."""
    request = facts.request
    return DeclinedRequest(
        revision=revision,
        number=request.number,
        url=request.url,
        by=format_closer(facts, forge),
        is_closed=request.state is not RequestState.OPEN,
    )


def format_closer(facts: RequestFacts, forge: ForgeState) -> str:
    """Return who closed the request as `<host>/<login>`; "" if the forge does not say."""
    return f"{forge.host}/{facts.closed_by}" if facts.closed_by else ""


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
