"""Pull requests that remove packages: what people decide about them, and what that holds.

A request that a person closes, or whose branch a person deletes, is a no to the removal of its
packages, until it is reopened or somebody decides `fanout resume`. Changes that an approver of the
stage requests hold the request until the same person approves it or the review is dismissed, and so
do the approvals that the stage requires of a change. Without a forge these alone hold the branch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckResult, Hold
from fanout.gates import gate_wording
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_rules import ApprovalRule, StageRule, find_approvals
from fanout.gates.record_facts import DecisionFacts
from fanout.plan import plan_wording
from fanout.plan.changes.move_cleanup import build_leftover_removal
from fanout.plan.changes.package_removal import PackageRemoval, is_reviewed
from fanout.plan.changes.planned_sets import (
    PlannedSet,
    SetOwner,
    find_branch_hold,
    find_package_hold,
)
from fanout.plan.evidence.review_approvals import build_removal_facts, find_rejecting_reviews
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import SetState
from fanout.plan.observed_variant import DeclinedRequest
from fanout.plan.pull_requests.request_holds import (
    describe_declined,
    describe_declined_hold,
    is_closed_by_person,
    is_resumed,
)
from fanout.plan.records.policy_status import RequestKey, RequestLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.path_collisions import PackagePlace
from fanout.values import Value, replace


class RemovalReviews(Value, kw_only=True):
    """Approvals and closings of the branches that remove packages of one policy.

    `lines` are the requests on record, `decisions` those that count.
    """

    owner: SetOwner
    lines: Mapping[RequestKey, RequestLine]
    decisions: Sequence[DecisionFacts]
    stage_rules: Sequence[StageRule]
    approvals: ApprovalIndex

    def find_hold(self, removal: PackageRemoval) -> Hold | None:
        """Return why people keep the branch that removes a package from being merged, or None.

        The reviews that a stage requires of a change, it requires of a removal.
        """
        ref = self.owner.find_ref(removal.stage)
        branch_hold = find_branch_hold(removal.state, ref, removal.repository)
        if branch_hold is not None:
            return branch_hold
        declined = self.find_declined(removal)
        if declined is None:
            branch = removal.state.sets.get(ref)
            return (
                (find_package_hold(removal, branch) if branch is not None else None)
                or self.find_requested_changes(removal)
                or self._find_missing_approvals(removal)
            )
        subject = f"to remove {removal.path}"
        # A stage that the policy does not have any more is none that a command can name.
        stage = removal.stage if removal.stage in {it.name for it in self.stage_rules} else ""
        command = plan_wording.format_decision_command("resume", self.owner.name, stage)
        return describe_declined_hold(declined, subject, command, removal.repository)

    def find_leftover_holds(self, variant: RenderedVariant) -> Mapping[PackagePlace, Hold]:
        """Return what people hold of branches that remove a variant's old packages, by place."""
        needs_approvals = bool(find_approvals(self.stage_rules, variant.spec.stage))
        return {
            abandoned.left_place.place: hold
            for abandoned in variant.observed.abandoned
            if is_reviewed(abandoned.location.repository_state, needs_approvals=needs_approvals)
            and (hold := self.find_hold(build_leftover_removal(variant.spec, abandoned.location)))
            is not None
        }

    def find_declined(self, removal: PackageRemoval) -> DeclinedRequest | None:
        """Return the request by which a person declined the removal of a package, or None."""
        state, ref = removal.state, self.owner.find_ref(removal.stage)
        facts, line = state.find_request(ref), self.lines.get((state.identity, ref))
        if facts is not None:
            is_open, closed = facts.request.state is RequestState.OPEN, facts.request.closed
            is_declined = ref not in state.refs if is_open else is_closed_by_person(state, ref)
        else:
            is_declined = line is not None and removal.path in line.declined
            closed = line.closed if line is not None else None
        if not is_declined or is_resumed(removal.stage, removal.variant, closed, self.decisions):
            return None
        return describe_declined(state, ref, line)

    def find_requested_changes(self, removal: PackageRemoval) -> Hold | None:
        """Return the hold of a package whose removal an approver of the stage has refused."""
        forge = removal.state.forge
        facts = removal.state.find_request(self.owner.find_ref(removal.stage))
        if forge is None or facts is None:
            return None
        for rule in find_approvals(self.stage_rules, removal.stage):
            # The removal of a package that the reviewed commit still had is not refused.
            rejections = [
                it
                for it in find_rejecting_reviews(forge.host, facts, rule)
                if removal.path not in facts.reviewed_trees.get(it.commit, ())
            ]
            if rejections:
                people = [(it.by, it.link) for it in rejections]
                sentence = gate_wording.describe_requested_changes(rule.name, people)
                actor = gate_wording.format_reviewers(it.by for it in rejections)
                return Hold(Reason.CHANGES_REQUESTED, sentence, actor, rejections[0].at)
        return None

    def _find_missing_approvals(self, removal: PackageRemoval) -> Hold | None:
        """Return the hold of a package that a branch removes without the approvals of its stage.

        A package that is not on the branch joins it first: the branch is what is reviewed.
        """
        branch = removal.state.sets.get(self.owner.find_ref(removal.stage))
        if branch is None or removal.path not in branch.removed_trees:
            return None
        rules = find_approvals(self.stage_rules, removal.stage)
        for rule in rules:
            result = self._count_approvals(rule, branch, removal)
            if result.verdict is not Verdict.PASSED:
                state, facts = removal.state, removal.state.find_request(branch.ref)
                advice = ""
                if state.forge is None:
                    check = f" --check {rule.name}" if len(rules) > 1 else ""
                    options = f"--stage {removal.stage} --removals{check}"
                    name = branch.ref.removeprefix("refs/heads/")
                    advice = (
                        f"review branch {name} of {removal.repository}, then run"
                        f" `fanout approve {self.owner.name} {options}`"
                    )
                elif facts is not None:
                    advice = f"approve pull request {facts.request.number} ({facts.request.url})"
                sentence = "; ".join(filter(None, (result.message, advice)))
                return Hold(result.reason, sentence, result.who, until=result.until)
        return None

    def complete_plans(self, plans: Iterable[PlannedSet]) -> Iterator[PlannedSet]:
        """Yield the plans with what people decided: who approved, and whether anybody declined."""
        for plan in plans:
            approvers = {
                name
                for branch in filter(None, [plan.draft])
                for rule in find_approvals(self.stage_rules, plan.stage)
                for it in plan.removals
                for name in self._count_approvals(rule, branch, it).approvers
            }
            yield replace(
                plan,
                approvers=tuple(sorted(approvers)),
                is_declined=any(map(self.find_declined, plan.removals)),
            )

    def _count_approvals(
        self, rule: ApprovalRule, branch: SetState, removal: PackageRemoval
    ) -> CheckResult:
        facts = build_removal_facts(branch, removal)
        assert facts.draft is not None, "a branch is approved as a draft is"
        return self.approvals.evaluate(rule, facts, facts.draft)
