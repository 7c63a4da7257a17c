"""Views of explanations, as plain data."""

from collections.abc import Iterator
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
from fanout.api.view_base import ViewMeta
from fanout.gates.timestamps import format_instant
from fanout.reconcile.explanation.blockers import Blocker
from fanout.reconcile.explanation.policy_explanation import Explanation


def dump_explanation(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation as an ExplanationView."""
    status = ExplanationStatus(
        state=explanation.state,
        candidate=explanation.candidate,
        published=explanation.published,
        variants=explanation.counts.total,
        ready=explanation.counts.ready,
        blockers=tuple(map(build_blocker_view, explanation.blockers)),
        conflicts=tuple(_build_conflicts(explanation)),
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
    return view.model_dump(by_alias=True, mode="json", exclude_none=True)


def build_blocker_view(blocker: Blocker) -> BlockerView:
    """Return the blocker as a part of a view."""
    return BlockerView(
        reason=blocker.reason,
        message=blocker.sentence,
        stage=blocker.stage,
        variants=blocker.variants,
        revision=blocker.revision,
        needs_person=blocker.needs_person,
        who=blocker.actor,
        commands=blocker.commands,
        since=format_optional(blocker.since),
        until=format_optional(blocker.until),
    )


def _build_conflicts(explanation: Explanation) -> Iterator[ExplainedConflict]:
    for conflict in explanation.conflicts:
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
