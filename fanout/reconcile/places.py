"""Repositories in which a policy was at work and has no variant any more.

What a target leaves behind there when it vanishes, a draft above all, would else be seen by nobody.
"""

from collections.abc import Iterable, Sequence

from fanout.api.repository import Repository
from fanout.plan.book import Book
from fanout.plan.observation import RepositoryView
from fanout.plan.status import Status
from fanout.reconcile.look import branch_of
from fanout.reconcile.names import Named
from fanout.selection.targets import usable_by


def place_of(repository: Repository) -> str:
    """What the status calls a repository: its url and its branch."""
    return f"{repository.spec.url}#{branch_of(repository)}"


def former(named: Named, book: Book, declared: Sequence[Repository]) -> tuple[Repository, ...]:
    """Declared repositories that the policy's status names and no variant of it goes to."""
    if named.policy is None:
        return ()
    present = {place_of(repository) for repository in named.repositories.values()}
    places = _places(book) - present
    if not places:
        return ()
    usable = usable_by(named.namespace, declared).values()
    return tuple(repository for repository in usable if place_of(repository) in places)


def emptied(
    owner: str, status: Status, views: Iterable[RepositoryView], present: Iterable[str]
) -> frozenset[str]:
    """Places in which nothing of the policy is left: they need not be looked at any more."""
    left = {line.repository for line in status.variants.values()} | set(present)
    return frozenset(
        view.key
        for view in views
        if view.key in status.places - left
        and view.failure is None
        and all(draft.trailers.policy != owner for draft in view.drafts.values())
    )


def _places(book: Book) -> set[str]:
    """As they stand in the lines; what cannot be read is told when the status is."""
    found = set()
    for key, line in book.status.items():
        kind, _, name = key.partition("/")
        if kind == "repository":
            found.add(name)
        elif kind == "variant":
            found.add(str(line.get("repository")))
    return found
