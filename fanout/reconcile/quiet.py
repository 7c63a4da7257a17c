"""Policies of which nothing can have changed since this process last judged them.

A pass reads the world, never the event. But what was read the same as before gives the same answer
until the answer's own next instant; so a policy that had nothing to do then is not judged again.
One record about one policy, and the others cost their listings and no more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError
from fanout.gates.facts import Dependency
from fanout.gates.rules import CheckRule, Way
from fanout.plan.book import Book, BookKey
from fanout.plan.planner import PolicyPlan
from fanout.plan.repository import Listing
from fanout.reconcile.dependencies import Key
from fanout.reconcile.judge import Told
from fanout.reconcile.report import PolicyPass
from fanout.values import frozen


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a pass has read that any policy may depend on."""

    declared: Declared
    publish: bool
    listings: Mapping[str, Listing | FanoutError]
    books: Mapping[BookKey, Book]

    def like(self, other: "Seen") -> bool:
        """Is all of it as it was? What could not be listed may be anything."""
        return (
            self.declared is other.declared
            and self.publish == other.publish
            and self.listings.keys() == other.listings.keys()
            and all(map(_same_refs, self.listings.values(), _ordered(self, other)))
            and self.books.keys() == other.books.keys()
            and all(_same_status(book, other.books[key]) for key, book in self.books.items())
        )


@frozen
class _Kept:
    """The answer about one policy, and what it rests on."""

    seen: Seen
    head: str  # of its book
    sweep: bool
    depends_on: tuple[Dependency, ...]
    at: datetime
    done: PolicyPass

    def holds(self, told: Told, now: datetime) -> bool:
        """Is it still the answer, where the rest of the world is as it was?"""
        until = self.done.decision.next if self.done.decision else None
        return (
            self.head == told.book.head
            and self.sweep == told.sweep
            and self.depends_on == told.depends_on
            and self.at <= now
            and (until is None or now < until)
        )


@dataclass(slots=True)
class Quiet:
    """What this process knows of policies that had nothing to do; one per process."""

    _known: frozenset[Key] = frozenset()  # to this pass
    _kept: dict[Key, _Kept] = field(default_factory=dict)
    _alike: dict[int, bool] = field(default_factory=dict)  # by what was seen then, in this pass

    def begin(self, known: Iterable[Key]) -> None:
        """A new pass has read the world; these are all that there are to judge in it."""
        self._alike.clear()
        self._known = frozenset(known)
        self._kept = {key: self._kept[key] for key in self._known & self._kept.keys()}

    def answer(self, key: Key, told: Told, seen: Seen, now: datetime) -> PolicyPass | None:
        """What was said of the policy before; None: it has to be judged."""
        kept = self._kept.get(key)
        if kept is None or not kept.holds(told, now):
            return None
        before = id(kept.seen)
        if before not in self._alike:
            self._alike[before] = kept.seen.like(seen)
        return kept.done if self._alike[before] else None

    def rests(self) -> bool:
        """Can what was said of all in this pass be said again?"""
        return self._known == self._kept.keys()

    def keep(
        self, key: Key, told: Told, seen: Seen, done: PolicyPass, plan: PolicyPlan | None
    ) -> None:
        """Remember what was said, when it can be said again."""
        self._kept.pop(key, None)
        if plan is None or plan.actions or plan.planned != plan.before or not _lasting(done):
            return
        assert done.facts is not None, "a policy with a plan was judged"
        now = done.facts.now
        self._kept[key] = _Kept(seen, told.book.head, told.sweep, told.depends_on, now, done)


def _lasting(done: PolicyPass) -> bool:
    """Does the answer rest on nothing but what was read? Not on machines, nor on what went wrong.

    What failed may have failed for want of time or memory, and is tried again.
    """
    checks = (check for rule in done.rules for check in (*rule.verification, *rule.requires))
    asked = any(isinstance(it, CheckRule) and it.way is not Way.REPORT for it in checks)
    failed = done.problem is not None or any(it.failure is not None for it in done.cases)
    decided = done.decision.variants.values() if done.decision is not None else ()
    limited = any(
        hold.reason == Reason.LIMIT_EXCEEDED for variant in decided for hold in variant.holds
    )
    return not (asked or failed or limited)


def _ordered(before: Seen, now: Seen) -> list[Listing | FanoutError]:
    return [now.listings[url] for url in before.listings]


def _same_refs(before: Listing | FanoutError, now: Listing | FanoutError) -> bool:
    return isinstance(before, Listing) and isinstance(now, Listing) and before.refs == now.refs


def _same_status(before: Book, now: Book) -> bool:
    """Who is where is known from the status alone; records are about the book's own policy."""
    return before.head == now.head or (
        before.status == now.status and before.unreadable == now.unreadable
    )
