"""Holds that keep a draft from release or publication, besides `after`, its checks and the budget.

* Closed windows, by all PromotionPolicies that name the policy. Releases and publications wait for
  the window to open, those of people too. Where every closed calendar says `atClose: Finish`, a
  rollout that has begun goes on to its end.
* Cluster objects shared by variants of several stages, updated stage by stage. A version is taken
  downstream only when the variants in the upstream stages that read the object as well are ready
  with it.
* Automatic promotion, which leaves a draft with an open gate to a person: it is switched on by an
  administrator, never goes back to an older revision, and never publishes what a person has to
  review first.
* Conditions of `propagateWhen`. All entries must be true, and all are evaluated: a false one beside
  an error is false, and both are reported. Time is not among the variables.
* Sets: variants on one branch go together, and so do those that exchange places. Such holds keep
  variants from publication alone, and never take a release back: what one variant waits for changes
  nothing about the gates of the others.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from fanout.api.gate_vocabulary import RELEASED_STATES, VariantState
from fanout.api.reasons import Reason
from fanout.api.results import Hold, VariantResult
from fanout.api.text_fields import pluralize
from fanout.calendar.publication_calendar import PublicationCalendar, compute_window_state, is_open
from fanout.gates import gate_wording
from fanout.gates.candidate_choice import RevisionAges
from fanout.gates.gate_facts import DraftFacts, SetFacts, VariantFacts
from fanout.gates.gate_rules import UNKNOWN, StageRule
from fanout.gates.gate_wording import label_stage
from fanout.gates.record_facts import DecisionFacts, find_next
from fanout.gates.rollback_pins import Pin
from fanout.gates.stage_tally import StageTally, TalliedVariant
from fanout.gates.stage_verdicts import StageVerdicts
from fanout.pending_inputs import ExpressionRequest
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace


class PublicationWindows:
    """State of the windows of one policy at the instant of the pass. `edge` is when it changes."""

    def __init__(
        self,
        calendars: Sequence[PublicationCalendar],
        now: datetime,
        *,
        has_unreadable_calendar: bool,
    ) -> None:
        """Evaluate the calendars at `now`; an unreadable one counts as closed."""
        self.edge: datetime | None = None  # when they open or close
        # Why nothing may be published now, by a rollout that has not begun or has.
        self.closed: Hold | None = None
        self.closed_for_begun: Hold | None = None
        if has_unreadable_calendar:
            self.closed = self.closed_for_begun = _UNREADABLE_HOLD
            return
        if not calendars:
            return
        window_state = compute_window_state(calendars, now)
        self.edge = window_state.until
        if window_state.open:
            return
        until, sentence = window_state.until, window_state.message
        if until is None:
            sentence = f"{sentence}; it does not open again"
        self.closed = Hold(Reason.WINDOW_CLOSED, sentence, gate_wording.WINDOW_ACTOR, until=until)
        # Calendars with `atClose: Finish` do not bind a rollout that has begun; all others still
        # do.
        strict = tuple(it for it in calendars if not it.lets_finish)
        if strict and not is_open(strict, now):
            self.closed_for_begun = self.closed


_UNREADABLE_HOLD = Hold(
    Reason.WINDOW_CLOSED,
    "a PromotionPolicy of its namespace cannot be read and may deny publication now",
    gate_wording.UNREADABLE_WINDOW_ACTOR,
)

_Readers = Mapping[str, list[TalliedVariant]]  # by key of the object


class SharedObjects:
    """Readers of each cluster object, by stage."""

    def __init__(self, stage_rules: Iterable[StageRule], tallies: Mapping[str, StageTally]) -> None:
        self._tallies = tallies
        self._readers_by_stage: dict[str, _Readers] = {}  # made on demand
        self._upstream_stages: dict[str, tuple[str, ...]] = {}
        for stage_rule in stage_rules:  # upstream stages first
            direct = stage_rule.after.stages if stage_rule.after else ()
            indirect = (name for stage in direct for name in self._upstream_stages[stage])
            self._upstream_stages[stage_rule.name] = tuple(dict.fromkeys([*direct, *indirect]))

    def find_hold(self, stage: str, variant_facts: VariantFacts, draft: DraftFacts) -> Hold | None:
        """Return the hold for a changed object that upstream stages lack, or None."""
        upstream_stages = self._upstream_stages[stage]
        if not draft.reads or not upstream_stages:
            return None
        published_reads = (
            variant_facts.published.reads if variant_facts.published is not None else {}
        )
        for key, version in sorted(draft.reads.items()):
            # Unchanged content is published already, so it waits for no stage.
            if published_reads.get(key) == version:
                continue
            for upstream in upstream_stages:
                if upstream not in self._readers_by_stage:
                    self._readers_by_stage[upstream] = _find_readers(self._tallies[upstream])
                for variant in self._readers_by_stage[upstream].get(key, ()):
                    publication = variant.facts.published
                    if (
                        publication is None
                        or publication.reads.get(key) != version
                        or variant.state is not VariantState.READY
                    ):
                        sentence = (
                            f"{key} changed; {variant.facts.name} in {label_stage(upstream)} is not"
                            " ready with the new version"
                        )
                        actor = gate_wording.format_stage_actor([upstream])
                        return Hold(Reason.SOURCE_AWAITS, sentence, actor)
        return None


def _find_readers(tally: StageTally) -> _Readers:
    readers: dict[str, list[TalliedVariant]] = {}
    for variant in tally.variants:
        if variant.away:
            continue
        publication, draft = variant.facts.published, variant.facts.draft
        for key in {**(publication.reads if publication else {}), **(draft.reads if draft else {})}:
            readers.setdefault(key, []).append(variant)
    return readers


@dataclass
class AutomaticPromotion:
    """Limits of automatic promotion in one stage for its candidate."""

    _stage_rule: StageRule
    _candidate: str
    _verdicts: StageVerdicts
    _ages: RevisionAges
    _is_sweep: bool

    def blocked(self, variant: TalliedVariant, draft: DraftFacts, pin: Pin | None) -> Hold | None:
        """Return why automation leaves the draft to a person, or None; `pin` is of the spec."""
        if (review_hold := _review_hold(variant, draft)) is not None:
            return review_hold
        if not self._stage_rule.automatic:
            return self._automation_off
        publication = variant.facts.published
        if pin is None and publication is not None:
            ages, candidate = self._ages, self._candidate
            is_downgrade = ages.is_older(candidate, publication.revision)
            if not ages.are_comparable(candidate, publication.revision):
                # Commits have no order: what the stage is on record to have left counts as older.
                is_downgrade = self._verdicts.history(candidate).left is not None
            if is_downgrade:
                return self._downgrade_hold
        return None if self._is_sweep else _SWEEP_HOLD

    @cached_property
    def _automation_off(self) -> Hold:
        sentence = gate_wording.describe_automation_off(
            gate_wording.label_stage(self._stage_rule.name), self._stage_rule.opposing_policies
        )
        return Hold(Reason.AUTOMATION_OFF, sentence, gate_wording.format_automation_actor())

    @cached_property
    def _downgrade_hold(self) -> Hold:
        newer = f"its published revision is newer than {self._candidate}"
        sentence = f"{newer}; automation never downgrades"
        return Hold(Reason.WOULD_GO_BACK, sentence, gate_wording.ANY_PROMOTER)


def unreviewed_hold(
    variant: TalliedVariant, draft: DraftFacts, decisions: Sequence[DecisionFacts]
) -> Hold | None:
    """Return what a person has to review first, unless a decision lists this tree."""
    if any(draft.tree in it.trees for it in decisions):
        return None
    return _review_hold(variant, draft)


def not_covered_hold(hold: Hold | None, decisions: Sequence[DecisionFacts]) -> Hold | None:
    """Extend a hold by the decision that came before its draft was written or rewritten."""
    if hold is None or not decisions:
        return hold
    decision = decisions[-1]
    not_covered = (
        f"decision {decision.name} by {decision.by} covers other drafts of {decision.revision}, not"
        " this one"
    )
    return replace(hold, message=f"{hold.message}; {not_covered}")


def _review_hold(variant: TalliedVariant, draft: DraftFacts) -> Hold | None:
    """Return why a person has to review the draft before anybody publishes it, or None."""
    if variant.facts.published is not None and variant.facts.published.reverted is not None:
        return variant.facts.published.reverted
    return _ADOPTION_HOLD if draft.adopts else None


def conflict_hold(draft: DraftFacts, decisions: Sequence[DecisionFacts]) -> Hold | None:
    """Return the hold of a draft with undecided merge conflicts, whoever publishes it.

    A decision among `decisions` accepts the draft as it is if it accepts conflicts, names the
    variant and lists the draft's tree, which shows that its author has seen the result.
    """
    # A stage-wide decision cannot accept: nobody looks at the conflicts of a whole stage.
    if not draft.conflict_count or any(
        it.spec.accept_conflicts and it.spec.variants and draft.tree in it.trees for it in decisions
    ):
        return None
    sentence = f"{pluralize(draft.conflict_count, 'undecided merge conflict')} in its draft"
    return Hold(Reason.MERGE_CONFLICT, sentence, gate_wording.CONFLICT_ACTOR)


_ADOPTION_HOLD = Hold(
    Reason.ADOPTION_AWAITS,
    "the first draft of an adopted package is never published automatically",
    gate_wording.ANY_PROMOTER,
)
_SWEEP_HOLD = Hold(
    Reason.SWEEP_AWAITED,
    "automatic promotion publishes only in sweeps",
    gate_wording.NEXT_SWEEP_OR_PROMOTER,
)


@dataclass(slots=True)
class PropagationEvaluator:
    """Evaluates the conditions of one stage and collects those that are not evaluated yet."""

    _stage_rule: StageRule
    _candidate: str
    unanswered: list[ExpressionRequest] = field(default_factory=list)
    is_provisional: bool = False  # the last answer is yes only if all unknown conditions are true

    def evaluate(
        self, variant_facts: VariantFacts, aggregates: Mapping[str, int]
    ) -> tuple[Hold, ...]:
        """Return what blocks the variant's release, with the stage's counts as they are now."""
        if not self._stage_rule.propagate_when:
            return ()
        variables = variant_facts.variables
        upstream = {**variables.get("upstream", {}), "revision": self._candidate}
        row = {**variables, "stage": aggregates, "upstream": upstream}
        actor = "the policy's author (propagateWhen)"
        false_holds: list[Hold] = []
        error_holds: list[Hold] = []
        # No early exit at the first false one: all unknown conditions are asked in one round.
        for condition in self._stage_rule.propagate_when:
            if (value := condition.evaluate(row)) is UNKNOWN:
                self.unanswered.append(ExpressionRequest(condition.text, row))
                error_holds.append(_PENDING_HOLD)
            elif value is False:
                sentence = f"propagateWhen is false: {condition.text}"
                false_holds.append(Hold(Reason.PROPAGATION_HELD, sentence, actor))
            elif isinstance(value, ExpressionFailure):
                sentence = f"propagateWhen {condition.text}: {value.problem}"
                error_holds.append(Hold(value.reason, sentence, actor))
            elif value is not True:
                sentence = (
                    f"propagateWhen {condition.text} yields {value!r}, expected true or false"
                )
                error_holds.append(Hold(Reason.EXPRESSION_ERROR, sentence, actor))
        self.is_provisional = (
            bool(error_holds) and not false_holds and all(it is _PENDING_HOLD for it in error_holds)
        )
        return (*false_holds, *error_holds)


_PENDING_HOLD = Hold(Reason.PROPAGATION_HELD, "propagateWhen is not evaluated yet", "this pass")


def hold_sets(
    sets: Mapping[str, SetFacts], results: dict[str, VariantResult], now: datetime
) -> None:
    """Add a hold to each variant whose gates are open and that has to wait for its set.

    `results` are by variant and changed in place. A variant of a later stage is not among them yet,
    and keeps nobody waiting until it is.
    """
    # Each round holds at least one variant that would be published, so it ends.
    while holds := (
        dict(_hold_exchanges(sets, results))
        or dict(_hold_branches(sets, results))
        or {
            name: set_facts.hold
            for name, set_facts in sets.items()
            if set_facts.hold is not None and name in results and results[name].publish
        }
    ):
        for name, hold in holds.items():
            results[name] = replace(
                results[name],
                publish=False,
                holds=(*results[name].holds, hold),
                next=find_next([hold.until], now),
            )


def _hold_exchanges(
    sets: Mapping[str, SetFacts], results: Mapping[str, VariantResult]
) -> Iterator[tuple[str, Hold]]:
    """Yield a hold for each variant one of whose partners cannot be published now."""
    for name, set_facts in sets.items():
        if not set_facts.partners or name not in results or not results[name].publish:
            continue
        if awaited := sorted(
            it for it in set_facts.partners if it in results and not results[it].publish
        ):
            sentence = (
                f"{set_facts.location} is the path of {', '.join(awaited)} until that moves;"
                " both move in one push"
            )
            yield name, Hold(Reason.PATH_TAKEN, sentence, f"any promoter of {awaited[0]}")


def _hold_branches(
    sets: Mapping[str, SetFacts], results: Mapping[str, VariantResult]
) -> Iterator[tuple[str, Hold]]:
    """Yield a hold for each variant whose branch has another one that cannot be published now.

    Who is not released any more leaves the branch, and keeps nobody waiting, unless a forge merges
    it with all that is on it.
    """
    names_by_branch: dict[str, list[str]] = defaultdict(list)
    for name, set_facts in sets.items():
        if not set_facts.branch or name not in results:
            continue
        if set_facts.merges_whole or results[name].state in RELEASED_STATES:
            names_by_branch[set_facts.branch].append(name)
    for names in names_by_branch.values():
        awaited = next((results[it] for it in names if not results[it].publish), None)
        if awaited is None:
            continue
        first = awaited.holds[0] if awaited.holds else None
        reason = f": {first.message}" if first is not None and first.message else ""
        hold = Hold(
            Reason.STAGE_DRAFT_PENDING,
            f"{awaited.name} in the same draft cannot be published yet{reason}",
            who=first.who if first is not None else "",
            until=first.until if first is not None else None,
        )
        yield from ((it, hold) for it in names if results[it].publish)
