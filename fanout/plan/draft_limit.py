"""Limit of the drafts that a policy writes in one round of a process that stays.

A policy with thousands of outdated drafts would else keep all others waiting until its last one is
pushed.
"""

from collections.abc import Collection, Sequence

from fanout.api.reasons import Reason
from fanout.gates.gate_facts import Hold
from fanout.plan import plan_wording
from fanout.plan.selected_variant import SelectedVariant
from fanout.values import replace


def postpone_drafts(
    variants: Sequence[SelectedVariant], suspended: Collection[str], limit: int | None
) -> tuple[SelectedVariant, ...]:
    """Return the variants in the same order; those beyond the limit wait for the next round.

    `limit`: number of drafts; None: no limit. The first drafts are those of the highest priority.
    Variants named in `suspended` need none. A variant that waits is held: its open draft is
    outdated, and must not be published instead. Drafts that variants share are not counted,
    because they are one commit whatever is in them.
    """
    if limit is None or len(variants) <= limit:
        return tuple(variants)
    due_positions = [
        position
        for position, variant in enumerate(variants)
        if variant.wants_draft
        and variant.spec.name not in suspended
        and not variant.observed.shares_draft
    ]
    due_positions.sort(key=lambda it: -variants[it].spec.priority)
    hold = Hold(
        Reason.NO_DRAFT, plan_wording.describe_postponed_draft(limit), plan_wording.NEXT_RUN
    )
    selected = list(variants)
    for position in due_positions[limit:]:
        variant = variants[position]
        observed = replace(variant.observed, wait_hold=hold)
        selected[position] = replace(variant, observed=observed)
    return tuple(selected)
