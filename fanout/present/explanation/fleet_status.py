"""Status of the fleet: what needs a person, the stages of all policies, totals."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from fanout.api.explanation_view import (
    Blocker,
    ExplanationView,
    FleetStageView,
    FleetStatusSpec,
    FleetStatusStatus,
    FleetStatusView,
    PolicyBlocker,
)
from fanout.api.gate_vocabulary import VariantState
from fanout.api.view_base import ViewMeta, dump_view
from fanout.message_commands import MessageCommands
from fanout.present.explanation.blockers import rank_urgency, sort_by_urgency
from fanout.present.explanation.policy_explanation import PolicyExplainer, open_explainers
from fanout.present.policy_entry import list_requests
from fanout.reconcile.pass_results import PassPlan
from fanout.values import Value, asdict


class FleetStatus(Value):
    """Status of all policies of a pass."""

    stages: tuple[FleetStageView, ...]
    explanations: tuple[ExplanationView, ...]  # of the policies
    urgent: tuple[tuple[ExplanationView, Blocker], ...]  # what needs a person, most urgent first
    names: dict[str, str]  # display names of all variants
    fix_count: int = 0  # what failed or a person must repair

    @property
    def next(self) -> datetime | None:
        """Instant at which time alone next changes something."""
        instants = (it.status.next for it in self.explanations)
        return min((it for it in instants if it is not None), default=None)


def build_fleet_status(pass_plan: PassPlan, commands: MessageCommands) -> FleetStatus:
    """Build the status from a pass; `commands` complete those in it for their reader."""
    explainers = open_explainers(pass_plan, commands)
    explanations = tuple(it.explain_policy() for it in explainers)
    urgent = [it for it in list_blockers(explanations) if it[1].needs_person]
    return FleetStatus(
        tuple(
            stage
            for it, explanation in zip(explainers, explanations, strict=True)
            for stage in _list_stages(it, explanation.status.state)
        ),
        explanations,
        tuple(urgent),
        {name: shown for it in explainers for name, shown in it.names.items()},
        sum(it.fix_count for it in explainers),
    )


def list_blockers(explanations: Iterable[ExplanationView]) -> list[tuple[ExplanationView, Blocker]]:
    """Return the blockers of all policies with the explanation of each, the most urgent first."""
    owned = [(it, blocker) for it in explanations for blocker in it.status.blockers]
    return sorted(owned, key=lambda it: rank_urgency(it[1]))


def dump_fleet_status(fleet_status: FleetStatus, namespace: str) -> dict[str, Any]:
    """Return the status of the fleet as a FleetStatusView; `namespace` is "" for all."""
    statuses = [it.status for it in fleet_status.explanations]
    needs_person = tuple(
        PolicyBlocker(
            policy=it.spec.policy or it.spec.variant,
            namespace=it.metadata.namespace,
            **asdict(blocker),
        )
        for it, blocker in fleet_status.urgent
    )
    status = FleetStatusStatus(
        policies=len(statuses),
        variants=sum(it.variants for it in statuses),
        ready=sum(it.ready for it in statuses),
        failed=sum(it.failed for it in fleet_status.stages),
        needs_person=needs_person,
        stages=fleet_status.stages,
        conflicts=tuple(conflict for it in statuses for conflict in it.conflicts),
        next=fleet_status.next,
    )
    view = FleetStatusView(
        metadata=ViewMeta("fleet", namespace), spec=FleetStatusSpec(namespace), status=status
    )
    return dump_view(view)


def _list_stages(explainer: PolicyExplainer, policy_state: str) -> Iterator[FleetStageView]:
    policy = explainer.item.resolved_policy
    view = partial(FleetStageView, policy=policy.name, namespace=policy.namespace)
    if explainer.item.decision is None or explainer.item.error is not None:
        yield view(state=policy_state, waits_for=_sort_reasons(explainer.blockers))
        return
    by_hand = explainer.blockers if policy.upstream_policy is None else ()
    own_blockers = [it for it in explainer.blockers if not it.stage]
    if own_blockers and not by_hand:
        # Targets without a variant and suspensions of the policy are in no stage.
        failed = sum(len(it.variants) for it in own_blockers if it.failed)
        reasons = _sort_reasons(own_blockers)
        yield view(state=policy_state, variants=failed, failed=failed, waits_for=reasons)
    for entry in explainer.entry.stages:
        stage = entry.result
        blockers = (it for it in explainer.blockers if it.stage == stage.name and it.stage)
        yield view(
            stage=stage.name,
            candidate=stage.candidate,
            state=entry.state,
            variants=sum(stage.counts.values()),
            ready=stage.counts.get(VariantState.READY, 0),
            failed=stage.counts.get(VariantState.FAILED, 0),
            waits_for=_sort_reasons([*blockers, *by_hand]),
            requests=list_requests(entry.variants),
            next=stage.next,
        )


def _sort_reasons(blockers: Iterable[Blocker]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(it.reason for it in sort_by_urgency(blockers)))
