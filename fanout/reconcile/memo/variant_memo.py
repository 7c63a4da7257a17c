"""Memo of variants between passes, valid while their inputs are the same objects.

A long-running process makes most passes because something changed for a few variants.
Observed variants, their candidates and gate facts of all others are reused. Only plain variants are
kept: a variant that moves, shares its path or was edited downstream is inspected in
each pass.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fanout.plan.gates.variant_facts import VariantFactsMemo
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import VariantLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.selection.variant_spec import VariantSpec


@dataclass(slots=True)
class VariantMemo:
    """Memo of the variants of one policy, or of one hand-written variant."""

    _: KW_ONLY
    keeps_variants: bool = False  # False in a process of one pass, which cannot reuse them
    _observed: dict[str, tuple[VariantLine | None, ObservedVariant]] = field(default_factory=dict)
    _selected: dict[str, SelectedVariant] = field(default_factory=dict)
    # of the cluster objects from which the stored candidates have their inputs
    objects_stamp: object = None
    _idle: dict[str, RenderedVariant] = field(default_factory=dict)  # that need no draft
    # Memos of gate facts before and after candidates are chosen; None if variants are not kept.
    preliminary_facts: VariantFactsMemo | None = None
    gate_facts: VariantFactsMemo | None = None

    def __post_init__(self) -> None:
        if self.keeps_variants:
            self.preliminary_facts, self.gate_facts = {}, {}

    def find_observed(
        self, spec: VariantSpec, repository_state: RepositoryState, status_line: VariantLine | None
    ) -> ObservedVariant | None:
        """Return the memoized variant if all its inputs are the same objects, else None."""
        if (memoized := self._observed.get(spec.name)) is None:
            return None
        previous_line, variant = memoized
        # By identity, because comparing values costs as much as observing it again.
        is_same_line = previous_line is status_line
        is_same = variant.spec is spec and variant.repository_state is repository_state
        return variant if is_same and is_same_line else None

    def store_observed(
        self, status_line: VariantLine | None, variant: ObservedVariant
    ) -> ObservedVariant:
        """Return the variant, stored if spec, status line and repository state alone determine it.

        A status line that mentions another path than the wanted one shows what else it depends on.
        """
        place = variant.repository_state.identity, variant.spec.path
        is_plain = self.keeps_variants and not (
            variant.is_unrecorded
            or variant.may_adopt
            or variant.origin
            or variant.published_for_another
            or variant.choices.by_key
            or variant.previous
            or variant.misplaced_drafts
            or variant.abandoned
            or variant.exchange_partners
            or variant.wait_hold
            or variant.reverted_publication
            or variant.published_faults
            or variant.obstacle
            or variant.repository_state.failure
            or variant.rewound_records
            or variant.unfinished_push
        )
        is_at_place = status_line is None or (
            status_line.place == place
            and status_line.granted_place in (None, place)
            and not status_line.left
        )
        if is_plain and is_at_place:
            self._observed[variant.spec.name] = status_line, variant
        else:
            self._observed.pop(variant.spec.name, None)
        return variant

    def find_selected(self, variant: ObservedVariant) -> SelectedVariant | None:
        """Return the variant with its last candidate, or None if it was observed anew."""
        memoized = self._selected.get(variant.spec.name)
        return memoized if memoized is not None and memoized.observed is variant else None

    def store_selected(self, variants: Iterable[SelectedVariant], objects_stamp: object) -> None:
        """Store all variants of the policy that have inputs, in place of those before.

        `objects_stamp`: of the cluster objects of this pass.
        """
        if self.keeps_variants:
            self.objects_stamp = objects_stamp
            # Without the others: their inputs were not compared with the objects of this pass.
            self._selected = {
                it.observed.spec.name: it
                for it in variants
                if it.inputs is not None and not it.is_rollback
            }

    def find_idle(self, variants: Iterable[SelectedVariant]) -> dict[str, RenderedVariant]:
        """Return those of the variants that need no draft, as in an earlier pass, by name."""
        idle_variants: dict[str, RenderedVariant] = {}
        for variant in variants:
            name = variant.observed.spec.name
            rendered = self._idle.get(name)
            if rendered is not None and rendered.selected is variant:
                idle_variants[name] = rendered
        return idle_variants

    def store_idle(self, rendered: RenderedVariant) -> None:
        """Store the variant, which needs no draft for its candidate, whoever is suspended."""
        # Others are new objects in each pass, and would never be found again.
        if self._selected.get(rendered.spec.name) is rendered.selected:
            self._idle[rendered.spec.name] = rendered

    def retain(self, names: Iterable[str]) -> None:
        """Drop all variants except the named ones."""
        # Variants come and go: without this the memo of a long-running process would only grow.
        retained = frozenset(names)
        memos: tuple[dict[str, Any], ...] = (
            self._observed,
            self._idle,
            self.preliminary_facts or {},
            self.gate_facts or {},
        )
        for memo in memos:
            for name in memo.keys() - retained:
                del memo[name]
