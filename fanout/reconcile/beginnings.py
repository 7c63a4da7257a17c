"""Where nothing is on record nothing may have been written: records that were lost are no records.

A mistyped address or a deleted directory would else forget every suspension and decide anew. What a
policy wrote downstream shows that there were records: they are written first. (Design §3, "Order of
effects".)
"""

from collections.abc import Iterator, Mapping, Sequence

from fanout.api.trailers import Trailer
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.cases import Case
from fanout.plan.observation import RepositoryView
from fanout.plan.repository import Listing
from fanout.ports import GitStore
from fanout.reconcile.names import Named
from fanout.selection.naming import tag_ref, vendor_ref

REMEDY = (
    "name the right records repository with --records; or, if suspensions, approvals and evidence"
    " are to be forgotten, say --new-records"
)


def refuse_lost_records(
    blank: str, listings: Mapping[str, Listing | FanoutError], install: str
) -> None:
    """Raises InvalidInput when a repository has the branch of renderings of this installation.

    `blank` says where nothing at all is on record. Other branches below `drafts/` may be anybody's.
    """
    vendor = vendor_ref(install)
    for url, listing in sorted(listings.items()):
        if not isinstance(listing, FanoutError) and vendor in listing.refs:
            branch = vendor.removeprefix("refs/heads/")
            raise InvalidInput(
                f"{blank}, but {url} has branch {branch} of this installation",
                reason="RecordsLost",
                remedy=REMEDY,
            )


def refuse_lost_book(
    named: Named, views: Mapping[str, RepositoryView], cases: Sequence[Case], git: GitStore
) -> None:
    """Raises InvalidInput when a policy without records has written something downstream."""
    for view, what in _of_the_policy(named, views, cases, git):
        raise InvalidInput(
            f"nothing of it is on record, but {view.remote.url} has {what}",
            reason="RecordsLost",
            remedy=REMEDY,
        )


def found_again(
    named: Named,
    views: Mapping[str, RepositoryView],
    cases: Sequence[Case],
    git: GitStore,
    install: str,
) -> frozenset[str]:
    """Where something is although nothing is on record; a new beginning is remembered by it.

    A beginning that wrote nothing, because everything is held, would be no beginning for the next
    pass.
    """
    own = {view.key for view, _ in _of_the_policy(named, views, cases, git)}
    return frozenset(own | {it.key for it in views.values() if vendor_ref(install) in it.refs})


def _of_the_policy(
    named: Named, views: Mapping[str, RepositoryView], cases: Sequence[Case], git: GitStore
) -> Iterator[tuple[RepositoryView, str]]:
    """Where something shows that the policy, or the variant written by hand, was at work."""
    owner = f"{named.namespace}/{named.name if named.policy is not None else ''}"
    own = {case.spec.name for case in cases}
    for _, view in sorted(views.items()):
        for draft in view.drafts.values():
            said = draft.trailers
            if said.policy == owner and (named.policy is not None or said.variant in own):
                yield view, f"its draft {draft.ref.removeprefix('refs/heads/')}"
    trailer = f"{Trailer.POLICY.value}: {owner}"
    for case in cases:
        number = case.view.tags.get(case.spec.path, 0)
        if not number:
            continue
        tag = tag_ref(case.spec.path, number)
        commit = case.view.refs[tag]
        with git.reader(case.view.remote) as reader:
            if reader.has(commit) and trailer in reader.commit(commit).message.splitlines():
                yield case.view, f"its publication {tag.removeprefix('refs/tags/')}"
