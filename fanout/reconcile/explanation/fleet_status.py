"""Status of the fleet: what needs a person, the stages of all policies, totals."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from fanout.gates.evaluation_results import VariantState
from fanout.message_commands import MessageCommands
from fanout.reconcile.explanation.blockers import Blocker, sort_by_urgency
from fanout.reconcile.explanation.explanation_notes import ConflictNote
from fanout.reconcile.explanation.policy_explanation import (
    Explanation,
    PolicyExplainer,
    open_explainers,
)
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.report.request_views import RequestEntry, group_requests_by_stage
from fanout.values import Value


class StageStatus(Value):
    """One stage of a policy, or a variant written by hand, or a stopped policy."""

    policy: str
    namespace: str
    stage: str
    state: str
    candidate: str = ""
    total: int = 0
    ready: int = 0
    failed: int = 0
    reasons: tuple[str, ...] = ()  # of its blockers, the most urgent first
    next: datetime | None = None
    requests: Sequence[RequestEntry] = ()

    @property
    def is_done(self) -> bool:
        """True if all variants are ready and nothing waits."""
        return self.ready == self.total and not self.reasons


class FleetStatus(Value):
    """Status of all policies of a pass."""

    stages: tuple[StageStatus, ...]
    explanations: tuple[Explanation, ...]  # of the policies
    urgent: tuple[tuple[Explanation, Blocker], ...]  # what needs a person, most urgent first
    names: dict[str, str]  # display names of all variants
    fix_count: int = 0  # what failed or a person must repair

    @property
    def conflicts(self) -> tuple[ConflictNote, ...]:
        """Undecided merge conflicts of all policies."""
        return tuple(conflict for it in self.explanations for conflict in it.conflicts)

    @property
    def next(self) -> datetime | None:
        """Instant at which time alone next changes something."""
        return min((it.next for it in self.explanations if it.next is not None), default=None)


def build_fleet_status(pass_plan: PassPlan, commands: MessageCommands | None = None) -> FleetStatus:
    """Build the status from a pass, in one walk over its variants.

    `commands`: how commands are completed for their reader.
    """
    explainers = open_explainers(pass_plan, commands)
    explanations = tuple(it.explain_policy() for it in explainers)
    owners = {id(blocker): it for it in explanations for blocker in it.blockers}
    urgent = sort_by_urgency(
        blocker for it in explanations for blocker in it.blockers if blocker.needs_person
    )
    return FleetStatus(
        tuple(
            stage
            for it, explanation in zip(explainers, explanations, strict=True)
            for stage in _list_stages(it, explanation.state)
        ),
        explanations,
        tuple((owners[id(blocker)], blocker) for blocker in urgent),
        {name: shown for it in explainers for name, shown in it.names.items()},
        sum(it.fix_count for it in explainers),
    )


def _list_stages(explainer: PolicyExplainer, policy_state: str) -> Iterator[StageStatus]:
    policy, decision = explainer.item.resolved_policy, explainer.item.decision
    if decision is None or explainer.item.error is not None:
        reasons = _sort_reasons(explainer.blockers)
        yield StageStatus(policy.name, policy.namespace, "", policy_state, reasons=reasons)
        return
    by_hand = explainer.blockers if policy.upstream_policy is None else ()
    own_blockers = [it for it in explainer.blockers if not it.stage]
    if own_blockers and not by_hand:
        # Targets without a variant and suspensions of the policy are in no stage.
        failed = sum(len(it.variants) for it in own_blockers if it.failed)
        yield StageStatus(
            policy.name,
            policy.namespace,
            "",
            policy_state,
            total=failed,
            failed=failed,
            reasons=_sort_reasons(own_blockers),
        )
    requests = group_requests_by_stage(explainer.item.variants)
    for stage in decision.stages.values():
        blockers = (it for it in explainer.blockers if it.stage == stage.name and it.stage)
        yield StageStatus(
            policy.name,
            policy.namespace,
            stage.name,
            explainer.item.stage_state(stage.name),
            stage.candidate,
            sum(stage.counts.values()),
            stage.counts.get(VariantState.READY, 0),
            stage.counts.get(VariantState.FAILED, 0),
            _sort_reasons([*blockers, *by_hand]),
            stage.next,
            requests.get(stage.name, ()),
        )


def _sort_reasons(blockers: Iterable[Blocker]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(it.reason for it in sort_by_urgency(blockers)))
