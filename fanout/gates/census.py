"""The variants of one stage, each judged for what it has published, and counted by revision.

Made once per pass; every verdict is a look-up in it, so a pass is O(N) in variants.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from fanout.api.reasons import Reason
from fanout.gates.amounts import tolerance
from fanout.gates.answer import CheckView, State
from fanout.gates.decisions import Standing
from fanout.gates.facts import Answer, Draft, Hold, StageHistory, VariantFacts
from fanout.gates.rules import StageRule


@dataclass(slots=True, eq=False)  # not frozen: that would be a tenth of a pass
class Member:
    """A variant of the stage: how what it has published stands, and whether somebody stopped it.

    Below the line stands what is known when the candidate is.
    """

    facts: VariantFacts
    state: State | None  # Verifying, Ready or Failed at what is published, Held where that was
    # taken back; None: nothing is published
    checks: tuple[CheckView, ...]
    suspended: Hold | None
    holds: tuple[Hold, ...] = ()  # why it is not ready, or failed, although its checks are not
    answers: tuple[Answer, ...] = ()  # of machine checks, to be on record
    wake: datetime | None = None  # when its state changes by itself
    ready_at: datetime | None = None  # when time alone will have made it ready
    fails_at: datetime | None = None  # when time alone fails it, if that comes first
    # ----
    mended: bool = False  # it failed with inputs that are others by now: that failure is over
    candidate: str = ""  # what it is to take next: its stage's candidate, or what it goes back to
    draft: Draft | None = None  # its standing draft of that, when it is not in force
    required: tuple[CheckView, ...] = ()  # what is asked before that is published
    failing: Hold | None = None  # it fails the candidate before it could be published
    returned: Hold | None = None  # a person had it go back, and not all of its stage

    @property
    def away(self) -> bool:
        """Does it not count before it is released?"""
        return self.suspended is not None or self.facts.offline

    def released(self, revision: str) -> bool:
        """May it change to the revision, or has it done so already?"""
        facts = self.facts
        return (facts.grant is not None and facts.grant.revision == revision) or (
            facts.published is not None and facts.published.revision == revision
        )

    def has(self, revision: str) -> bool:
        """Is the revision what it has published?"""
        return self.facts.published is not None and self.facts.published.revision == revision

    @property
    def in_flight(self) -> bool:
        """Was it released, and is it neither ready nor failed yet? At whatever revision."""
        return self.state is State.VERIFYING or (self.on_its_way and self.failing is None)

    @property
    def on_its_way(self) -> bool:
        """Was it released to something that is not in force yet?"""
        grant, published = self.facts.grant, self.facts.published
        if grant is None or published is None:
            return grant is not None
        fulfilled = (grant.revision, grant.digest) == (published.revision, published.digest)
        return not fulfilled or (self.facts.draft is not None and self.facts.draft.moves)


@dataclass(slots=True)
class Tally:
    """The variants that have one revision published, without those that a person took out."""

    ready: int = 0
    failed: int = 0
    verifying: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.ready + self.failed + self.verifying + self.skipped


@dataclass(slots=True)
class Census:
    """One stage, counted."""

    rule: StageRule
    suspended: Hold | None  # the whole stage
    standing: Standing
    members: list[Member] = field(default_factory=list)  # by name
    active: int = 0  # nobody suspended them and they are not offline
    excepted: dict[str, int] = field(default_factory=dict)  # away after their release, by revision
    published: dict[str, Tally] = field(default_factory=dict)
    _skipped: dict[str, int] = field(default_factory=dict)

    def counts(self, member: Member, revision: str) -> bool:
        """Who is away before the release, or skipped, leaves numerator and denominator."""
        return (not member.away or member.released(revision)) and not self.skipped(member, revision)

    def counting(self, revision: str) -> int:
        """How many variants count for the revision."""
        number = self.active + self.excepted.get(revision, 0)
        if not self.standing.skips:
            return number
        if revision not in self._skipped:
            self._skipped[revision] = sum(
                (not it.away or it.released(revision)) and self.skipped(it, revision)
                for it in self.members
            )
        return number - self._skipped[revision]

    def skipped(self, member: Member, revision: str) -> bool:
        """Did a person take it out of the rollout of the revision?"""
        standing = self.standing
        return standing.skips and (
            standing.skipped(self.rule.name, member.facts.name, revision) is not None
        )

    def failing(self, revision: str) -> int:
        """How many of them failed before they could be published: meant for the candidate."""
        return sum(
            1
            for member in self.members
            if (member.failing is not None or member.returned is not None)
            and not member.has(revision)
            and self.counts(member, revision)
        )

    def moved_on(self, revision: str, past: StageHistory, now: datetime) -> datetime | None:
        """Return when the present stretch of a revision ended; None if it goes on.

        That is when the first variant took another revision, at the beginning of the stretch or
        later. At the very instant: a pass that sees a verdict passed can publish the next revision.
        A stretch that is not the first ends too when a variant counts again that had moved on
        before it, as one that is resumed; when that was is not known before it is seen.
        """
        begun, first = past.begun, past.passed
        if begun is None or first is None:
            return None
        found: datetime | None = None
        for member in self.members:
            published = member.facts.published
            if published is None or published.revision == revision or published.at < first:
                continue
            if published.at >= begun:
                at = published.at
            elif member.failing is None and self.counts(member, revision):
                at = max(now, begun)
            else:
                continue
            found = at if found is None else min(found, at)
        return found

    def finished(self, revision: str, failing: int = 0) -> bool:
        """Is everything that counts ready at the revision, but for as many as may fail?"""
        tally, counting = self.published.get(revision), self.counting(revision)
        if tally is None and not failing:
            return False
        ready, failed = (tally.ready, tally.failed) if tally is not None else (0, 0)
        through = bool(counting) and ready + failed + failing == counting
        return through and failed + failing <= self.borne(revision)

    def borne(self, revision: str) -> int:
        """How many failures of the revision the stage bears."""
        return tolerance(self.rule.rollout.max_failures, self.counting(revision))

    def passes_at(self, revision: str, failing: int = 0) -> datetime | None:
        """Return when time alone will have let the revision pass here, if nobody does anything.

        None when that never happens, or when it is there already. `failing`: how many have failed
        it before publication.
        """
        tally = self.published.get(revision)
        if tally is None or tally.total - tally.skipped + failing != self.counting(revision):
            return None
        waiting, failed = 0, failing
        changes: list[tuple[datetime, int, int]] = []  # when, fewer that wait, more that failed
        for member in self.members:
            if member.state is State.READY or not member.has(revision):
                continue
            if not self.counts(member, revision):
                continue
            broken = member.state is State.FAILED and not member.mended
            waiting, failed = waiting + (not broken), failed + broken
            if member.fails_at is not None:
                changes.append((member.fails_at, 1, 1))
                broken = True
            if member.ready_at is not None:
                changes.append((member.ready_at, int(not broken), -int(broken)))
        borne = self.borne(revision)
        changes.sort()
        for number, (at, fewer, more) in enumerate(changes):
            waiting, failed = waiting - fewer, failed + more
            last = number + 1 == len(changes) or changes[number + 1][0] > at  # of this instant
            if last and not waiting and failed <= borne:
                return at
        return None

    def mend(self, member: Member, draft: Draft) -> None:
        """Take a failure back that was about other inputs than the draft's. (Design §6.)"""
        published = member.facts.published
        if published is None or (published.revision, published.digest) == (
            draft.revision,
            draft.digest,
        ):
            return
        if published.revision != draft.revision or self.skipped(member, published.revision):
            return
        member.mended = True
        tally = self.published[published.revision]
        tally.failed, tally.verifying = tally.failed - 1, tally.verifying + 1

    def withdrawing(self, revision: str, past: StageHistory) -> int:
        """How many of those that carried the verdict on record have failed since.

        Who took the revision later did not carry it. Where the stage has moved on meanwhile nobody
        can tell, and all of them count.
        """
        begun = past.begun if past.left is None else None
        return sum(
            begun is None or (published.since or published.at) <= begun
            for member in self.members
            if member.state is State.FAILED
            and not member.mended
            and (published := member.facts.published) is not None
            and published.revision == revision
            and not self.skipped(member, revision)
        )

    def add(self, member: Member) -> None:
        """Count one more variant."""
        self.members.append(member)
        facts = member.facts
        if not member.away:
            self.active += 1
        else:
            names = {item.revision for item in (facts.grant, facts.published) if item is not None}
            for name in names:
                self.excepted[name] = self.excepted.get(name, 0) + 1
        if facts.published is None:
            return
        tally = self.published.setdefault(facts.published.revision, Tally())
        if self.skipped(member, facts.published.revision):
            tally.skipped += 1
        elif member.state is State.READY:
            tally.ready += 1
        elif member.state is State.FAILED:
            tally.failed += 1
        else:
            tally.verifying += 1


def by_stage(
    variants: Iterable[VariantFacts], stages: Mapping[str, StageRule]
) -> tuple[dict[str, list[VariantFacts]], list[VariantFacts]]:
    """Variants by stage, in the order of their names; and those that are in no stage.

    Nobody is in a stage that only joins others.
    """
    groups: dict[str, list[VariantFacts]] = {
        name: [] for name, rule in stages.items() if not rule.control_flow
    }
    nowhere: list[VariantFacts] = []
    for facts in sorted(variants, key=attrgetter("name")):
        groups.get(facts.stage, nowhere).append(facts)
    return {name: groups.get(name, []) for name in stages}, nowhere


def offline(member: Member, *, released: bool = False) -> Hold:
    """Why a variant whose target is offline takes no step; `released`: it takes it all the same."""
    effect = "stays what it was, and counts" if released else "does not count before it is released"
    return Hold(
        Reason.OFFLINE,
        f"target {member.facts.target} is offline; it {effect}",
        "whoever runs the target; it goes on when the target is there again",
    )
