"""A running system around the pure gates: what is on record, what is in Git, and passes over both.

As small as it can be and still crash: a pass observes, decides, records its releases by
compare-and-swap, publishes draft by draft, writes drafts, and records what came of it. It can stop
between any two of these; the next pass starts from what is there. What is here has no clock and no
Git: `now` is set from outside, a publication is a value.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gates.worlds import at, in_order

from fanout.api.results import Hold
from fanout.calendar.publication_calendar import PublicationCalendar
from fanout.gates.gate_evaluation import find_rollbacks
from fanout.gates.gate_evaluator import choose_candidates, evaluate_gates, find_suspended
from fanout.gates.gate_facts import (
    DraftFacts,
    Grant,
    PolicyEvaluation,
    PolicyFacts,
    Publication,
    VariantFacts,
)
from fanout.gates.gate_rules import StageRule
from fanout.gates.record_facts import ApprovalFacts, DecisionFacts, EvidenceFacts, RecordFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.values import replace

_NEVER = Hold("NeverPublished", "it never had the revision to go back to", "the author of the pin")


@dataclass
class Place:
    """Variant of one target: people's statements about it, its state in Git and on record."""

    stage: str
    inputs: int = 0
    suspended: bool = False
    offline: bool = False
    published: Publication | None = None
    noted: bool = True  # the publication is on record
    draft: DraftFacts | None = None
    grant: Grant | None = None
    packages: dict[str, DraftFacts] = field(default_factory=dict)  # last published, by revision


@dataclass(frozen=True)
class Seen:
    """Observations and decision of a pass, with the version of the records."""

    facts: PolicyFacts
    decision: PolicyEvaluation
    wanted: dict[str, DraftFacts]
    number: int


class Outrun(Exception):
    """Another writer changed the records since they were read."""


class System:
    """One policy with its repositories and its records."""

    def __init__(self, rules: Iterable[StageRule], serialize: bool = False) -> None:
        self.now = 0
        self.rules = {rule.name: rule for rule in rules}
        self.serialize = serialize
        self.calendars: tuple[PublicationCalendar, ...] = ()
        self.revisions = ["v1"]
        self.places: dict[str, Place] = {}
        self.evidence: list[EvidenceFacts] = []
        self.approvals: list[ApprovalFacts] = []
        self.decisions: list[DecisionFacts] = []
        self.history: dict[tuple[str, str], RevisionHistory] = {}
        self.number = 0  # of the state of the records
        self.noticed: Callable[[Seen], None] = lambda _: None  # what a pass has recorded
        self.publishes: Callable[[Seen, str], None] = lambda *_: None
        self._evaluated: deque[tuple[PolicyFacts, PolicyEvaluation]] = deque(maxlen=3)

    # ---- a pass ----------------------------------------------------------------------------------

    def look(self, *, sweep: bool = True) -> Seen:
        """Observe and decide."""
        facts, wanted = self.observe(sweep=sweep)
        return Seen(facts, self.evaluate(facts), wanted, self.number)

    def evaluate(self, facts: PolicyFacts) -> PolicyEvaluation:
        """Evaluate the gates, once for equal facts: an event begins with what checks ended with.

        That they say the same when they are asked again is tested in test_rollout_budget_laws.py.
        """
        for known, decision in self._evaluated:
            if known == facts:
                return decision
        decision = evaluate_gates(facts)
        self._evaluated.appendleft((facts, decision))
        return decision

    def run(self, *, sweep: bool = True, effects: int | None = None) -> bool:
        """Run a pass, or its first effects; return whether anything changed."""
        return self.carry_out(self.look(sweep=sweep), effects)

    def carry_out(self, seen: Seen, effects: int | None = None) -> bool:
        """Do what was decided, as far as nobody else was faster."""
        done = False
        try:
            for number, effect in enumerate(self._effects(seen)):
                if number == effects:
                    break
                done |= effect()
        except Outrun:
            return False
        return done

    def _effects(self, seen: Seen) -> Iterator[Callable[[], bool]]:
        yield lambda: self._record(seen)
        for name, item in seen.decision.variants.items():
            if item.publish:
                yield lambda name=name: self._publish(seen, name)
        for name, draft in seen.wanted.items():
            yield lambda name=name, draft=draft: self._write(seen, name, draft)
        yield self._note

    def _record(self, seen: Seen) -> bool:
        """Releases, and what is remembered: the fence."""
        if seen.number != self.number:
            raise Outrun
        grants = {
            name: Grant(
                item.candidate,
                self._seen(seen, name).draft.digest,
                seen.facts.now,
                item.released_by,
            )
            for name, item in seen.decision.variants.items()
            if item.release
        }
        self.noticed(seen)
        unrecorded = [it for it in self.places.values() if not it.noted]
        if not grants and not unrecorded and seen.decision.history == self.history:
            return False
        for name, grant in grants.items():
            self.places[name].grant = grant
        for name, place in self.places.items():
            if not place.noted:
                place.published, place.noted = self._seen(seen, name).published, True
        self.history = dict(seen.decision.history)
        self.number += 1
        return True

    def _publish(self, seen: Seen, name: str) -> bool:
        place, draft = self.places.get(name), self._seen(seen, name).draft
        if place is None or place.draft is None or place.draft.tree != draft.tree:
            return False  # the lease does not fit
        self.publishes(seen, name)
        commits = frozenset({f"commit-{draft.tree}"})
        before = place.published
        stays = before is not None and before.revision == draft.revision
        place.published = Publication(
            draft.revision,
            draft.digest,
            draft.tree,
            at(self.now),
            commits,
            since=(before.since or before.at) if stays else None,
            waiting=frozenset(seen.decision.variants[name].waiting),
        )
        place.noted = False
        place.packages[draft.revision] = replace(draft, current=True)
        place.draft = None
        return True

    def _write(self, seen: Seen, name: str, draft: DraftFacts) -> bool:
        place, before = self.places.get(name), self._seen(seen, name)
        if place is None or (place.draft is None) != (before.draft is None):
            return False
        if place.draft is not None and place.draft.tree != before.draft.tree:
            return False
        place.draft = draft
        return True

    def _note(self) -> bool:
        fresh = [it for it in self.places.values() if not it.noted]
        for place in fresh:
            place.noted = True
        self.number += bool(fresh)
        return bool(fresh)

    def _seen(self, seen: Seen, name: str) -> VariantFacts:
        return next(it for it in seen.facts.variants if it.name == name)

    # ---- what is observed ------------------------------------------------------------------------

    def observe(self, *, sweep: bool = True) -> tuple[PolicyFacts, dict[str, DraftFacts]]:
        """The facts of a pass, and the drafts that it is to write."""
        facts = self._facts(sweep)
        chosen, pins, still = choose_candidates(facts), find_rollbacks(facts), find_suspended(facts)
        variants, wanted = [], {}
        for it in facts.variants:
            target, pin = self._rendered(it, chosen.get(it.stage, "")), pins.get(it.name)
            if pin is not None:
                target = self.places[it.name].packages.get(pin.revision)
            held = _NEVER if pin is not None and target is None else None
            in_force = target is not None and _is(it.published, target)
            draft = it.draft if not in_force or it.name in still else None  # nothing is left of it
            current = target is not None and draft is not None and draft.tree == target.tree
            if target is not None and not in_force and not current and it.name not in still:
                wanted[it.name] = target
            self.places[it.name].draft = draft
            draft = replace(draft, current=current) if draft is not None else None
            variants.append(replace(it, draft=draft, held=held))
        return replace(facts, variants=tuple(variants)), wanted

    def _rendered(self, it: VariantFacts, revision: str) -> DraftFacts | None:
        if not revision:
            return None
        what = f"{it.name}-{revision}-{self.places[it.name].inputs}"
        return DraftFacts(revision, f"digest-{what}", f"tree-{what}")

    def _facts(self, sweep: bool) -> PolicyFacts:
        now: datetime = at(self.now)
        return PolicyFacts(
            name="monitoring",
            stages=tuple(self.rules.values()),
            variants=tuple(self._variant(name, it, now) for name, it in self.places.items()),
            revisions=tuple(self.revisions),
            records=RecordFacts(
                in_order(self.evidence, EvidenceFacts),
                tuple(self.approvals),
                in_order(self.decisions, DecisionFacts),
            ),
            history=self.history,
            now=now,
            serialize=self.serialize,
            calendars=self.calendars,
            sweep=sweep,
        )

    def _variant(self, name: str, place: Place, now: datetime) -> VariantFacts:
        """A publication that nobody has put on record is seen as one of this pass."""
        has = place.published
        return VariantFacts(
            name,
            place.stage,
            f"Cluster/{name}",
            published=has if has is None or place.noted else replace(has, at=now),
            draft=place.draft,
            grant=place.grant if _fits(place.grant, place.draft) else None,
            suspended=place.suspended,
            offline=place.offline,
        )


def _is(has: Publication | None, draft: DraftFacts) -> bool:
    return has is not None and (has.revision, has.digest) == (draft.revision, draft.digest)


def _fits(grant: Grant | None, draft: DraftFacts | None) -> bool:
    """Is the release about the draft that stands? Of one that was rewritten nothing is left."""
    if grant is None or draft is None:
        return False
    return (grant.revision, grant.digest) == (draft.revision, draft.digest)
