"""Tally of one stage: its variants with their state, counted by published revision.

Built once per pass; every verdict is a look-up in it, so a pass is O(N) in variants.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from fanout.api.gate_vocabulary import VariantState
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, CheckResult, Hold
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.percentages import compute_tolerance
from fanout.gates.revision_history import RevisionHistory


@dataclass(slots=True, eq=False)  # not frozen: that would be a tenth of a pass
class TalliedVariant:
    """One variant of the stage: the state of its publication and what suspends it.

    The fields below the line are filled in once the candidate of the stage is chosen.
    """

    facts: VariantFacts
    # Verifying, Ready or Failed at what is published; Held if the branch no longer has it; None if
    # nothing is published.
    state: VariantState | None
    checks: tuple[CheckResult, ...]
    suspended: Hold | None
    holds: tuple[Hold, ...] = ()  # reasons besides its checks why it is not ready, or failed
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks, to be on record
    next_change_at: datetime | None = None  # when its state changes by itself
    ready_at: datetime | None = None  # when it becomes ready without another event
    fails_at: datetime | None = None  # when it fails without another event, if that is earlier
    # ----
    mended: bool = False  # its inputs changed since it failed, so the failure is over
    candidate: str = ""  # its next revision: the stage's candidate, or a rollback's
    draft: DraftFacts | None = None  # its open draft of the candidate, if not published
    required: tuple[CheckResult, ...] = ()  # results of `requires` for the candidate
    early_failure: Hold | None = None  # failure of the candidate before publication
    leads: bool = False  # its next revision is not its stage's, by a decision about it alone
    rolled_back: Hold | None = None  # rollback of this variant but not of its stage
    overtaken: Hold | None = None  # failure of its stage's candidate, before it went ahead

    @property
    def absent_failure(self) -> Hold | None:
        """Return why it counts as failed at its stage's candidate without having it published."""
        # The draft of one that goes ahead is of another revision.
        own_failure = self.early_failure if not self.leads else None
        return own_failure or self.rolled_back or self.overtaken

    @property
    def away(self) -> bool:
        """Return whether the variant is suspended or offline: it counts if released before."""
        return self.suspended is not None or self.facts.offline

    def released(self, revision: str) -> bool:
        """Return whether the variant may change to the revision, or has already."""
        variant_facts = self.facts
        return (variant_facts.grant is not None and variant_facts.grant.revision == revision) or (
            variant_facts.published is not None and variant_facts.published.revision == revision
        )

    def has(self, revision: str) -> bool:
        """Return whether the revision is the published one."""
        return self.facts.published is not None and self.facts.published.revision == revision

    @property
    def in_flight(self) -> bool:
        """Return whether the variant is released at any revision, and neither ready nor failed."""
        return self.state is VariantState.VERIFYING or (
            self.has_pending_grant and self.early_failure is None
        )

    @property
    def has_pending_grant(self) -> bool:
        """Return whether the variant has a grant that is not published yet."""
        grant, publication = self.facts.grant, self.facts.published
        if grant is None or publication is None:
            return grant is not None
        # A move leaves revision and digest as they are; the grant is for the new location.
        fulfilled = (grant.revision, grant.digest) == (publication.revision, publication.digest)
        return not fulfilled or (self.facts.draft is not None and self.facts.draft.moves)


@dataclass(slots=True)
class RevisionTally:
    """Counts of the variants that have one revision published. Skipped ones are counted apart."""

    ready: int = 0
    failed: int = 0
    verifying: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """Return the number of variants with the revision, skipped ones included."""
        return self.ready + self.failed + self.verifying + self.skipped


@dataclass(slots=True)
class StageTally:
    """Variants of one stage and their counts."""

    stage_rule: StageRule
    suspended: Hold | None  # the whole stage
    active_decisions: ActiveDecisions
    last_withdrawal: datetime | None = None  # of evidence, about any revision
    variants: list[TalliedVariant] = field(default_factory=list)  # by name
    active: int = 0  # neither suspended nor offline
    excepted: dict[str, int] = field(default_factory=dict)  # away after their release, by revision
    published: dict[str, RevisionTally] = field(default_factory=dict)
    _skipped: dict[str, int] = field(default_factory=dict)

    def counts(self, variant: TalliedVariant, revision: str) -> bool:
        """Return whether the variant counts for the revision.

        A variant that is suspended or offline before its release, or skipped, leaves numerator
        and denominator (docs/concepts/gates.md).
        """
        return (not variant.away or variant.released(revision)) and not self.skipped(
            variant, revision
        )

    def count_for(self, revision: str) -> int:
        """Return the number of variants that count for the revision."""
        number = self.active + self.excepted.get(revision, 0)
        # Skips are rare, and counting them costs O(N) per revision.
        if not self.active_decisions.has_skips:
            return number
        if revision not in self._skipped:
            self._skipped[revision] = sum(
                (not it.away or it.released(revision)) and self.skipped(it, revision)
                for it in self.variants
            )
        return number - self._skipped[revision]

    def skipped(self, variant: TalliedVariant, revision: str) -> bool:
        """Return whether a Skip excludes the variant from the rollout of the revision."""
        active_decisions = self.active_decisions
        return active_decisions.has_skips and (
            active_decisions.skipped(self.stage_rule.name, variant.facts.name, revision) is not None
        )

    def early_failure_count(self, revision: str) -> int:
        """Return how many variants that count failed the candidate before publication."""
        return sum(
            1
            for variant in self.variants
            if variant.absent_failure is not None
            and not variant.has(revision)
            and self.counts(variant, revision)
        )

    def moved_on_at(
        self, revision: str, history: RevisionHistory, now: datetime
    ) -> datetime | None:
        """Return when the present stretch of a revision ended; None if it goes on.

        That is when the first variant took another revision, at the beginning of the stretch or
        later. At the very instant: a pass that sees a verdict passed can publish the next revision.
        A stretch that is not the first ends too when a variant counts again that had moved on
        before it, such as a resumed one; that instant is unknown before it is observed.
        """
        stretch_start, passed_at = history.stretch_start, history.passed
        if stretch_start is None or passed_at is None:
            return None
        earliest: datetime | None = None
        for variant in self.variants:
            publication = variant.facts.published
            if (
                publication is None
                or publication.revision == revision
                or publication.at < passed_at
            ):
                continue
            if publication.at >= stretch_start:
                at = publication.at
            elif variant.early_failure is None and self.counts(variant, revision):
                at = max(now, stretch_start)
            else:
                continue
            earliest = at if earliest is None else min(earliest, at)
        return earliest

    def ready_since(self, revision: str, now: datetime) -> datetime:
        """Return the latest instant that the readiness of the stage with the revision rests on.

        That is an event of a variant that counts, or the decision by which another does not. What
        has no instant on record (an offline target, a suspension by spec) is dated with `now`.
        """
        latest = self.last_withdrawal
        for variant in self.variants:
            at = self._state_since(variant, revision) or now
            latest = at if latest is None else max(latest, at)
        # A publication may be dated by a clock that runs ahead.
        return now if latest is None else min(latest, now)

    def _state_since(self, variant: TalliedVariant, revision: str) -> datetime | None:
        """Return since when a variant is as its stage counts it for the revision; None: unknown."""
        variant_facts, publication = variant.facts, variant.facts.published
        skip = (
            self.active_decisions.skipped(self.stage_rule.name, variant_facts.name, revision)
            if self.active_decisions.has_skips
            else None
        )
        if skip is not None:
            return skip.at
        if not self.counts(variant, revision):
            return variant.suspended.since if variant.suspended is not None else None
        if publication is None or publication.revision != revision:
            failure = variant.absent_failure
            return failure.since if failure is not None else None
        retried = self.active_decisions.retried_at(
            self.stage_rule.name, variant_facts.name, revision
        )
        latest = max([publication.at, *(it.at for it in variant.checks if it.at is not None)])
        if variant.state is VariantState.READY:
            latest += self.stage_rule.rollout.ready_time
        others = [retried, *(it.since for it in variant.holds)]
        return max([latest, *(at for at in others if at is not None)])

    def is_finished(self, revision: str, early_failures: int = 0) -> bool:
        """Return whether all that count are ready at the revision but tolerated failures."""
        revision_tally, counted = self.published.get(revision), self.count_for(revision)
        failed = early_failures + (revision_tally.failed if revision_tally is not None else 0)
        ready = revision_tally.ready if revision_tally is not None else 0
        complete = bool(counted) and ready + failed == counted
        return complete and failed <= self.tolerated_failures(revision)

    def tolerated_failures(self, revision: str) -> int:
        """Return how many failures of the revision the stage tolerates (`maxFailures`)."""
        return compute_tolerance(self.stage_rule.rollout.tolerance, self.count_for(revision))

    def passes_at(self, revision: str, early_failures: int = 0) -> datetime | None:
        """Return when time alone will have let the revision pass here, or None.

        None if that never happens, or if it has passed already. `early_failures` is the number
        of variants that failed the revision before publication.
        """
        revision_tally = self.published.get(revision)
        if (
            revision_tally is None
            or revision_tally.total - revision_tally.skipped + early_failures
            != self.count_for(revision)
        ):
            return None
        waiting, failed = 0, early_failures
        changes: list[
            tuple[datetime, int, int]
        ] = []  # instant, decrease of waiting, increase of failed
        for variant in self.variants:
            if variant.state is VariantState.READY or not variant.has(revision):
                continue
            if not self.counts(variant, revision):
                continue
            has_failed = variant.state is VariantState.FAILED and not variant.mended
            waiting, failed = waiting + (not has_failed), failed + has_failed
            if variant.fails_at is not None:
                changes.append((variant.fails_at, 1, 1))
                has_failed = True
            if variant.ready_at is not None:
                changes.append((variant.ready_at, int(not has_failed), -int(has_failed)))
        tolerated = self.tolerated_failures(revision)
        changes.sort()
        for number, (at, less_waiting, more_failed) in enumerate(changes):
            waiting, failed = waiting - less_waiting, failed + more_failed
            # Changes of one instant take effect together: applied one by one, a variant that fails
            # in the same second as another becomes ready would be missed.
            is_last_of_instant = number + 1 == len(changes) or changes[number + 1][0] > at
            if is_last_of_instant and not waiting and failed <= tolerated:
                return at
        return None

    def clear_failure(self, variant: TalliedVariant, draft: DraftFacts) -> None:
        """Clear a failure of the variant that was about other inputs than those of its draft."""
        publication = variant.facts.published
        if publication is None or (publication.revision, publication.digest) == (
            draft.revision,
            draft.digest,
        ):
            return
        if publication.revision != draft.revision or self.skipped(variant, publication.revision):
            return
        variant.mended = True
        revision_tally = self.published[publication.revision]
        # Another attempt is under way, so the stage waits for it instead of failing.
        revision_tally.failed -= 1
        revision_tally.verifying += 1

    def count_withdrawn(self, revision: str, history: RevisionHistory) -> int:
        """Count the variants that carried the recorded verdict and have failed since.

        A variant that took the revision later did not carry it. Where the stage has moved on
        meanwhile this is unknown, and all of them count.
        """
        # A target that joined after the verdict must not withdraw it, not even by failing.
        stretch_start = history.stretch_start if history.left is None else None
        return sum(
            stretch_start is None or (publication.since or publication.at) <= stretch_start
            for variant in self.variants
            if variant.state is VariantState.FAILED
            and not variant.mended
            and (publication := variant.facts.published) is not None
            and publication.revision == revision
            and not self.skipped(variant, revision)
        )

    def add(self, variant: TalliedVariant) -> None:
        """Add one variant to the tally."""
        self.variants.append(variant)
        variant_facts = variant.facts
        if not variant.away:
            self.active += 1
        else:
            # A set: released and published at one revision, the variant counts there once.
            revisions = {
                it.revision
                for it in (variant_facts.grant, variant_facts.published)
                if it is not None
            }
            for revision in revisions:
                self.excepted[revision] = self.excepted.get(revision, 0) + 1
        if variant_facts.published is None:
            return
        revision_tally = self.published.setdefault(
            variant_facts.published.revision, RevisionTally()
        )
        if self.skipped(variant, variant_facts.published.revision):
            revision_tally.skipped += 1
        elif variant.state is VariantState.READY:
            revision_tally.ready += 1
        elif variant.state is VariantState.FAILED:
            revision_tally.failed += 1
        else:
            revision_tally.verifying += 1


def group_by_stage(
    variants: Iterable[VariantFacts], stage_rules: Mapping[str, StageRule]
) -> tuple[dict[str, list[VariantFacts]], list[VariantFacts]]:
    """Group variants by stage, in the order of names; the second list is of no stage."""
    groups: dict[str, list[VariantFacts]] = {
        name: [] for name, stage_rule in stage_rules.items() if not stage_rule.control_flow
    }
    unstaged: list[VariantFacts] = []
    for variant_facts in sorted(variants, key=attrgetter("name")):
        groups.get(variant_facts.stage, unstaged).append(variant_facts)
    return {name: groups.get(name, []) for name in stage_rules}, unstaged


def offline_hold(variant: TalliedVariant, *, released: bool = False) -> Hold:
    """Build the hold of a variant whose target is offline. `released`: it was released before."""
    effect = "its variant keeps its state and counts" if released else "its variant does not count"
    sentence = f"target {variant.facts.target} is offline; {effect}"
    return Hold(Reason.OFFLINE, sentence, "the operator of the target")
