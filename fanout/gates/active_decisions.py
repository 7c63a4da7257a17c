"""Decisions of people in force for one policy, and the status of each decision.

The last Suspend or Resume about a policy, a stage or a variant wins, for exactly that scope. A
Publish covers one revision and one publication of it by each variant. A publication of another
revision uses it up only where that is not older, or where the decision was not active. It covers
the drafts that existed when it was recorded; a rewritten draft needs a new one. One that overrides
`after` covers all drafts of its revision. A Skip and a Retry are about one revision and stay true
of it; a Rollback holds until another decision about the same (`rollback_pins`)
(docs/concepts/promotion.md).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from fanout.api.gate_vocabulary import Action, OverridableGate
from fanout.api.reasons import Reason
from fanout.api.record_objects import is_expired
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_wording import append_reason
from fanout.gates.record_facts import DecisionFacts, effective_from, find_next, is_from_the_future
from fanout.gates.rollback_pins import Rollbacks

Scope = tuple[str, str]
"""Scope of a suspension: ("policy", ""), ("stage", its name) or ("variant", its name)."""
_POLICY: Scope = ("policy", "")


def is_applied(decision: DecisionFacts, variant_facts: VariantFacts) -> bool:
    """Return whether the variant has taken the step of a Publish since, or one beyond it.

    One decision covers one change. Within the one second that decision and publication may
    share, a publication of another revision came first: nobody decides about a step that is
    not the next one.
    """
    last_step_at, publication = variant_facts.last_step_at, variant_facts.published
    if last_step_at is None or last_step_at < decision.at:
        return False
    if publication is None or publication.revision == decision.revision:
        return True
    return last_step_at > decision.at and decision.name not in publication.waiting


def covers(decision: DecisionFacts, variant_facts: VariantFacts, draft: DraftFacts | None) -> bool:
    """Return whether the decision covers this draft, or the future one (None).

    Like an approval it covers the trees it lists. Where no draft of the revision existed
    yet, or it is about the revision, it covers the variant's step to the revision, and no more.
    """
    if draft is not None and draft.tree in decision.trees:
        return True
    if draft is not None and not decision.is_about_revision:
        return False
    publication = variant_facts.published
    return publication is None or publication.revision != decision.revision


class _DecisionIndex(dict[tuple[str, str, str], list[DecisionFacts]]):
    """Decisions of one action, by scope and revision."""

    def add(self, decision: DecisionFacts) -> None:
        # A set, because a variant named twice would otherwise count the decision twice.
        for scope in set(list_scopes(decision.spec.stage, decision.spec.variants)):
            self.setdefault((*scope, decision.revision), []).append(decision)

    def find(self, stage: str, variant_name: str, revision: str) -> list[DecisionFacts]:
        """List the decisions that name the variant, its stage or everything."""
        # Most policies have no decision of an action, and every variant asks for several.
        if not self:
            return []
        return [
            *self.get(("policy", "", revision), ()),
            *self.get(("stage", stage, revision), ()),
            *self.get(("variant", variant_name, revision), ()),
        ]


class ActiveDecisions:
    """Decisions of one policy that are in force."""

    def __init__(
        self,
        decisions: Iterable[DecisionFacts],
        now: datetime,
        variants: Iterable[VariantFacts] = (),
    ) -> None:
        """Index the decisions, which come in record order.

        `variants` are the existing variants: their publications show which decisions were applied.
        """
        self._suspensions: dict[Scope, DecisionFacts] = {}
        self._publishes = _DecisionIndex()
        self._skips = _DecisionIndex()
        self._retries = _DecisionIndex()
        # Kept apart because skips are rare and the tally asks about one for every variant.
        self.has_skips = False
        self.publishes: list[DecisionFacts] = []  # in record order
        self.rollbacks = Rollbacks(variants)
        self._rollback_decisions: list[DecisionFacts] = []
        self.holds: list[Hold] = []  # about decisions without effect, for the policy
        # (stage, or "" for the policy; instant at which a suspension ends or a decision counts).
        self._opening_times: list[tuple[str, datetime]] = []
        self._expiries: list[datetime] = []
        for decision in decisions:
            if decision.spec.expires is not None:
                if is_expired(decision.spec.expires, now):
                    continue
                self._expiries.append(decision.spec.expires)
                # Only the end of a suspension lets more through; the end of a Publish is merely
                # looked at again.
                if decision.spec.action is Action.SUSPEND:  # the end of another opens nothing
                    self._opening_times.append((decision.spec.stage, decision.spec.expires))
            # A Suspend dated ahead counts at once: an emergency stop must not wait for a wrong
            # clock.
            if is_from_the_future(decision.at, now) and decision.spec.action is not Action.SUSPEND:
                start = effective_from(decision.at)
                self._opening_times.append((decision.spec.stage, start))
                sentence = (
                    f"decision {decision.name} by {decision.by} is dated in the future and does not"
                    " count yet"
                )
                actor = gate_wording.format_clock_owner(decision.by, gate_wording.MAY_WITHDRAW)
                self.holds.append(Hold(Reason.FROM_THE_FUTURE, sentence, actor, until=start))
            elif decision.spec.action in (Action.SUSPEND, Action.RESUME):
                for key in list_scopes(decision.spec.stage, decision.spec.variants):
                    self._suspensions[key] = decision
            elif not decision.revision:
                by = decision.by
                sentence = f"decision {decision.name} by {by} names no revision and has no effect"
                actor = f"{by} (record the decision again, with --revision)"
                self.holds.append(Hold(Reason.DECISION_WAITS, sentence, actor, decision.at))
            elif decision.spec.action is Action.SKIP:
                self._skips.add(decision)
                self.has_skips = True
            elif decision.spec.action is Action.RETRY:
                self._retries.add(decision)
            else:
                # The pins read promotions as well: one that was carried out ends a Rollback.
                self.rollbacks.add(decision)
                if decision.spec.action is Action.PUBLISH:
                    self.publishes.append(decision)
                    self._publishes.add(decision)
                else:
                    self._rollback_decisions.append(decision)

    def next_change(self, now: datetime, stage: str | None = None) -> datetime | None:
        """Return when a decision starts or ends; for a stage, when one lets more through."""
        instants = [at for name, at in self._opening_times if stage is None or name in ("", stage)]
        return find_next(instants if stage is not None else [*instants, *self._expiries], now)

    def suspensions(self, last_action: Action = Action.SUSPEND) -> dict[Scope, DecisionFacts]:
        """Return the suspensions in force, by scope; with RESUME the decisions that ended one."""
        return {
            scope: decision
            for scope, decision in self._suspensions.items()
            if decision.spec.action is last_action
        }

    def find_suspension(self, kind: str, name: str = "") -> Hold | None:
        """Return the hold of the policy, a stage or a variant that a decision suspends, or None."""
        if not self._suspensions:
            return None
        decision = self._suspensions.get((kind, name))
        if decision is None or decision.spec.action is not Action.SUSPEND:
            return None
        label = gate_wording.label_stage(name) if kind == "stage" else f"variant {name}"
        label = label if name else "the policy"
        return Hold(
            Reason.SUSPENDED,
            append_reason(f"{label} is suspended by {decision.by}", decision.spec.reason),
            gate_wording.ANY_PROMOTER_RESUME,
            decision.at,
            decision.spec.expires,
        )

    def stage_overrides(self, stage: str, revision: str) -> frozenset[OverridableGate]:
        """Return the overrides for the stage as a whole, which steer its candidate."""
        return combine_overrides(self._publishes.find(stage, "", revision))

    def publish_decisions(
        self, stage: str, variant_name: str, revision: str
    ) -> list[DecisionFacts]:
        """List the Publish decisions that name the variant, its stage or everything.

        Those recorded before the last Rollback are dropped: the Rollback takes them back.
        """
        publishes = self._publishes.find(stage, variant_name, revision)
        last_rollback = self.last_rollback(stage, variant_name) if publishes else None
        return (
            publishes
            if last_rollback is None
            else [it for it in publishes if it.order > last_rollback.order]
        )

    def pending_publishes(self, variant_facts: VariantFacts, revision: str) -> list[DecisionFacts]:
        """List the Publish decisions by which the variant has not taken its step yet."""
        publishes = self.publish_decisions(variant_facts.stage, variant_facts.name, revision)
        return [decision for decision in publishes if not is_applied(decision, variant_facts)]

    def last_rollback(self, stage: str, variant_name: str) -> DecisionFacts | None:
        """Return the last Rollback about the variant or its stage, in force or not."""
        # In force or not: what was decided before people went back is not carried out after it.
        for decision in reversed(self._rollback_decisions):
            if (
                variant_name in decision.spec.variants
                if decision.spec.variants
                else decision.spec.stage in ("", stage)
            ):
                return decision
        return None

    def skipped(self, stage: str, variant_name: str, revision: str) -> DecisionFacts | None:
        """Return the Skip that excludes the variant from the rollout of the revision, or None.

        A later Retry, or a Rollback to the revision, reverses it.
        """
        skip = _latest(self._skips.find(stage, variant_name, revision)) if self.has_skips else None
        if skip is None:
            return None
        retry = _latest(self._retries.find(stage, variant_name, revision))
        last_rollback = self.last_rollback(stage, variant_name)
        reversals = (it for it in (retry, last_rollback) if it is not None)
        return None if any(it.order > skip.order for it in reversals) else skip

    def retried_at(self, stage: str, variant_name: str, revision: str) -> datetime | None:
        """Return the instant of the last Retry of the revision for the variant, or None."""
        if not self._retries:
            return None
        last_retry = _latest(self._retries.find(stage, variant_name, revision))
        return last_retry.at if last_retry is not None else None


def _latest(decisions: list[DecisionFacts]) -> DecisionFacts | None:
    return max(decisions, key=lambda decision: decision.order, default=None)


def combine_overrides(decisions: Iterable[DecisionFacts]) -> frozenset[OverridableGate]:
    """Return everything that the decisions override together."""
    return frozenset(gate for decision in decisions for gate in decision.spec.overrides)


def spec_suspension_hold(label: str, owner: str) -> Hold:
    """Build the hold of a policy, stage or variant that its spec suspends."""
    sentence = gate_wording.describe_spec_suspension(label)
    return Hold(Reason.SUSPENDED, sentence, f"{owner} (spec.suspend)")


def list_scopes(stage: str, variants: Iterable[str]) -> list[Scope]:
    """List the scopes of a Suspend or Resume, and nothing around or inside them."""
    variant_scopes = [("variant", name) for name in variants]
    return variant_scopes or ([("stage", stage)] if stage else [_POLICY])


class DecisionStatus(StrEnum):
    """Status of a recorded decision; exactly one applies."""

    AHEAD = "Ahead"  # dated ahead; does not count before its instant
    ACTIVE = "Active"  # can still have an effect
    APPLIED = "Applied"  # carried out, or overtaken by another
    STALE = "Stale"  # its drafts were rewritten
    WITHDRAWN = "Withdrawn"  # withdrawn by a later record
    EXPIRED = "Expired"  # its own end is over


def decision_statuses(
    decisions: Iterable[DecisionFacts], variants: Sequence[VariantFacts], now: datetime
) -> dict[str, DecisionStatus]:
    """Return the status of each decision that was not withdrawn, by its name.

    A Suspend is active until another decision about the same scope follows, a Publish until
    each variant that it covers has taken its step or has another draft. A Skip and a Retry
    are active until each of their variants has taken a step since, a Rollback as long as
    any variant goes back by it. A Resume is applied when it is recorded.
    """
    decision_facts = list(decisions)
    active_decisions = ActiveDecisions(decision_facts, now, variants)
    suspending = {it.name for it in active_decisions.suspensions().values()}
    status_by_name: dict[str, DecisionStatus] = {}
    for decision in decision_facts:
        at, action = decision.at, decision.spec.action
        if is_expired(decision.spec.expires, now):
            status = DecisionStatus.EXPIRED
        elif is_from_the_future(at, now) and action is not Action.SUSPEND:
            status = DecisionStatus.AHEAD
        elif action is Action.PUBLISH:
            subjects, revision = _covered_variants(decision, variants), decision.revision
            # One about an empty stage stays active, as a variant may join.
            is_active = not subjects
            for it in subjects:
                draft = it.draft if it.draft is not None and it.draft.revision == revision else None
                is_active |= not is_applied(decision, it) and covers(decision, it, draft)
            # Where it overrides verification, a variant counts as ready at its revision by it.
            if OverridableGate.VERIFICATION in decision.spec.overrides:
                published = (it.published for it in subjects)
                is_active |= any(it is not None and it.revision == revision for it in published)
            is_over = any(is_applied(decision, it) for it in subjects)
            status = DecisionStatus.APPLIED if is_over else DecisionStatus.STALE
            status = DecisionStatus.ACTIVE if is_active else status
        else:
            is_active = decision.name in suspending
            if action in (Action.SKIP, Action.RETRY):
                subjects = _covered_variants(decision, variants)
                is_active = not subjects or any(
                    it.last_step_at is None or it.last_step_at <= at for it in subjects
                )
            elif action is Action.ROLLBACK:
                is_active = active_decisions.rollbacks.is_active(decision)
            status = DecisionStatus.ACTIVE if is_active else DecisionStatus.APPLIED
        status_by_name[decision.name] = status
    return status_by_name


def _covered_variants(
    decision: DecisionFacts, variants: Sequence[VariantFacts]
) -> list[VariantFacts]:
    stage, names = decision.spec.stage, decision.spec.variants
    return [it for it in variants if (it.name in names if names else it.stage == stage)]
