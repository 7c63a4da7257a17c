"""Sets that have or are to have a pull request, as a pass leaves their branches."""

from collections.abc import Iterator, Mapping, Sequence

from fanout.api.gate_vocabulary import RELEASED_STATES
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.plan import plan_wording
from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.observation.observed_request import RequestFacts, RequestState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.merge_holds import find_refusal_hold
from fanout.plan.pull_requests.request_holds import RequestHoldInputs, find_request_hold
from fanout.plan.records.policy_status import RecordedStatus, RequestKey, RequestLine


class RequestGroup(PlannedSet, kw_only=True):
    """A set whose branch has or is to have a pull request.

    `is_removed` also where the branch stays and nothing on it is for a pull request.
    """

    is_merged: bool = False  # this pass has the forge merge it
    is_written: bool = False  # this pass pushes the branch
    is_orphaned: bool = False  # no package on the branch has a target any more; then no members
    line: RequestLine | None = None

    @property
    def key(self) -> RequestKey:
        """Return the key of the request among the recorded ones."""
        return self.state.identity, self.ref

    @property
    def is_taken(self) -> bool:
        """Return whether the branch has commits of others, and none of a draft."""
        return self.ref in self.state.unmanaged_drafts

    @property
    def facts(self) -> RequestFacts | None:
        """Return the pull request as the forge shows it, or None."""
        return self.state.find_request(self.ref)

    @property
    def open_request(self) -> RequestFacts | None:
        """Return the pull request if it is open."""
        facts = self.facts
        return facts if facts is not None and facts.request.state is RequestState.OPEN else None

    @property
    def refusal(self) -> Hold | None:
        """Return why the forge does not merge what the gates let through, or None.

        Only what it has refused more than once: forges also refuse for as long as they check.
        """
        line, request = self.line, self.open_request
        if self.hold is not None or line is None or request is None:
            return None
        hold = find_refusal_hold(request, line)
        return hold if hold is not None and hold.since != line.refused else None


def group_requests(
    namespace: str, steps: Sequence[DecidedVariant], status: RecordedStatus
) -> tuple[RequestGroup, ...]:
    """Group the variants of a policy in repositories with a forge, by branch.

    Branches whose packages all leave have a group without members.
    """
    steps_by_key: dict[RequestKey, list[DecidedVariant]] = {}
    for step in steps:
        observed = step.rendered.observed
        if observed.repository_state.forge is not None:
            key = observed.repository_state.identity, observed.draft_ref
            steps_by_key.setdefault(key, []).append(step)
    groups: list[RequestGroup] = []
    for key, several in sorted(steps_by_key.items()):
        first = several[0].rendered
        spec, state, ref = first.spec, first.observed.repository_state, first.observed.draft_ref
        facts = state.find_request(ref)
        is_open = facts is not None and facts.request.state is RequestState.OPEN
        members: list[DecidedVariant] = []  # whose package is on the branch after the pass
        is_written = False  # some step moves the branch to another commit
        for step in several:
            observed, evaluation = step.rendered.observed, step.evaluation
            writes, has_draft = step.step is VariantStep.WRITE, observed.draft is not None
            stays = step.step in (VariantStep.KEEP, VariantStep.MERGE)
            leaves = step.step in (VariantStep.SETTLE, VariantStep.ADOPT, VariantStep.REMOVE)
            is_written = is_written or writes or (leaves and has_draft)
            # Of drafts on branches of their own only released ones get a request.
            is_released = evaluation is not None and evaluation.state in RELEASED_STATES
            if (writes or (stays and has_draft)) and (
                is_open or is_released or observed.shares_draft
            ):
                members.append(step)
        members.sort(key=lambda step: step.rendered.spec.path)
        # Packages on the branch whose variants the policy does not have any more.
        branch = state.sets.get(ref)
        paths = branch.drafts.keys() if branch is not None else set()
        hold = _find_hold(members, sorted(paths - {step.rendered.spec.path for step in several}))
        if ref in state.unmanaged_drafts:
            obstacles = (step.rendered.observed.obstacle for step in several)
            hold = next((it for it in obstacles if it is not None), hold)
        is_merged = hold is None and {step.step for step in members} == {VariantStep.MERGE}
        groups.append(
            RequestGroup(
                namespace=namespace,
                policy=spec.policy,
                variant="" if spec.policy else spec.name,
                stage=spec.stage,
                repository=spec.repository,
                state=state,
                ref=ref,
                members=tuple(members),
                is_removed=not members,
                hold=hold,
                is_merged=is_merged and not is_written,
                is_written=is_written,
                is_declined=any(step.rendered.is_declined for step in several),
                line=status.requests.get(key),
            )
        )
    return tuple(groups)


def group_removals(
    plans: Sequence[PlannedSet], inputs: RequestHoldInputs
) -> tuple[RequestGroup, ...]:
    """Return the group of each branch that removes packages of a policy, where there is a forge."""
    groups: list[RequestGroup] = []
    for plan in plans:
        if plan.state.forge is None:
            continue
        head = plan.draft.commit if plan.draft is not None else ""
        request_hold = find_request_hold(plan.state, plan.ref, head, plan.repository, inputs)
        is_written = plan.write is not None or plan.is_removed
        is_asked = request_hold is None or inputs.is_asked_again(plan.state, plan.ref, request_hold)
        groups.append(
            RequestGroup(
                namespace=plan.namespace,
                policy=plan.policy,
                stage=plan.stage,
                repository=plan.repository,
                state=plan.state,
                ref=plan.ref,
                removals=plan.removals,
                is_removed=plan.is_removed,
                hold=plan.hold,
                is_merged=inputs.is_publishing
                and not is_written
                and plan.hold is None
                and is_asked,
                is_written=is_written,
                is_declined=plan.is_declined,
                line=inputs.lines.get((plan.state.identity, plan.ref)),
            )
        )
    return tuple(groups)


def group_orphaned(
    plan: PolicyPlan,
    states_by_repository: Mapping[str, RepositoryState],
    lines: Mapping[RequestKey, RequestLine],
) -> Iterator[RequestGroup]:
    """Yield a group for each branch of the policy that has no package of its variants any more.

    Branches that the pass removes are left out. `states_by_repository` is by name of the Repository
    object.
    """
    if any(not step.rendered.spec.policy for step in plan.steps):
        return  # a variant written by hand, which a policy may have had the name of
    variants = {step.rendered.spec.name for step in plan.steps}
    removed = {draft.ref for _, removal in plan.cleanup.packages for draft in removal.drafts}
    policy = f"{plan.namespace}/{plan.name}"
    for repository, state in sorted(states_by_repository.items()):
        for ref, branch in sorted(state.sets.items()):
            drafts = [it for it in branch.drafts.values() if it.trailers.policy == policy]
            if (
                not drafts
                or ref in removed
                or any(it.trailers.variant in variants for it in drafts)
            ):
                continue
            stage = drafts[0].trailers.stage
            yield RequestGroup(
                namespace=plan.namespace,
                policy=plan.name,
                stage="" if stage == NO_VALUE else stage,
                repository=repository,
                state=state,
                ref=ref,
                hold=_find_hold((), sorted(it.path for it in drafts)),
                is_removed=True,
                is_orphaned=True,
                line=lines.get((state.identity, ref)),
            )


def _find_hold(members: Sequence[DecidedVariant], stray_paths: Sequence[str]) -> Hold | None:
    if stray_paths:
        sentence = f"{stray_paths[0]} is on the branch, but its variant no longer exists"
        return Hold(Reason.REQUEST_PENDING, sentence, plan_wording.NEXT_RUN)
    for member in members:
        evaluation = member.evaluation
        if evaluation is None or not evaluation.let_through:
            holds = evaluation.holds if evaluation is not None else ()
            sentence = f"{member.rendered.spec.name} waits"
            waits = Hold(Reason.NO_DRAFT, sentence, plan_wording.NEXT_RUN)
            return holds[0] if holds else waits
    return None
