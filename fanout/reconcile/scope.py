"""Scope of a pass: whom it judges, who is on record where, and which repositories it lists.

Worked out of names and records of all policies at once, before any repository is listed, because
who has a path is decided among all. An internal error in it is that of the policy, or of the
records, that causes it alone; the scope is worked out again without.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fanout.api.repository import Repository
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.book import Book, BookKey
from fanout.plan.repository import Look
from fanout.reconcile.dependencies import Dependencies
from fanout.reconcile.look import branch_conflicts, looks_at
from fanout.reconcile.names import Named, unnamed
from fanout.reconcile.places import remembered
from fanout.reconcile.whereabouts import Whereabouts
from fanout.telemetry.barrier import run_contained, without_faulty
from fanout.values import frozen, replace


@frozen
class Declarations:
    """What the scope of a pass is made of, beside names and records."""

    repositories: Sequence[Repository]
    covers: Callable[[Named], bool]  # is it part of the pass?
    install: str


@frozen
class Scope:
    """All policies and hand-written variants, and what is known of them before any listing."""

    everyone: Sequence[Named]
    covered: Sequence[Named]  # those that the pass is about
    named: Sequence[Named]  # and those they depend on, in the order in which they are judged
    books: Mapping[BookKey, Book]
    dependencies: Dependencies
    whereabouts: Whereabouts
    unusable: Mapping[str, InvalidInput]  # Repository objects that cannot be served, by identity
    looks: tuple[Look, ...]
    stopped: Sequence[Named] = ()  # covered, and left out of the rest by their own problem

    def look_everywhere(self, install: str) -> tuple[Look, ...]:
        """The listings of everybody's repositories, whoever the pass is about."""
        return looks_at(self.everyone, self.whereabouts.others, install)


def scope_of(
    everyone: Sequence[Named], books: Mapping[BookKey, Book], declared: Declarations
) -> Scope:
    """The scope of a pass. A policy that makes it fail is stopped by that, and the others go on.

    Raises Bug where the failure is nobody's own.
    """
    whole = run_contained(lambda: _scope(declared, books, everyone))
    if not isinstance(whole, FanoutError):
        return whole
    books = _readable(books, everyone)
    scope, faulty = without_faulty(partial(_scope, declared, books), everyone)
    stopped = [unnamed(everyone[index], problem) for index, problem in faulty.items()]
    covered = [it for it in stopped if declared.covers(it)]
    return replace(
        scope,
        everyone=[*scope.everyone, *stopped],
        covered=[*scope.covered, *covered],
        stopped=covered,
    )


def _scope(
    declared: Declarations, books: Mapping[BookKey, Book], everyone: Sequence[Named]
) -> Scope:
    covered = [item for item in everyone if declared.covers(item)]
    dependencies = Dependencies(everyone)
    named = dependencies.with_beside(covered)
    whereabouts = Whereabouts.of(everyone, named, books, declared.repositories)
    return Scope(
        everyone=everyone,
        covered=covered,
        named=named,
        books=books,
        dependencies=dependencies,
        whereabouts=whereabouts,
        unusable=branch_conflicts(everyone),
        looks=looks_at(named, whereabouts.others, declared.install),
    )


def _readable(books: Mapping[BookKey, Book], everyone: Sequence[Named]) -> Mapping[BookKey, Book]:
    """The books; one whose status cannot be worked with holds its policy, as an unreadable one."""
    found = dict(books)
    for key, book in books.items():
        problem = run_contained(partial(remembered, {key: book}, everyone))
        if isinstance(problem, FanoutError):
            found[key] = replace(book, status={}, failure=problem)
    return found
