"""Explanation of a policy, a stage or a variant: state, blockers, conflicts, next instants."""

from collections.abc import Collection, Iterable, Sequence

from fanout.api.explanation_view import (
    Blocker,
    ExplainedConflict,
    ExplanationNote,
    ExplanationSpec,
    ExplanationStatus,
    ExplanationView,
)
from fanout.api.gate_vocabulary import StageState, VariantState
from fanout.api.reasons import Reason
from fanout.api.results import VariantResult
from fanout.api.view_base import ViewMeta
from fanout.gates.next_changes import last_end
from fanout.gates.record_facts import find_next
from fanout.groups import group_pairs
from fanout.message_commands import MessageCommands
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.explanation.blockers import find_blockers, select_blockers, sort_by_urgency
from fanout.present.explanation.explanation_notes import build_notes, list_conflicts
from fanout.present.explanation.unblock_commands import CommandBuilder
from fanout.present.policy_entry import VariantEntry, list_requests, walk_policy
from fanout.reconcile.pass_results import STOPPED, PassPlan, PassProblem, PolicyResult
from fanout.values import astuple, replace

_POLICY_STATES = (Reason.STUCK, Reason.HALTED, Reason.SUSPENDED)  # the first that applies


class PolicyExplainer:
    """Explanations of one policy and its parts, from one pass."""

    def __init__(
        self,
        item: PolicyResult,
        problems: Collection[PassProblem],
        shared_names: Collection[str],
        commands: MessageCommands,
    ) -> None:
        """Find the blockers of the policy, whose `problems` are those of the pass.

        `shared_names`: names that policies of several namespaces have; commands about one of
        these need its namespace. `commands`: how commands are completed for their reader.
        """
        policy = item.resolved_policy
        namespace = policy.namespace if policy.name in shared_names else ""
        self.item = item
        self.entry = walk_policy(item)
        self.names = self.entry.display_names
        blockers = find_blockers(item, problems)
        self.fix_count = sum(it.needs_fix for it in problems)
        # Commands of sentences and notes name the policy alone.
        self._scope = MessageCommands((("namespace", namespace),) if namespace else ())
        if namespace:
            blockers = tuple(
                replace(it, message=self._scope.complete_text(it.message)) for it in blockers
            )
        self._builder = CommandBuilder(item, blockers, self.names, self._scope, commands)
        self.blockers = tuple(self._with_commands(it) for it in blockers)

    def explain_policy(self) -> ExplanationView:
        """Explain the policy with all its stages."""
        item, decision = self.item, self.item.decision
        policy, facts = item.resolved_policy, item.facts
        blockers = tuple(sort_by_urgency(self.blockers))
        if decision is None or facts is None or item.error is not None:
            by_hand = policy.upstream_policy is None
            spec = ExplanationSpec("", variant=policy.name) if by_hand else None
            return self._build(spec, ExplanationStatus(STOPPED, blockers=blockers))
        stages = [it.result for it in self.entry.stages]
        candidates = {it.candidate for it in stages}
        instants = [*(it.next for it in stages), *(it.until for it in blockers)]
        # Targets without a variant, suspensions of the policy, and variants to be removed.
        in_no_stage = [it for it in blockers if not it.stage]
        holds = [*decision.holds, *(hold for it in stages for hold in it.holds)]
        reasons = {str(it.reason) for it in holds}
        ready_count = _count_ready(decision.variants.values())
        # What only a person can end comes first.
        if any(it.failed for it in in_no_stage):
            state = VariantState.FAILED.value
        elif ready_count == len(decision.variants) and not in_no_stage:
            state = VariantState.READY.value
        else:
            default = VariantState.HELD.value if in_no_stage else StageState.PENDING.value
            state = next((str(it) for it in _POLICY_STATES if it in reasons), default)
        status = ExplanationStatus(
            state,
            next((it for it in reversed(facts.revisions) if it in candidates), ""),
            variants=len(decision.variants),
            ready=ready_count,
            blockers=blockers,
            requests=list_requests(self.entry.variants),
            conflicts=self._undecided_conflicts(self.entry.variants),
            notes=self._build_notes(),
            moving=_find_moving(decision.variants.values()),
            next=find_next(instants, facts.now),
        )
        return self._build(None, status)

    def explain_stage(self, stage: str) -> ExplanationView:
        """Explain one stage. The policy has been evaluated and has it."""
        decision = self.item.decision
        assert decision is not None, "the policy has been evaluated"
        entry = next(it for it in self.entry.stages if it.name == stage)
        members = [it for it in decision.variants.values() if it.stage == stage]
        variants = [it.variant for it in entry.variants]
        blockers = select_blockers(self.blockers, stage, variants, is_stage=True)
        status = ExplanationStatus(
            entry.state,
            entry.result.candidate,
            variants=len(members),
            ready=_count_ready(members),
            blockers=tuple(sort_by_urgency(blockers)),
            requests=list_requests(entry.variants),
            conflicts=self._undecided_conflicts(entry.variants),
            notes=self._build_notes(stage),
            moving=_find_moving(members),
            next=entry.result.next,
        )
        return self._build(ExplanationSpec(self.item.resolved_policy.name, stage), status)

    def explain_variant(
        self, variant: RenderedVariant, conflicts: Iterable[ExplainedConflict]
    ) -> ExplanationView:
        """Explain one variant; `conflicts` are all of its draft."""
        spec = variant.spec
        entry = next(it for it in self.entry.variants if it.variant.spec.name == spec.name)
        evaluation = entry.decision
        published, policy = variant.observed.published, self.item.resolved_policy
        blockers = (
            self._with_commands(replace(it, variants=(spec.name,)))
            if spec.name in it.variants
            else it
            for it in select_blockers(self.blockers, spec.stage, [variant], is_stage=False)
        )
        status = ExplanationStatus(
            evaluation.state,
            evaluation.candidate,
            published.revision if published is not None else "",
            blockers=tuple(sort_by_urgency(blockers)),
            requests=list_requests([entry]),
            conflicts=tuple(conflicts),
            notes=self._build_notes(variant=entry),
            moving=_find_moving([evaluation]),
            next=evaluation.next,
        )
        own_policy = policy.name if policy.upstream_policy is not None else ""
        return self._build(ExplanationSpec(own_policy, spec.stage, spec.name), status)

    def explain_orphaned(self, variant: str) -> ExplanationView:
        """Explain why an orphaned variant still exists, and when it is removed."""
        item = self.item
        is_removable = variant in item.removals.removable
        status = ExplanationStatus(
            "Leaving" if is_removable else VariantState.HELD.value,
            blockers=tuple(it for it in self.blockers if variant in it.variants),
            notes=self._build_notes() if is_removable else (),
            moving=(variant,) if is_removable else (),
            next=last_end(it.until for it in item.removals.holds.get(variant, ())),
        )
        return self._build(ExplanationSpec(item.resolved_policy.name, variant=variant), status)

    def _build(self, spec: ExplanationSpec | None, status: ExplanationStatus) -> ExplanationView:
        """Build the explanation of a part; without `spec` that of the whole policy."""
        policy = self.item.resolved_policy
        spec = spec or ExplanationSpec(policy.name)
        ends = [it.until for it in status.blockers]
        opens_at = max((it for it in ends if it), default=None) if ends and all(ends) else None
        return ExplanationView(
            metadata=ViewMeta("/".join(filter(None, astuple(spec))), policy.namespace),
            spec=spec,
            status=replace(status, opens_at=opens_at),
        )

    def _with_commands(self, blocker: Blocker) -> Blocker:
        return replace(blocker, commands=self._builder.build(blocker))

    def _build_notes(
        self, stage: str = "", variant: VariantEntry | None = None
    ) -> tuple[ExplanationNote, ...]:
        scope = self._scope
        return tuple(
            replace(
                it,
                message=scope.complete_text(it.message),
                command=scope.complete(it.command) if it.command else "",
            )
            for it in build_notes(self.entry, stage, variant)
        )

    def _undecided_conflicts(
        self, entries: Iterable[VariantEntry]
    ) -> tuple[ExplainedConflict, ...]:
        return tuple(
            conflict
            for it in entries
            if it.undecided
            for conflict in list_conflicts(self.item, it.variant)
            if not conflict.decided
        )


def list_commands(status: ExplanationStatus) -> Sequence[str]:
    """Return the commands that unblock the subject, of the most urgent blocker first."""
    lines = [command for blocker in status.blockers for command in blocker.commands]
    lines += [note.command for note in status.notes if note.command]
    return [*lines, "fanout sweep"] if status.moving else lines


def open_explainers(pass_plan: PassPlan, commands: MessageCommands) -> list[PolicyExplainer]:
    """Return an explainer of each policy; `commands` complete those in it for their reader."""
    problems = group_pairs((it.policy, it) for it in pass_plan.problems)
    return [
        PolicyExplainer(it, problems.get(it.title, ()), pass_plan.shared_names, commands)
        for it in pass_plan.policies
    ]


def _count_ready(evaluations: Iterable[VariantResult]) -> int:
    return sum(it.state is VariantState.READY for it in evaluations)


def _find_moving(evaluations: Iterable[VariantResult]) -> tuple[str, ...]:
    return tuple(it.name for it in evaluations if it.release or it.publish)
