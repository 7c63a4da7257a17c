"""Removes one variant whose target is gone, because a person said so.

The person's Decision is on record first; then the repository is pushed, and the status forgets the
variant last. So whoever ends it in between finds the variant still named, and runs it again.
"""

from dataclasses import replace
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.api.repository import Repository
from fanout.api.upstream import DeletionPolicy
from fanout.cluster.declared import Declared
from fanout.errors import FanoutError, InvalidInput, Unavailable
from fanout.plan.book import StatusChange
from fanout.plan.change import Writing
from fanout.plan.observation import RepositoryView
from fanout.plan.removal import Removal, removal_change
from fanout.plan.repository import Look
from fanout.plan.status import Lines
from fanout.reconcile.look import branch_of, downstream_refs, remote_of
from fanout.reconcile.names import book_key
from fanout.reconcile.places import emptied, place_of
from fanout.reconcile.report import PolicyPass
from fanout.reconcile.views import Views
from fanout.reconcile.world import World
from fanout.selection.targets import usable_by

_UNKNOWN = (Reason.RECORD_UNREADABLE, Reason.RECORDS_LOST)  # what stands in the status


def find_removal(world: World, item: PolicyPass, declared: Declared, variant: str) -> Removal:
    """The variant as it is to go. Raises InvalidInput when its target is there, or nothing is.

    Nothing is asked of upstream, so a tag that moved there is no hindrance; records that cannot be
    read are. Also what the repository came to, and InvalidInput when nobody declares it any more:
    with `deletionPolicy: Orphan` the status alone is forgotten then.
    """
    if variant not in {failure.target for failure in item.gone}:
        raise item.problem or _not_gone(item, variant)
    if item.problem is not None and item.problem.reason in _UNKNOWN:
        raise item.problem
    assert item.named.policy is not None, "only a policy's variants lose their target"
    orphan = item.named.policy.spec.deletion_policy is DeletionPolicy.ORPHAN
    line = item.status.variants.get(variant)
    place, path = (line.repository, line.path) if line else _drafted(item, variant)
    known = usable_by(item.named.namespace, declared.repositories).values()
    there = [it for it in known if place_of(it) == place]
    if not there and not orphan:
        raise InvalidInput(
            f"{variant} is {path} in {place}, and no Repository that {item.named.namespace} may"
            " use is there",
            reason="UnknownRepository",
            remedy="declare it again with this url and branch; or give it up with"
            " deletionPolicy: Orphan",
        )
    view = _view(world, there[0], path) if there else None
    return Removal(variant, item.title, line, path, view, orphan)


def carry_out(world: World, item: PolicyPass, removal: Removal, reason: str, now: datetime) -> None:
    """Push what goes, then forget the variant.

    Raises Conflict when somebody else was faster, and what Git raises; it is to be run again then.
    """
    writing = Writing(world.setup.install, world.setup.identity)
    change = removal_change(removal, writing, reason, int(now.timestamp()))
    if change is not None:
        answer = world.git.change([change])[change.remote.url]
        if isinstance(answer, FanoutError):
            raise answer
        left = set(change.remove) - set(answer.removed)
        if left:
            raise Unavailable(
                f"the draft {min(left).removeprefix('refs/heads/')} could not be removed",
                reason="RemoteFailed",
                remedy="run it again",
            )
    key = book_key(item.named)
    book = world.records.read([key])[key]
    keys = {f"variant/{removal.variant}", *(f"repository/{it}" for it in _left(item, removal))}
    lines: Lines = {it: None for it in sorted(keys) if it in book.status}
    if lines:
        world.records.put_status({key: StatusChange(book.head, lines)}, now)


def _left(item: PolicyPass, removal: Removal) -> frozenset[str]:
    """The repository, when nothing of the policy is in it any more."""
    if removal.view is None:
        return frozenset()
    others = {name: it for name, it in item.status.variants.items() if name != removal.variant}
    gone = {draft.ref for draft in removal.drafts}
    drafts = {ref: it for ref, it in removal.view.drafts.items() if ref not in gone}
    return emptied(
        item.title,
        replace(item.status, variants=others),
        [replace(removal.view, drafts=drafts)],
        (case.view.key for case in item.cases),
    )


def _not_gone(item: PolicyPass, variant: str) -> InvalidInput:
    live = {case.spec.name for case in item.cases}
    if variant in live or variant in item.status.variants:
        return InvalidInput(
            f"the target of {variant} is still there, so it would come back",
            reason="NotFound",
            remedy="take the target out of the policy first",
        )
    return InvalidInput(
        f"{item.title} has no variant {variant} without a target",
        reason="NotFound",
        remedy="see `fanout get targets`: those that are gone say TargetGone",
    )


def _drafted(item: PolicyPass, variant: str) -> tuple[str, str]:
    """The place and path of the draft of a variant of which nothing is on record."""
    found = [
        (view.key, draft)
        for view in item.views
        for draft in view.drafts.values()
        if (draft.trailers.policy, draft.trailers.variant) == (item.title, variant)
    ]
    place, draft = found[0]
    return place, draft.ref.split("/", 4)[4].rpartition("/")[0]


def _view(world: World, repository: Repository, path: str) -> RepositoryView:
    remote, install = remote_of(repository), world.setup.install
    listing = world.git.look([Look(remote, downstream_refs(repository, install))])[remote.url]
    views = Views(world.git, install)
    view = views.read(remote, branch_of(repository), listing, [path])
    if view.failure is not None:
        raise view.failure
    return view
