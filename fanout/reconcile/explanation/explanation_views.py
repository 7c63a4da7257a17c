"""Views of explanations, as plain data."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from fanout.api.explanation_view import (
    BlockerView,
    ExplainedConflict,
    ExplanationNoteView,
    ExplanationSpec,
    ExplanationStatus,
    ExplanationView,
)
from fanout.api.fleet_status_view import (
    FleetStageView,
    FleetStatusSpec,
    FleetStatusStatus,
    FleetStatusView,
    PolicyBlockerView,
)
from fanout.api.view_base import RequestView, ViewMeta, dump_view
from fanout.gates.timestamps import format_instant
from fanout.reconcile.explanation.blockers import Blocker
from fanout.reconcile.explanation.explanation_notes import ConflictNote
from fanout.reconcile.explanation.fleet_status import FleetStatus
from fanout.reconcile.explanation.policy_explanation import Explanation
from fanout.reconcile.report.request_views import RequestEntry, build_request_views


def dump_explanation(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as an ExplanationView."""
    status = ExplanationStatus(
        state=explanation.state,
        candidate=explanation.candidate,
        published=explanation.published,
        variants=explanation.counts.total,
        ready=explanation.counts.ready,
        blockers=tuple(map(_build_blocker, explanation.blockers)),
        requests=tuple(_build_requests(explanation.requests)),
        conflicts=tuple(_build_conflicts(explanation.conflicts)),
        notes=tuple(_build_notes(explanation)),
        moving=explanation.moving,
        opens_at=format_optional(explanation.opens_at),
        next=format_optional(explanation.next),
    )
    view = ExplanationView(
        metadata=ViewMeta(name=explanation.name, namespace=explanation.namespace),
        spec=ExplanationSpec(
            policy=explanation.policy, stage=explanation.stage, variant=explanation.variant
        ),
        status=status,
    )
    return dump_view(view)


def _build_blocker(blocker: Blocker) -> BlockerView:
    """Return the blocker as a part of a view."""
    return BlockerView(**_blocker_fields(blocker))


def _blocker_fields(blocker: Blocker) -> dict[str, Any]:
    return {
        "reason": blocker.reason,
        "message": blocker.sentence,
        "stage": blocker.stage,
        "variants": blocker.variants,
        "revision": blocker.revision,
        "needs_person": blocker.needs_person,
        "who": blocker.actor,
        "commands": blocker.commands,
        "since": format_optional(blocker.since),
        "until": format_optional(blocker.until),
    }


def dump_fleet_status(fleet_status: FleetStatus, namespace: str) -> dict[str, Any]:
    """Return the status of the fleet as a FleetStatusView; `namespace` is "" for all."""
    stages = tuple(
        FleetStageView(
            policy=it.policy,
            namespace=it.namespace,
            stage=it.stage,
            candidate=it.candidate,
            state=it.state,
            variants=it.total,
            ready=it.ready,
            failed=it.failed,
            waits_for=it.reasons,
            requests=tuple(_build_requests(it.requests)),
            next=format_optional(it.next),
        )
        for it in fleet_status.stages
    )
    needs_person = tuple(
        PolicyBlockerView(
            policy=it.policy or it.variant, namespace=it.namespace, **_blocker_fields(blocker)
        )
        for it, blocker in fleet_status.urgent
    )
    status = FleetStatusStatus(
        policies=len(fleet_status.explanations),
        variants=sum(it.counts.total for it in fleet_status.explanations),
        ready=sum(it.counts.ready for it in fleet_status.explanations),
        failed=sum(it.failed for it in fleet_status.stages),
        needs_person=needs_person,
        stages=stages,
        conflicts=tuple(_build_conflicts(fleet_status.conflicts)),
        next=format_optional(fleet_status.next),
    )
    view = FleetStatusView(
        metadata=ViewMeta(name="fleet", namespace=namespace),
        spec=FleetStatusSpec(namespace=namespace),
        status=status,
    )
    return dump_view(view)


def _build_requests(requests: Iterable[RequestEntry]) -> Iterator[RequestView]:
    return (RequestView(**it) for it in build_request_views(requests))


def _build_conflicts(conflicts: Iterable[ConflictNote]) -> Iterator[ExplainedConflict]:
    for conflict in conflicts:
        yield ExplainedConflict(
            variant=conflict.variant,
            key=conflict.key,
            message=conflict.sentence,
            decided=conflict.is_decided,
            since=format_optional(conflict.since),
        )


def _build_notes(explanation: Explanation) -> Iterator[ExplanationNoteView]:
    for note in explanation.notes:
        yield ExplanationNoteView(
            reason=note.reason,
            message=note.sentence,
            who=note.actor,
            command=note.command,
            since=format_optional(note.since),
            until=format_optional(note.until),
        )


def format_optional(at: datetime | None) -> str | None:
    """Format an instant for a view; None stays None."""
    return format_instant(at) if at is not None else None
