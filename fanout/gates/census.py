"""The variants of one stage, each judged for what it has published, and counted by revision.

Made once per pass; every verdict is a look-up in it, so a pass is O(N) in variants.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from fanout.gates.answer import CheckView, State
from fanout.gates.checks import EvidenceIndex
from fanout.gates.decisions import Standing, by_spec
from fanout.gates.facts import Hold, Published, VariantFacts
from fanout.gates.records import Override
from fanout.gates.rules import StageRule, Verdict


@dataclass(slots=True, eq=False)  # not frozen: that would be a tenth of a pass
class Member:
    """A variant of the stage: how what it has published stands, and whether somebody stopped it."""

    facts: VariantFacts
    state: State | None  # Verifying, Ready or Failed at what is published, Held where that was
    # taken back; None: nothing is published
    checks: tuple[CheckView, ...]
    suspended: Hold | None

    def released(self, revision: str) -> bool:
        """May it change to the revision, or has it done so already?"""
        facts = self.facts
        return (facts.grant is not None and facts.grant.revision == revision) or (
            facts.published is not None and facts.published.revision == revision
        )

    def counts(self, revision: str) -> bool:
        """Design §6: who is suspended before the release leaves numerator and denominator."""
        return self.suspended is None or self.released(revision)


@dataclass(slots=True)
class Tally:
    """The variants that have one revision published."""

    ready: int = 0
    failed: int = 0
    verifying: int = 0


@dataclass(slots=True)
class Census:
    """One stage, counted."""

    rule: StageRule
    suspended: Hold | None  # the whole stage
    members: list[Member] = field(default_factory=list)  # by name
    active: int = 0  # nobody suspended them
    excepted: dict[str, int] = field(
        default_factory=dict
    )  # suspended after their release, by revision
    published: dict[str, Tally] = field(default_factory=dict)

    def counting(self, revision: str) -> int:
        """How many variants count for the revision."""
        return self.active + self.excepted.get(revision, 0)

    def unrendered(self, revision: str) -> int:
        """How many of them failed before they could be published: meant for the candidate."""
        return sum(
            1
            for member in self.members
            if member.facts.failed is not None
            and member.counts(revision)
            and (member.facts.published is None or member.facts.published.revision != revision)
        )

    def moved_on(self, revision: str, since: datetime) -> datetime | None:
        """When the first variant took another revision, at the instant given or later.

        At the very instant: a pass that sees a verdict passed can publish the next revision.
        """
        return min(
            (
                member.facts.published.at
                for member in self.members
                if member.facts.published is not None
                and member.facts.published.revision != revision
                and member.facts.published.at >= since
            ),
            default=None,
        )

    def add(self, member: Member) -> None:
        """Count one more variant."""
        self.members.append(member)
        facts = member.facts
        if member.suspended is None:
            self.active += 1
        else:
            names = {item.revision for item in (facts.grant, facts.published) if item is not None}
            for name in names:
                self.excepted[name] = self.excepted.get(name, 0) + 1
        if facts.published is None:
            return
        tally = self.published.setdefault(facts.published.revision, Tally())
        match member.state:
            case State.READY:
                tally.ready += 1
            case State.FAILED:
                tally.failed += 1
            case _:
                tally.verifying += 1


class Registrar:
    """Takes the census of stages."""

    def __init__(self, evidence: EvidenceIndex, standing: Standing, policy: Hold | None) -> None:
        self._evidence = evidence
        self._standing = standing
        self._policy = policy

    def take(self, rule: StageRule, variants: Iterable[VariantFacts]) -> Census:
        """The stage with these variants in it; they come in the order of their names."""
        suspended = self._policy or self._standing.stage_suspended(rule.name)
        if suspended is None and rule.suspended:
            suspended = by_spec(f"stage {rule.name}", "the policy's author")
        census = Census(rule, suspended)
        for facts in variants:
            census.add(self._member(rule, facts, suspended))
        return census

    def _member(self, rule: StageRule, facts: VariantFacts, stage: Hold | None) -> Member:
        suspended = stage or self._standing.variant_suspended(facts.name)
        if suspended is None and facts.suspended:
            suspended = by_spec(f"variant {facts.name}", "its owner")
        if facts.published is None:
            return Member(facts, None, (), suspended)
        if facts.published.undone is not None:
            return Member(facts, State.HELD, (), suspended)
        answer, stage_name, name = self._evidence.answer, rule.name, facts.name
        checks = tuple(
            [answer(stage_name, check.name, name, facts.published) for check in rule.verification]
        )
        if any(check.verdict is not Verdict.PASSED for check in checks):
            checks = self._lifted(rule.name, facts.name, facts.published, checks)
        return Member(facts, standing_of(checks), checks, suspended)

    def _lifted(
        self, stage: str, variant: str, published: Published, checks: tuple[CheckView, ...]
    ) -> tuple[CheckView, ...]:
        """A person may let a variant count as ready; of what failed later they did not know."""
        orders = self._standing.orders(stage, variant, published.revision)
        for order in reversed(orders):
            if Override.VERIFICATION in order.decision.overrides:
                return tuple(
                    check
                    if check.verdict is Verdict.PASSED
                    or (check.verdict is Verdict.FAILED and _later(check.at, order.at))
                    else lifted(check, order.decision.by, order.at)
                    for check in checks
                )
        return checks


def lifted(check: CheckView, by: str, at: datetime) -> CheckView:
    """The check as a person overrode it."""
    return CheckView(check.name, Verdict.PASSED, f"{check.name}: lifted by {by}", at)


def standing_of(checks: Iterable[CheckView]) -> State:
    """How a published variant stands. Without checks it is ready on publication."""
    verdicts = [check.verdict for check in checks]
    if Verdict.FAILED in verdicts:
        return State.FAILED
    return State.VERIFYING if Verdict.PENDING in verdicts else State.READY


def by_stage(
    variants: Iterable[VariantFacts], stages: Mapping[str, StageRule]
) -> tuple[dict[str, list[VariantFacts]], list[VariantFacts]]:
    """Variants by stage, in the order of their names; and those that are in no stage."""
    groups: dict[str, list[VariantFacts]] = {name: [] for name in stages}
    nowhere: list[VariantFacts] = []
    for facts in sorted(variants, key=attrgetter("name")):
        groups.get(facts.stage, nowhere).append(facts)
    return groups, nowhere


def _later(at: datetime | None, than: datetime) -> bool:
    return at is not None and at > than
