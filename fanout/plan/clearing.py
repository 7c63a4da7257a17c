"""What a variant that moved leaves behind, and when that goes: drafts, and at last its package.

A draft goes when nothing of it can be lost; the package when the variant is ready at its new place,
and an administrator lets it go without a person. (Design §6: "the old path goes when the new one is
ready"; "the automation switch binds it".)
"""

from collections.abc import Iterator, Sequence

from fanout.api.reasons import Reason
from fanout.api.trailers import Trailer
from fanout.gates.facts import Hold
from fanout.plan.actions import Action, Kind
from fanout.plan.cases import Case
from fanout.plan.departing import Departure
from fanout.plan.moving import Leaving, Stray
from fanout.plan.observation import OpenDraft, RepositoryView
from fanout.plan.repository import Merge
from fanout.plan.status import LeftPlace
from fanout.plan.steps import Planned, Step
from fanout.selection.model import VariantSpec
from fanout.selection.naming import drafts_under
from fanout.values import frozen, replace


@frozen
class Clearing:
    """One thing that goes from a place where the variant was, or was to be."""

    spec: VariantSpec
    view: RepositoryView
    repository: str  # name of the Repository object
    path: str
    draft: OpenDraft | None = None
    left: LeftPlace | None = None
    drops: bool = False  # the package leaves the branch; else it stays, or is gone already
    forgets: bool = False  # so does its pristine rendering; else that is somebody else's by now


@frozen
class Leftovers:
    """All of that for one policy, and the variants that go as a whole; and which repositories are
    to be looked at from now on.
    """

    clearings: tuple[Clearing, ...] = ()
    departures: tuple[Departure, ...] = ()
    emptied: frozenset[str] = frozenset()  # no more
    found: frozenset[str] = frozenset()  # again, because records begin anew


@frozen
class Leave:
    """What is known of a variant's leave to let its old package go."""

    publish: bool = True  # the pass publishes: it does more than keep drafts up to date
    ready: bool = False
    automatic: bool = False
    sweep: bool = True  # the pass is one in which automation acts
    closed: Hold | None = None  # the windows
    orphan: bool = False  # the package stays, as nobody's


def clearings(planned: Planned, leave: Leave) -> Iterator[Clearing]:
    """What goes in this pass for one variant."""
    case = planned.case
    if case.obstacle is not None:
        return
    for stray in case.strays:
        if _lost_nothing(planned, stray):
            yield Clearing(case.spec, stray.view, stray.repository, stray.path, stray.draft)
    for leaving in case.leavings:
        if leave.publish and _may_go(case, leaving, leave):
            at = leaving.at
            drops = not leaving.vacant and not leave.orphan
            yield Clearing(
                spec=case.spec,
                view=at.view,
                repository=at.repository,
                path=at.path,
                left=leaving.left,
                drops=drops,
                forgets=not leaving.others,
            )


def _lost_nothing(planned: Planned, stray: Stray) -> bool:
    """Is what people did in the draft in the one at the new place?

    Two repositories are two pushes, either of which may fail; so the draft that takes another
    repository's commits is seen there first.
    """
    case = planned.case
    if planned.step is Step.WRITE:
        return not stray.draft.carries or stray.view.key == case.view.key
    if case.draft is not None:
        return stray.taken_by(case.draft)
    return case.in_force and not stray.draft.carries


def _may_go(case: Case, leaving: Leaving, leave: Leave) -> bool:
    if leaving.left.place == (case.view.key, case.spec.path):
        return False  # it moves back there
    free = leave.automatic and leave.sweep and leave.closed is None
    return leaving.vacant or (leave.ready and free and not leaving.edited)


def staying(case: Case, leave: Leave) -> Iterator[Hold]:
    """What is left behind and does not go by itself, and what a person can do about it."""
    spec = case.spec
    remove = " ".join(word for word in ("fanout remove", spec.policy, spec.name) if word)
    for leaving in case.leavings:
        at = f"{leaving.at.repository}:{leaving.at.path}"
        if leaving.vacant or leaving.left.place == (case.view.key, spec.path):
            continue
        if leaving.edited:
            sentence = (
                f"{at}, which it has left, was changed since: take the changes to"
                f" {case.home.repository}:{case.home.path}, then `{remove} --edited --reason WHY`"
            )
            yield Hold(Reason.EDITED_DOWNSTREAM, sentence)
        elif leave.ready and not leave.automatic:
            sentence = (
                f"{at} is where it was, and nobody has switched automation on: `{remove} --reason"
                " WHY`"
            )
            yield Hold(Reason.PLACE_LEFT, sentence)
        elif leave.ready and leave.closed is not None:
            yield replace(leave.closed, sentence=f"{at} is where it was: {leave.closed.sentence}")


def actions(clearing: Clearing) -> Iterator[Action]:
    """What is done, for people."""
    spec, draft, left = clearing.spec, clearing.draft, clearing.left
    common = {
        "namespace": spec.namespace,
        "policy": spec.policy,
        "stage": spec.stage,
        "variant": spec.name,
        "repository": clearing.repository,
        "path": clearing.path,
    }
    now = f"{spec.name} is to be at {spec.repository}:{spec.path}"
    if draft is not None:
        yield Action(Kind.REMOVE_DRAFT, **common, ref=draft.ref, expected=draft.commit, detail=now)
    if left is not None and clearing.drops:
        yield Action(Kind.REMOVE_PACKAGE, **common, tree=left.tree, detail=now)
    elif left is not None:
        at = f"{clearing.repository}:{clearing.path}"
        yield Action(Kind.RECORD, **common, detail=f"that {spec.name} has left {at}")


def removal(clearings: Sequence[Clearing]) -> Merge | None:
    """The commit that takes packages off one branch; it names where each has gone."""
    gone = sorted((it for it in clearings if it.drops), key=lambda it: it.path)
    if not gone:
        return None
    one = gone[0]
    subject = f"Remove {one.path}" if len(gone) == 1 else f"Remove {len(gone)} packages"
    moved = "".join(f"* {it.path} is {it.spec.path} in {it.spec.repository} now\n" for it in gone)
    owners = dict.fromkeys(f"{it.spec.namespace}/{it.spec.policy}" for it in gone)
    trailers = "".join(f"{Trailer.POLICY.value}: {owner}\n" for owner in owners)
    return Merge(
        drafts=(),
        message=f"{subject}\n\n{moved}\n{trailers}",
        when=one.view.head_time,
        drop=tuple(it.path for it in gone),
    )


def vendor_drops(clearings: Sequence[Clearing], install: str) -> list[str]:
    """The pristine renderings that nobody needs any more, but for those of somebody else's."""
    drop = []
    for it in clearings:
        if it.draft is not None and it.path in it.view.drafted:
            under = f"{drafts_under(install)}{it.path}/"
            others = [
                ref
                for ref in it.view.drafts
                if ref.startswith(under) and "/" not in ref.removeprefix(under)
            ]
            if others == [it.draft.ref]:
                drop.append(f"drafts/{it.path}")
        if it.forgets and it.path in it.view.published:
            drop.append(f"published/{it.path}")
    return drop
