"""Revision that a rollback goes back to: the one asked for, or that was published before."""

from collections.abc import Iterable, Sequence

from fanout.errors import InvalidInput
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.candidate_choice import RevisionAges
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_wording import label_stage
from fanout.gates.rollback_pins import Pin
from fanout.plan.plan_wording import format_decision_command
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore
from fanout.reconcile.rollback.rollback_selection import list_published_revisions
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import Value


class RollbackSubject(Value):
    """Stage of a policy that is rolled back, or a variant written by hand, as a pass saw it."""

    policy: ResolvedPolicy
    stage: str  # "": a variant written by hand
    facts: PolicyFacts | None  # None: the policy was not evaluated
    revisions: tuple[str, ...]  # that the policy allows, in their order

    @property
    def title(self) -> str:
        """Return stage and policy, for people."""
        title = self.policy.title
        return f"{label_stage(self.stage)} of {title}" if self.stage else title


def find_rollback_revision(
    git: GitStore, subject: RollbackSubject, variants: Sequence[RenderedVariant], requested: str
) -> str:
    """Return the revision that a rollback goes back to.

    `requested` if it is given; else the one of an active rollback; else the newest that was
    published there before the newest present one. Raises InvalidInput if it was never published
    there.
    """
    if not variants:
        raise InvalidInput(
            f"{subject.title} has no variants",
            reason="NothingToDo",
            remedy="run `fanout get variants`",
        )
    active = _active_rollbacks(subject, [variant.spec.name for variant in variants])
    # Running the verb again continues an active rollback instead of going back one revision
    # further.
    if not requested and active:
        return active[0].revision
    published = list_published_revisions(git, [it.observed for it in variants])
    ever_published = {revision for revisions in published for revision in revisions}
    ages = RevisionAges(subject.revisions)
    if requested in ever_published:
        return requested
    if requested:
        choices = sorted(ever_published)
        remedy = f"choose one of: {', '.join(choices)}" if choices else "no revision was published"
        raise InvalidInput(
            f"{requested} was never published in {subject.title}",
            reason="NeverPublished",
            remedy=remedy,
        )
    published_now = {it.observed.published.revision for it in variants if it.observed.published}
    present = _find_newest(published_now, ages)
    earlier: set[str] = set()
    for revisions in published:
        for revision in revisions:
            # Where the ages do not compare, the last other one.
            is_other = revision != present and not ages.are_comparable(revision, present)
            if is_other or ages.is_older(revision, present):
                earlier.add(revision)
                break
    if not earlier:
        # A PackageVariant of its own has no stage that a command can name.
        stage = subject.stage if subject.policy.upstream_policy is not None else ""
        command = format_decision_command("suspend", subject.policy.name, stage)
        raise InvalidInput(
            f"nothing was published in {subject.title} before {present or 'now'}",
            reason="NeverPublished",
            remedy=f"to stop later publications, run `{command}`",
        )
    return _find_newest(earlier, ages)


def find_active_rollback(
    subject: RollbackSubject, variants: Sequence[str], revision: str, overrides: Sequence[str]
) -> str:
    """Return the name of the active decision that rolls all of it back to the revision.

    Empty if none. The author does not matter: a second decision would change nothing.
    """
    scopes = variants or [""]
    equal_pins = [
        pin.decision
        for pin in _active_rollbacks(subject, scopes)
        if pin.decision is not None
        and pin.revision == revision
        and set(overrides).issubset(pin.decision.spec.overrides)
    ]
    return equal_pins[0].name if len(equal_pins) == len(scopes) else ""


def _active_rollbacks(subject: RollbackSubject, variants: Iterable[str]) -> list[Pin]:
    """Return the active rollbacks of the stage (variant "") or of variants in it."""
    facts = subject.facts
    if facts is None:
        return []
    rollbacks = ActiveDecisions(facts.records.decisions, facts.now, facts.variants).rollbacks
    pins = (rollbacks.find_pin(subject.stage, variant) for variant in variants)
    return [pin for pin in pins if pin is not None]


def _find_newest(revisions: Iterable[str], ages: RevisionAges) -> str:
    newest = ""
    for revision in sorted(revisions):
        if not newest or ages.is_older(newest, revision):
            newest = revision
    return newest
