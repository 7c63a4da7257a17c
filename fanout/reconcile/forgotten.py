"""Publications that nobody remembers: records began anew, and the repository still has them.

What is drafted by then may be of a later revision, so it does not tell; the tag of the publication
leads to the draft that was merged, and that says what it was.
"""

from datetime import datetime

from fanout.plan.cases import Case
from fanout.plan.status import PublishedLine
from fanout.plan.trailers import Trailers
from fanout.reconcile.history import History
from fanout.reconcile.reading import Reading
from fanout.values import replace


def forgotten(case: Case) -> bool:
    """Does fanout's own branch say that the package is published, and nothing on record?"""
    path, view = case.spec.path, case.view
    return (
        case.published is None
        and case.line.grant is None
        and case.former is None
        and not case.alien
        and case.state.tree is not None
        and path in view.published
        and path in view.tags
    )


def remembered(
    case: Case, reading: Reading, drafts: dict[str, Trailers | None], now: datetime
) -> Case:
    """The case with what its tag says is published. Its clocks start now: nobody knows better.

    `drafts` collects what is known of drafts by their tips: many share a merge.
    """
    newest = History(reading(case.view.remote), case.view, case.spec, drafts).newest()
    if newest is None:
        return case
    tag, commit, found = newest
    published = PublishedLine(
        found.revision,
        found.commit,
        found.digest,
        found.tree,
        now,
        merge=commit,
        tag=tag.removeprefix("refs/tags/"),
        pristine=found.pristine,
    )
    return replace(case, published=published, line=replace(case.line, published=published))
