"""Gate of removals: which variants without a target may be removed now.

Removal goes level by level from the sinks: first the variants of stages that nothing
waits for. It asks no expression, `after`, soak, check or budget; windows, suspensions
and the automation switch bind it, and too many at once wait for a person. While it is
in doubt whether targets are gone, nothing is removed (docs/concepts/removal.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.calendar.publication_calendar import PublicationCalendar
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions, spec_suspension_hold
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import format_names
from fanout.gates.percentages import Amount, compute_tolerance
from fanout.gates.record_facts import DecisionFacts, effective_from, find_next, is_from_the_future
from fanout.gates.release_holds import PublicationWindows
from fanout.values import Value, field, replace

MIN_SHARE = 3  # variants; a share of few variants would round down to none


class OrphanedVariant(Value):
    """A published, released or drafted variant that no target asks for any more."""

    name: str
    stage: str = ""  # as recorded; "": none, or not known
    published_at: datetime | None = None  # time of its publication
    local_edits: tuple[str, ...] = ()  # descriptions of edits that the removal would lose
    trees: frozenset[str] = frozenset()  # that work, by id
    held: Hold | None = None  # why its package cannot be removed


class RemovalFacts(Value):
    """Facts about one policy that has fewer targets than before."""

    facts: PolicyFacts
    present_count: int  # variants whose targets exist
    orphaned: tuple[OrphanedVariant, ...]
    limit: Amount
    # That variants may be removed, with the local edits in their trees; in record order.
    confirmations: tuple[DecisionFacts, ...] = ()
    safety_hold: Hold | None = None  # why a missing target may still exist
    is_deleted: bool = False  # the policy itself, so that it has no targets
    keeps_packages: bool = False  # `deletionPolicy: Orphan`

    @property
    def needs_consent(self) -> bool:
        """Return whether a mistake could remove packages that are in use.

        Somebody who deletes a policy that keeps its packages removes nothing.
        """
        return not (self.is_deleted and self.keeps_packages)


class RemovalEvaluation(Value):
    """Result of the removal gate, in the order of removal."""

    # by variant; without holds it is removed now
    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)
    limit: Hold | None = None  # too many at once; one hold for the policy
    next: datetime | None = None

    @property
    def removable(self) -> tuple[str, ...]:
        """Return the names of the variants to remove in this pass."""
        return tuple(name for name, holds in self.holds.items() if not holds)


def evaluate_removals(removal_facts: RemovalFacts) -> RemovalEvaluation:
    """Evaluate all orphaned variants: each is removed now, or has holds."""
    if not removal_facts.orphaned:
        return RemovalEvaluation()
    facts, now = removal_facts.facts, removal_facts.facts.now
    ordered = group_by_level(facts.stages, removal_facts.orphaned)
    # The last confirmation about each variant.
    confirmations: dict[str, DecisionFacts] = {}
    published_at = {orphan.name: orphan.published_at for orphan in removal_facts.orphaned}
    for confirmation in removal_facts.confirmations:
        if is_from_the_future(confirmation.at, now):
            continue
        for name in published_at.keys() & set(confirmation.spec.variants):
            publication_time = published_at[name]
            # A confirmation is about the package that existed; a variant published again needs a
            # new one.
            if publication_time is None or publication_time <= confirmation.at:
                confirmations[name] = confirmation
    limit_hold = _limit_hold(removal_facts, confirmations)
    active_decisions = ActiveDecisions(facts.records.decisions, now)
    window_hold = closed_window_hold(
        facts.calendars, now, has_unreadable_calendar=facts.has_unreadable_calendar
    )
    holds: dict[str, tuple[Hold, ...]] = {}
    for level in ordered:
        level_hold: tuple[Hold, ...] = ()
        if holds:
            sentence = f"variants of later stages are removed first: {format_names(holds)}"
            # Who can act is who can end the first hold of these; without any they go in this pass.
            actors = (hold.who for earlier_holds in holds.values() for hold in earlier_holds)
            actor = next(filter(None, actors), gate_wording.NEXT_SWEEP)
            level_hold = (Hold(Reason.REMOVAL_AWAITS, sentence, actor),)
        for orphan in level:
            own_holds = _list_holds(
                removal_facts,
                orphan,
                confirmations.get(orphan.name),
                active_decisions,
                limit_hold,
                window_hold,
            )
            holds[orphan.name] = (*own_holds, *level_hold)
    untils = [hold.until for variant_holds in holds.values() for hold in variant_holds]
    future_times = (it.at for it in removal_facts.confirmations if is_from_the_future(it.at, now))
    next_change = find_next([*untils, *map(effective_from, future_times)], now)
    return RemovalEvaluation(holds, limit_hold, next_change)


def group_by_level(
    stage_rules: Sequence[StageRule], orphaned: Iterable[OrphanedVariant]
) -> list[tuple[OrphanedVariant, ...]]:
    """Group orphaned variants in the order of removal; those of one level may go together.

    Variants of stages that the policy no longer has, and of none, come last.
    """
    ranks = compute_levels(stage_rules)
    levels: dict[int, list[OrphanedVariant]] = {}
    for orphan in sorted(orphaned, key=lambda orphan: orphan.name):
        levels.setdefault(ranks.get(orphan.stage, len(ranks)), []).append(orphan)
    return [tuple(levels[rank]) for rank in sorted(levels)]


def compute_levels(stage_rules: Sequence[StageRule]) -> dict[str, int]:
    """Compute the level of each stage: the longest chain of stages after it.

    0 if nothing waits for it. An upstream stage has a higher level. Stages in a cycle have none.
    """
    upstream_names = {
        stage_rule.name: tuple(stage_rule.after.stages) if stage_rule.after else ()
        for stage_rule in stage_rules
    }
    waiter_counts = dict.fromkeys(upstream_names, 0)
    for names in upstream_names.values():
        for name in set(names) & waiter_counts.keys():
            waiter_counts[name] += 1
    ranks: dict[str, int] = {}
    level = [name for name, number in waiter_counts.items() if not number]
    rank = 0
    while level:
        ranks |= dict.fromkeys(level, rank)
        next_level: list[str] = []  # what nothing waits for once those of `level` are left out
        for name in level:
            for upstream in set(upstream_names[name]) & waiter_counts.keys():
                waiter_counts[upstream] -= 1
                if not waiter_counts[upstream]:
                    next_level.append(upstream)
        level, rank = next_level, rank + 1
    return ranks


def _limit_hold(
    removal_facts: RemovalFacts, confirmations: Mapping[str, DecisionFacts]
) -> Hold | None:
    """Return the hold for more removals than `removalLimit`, or for all, or None."""
    if not removal_facts.needs_consent:
        return None
    # Confirmed removals do not count: the limit guards against a mistake, and somebody has looked.
    unconfirmed = len(removal_facts.orphaned) - len(confirmations)
    total = removal_facts.present_count + len(removal_facts.orphaned)
    limit = compute_removal_limit(removal_facts.limit, total)
    is_unlimited = isinstance(removal_facts.limit, Fraction) and removal_facts.limit == 1
    if unconfirmed and not removal_facts.present_count and not is_unlimited:
        is_deleted = removal_facts.is_deleted
        cause = "the policy was deleted" if is_deleted else "no target exists any more"
        sentence = f"{cause}; {pluralize(unconfirmed, 'variant')} would be removed"
    elif unconfirmed > limit:
        variants = pluralize(total, "variant")
        sentence = f"{unconfirmed} of {variants} would be removed (removalLimit: {limit})"
    else:
        return None
    actor = gate_wording.format_removal_actor(
        removal_facts.facts.name, _format_arguments("--all-gone", removal_facts.orphaned)
    )
    return Hold(Reason.TOO_MANY_REMOVALS, sentence, actor)


def _format_arguments(subject: str, orphaned: Iterable[OrphanedVariant]) -> str:
    """Return the arguments that remove these variants: one command for all of their holds."""
    return f"{subject} --edited" if any(it.local_edits for it in orphaned) else subject


def closed_window_hold(
    calendars: Sequence[PublicationCalendar], now: datetime, *, has_unreadable_calendar: bool
) -> Hold | None:
    """Return why nothing may be removed at this time, or None.

    `has_unreadable_calendar`: there may be a window that could not be read
    (docs/concepts/removal.md).
    """
    window_hold = PublicationWindows(
        calendars, now, has_unreadable_calendar=has_unreadable_calendar
    ).closed
    return None if window_hold is None else replace(window_hold, who=gate_wording.REMOVAL_ACTOR)


def compute_removal_limit(limit: Amount, total: int) -> int:
    """Compute how many may go at once: a percentage above zero lets at least 3."""
    share = compute_tolerance(limit, total)
    return share if isinstance(limit, int) or not limit else max(share, MIN_SHARE)


def _list_holds(
    removal_facts: RemovalFacts,
    orphan: OrphanedVariant,
    confirmation: DecisionFacts | None,
    active_decisions: ActiveDecisions,
    limit_hold: Hold | None,
    window_hold: Hold | None,
) -> tuple[Hold, ...]:
    """List what holds a variant; a confirmed one needs neither automation nor the limit."""
    facts, doubt, stage = removal_facts.facts, removal_facts.safety_hold, orphan.stage
    # A person who names the variant knows more than a doubt that only waits for time.
    is_overridden = confirmation is not None and doubt is not None and doubt.until is not None
    actor = gate_wording.format_removal_actor(facts.name, _format_arguments(orphan.name, [orphan]))
    is_stage_suspended = any(it.name == stage and it.suspended for it in facts.stages)
    suspension: Hold | None
    if facts.suspended:
        suspension = spec_suspension_hold("the policy", gate_wording.AUTHOR)
    elif is_stage_suspended:
        suspension = spec_suspension_hold(gate_wording.label_stage(stage), gate_wording.AUTHOR)
    else:
        suspension = (
            active_decisions.find_suspension("policy")
            or (active_decisions.find_suspension("stage", stage) if stage else None)
            or active_decisions.find_suspension("variant", orphan.name)
        )
    candidates = [None if is_overridden else doubt, suspension, orphan.held]
    if orphan.local_edits and (confirmation is None or not orphan.trees <= confirmation.trees):
        sentence = f"removal would delete edits of {' and '.join(orphan.local_edits)}"
        candidates.append(Hold(Reason.EDITED_DOWNSTREAM, sentence, actor))
    is_agreed = confirmation is not None or not removal_facts.needs_consent
    if not is_agreed:
        candidates.append(limit_hold)
        automatic = {it.name: it.automatic for it in facts.stages}
        # A variant in no stage needs automation on for all of them.
        if not automatic.get(orphan.stage, all(automatic.values())):
            has_stage = orphan.stage in automatic
            scope = gate_wording.label_stage(orphan.stage) if has_stage else "some stages"
            sentence = gate_wording.describe_automation_off(scope)
            promoter = gate_wording.format_automation_actor(actor)
            candidates.append(Hold(Reason.AUTOMATION_OFF, sentence, promoter))
    # A confirmation overrides the limit and the automation switch, but not closed windows.
    candidates.append(window_hold)
    if not is_agreed and not facts.sweep:
        sentence, actor = gate_wording.REMOVAL_SWEEP_AWAITED, gate_wording.NEXT_SWEEP
        candidates.append(Hold(Reason.SWEEP_AWAITED, sentence, actor))
    return tuple(hold for hold in candidates if hold is not None)
