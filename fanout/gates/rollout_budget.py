"""Rollout budget of a stage: how many variants may be in flight.

Variants are released one by one and counted at once, so a budget is never overdrawn and
nothing depends on an index in a list. A variant in flight keeps its slot when a newer
revision comes; a variant that failed at its revision may be mended without a free slot
(docs/concepts/rollouts.md).
"""

from collections.abc import Mapping
from functools import cached_property
from math import floor

from fanout.api.gate_vocabulary import RolloutStrategy, VariantState
from fanout.api.reasons import Reason
from fanout.api.results import Hold, StageAggregates
from fanout.api.stages import Rollout
from fanout.api.text_fields import pluralize
from fanout.gates import gate_wording
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.next_changes import ExpectedCompletion, InFlightVariants
from fanout.gates.percentages import compute_budget, compute_tolerance
from fanout.gates.stage_tally import StageTally, TalliedVariant
from fanout.values import as_data, replace


def compute_in_flight_limit(rollout: Rollout, total: int, ready: int) -> int | None:
    """Compute how many of `total` variants may be in flight when `ready` are ready; None: all."""
    limits: list[int] = []
    if rollout.strategy is RolloutStrategy.LINEAR:
        limits.append(rollout.step)
    if rollout.strategy is RolloutStrategy.EXPONENTIAL:
        # Growth by a factor: what is ready now may bring factor - 1 times as many along.
        limits.append(max(1, floor((rollout.factor - 1) * ready)))
    if rollout.max_in_flight is not None:
        limits.append(compute_budget(rollout.max_in_flight, total))
    return min(limits, default=None)


class RolloutBudget:
    """Budget of one stage for its candidate; `take` uses one slot."""

    def __init__(self, tally: StageTally, candidate: str) -> None:
        self._tally = tally
        self._candidate = candidate
        self._rollout = tally.stage_rule.rollout
        self._open_group: int | None = None  # first group with variants that are not done
        self._first_unready = ""  # name of the first of them
        self._failed_names: list[str] = []  # as the pass begins
        self._in_flight: list[TalliedVariant] = []  # as the pass begins
        self._unready: list[TalliedVariant] = []  # that count, as the pass begins
        # By group; filled on demand, since every waiting variant of a group asks the same.
        self._group_completions: dict[int, ExpectedCompletion] = {}
        self._waiting_names: set[str] = set()  # variants refused a slot, in the order of release
        total = updated = ready = in_flight = failed = 0
        for variant in tally.variants:
            # A slot is held at whatever revision, and also by a variant suspended after its
            # release: what is on the way to a cluster can break there.
            if variant.in_flight and not tally.skipped(variant, candidate):
                in_flight += 1
                self._in_flight.append(variant)
            if not tally.counts(variant, candidate):
                continue
            total += 1
            updated += variant.released(candidate)
            is_verified = variant.has(candidate) and variant.state is VariantState.READY
            # A draft of the same revision has new inputs, which nobody has verified.
            is_ready = is_verified and variant.draft is None
            has_failed = _has_failed(variant, candidate)
            ready += is_ready
            failed += has_failed
            if has_failed:
                self._failed_names.append(variant.facts.name)
            if not is_ready and not has_failed and not variant.leads:
                self._unready.append(variant)
                if self._open_group is None or variant.facts.group < self._open_group:
                    self._open_group = variant.facts.group
                    self._first_unready = variant.facts.name
        self.aggregates = StageAggregates(total, updated, ready, in_flight, failed)
        self.limit = compute_in_flight_limit(self._rollout, total, ready)

    @property
    def halted(self) -> Hold | None:
        """Return the hold of a stage with more failures than `maxFailures`, or None."""
        tolerated = compute_tolerance(self._rollout.tolerance, self.aggregates.total)
        if len(self._failed_names) <= tolerated:
            return None
        label, failed = label_stage(self._tally.stage_rule.name), self._failed_names
        sentence = (
            f"{label} is halted: {pluralize(len(failed), 'variant')} failed {self._candidate}"
            f" ({format_names(failed)}), maxFailures: {tolerated}"
        )
        actor = f"any promoter of {label} (fanout retry, skip or rollback), or a fixed revision"
        return Hold(Reason.HALTED, sentence, actor)

    def find_refusal(self, variant: TalliedVariant) -> Hold | None:
        """Return why the variant gets no slot; None if it has, needs or gets one."""
        # Groups before the budget: a free slot is of no use to a group whose turn has not come.
        open_group, group = self._open_group, variant.facts.group
        if open_group is not None and group > open_group:
            sentence = (
                f"group {open_group + 1} goes first: {self._first_unready} is not ready at"
                f" {self._candidate}"
            )
            if group not in self._group_completions:
                unready = [it for it in self._unready if it.facts.group < group]
                in_flight = InFlightVariants(it for it in unready if it.has(self._candidate))
                self._group_completions[group] = in_flight.completion(
                    len(unready), "a reporter of the pending checks in that group"
                )
            actor, until = self._group_completions[group]
            return Hold(Reason.GROUP_AWAITS, sentence, actor, until=until)
        limit = self.limit
        # A limit of 0 releases nothing, superseding included, so even a variant with a slot waits.
        has_slot = variant.in_flight or variant.state is VariantState.FAILED
        if limit is None or (limit > 0 and has_slot) or self.aggregates.in_flight < limit:
            return None
        if limit == 0:
            actor = gate_wording.format_budget_actor(gate_wording.AUTHOR_OF_LIMIT)
            return Hold(Reason.BUDGET_EXHAUSTED, gate_wording.LIMIT_IS_ZERO, actor)
        self._waiting_names.add(variant.facts.name)
        # Slots go in the order of release: the third variant that waits needs three completions,
        # not one.
        needed_completions = self.aggregates.in_flight - limit + len(self._waiting_names)
        actor, until = self._in_flight_order.completion(needed_completions, gate_wording.REPORTER)
        sentence = f"in-flight limit reached ({self.aggregates.in_flight} of {limit})"
        actor = gate_wording.format_budget_actor(actor)
        return Hold(Reason.BUDGET_EXHAUSTED, sentence, actor, until=until)

    def take(self, variant: TalliedVariant) -> None:
        """Count the variant as released."""
        self._waiting_names.discard(variant.facts.name)
        # A variant in flight moves on in the slot that it has, so it is not counted again.
        aggregates = self.aggregates
        self.aggregates = replace(
            aggregates,
            in_flight=aggregates.in_flight + (not variant.in_flight),
            updated=aggregates.updated + (not variant.released(self._candidate)),
            failed=aggregates.failed - _has_failed(variant, self._candidate),
        )

    def variables_for(self, variant: TalliedVariant) -> Mapping[str, int]:
        """Return the counts for `propagateWhen` of a variant, without its own slot."""
        aggregates = self.aggregates
        # Otherwise `stage.inFlight < 3` would block the third variant by its own slot when its
        # revision is superseded.
        if variant.in_flight:
            aggregates = replace(aggregates, in_flight=aggregates.in_flight - 1)
        return as_data(aggregates)

    @cached_property
    def _in_flight_order(self) -> InFlightVariants:
        return InFlightVariants(self._in_flight)


def _has_failed(variant: TalliedVariant, candidate: str) -> bool:
    """Return whether the variant failed the candidate and no other attempt is under way."""
    if variant.absent_failure is not None:
        return True
    if variant.state is not VariantState.FAILED or variant.mended:
        return False
    return variant.has(candidate) and not variant.has_pending_grant
