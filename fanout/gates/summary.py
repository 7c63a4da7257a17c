"""A stage's holds: its own, and those of its variants, gathered to one of each kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.gates.answer import State, VariantDecision
from fanout.gates.candidate import within_reach
from fanout.gates.census import Census
from fanout.gates.facts import Hold
from fanout.gates.instants import soonest
from fanout.gates.judgement import Judgement
from fanout.gates.release import StageGate
from fanout.gates.wording import counted, stage_named
from fanout.values import replace

_AT_CANDIDATE = (State.VERIFYING, State.READY)


@dataclass(slots=True)
class _Group:
    first: str
    hold: Hold
    names: set[str] = field(default_factory=set)
    since: datetime | None = None
    until: datetime | None = None

    def add(self, name: str, hold: Hold) -> None:
        self.names.add(name)  # a variant may wait for several things of one kind
        if hold.since is not None and (self.since is None or hold.since < self.since):
            self.since = hold.since
        if hold.until is not None and (self.until is None or hold.until < self.until):
            self.until = hold.until

    def told(self) -> Hold:
        if len(self.names) == 1:
            return replace(self.hold, sentence=f"{self.first}: {self.hold.sentence}")
        number = counted(len(self.names), "variant")
        return replace(
            self.hold,
            sentence=f"{number}, {self.first} first: {self.hold.sentence}",
            since=self.since,
            until=self.until,
        )


def stage_holds(
    judgement: Judgement,
    census: Census,
    gate: StageGate,
    variants: Sequence[VariantDecision],
) -> tuple[Hold, ...]:
    """All that a stage waits for: the person first, then the gate, a halt, and its variants.

    Who has failed or was skipped comes last: the stage waits for the others.
    """
    candidate = judgement.candidate(census.rule.name)
    holds: list[Hold] = [census.suspended] if census.suspended else []
    holds += _emptiness(census, candidate)
    if not variants or any(item.state not in _AT_CANDIDATE for item in variants):
        holds += gate.gate.holds
    holds += [gate.halted] if gate.halted is not None else []
    holds += gathered(sorted(variants, key=_is_through), holds)
    holds += _waiting_orders(judgement, census, candidate)
    return tuple(holds)


def soak_ends(judgement: Judgement, census: Census) -> datetime | None:
    """When time alone next lets a revision through that the stage may take.

    One that is everywhere is nothing to take, but it may become the candidate again, before what
    has not passed yet. A stage that goes back takes nothing but what was promoted since.
    """
    rule, candidate = census.rule, judgement.candidate(census.rule.name)
    pin = judgement.pin(rule)
    reach = within_reach(census, judgement.ledgers[rule.name], judgement.ages)
    if pin is not None:
        reach = tuple(filter(None, [pin.until]))
    wanted = (name for name in reach if name != candidate or not _everywhere(census, name))
    return soonest(
        (judgement.stage_gate(rule, revision).next for revision in wanted), judgement.now
    )


def gathered(variants: Iterable[VariantDecision], known: Iterable[Hold] = ()) -> list[Hold]:
    """One hold for each reason and each who, with the number of variants and the first of them."""
    told = {id(hold) for hold in known}
    groups: dict[tuple[str, str], _Group] = {}
    for item in variants:
        for hold in item.holds:
            if id(hold) in told:
                continue
            key = (hold.reason, hold.who)
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(item.name, hold)
            group.add(item.name, hold)
    return [group.told() for group in groups.values()]


def _is_through(item: VariantDecision) -> bool:
    return item.state in (State.FAILED, State.SKIPPED)


def _emptiness(census: Census, candidate: str) -> list[Hold]:
    named = stage_named(census.rule.name)
    if census.rule.control_flow:
        return []
    if not census.members:
        sentence = f"no target is in {named}: it passes nothing"
        return [Hold(Reason.NO_TARGETS, sentence, "the policy's author: spec.targets, spec.stages")]
    if not candidate:
        sentence = "the policy's rule allows no revision"
        return [Hold(Reason.NO_REVISION, sentence, "the policy's author: spec.upstream.revision")]
    if census.counting(candidate) == 0:
        sentence = (
            f"nothing is left to count in {named} for {candidate}: every variant is suspended,"
            " offline or skipped"
        )
        return [Hold(Reason.NOTHING_COUNTS, sentence, "whoever may decide: fanout resume")]
    return []


def _waiting_orders(judgement: Judgement, census: Census, candidate: str) -> list[Hold]:
    """Decisions to publish what is not the stage's candidate: a person must hear that they wait."""
    holds: list[Hold] = []
    latest = max((m.facts.published.at for m in census.members if m.facts.published), default=None)
    for revision, order in judgement.standing.ordered_revisions(census.rule.name).items():
        if revision == candidate or revision in census.published:
            continue
        if latest is not None and latest >= order.at:
            continue  # the stage has moved since: the decision was carried out, or overtaken
        why = (
            f"the candidate is {candidate}"
            if judgement.ages.allows(revision)
            else f"the policy's rule does not allow {revision}"
        )
        sentence = f"decision {order.decision.name} to publish {revision} waits: {why}"
        holds.append(Hold(Reason.DECISION_WAITS, sentence, order.decision.by, order.at))
    return holds


def _everywhere(census: Census, revision: str) -> bool:
    tally = census.published.get(revision)
    return tally is not None and tally.total == len(census.members)
