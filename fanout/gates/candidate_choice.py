"""Choice of a stage's candidate: the revision that it takes next; and ages of revisions.

The choice is made before anything is rendered, so it reads nothing that depends on it: not
`DraftFacts.current`, `VariantFacts.held` or `VariantFacts.failed` (docs/concepts/gates.md).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from fanout.api.gate_vocabulary import OverridableGate, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import pluralize
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions, is_applied
from fanout.gates.after_gate import AfterGate
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_facts import DraftFacts, VariantFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import label_stage, label_stages
from fanout.gates.next_changes import expected_completion
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.revision_history import compute_soak, soak_ends_at
from fanout.gates.stage_tally import StageTally, TalliedVariant
from fanout.gates.stage_verdicts import StageVerdicts
from fanout.package.revision import Version, parse_tag
from fanout.values import Value, field


class RevisionAges:
    """Ages of revisions: by the policy's rule, else by the versions in their names.

    A rule such as `latest` allows one revision at a time, so published revisions are often
    no longer allowed. Commits have no order of their own.
    """

    def __init__(self, revisions: Sequence[str]) -> None:
        self.allowed = tuple(revisions)
        self._rank: Mapping[str, int] = {name: rank for rank, name in enumerate(self.allowed)}
        self._versions: dict[str, Version | None] = {}

    def are_comparable(self, revision: str, other: str) -> bool:
        """Return whether the order of the two revisions is known."""
        return (revision in self._rank and other in self._rank) or (
            self._version(revision) is not None and self._version(other) is not None
        )

    def is_older(self, revision: str, other: str) -> bool:
        """Return whether the first revision is known to be older than the second."""
        if revision in self._rank and other in self._rank:
            return self._rank[revision] < self._rank[other]
        # By name only where the rule does not order them, as for a tag that was deleted since.
        first, second = self._version(revision), self._version(other)
        return first is not None and second is not None and first < second

    def newest(self, revisions: Iterable[str]) -> str:
        """Return the newest of these revisions that is allowed, "" if none is."""
        allowed = [name for name in revisions if name in self._rank]
        return max(allowed, key=self._rank.__getitem__, default="")

    def newer_than(self, revision: str) -> tuple[str, ...]:
        """List the newer allowed revisions, none if the given one is not allowed itself."""
        return self.allowed[self._rank[revision] + 1 :] if revision in self._rank else ()

    def is_allowed(self, revision: str) -> bool:
        """Return whether the policy's rule allows the revision."""
        return revision in self._rank

    def _version(self, revision: str) -> Version | None:
        if revision not in self._versions:
            self._versions[revision] = parse_tag(revision, "")
        return self._versions[revision]


GateByRevision = Callable[[str], AfterGate]


class CandidateChoice(Value):
    """Candidate of a stage, the newer revisions queued behind it, and alternatives."""

    revision: str
    queued: tuple[str, ...] = ()
    eligible: tuple[str, ...] = ()
    kept_hold: Hold | None = None  # why it is kept although a newer revision passes


def choose_candidate(
    tally: StageTally,
    verdicts: StageVerdicts,
    gate_of: GateByRevision,
    approvals: ApprovalIndex,
    ages: RevisionAges,
    leads: Collection[str] = (),
) -> CandidateChoice:
    """Choose the candidate among the allowed revisions, in this order.

    The current one while its draft has approvals and it can still pass; the newest that
    passes; the current one while it can still pass; the newest. `leads` are variants that a
    decision takes to another revision, and whose drafts say nothing about the stage's.
    """
    if not (allowed := reachable_revisions(tally, verdicts, ages, leads)):
        return CandidateChoice("")
    drafts = _leading_drafts(tally, verdicts, ages, leads)
    current = _current_revision(tally, drafts, ages, leads)
    gate = gate_of(current) if current in allowed else None
    can_pass = gate is not None and (gate.verdict is Verdict.PASSED or gate.possible)
    # A generator: gates are evaluated from the newest down, and only until one passes.
    passing = (name for name in reversed(allowed) if gate_of(name).verdict is Verdict.PASSED)
    chosen, kept_hold = next(passing, current if can_pass else allowed[-1]), None
    # A newer revision would rewrite the draft, and with it undo approvals that people gave.
    if (
        can_pass
        and chosen != current
        and any(
            draft.revision == current
            and approvals.has_approval(tally.stage_rule, variant.facts, draft)
            for variant, draft in drafts
        )
    ):
        sentence = f"{chosen} is queued: drafts of {current} have approvals and can still pass"
        actor = f"a reporter or approver of {current} (fanout report, approve or revoke)"
        chosen, kept_hold = current, Hold(Reason.REVISION_QUEUED, sentence, actor)
    # The newest that passes goes first, so nothing older comes after it.
    passed = gate_of(chosen).verdict is Verdict.PASSED
    eligible = allowed[allowed.index(chosen) :] if passed else allowed
    return CandidateChoice(chosen, ages.newer_than(chosen), eligible, kept_hold)


def serialize_choice(
    choice: CandidateChoice,
    tally: StageTally,
    verdicts: StageVerdicts,
    gate_of: GateByRevision,
    downstream_soaks: Sequence[tuple[timedelta, StageTally]],
    ages: RevisionAges,
    now: datetime,
) -> CandidateChoice:
    """Return the choice of a policy with `inFlight: Serialize`.

    A newer revision waits for the variants in flight in the stage, and until the downstream stages
    (`downstream_soaks`: required soak and tally of each) have had the soak that they wait for;
    otherwise nothing would ever soak where releases come faster. Failed variants, a halted stage,
    and variants that were released but can no longer pass the gate are not waited for.
    """
    current = _current_revision(tally, _leading_drafts(tally, verdicts, ages), ages)
    if current in ("", choice.revision) or not ages.is_older(current, choice.revision):
        return choice
    # A failed revision must not block the one that mends it.
    if verdicts.verdict(current) is Verdict.FAILED:
        return choice
    history = verdicts.history(current)
    soaks = [  # of the stages that still lack the revision
        (downstream.stage_rule.name, soak)
        for soak, downstream in downstream_soaks
        if verdicts.is_in_force(current)
        and compute_soak(history, now) < soak
        and (
            downstream.stage_rule.control_flow
            or any(
                not it.away
                and (
                    it.facts.published is None
                    or ages.is_older(it.facts.published.revision, current)
                )
                for it in downstream.variants
            )
        )
    ]
    gate = gate_of(current)
    can_pass = gate.verdict is Verdict.PASSED or gate.possible
    in_flight = [
        variant
        for variant in tally.variants
        if variant.state is VariantState.VERIFYING or (variant.has_pending_grant and can_pass)
    ]
    queued = f"{choice.revision} is queued (inFlight: Serialize)"
    if in_flight:
        sentence = (
            f"{queued}: {pluralize(len(in_flight), 'variant')} in flight at {current} in"
            f" {label_stage(tally.stage_rule.name)}"
        )
        actor, until = expected_completion(in_flight, gate_wording.REPORTER)
    elif soaks:
        stages = label_stages(name for name, _ in soaks)
        verb = "waits" if len(soaks) == 1 else "wait"
        sentence = f"{queued}: {stages} {verb} for the soak of {current}"
        until = soak_ends_at(history, max(soak for _, soak in soaks))
        actor = gate_wording.TIME_ALONE if until is not None else gate_wording.NEXT_SWEEP
    else:
        return choice
    newer = ages.newer_than(current)
    kept_hold = Hold(Reason.SERIALIZED, sentence, actor, until=until)
    return CandidateChoice(current, newer, (current, *newer), kept_hold)


def can_reach(
    tally: StageTally, verdicts: StageVerdicts, candidate: str, revision: str, ages: RevisionAges
) -> bool:
    """Return whether the stage can still pass the revision without going back.

    It can while the revision is its candidate, is newer than the candidate, or is published
    in the stage and the stage has not moved on. Afterwards it can only as the candidate,
    and only while no variant has a newer one.
    """
    if verdicts.history(revision).left is not None:
        newer = (other for other in tally.published if ages.is_older(revision, other))
        return revision == candidate and next(newer, None) is None
    if revision == candidate or ages.is_older(candidate, revision):
        return True
    if revision not in tally.published:
        return False
    return not any(ages.is_older(revision, other) for other in tally.published)


def reachable_revisions(
    tally: StageTally, verdicts: StageVerdicts, ages: RevisionAges, leads: Collection[str] = ()
) -> tuple[str, ...]:
    """List the revisions a stage may take without going back, oldest first.

    Excluded is what is older than every published revision and, where ages cannot be
    compared, what the stage is on record to have left. If nothing remains, because the rule
    was narrowed or a tag was deleted, everything allowed is returned: the candidate is then
    visible and can be promoted by hand, while automation never goes back to it.
    """
    # Read from the published revisions and not from the candidate, which is what is being chosen.
    published: Collection[str] = tally.published
    if leads:  # what they have does not leave behind what the others are to take
        others = (it.facts for it in tally.variants if it.facts.name not in leads)
        published = {it.published.revision for it in others if it.published is not None}
    reachable = tuple(name for name in ages.allowed if not _behind(name, published, verdicts, ages))
    return reachable or ages.allowed


def _behind(
    revision: str, published: Collection[str], verdicts: StageVerdicts, ages: RevisionAges
) -> bool:
    comparable = [other for other in published if ages.are_comparable(revision, other)]
    if comparable:
        return all(ages.is_older(revision, other) for other in comparable)
    return bool(published) and verdicts.history(revision).left is not None


def _leading_drafts(
    tally: StageTally, verdicts: StageVerdicts, ages: RevisionAges, leads: Collection[str] = ()
) -> list[tuple[TalliedVariant, DraftFacts]]:
    """List the open drafts that say what the stage takes, with their variants.

    Those of variants that are not suspended or offline, or of all if every variant is. Not
    those that would take their variant back, such as what a withdrawn rollback leaves.
    """
    leading: list[tuple[TalliedVariant, DraftFacts]] = []
    leads_back: dict[tuple[str, str], bool] = {}  # by drafted and published revision
    for variant in tally.variants:
        draft, publication = variant.facts.draft, variant.facts.published
        # A variant suspended long ago keeps an old draft, and must not keep its stage there.
        if draft is None or (variant.away and tally.active) or variant.facts.name in leads:
            continue
        if publication is not None and publication.revision != draft.revision:
            key = (draft.revision, publication.revision)
            if key not in leads_back:
                # Where all that the rule allows is older, only people publish, and their approvals
                # stay.
                leads_back[key] = _behind(
                    draft.revision, {publication.revision}, verdicts, ages
                ) and not all(
                    _behind(name, {publication.revision}, verdicts, ages) for name in ages.allowed
                )
            if leads_back[key]:
                continue
        leading.append((variant, draft))
    return leading


def _current_revision(
    tally: StageTally,
    drafts: Sequence[tuple[TalliedVariant, DraftFacts]],
    ages: RevisionAges,
    leads: Collection[str] = (),
) -> str:
    """Return the newest revision of the drafts, else of the grants, else published."""
    if newest_drafted := ages.newest({draft.revision for _, draft in drafts}):
        return newest_drafted
    granted = {
        variant.facts.grant.revision
        for variant in tally.variants
        if variant.facts.grant is not None and variant.facts.name not in leads
    }
    return ages.newest(granted) or ages.newest(tally.published)


# A Publish that overrides `after`, and the soak where the stage has one, makes its revision the
# candidate ahead of what the stage would take by itself: nothing that the choice rests on is left
# to wait for. Where a stage has no `after`, a Publish of a newer revision does. (Decision 0101.)


class CandidatePromotion(Value):
    """Candidates by decisions: of the stage as a whole, and of variants that go before it."""

    stage: str = ""
    by_variant: Mapping[str, str] = field(default_factory=dict)
    # Variants that took such a revision alone; they keep it until their stage comes after.
    ahead: frozenset[str] = frozenset()

    def newer_than(self, candidate: str, ages: RevisionAges) -> "CandidatePromotion":
        """Return the promotions of revisions that are newer than the stage's own choice."""
        by_variant = {
            name: revision
            for name, revision in self.by_variant.items()
            if ages.is_older(candidate, revision)
        }
        stage = self.stage if ages.is_older(candidate, self.stage) else ""
        return CandidatePromotion(stage, by_variant, self.ahead)

    @property
    def leads(self) -> frozenset[str]:
        """Return the variants that go their own way."""
        return self.ahead.union(self.by_variant)


NOTHING_PROMOTED = CandidatePromotion()


def list_needed_overrides(stage_rule: StageRule) -> frozenset[OverridableGate]:
    """Return the gates that a decision must override to make its revision the candidate."""
    if stage_rule.after is None:
        return frozenset()
    soak = {OverridableGate.SOAK} if stage_rule.after.soak_time else set()
    return frozenset({OverridableGate.AFTER, *soak})


def find_promoted(
    tally: StageTally,
    active_decisions: ActiveDecisions,
    reachable: Collection[str],
    ages: RevisionAges,
) -> CandidatePromotion:
    """Find the `reachable` revisions that decisions make candidates; the last one counts."""
    if not active_decisions.publishes:
        return NOTHING_PROMOTED
    stage_rule, stage_revision = tally.stage_rule, ""
    stages, needed = ("", stage_rule.name), list_needed_overrides(stage_rule)
    by_variant: dict[str, str] = {}
    ahead: set[str] = set()
    variants = {it.facts.name: it.facts for it in tally.variants}

    def is_due(decision: DecisionFacts, variant_facts: VariantFacts) -> bool:
        publication, revision = variant_facts.published, decision.revision
        if is_applied(decision, variant_facts) or (
            publication is not None and ages.is_older(revision, publication.revision)
        ):
            return False
        rollback = active_decisions.last_rollback(stage_rule.name, variant_facts.name)
        return rollback is None or rollback.order < decision.order

    for decision in active_decisions.publishes:
        # Asked first, because a large policy has many decisions about other stages.
        if decision.spec.stage not in stages or not needed.issubset(decision.spec.overrides):
            continue
        revision = decision.revision
        # One that names drafts was about the candidate of its time, and not about another one.
        if revision not in reachable or not decision.is_about_revision:
            continue
        named = [variants[it] for it in decision.spec.variants if it in variants]
        by_variant |= {it.name: revision for it in named if is_due(decision, it)}
        ahead |= {
            it.name
            for it in named
            if it.published is not None
            and it.published.revision == revision
            and is_applied(decision, it)
        }
        if not decision.spec.variants and any(is_due(decision, it) for it in variants.values()):
            stage_revision, by_variant = revision, {}
    return CandidatePromotion(stage_revision, by_variant, frozenset(ahead))
