"""Limit of the drafts that a policy writes in one round of a process that stays.

A policy with thousands of outdated drafts would else keep all others waiting until its last one is
pushed.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.gates.gate_facts import Hold
from fanout.plan import plan_wording
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.values import frozen, replace

_Variant = TypeVar("_Variant", ObservedVariant, SelectedVariant)


@frozen
class DraftLimit:
    """Number of drafts that each policy writes in a pass.

    `failing`: namespaces and names of the Repository objects to which the last push failed. Their
    drafts come last, because they would take every share of the policy.
    """

    number: int
    failing: frozenset[tuple[str, str]] = frozenset()

    def rank(self, variants: Iterable[_Variant]) -> list[_Variant]:
        """Return the variants in the order of their drafts: by priority, then by repository.

        So a share is in few repositories, each of which costs a push.
        """
        return sorted(
            variants,
            key=lambda it: (
                (it.spec.namespace, it.spec.repository) in self.failing,
                -it.spec.priority,
                it.spec.repository,
            ),
        )


def postpone_drafts(
    variants: Sequence[SelectedVariant], suspended: Collection[str], limit: DraftLimit | None
) -> tuple[SelectedVariant, ...]:
    """Return the variants in the same order; those beyond the limit wait for the next round.

    `limit`: None: no limit. Variants named in `suspended` need no draft. A variant that waits is
    held: its open draft is outdated, and must not be published instead. Drafts that variants share
    are not counted, because they are one commit whatever is in them.
    """
    if limit is None or len(variants) <= limit.number:
        return tuple(variants)
    due_variants = [
        variant
        for variant in variants
        if variant.wants_draft
        and variant.spec.name not in suspended
        and not variant.observed.shares_draft
    ]
    postponed = {it.spec.name for it in limit.rank(due_variants)[limit.number :]}
    hold = Hold(
        Reason.NO_DRAFT, plan_wording.describe_postponed_draft(limit.number), plan_wording.NEXT_RUN
    )
    return tuple(
        replace(it, observed=replace(it.observed, wait_hold=hold))
        if it.spec.name in postponed
        else it
        for it in variants
    )
