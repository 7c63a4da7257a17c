"""Which variants whose targets are gone may be removed now, and what the others wait for.

Level by level from the sinks: first the variants of stages that nobody waits for. No expression, no
`after`, soak, check or budget is asked; windows, suspensions and the automation switch bind it, and
too many at once await a person. Who is not sure that they are gone removes none. (Design §6.)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from fractions import Fraction

from fanout.api.reasons import Reason
from fanout.calendar.windows import Calendar
from fanout.gates.amounts import tolerance
from fanout.gates.decisions import Standing, by_spec
from fanout.gates.facts import Hold
from fanout.gates.instants import (
    counts_from,
    from_the_future,
    soonest,
)
from fanout.gates.records import Decision
from fanout.gates.rules import Amount, StageRule
from fanout.gates.windows import Windows
from fanout.gates.wording import counted, listed, stage_named
from fanout.values import frozen, replace

_AT_THE_WINDOWS = "time alone; an administrator: PromotionPolicy.windows (`fanout validate`)"
AT_ONCE = 3  # variants; of few variants a share would be none


@frozen
class Gone:
    """A variant that is published, released or drafted and that nothing asks for any more."""

    name: str
    stage: str = ""  # as recorded; "": none, or not known
    since: datetime | None = None  # when what it has was published
    edited: tuple[str, ...] = ()  # people's work that would go with it, in words
    trees: frozenset[str] = frozenset()  # that work, by id
    held: Hold | None = None  # what it has cannot be removed


@frozen
class Confirmation:
    """A person's word that variants are to go, and with them the edits in these trees."""

    at: datetime
    by: str
    variants: frozenset[str]
    trees: frozenset[str] = frozenset()


@frozen
class RemovalFacts:
    """What was observed of one policy whose targets have become fewer."""

    policy: str
    stages: tuple[StageRule, ...]
    present: int  # variants whose targets are there
    gone: tuple[Gone, ...]
    now: datetime
    limit: Amount
    confirmations: tuple[Confirmation, ...] = ()  # in record order
    decisions: tuple[Decision, ...] = ()  # those that suspend
    suspended: bool = False  # by spec
    sweep: bool = True  # False: automation does nothing in this pass
    calendars: tuple[Calendar, ...] = ()  # the windows: all must be open
    unread: bool = False  # there may be a window that could not be read
    doubt: Hold | None = None  # why nobody can be sure that a target is gone


@frozen
class Removals:
    """The answer, in the order in which the variants go."""

    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)  # none: it goes now
    limit: Hold | None = None  # too many at once, said once for the policy
    next: datetime | None = None

    @property
    def now(self) -> tuple[str, ...]:
        """Those that go in this pass."""
        return tuple(name for name, holds in self.holds.items() if not holds)


def removals(facts: RemovalFacts) -> Removals:
    """For each variant that is gone: nothing, and it is removed now, or all that holds it."""
    if not facts.gone:
        return Removals()
    ordered = by_level(facts.stages, facts.gone)
    confirmed = _confirmed(facts)
    limit = _too_many(facts, confirmed)
    standing = Standing(facts.decisions, facts.now)
    shut = closed(facts.calendars, facts.now, unread=facts.unread)
    asked = _Asked(facts, standing, confirmed, limit, shut)
    holds: dict[str, tuple[Hold, ...]] = {}
    before: tuple[Gone, ...] = ()
    for level in ordered:
        for gone in level:
            holds[gone.name] = (*asked.holds(gone), *_awaited(before))
        before = (*before, *level)
    untils = [hold.until for own in holds.values() for hold in own]
    ahead = (it.at for it in facts.confirmations if from_the_future(it.at, facts.now))
    return Removals(holds, limit, soonest([*untils, *map(counts_from, ahead)], facts.now))


def by_level(stages: Sequence[StageRule], gone: Iterable[Gone]) -> list[tuple[Gone, ...]]:
    """Those that are gone in the order in which they go; all of one level may go together.

    Last those of stages that the policy does not have any more, and of none.
    """
    ranks = levels(stages)
    found: dict[int, list[Gone]] = {}
    for one in sorted(gone, key=lambda one: one.name):
        found.setdefault(ranks.get(one.stage, len(ranks)), []).append(one)
    return [tuple(found[rank]) for rank in sorted(found)]


def levels(stages: Sequence[StageRule]) -> dict[str, int]:
    """How many stages come after each stage, one after the other, at most; 0: nobody waits for it.

    A stage before another has a higher level. Those on a circle have none.
    """
    before = {rule.name: tuple(rule.after.stages) if rule.after else () for rule in stages}
    waiting = dict.fromkeys(before, 0)
    for names in before.values():
        for name in set(names) & waiting.keys():
            waiting[name] += 1
    ranks: dict[str, int] = {}
    level = [name for name, number in waiting.items() if not number]
    rank = 0
    while level:
        ranks |= dict.fromkeys(level, rank)
        level, rank = _released(level, before, waiting), rank + 1
    return ranks


def _released(
    level: Sequence[str], before: Mapping[str, Sequence[str]], waiting: dict[str, int]
) -> list[str]:
    """The stages for which nobody waits any more once these are left out."""
    found = []
    for name in level:
        for earlier in set(before[name]) & waiting.keys():
            waiting[earlier] -= 1
            if not waiting[earlier]:
                found.append(earlier)
    return found


def _confirmed(facts: RemovalFacts) -> dict[str, Confirmation]:
    """The last word about each, if it was said since its publication."""
    since = {one.name: one.since for one in facts.gone}
    found: dict[str, Confirmation] = {}
    for said in facts.confirmations:
        if from_the_future(said.at, facts.now):
            continue
        for name in said.variants & since.keys():
            published = since[name]
            if published is None or published <= said.at:
                found[name] = said
    return found


def _too_many(facts: RemovalFacts, confirmed: Mapping[str, Confirmation]) -> Hold | None:
    """More than may go at once without a person, or all that there are."""
    asked = len(facts.gone) - len(confirmed)
    total = facts.present + len(facts.gone)
    limit = may_go(facts.limit, total)
    if asked and not facts.present and not _unlimited(facts.limit):
        sentence = f"no target is there any more, and {counted(asked, 'variant')} would go"
    elif asked > limit:
        sentence = (
            f"the targets of {asked} of {counted(total, 'variant')} are gone, and {limit} may go at"
            " once (removalLimit)"
        )
    else:
        return None
    who = f"whoever may decide: fanout remove {facts.policy} --all-gone --reason WHY"
    return Hold(Reason.TOO_MANY_REMOVALS, sentence, who)


def closed(calendars: Sequence[Calendar], now: datetime, *, unread: bool) -> Hold | None:
    """Why nothing may leave a branch at this time. (Design §6: windows bind removal.)

    `unread`: there may be a window that nobody could read.
    """
    shut = Windows(tuple(calendars), now, unread=unread).closed(begun=False)
    return None if shut is None else replace(shut, who=_AT_THE_WINDOWS)


def _unlimited(limit: Amount) -> bool:
    return isinstance(limit, Fraction) and limit == 1


def may_go(limit: Amount, total: int) -> int:
    """How many of all variants may go at once: a number as it is, of a share at least 3.

    A share of nothing is nothing.
    """
    share = tolerance(limit, total)
    return share if isinstance(limit, int) or not limit else max(share, AT_ONCE)


@frozen
class _Asked:
    """What is asked of each variant, whatever its level."""

    facts: RemovalFacts
    standing: Standing
    confirmed: Mapping[str, Confirmation]
    limit: Hold | None
    closed: Hold | None

    def holds(self, gone: Gone) -> tuple[Hold, ...]:
        """All that holds it; what a person confirmed asks neither automation nor the limit."""
        facts, said = self.facts, self.confirmed.get(gone.name)
        found = [facts.doubt, self._suspended(gone), gone.held, self._edited(gone, said)]
        if said is None:
            found += [self.limit, self._switched_off(gone)]
        found.append(self.closed)
        if said is None and not facts.sweep:
            sentence = "automation removes in sweeps, and this pass is none"
            found.append(Hold(Reason.SWEEP_AWAITED, sentence, "the next sweep, or: fanout sweep"))
        return tuple(hold for hold in found if hold is not None)

    def _suspended(self, gone: Gone) -> Hold | None:
        rules = {rule.name: rule for rule in self.facts.stages}
        rule, owner = rules.get(gone.stage), "the policy's author"
        if self.facts.suspended:
            return by_spec("the policy", owner)
        if rule is not None and rule.suspended:
            return by_spec(stage_named(rule.name), owner)
        return (
            self.standing.policy_suspended()
            or (self.standing.stage_suspended(gone.stage) if gone.stage else None)
            or self.standing.variant_suspended(gone.name)
        )

    def _edited(self, gone: Gone, said: Confirmation | None) -> Hold | None:
        if not gone.edited or (said is not None and gone.trees <= said.trees):
            return None
        sentence = f"people have changed {' and '.join(gone.edited)}, which would go with it"
        who = f"whoever may decide: fanout remove {self.facts.policy} {gone.name} --edited"
        return Hold(Reason.EDITED_DOWNSTREAM, sentence, f"{who} --reason WHY")

    def _switched_off(self, gone: Gone) -> Hold | None:
        """Automation of its stage; of one in no stage that there is, that of all stages."""
        automatic = {rule.name: rule.automatic for rule in self.facts.stages}
        if automatic.get(gone.stage, all(automatic.values())):
            return None
        named = f"for {stage_named(gone.stage)}" if gone.stage in automatic else "for every stage"
        return Hold(
            Reason.AUTOMATION_OFF,
            f"nobody has switched automation on {named}",
            "an administrator: PromotionPolicy.autoPromotion;"
            f" or: fanout remove {self.facts.policy} {gone.name} --reason WHY",
        )


def _awaited(before: Sequence[Gone]) -> tuple[Hold, ...]:
    """Those of later stages must be seen to be gone first."""
    if not before:
        return ()
    names = listed(one.name for one in before)
    return (Hold(Reason.REMOVAL_AWAITS, f"what is in later stages goes first: {names}"),)
