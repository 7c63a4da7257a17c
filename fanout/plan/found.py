"""What is found of a variant before the gates choose: published, drafted, in the way."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.gates.facts import Hold
from fanout.package.merge.conflicts import NO_CHOICES, Choices
from fanout.plan.cases import Case
from fanout.plan.moving import Former, Leaving, Stray, author_of
from fanout.plan.observation import NOTHING, Renderings, RepositoryView
from fanout.plan.rejected import bounded, of_draft
from fanout.plan.status import PublishedLine, VariantLine
from fanout.selection.model import VariantSpec
from fanout.selection.naming import draft_ref
from fanout.values import frozen, replace


@frozen
class Around:
    """What is known of a variant beside its repository and its own line."""

    install: str
    now: datetime
    collisions: Mapping[str, str] = field(default_factory=dict)  # variant → why not there
    adopts: bool = False  # its policy lets it take over a package that is there already
    choices: Choices = NO_CHOICES
    former: Former | None = None
    strays: tuple[Stray, ...] = ()
    leavings: tuple[Leaving, ...] = ()
    partners: frozenset[str] = frozenset()
    replaces: bool = False  # the draft on its branch is one that another variant leaves
    there: str | None = None  # tree at the path that is known not to be a publication of it
    hold: Hold | None = None  # what is in the way of a move
    waits: Hold | None = None  # for whom it has to wait
    renderings: Renderings | None = None  # before a publication that is not whole
    taken: Hold | None = None  # what is at its path was published for another, and is not its own
    orphan: bool = False  # it is written by hand, and its package stays when it goes


def open_case(
    spec: VariantSpec, view: RepositoryView, line: VariantLine | None, around: Around
) -> Case:
    """What is known about a variant before the gates choose its revision."""
    ref = draft_ref(around.install, spec.path, spec.policy or spec.name)
    draft = view.drafts.get(ref)
    line = line or VariantLine(view.key, spec.path, orphan=around.orphan)
    case = Case(
        spec=spec,
        view=view,
        ref=ref,
        state=view.paths.get(spec.path, NOTHING),
        line=line if line.orphan == around.orphan else replace(line, orphan=around.orphan),
        published=line.published,
        draft=draft if draft and draft.trailers.variant == spec.name else None,
        adopts=around.adopts,
        choices=around.choices,
        former=around.former,
        strays=around.strays,
        leavings=around.leavings,
        partners=around.partners,
        waits=around.waits,
        alien=around.taken is not None,
        unfinished=around.renderings,
    )
    found = _publication(case, around)
    if found is not None:
        case = replace(case, published=found, unrecorded=True)
    obstacle = _obstacle(case, around)
    return case if obstacle is None else replace(case, obstacle=obstacle)


def _publication(case: Case, around: Around) -> PublishedLine | None:
    """A publication that Git shows and the status does not know yet.

    Found when a pass was ended between its push and its record, and when a person merged a draft.
    The clocks start now: nothing can be back-dated. (Design §6, "Checks".)
    """
    tree, grant, draft, now = case.state.tree, case.line.grant, case.draft, around.now
    known = case.line.published if case.former is None else None
    if case.alien:
        return None
    if tree is None or (known is not None and known.tree == tree) or _unmoved(case, around):
        return None
    if case.line.granted_place != (case.view.key, case.spec.path):
        grant = None
    if draft is not None and draft.tree == tree:
        trailers = draft.trailers
        granted = grant is not None and (grant.revision, grant.digest) == (
            trailers.revision,
            trailers.digest,
        )
        return PublishedLine(
            revision=trailers.revision,
            commit=trailers.commit,
            digest=trailers.digest,
            tree=tree,
            at=now,
            merge=case.view.head,
            out_of_band=not granted,
            pristine=trailers.rendered,
            reads=grant.reads if grant is not None and granted else {},
            rejected=bounded(of_draft(draft)),
        )
    if grant is not None and grant.tree == tree:
        return PublishedLine(
            grant.revision,
            grant.commit,
            grant.digest,
            tree,
            now,
            merge=case.view.head,
            pristine=case.drafted_rendering or case.published_rendering or "",
            reads=grant.reads,
            rejected=grant.rejected,
        )
    return None


def _unmoved(case: Case, around: Around) -> bool:
    """Is the tree on the branch no sign of a publication, since it was there before?

    A draft that takes a package over may change nothing in it. Its publication shows in the branch
    of renderings, which the same push moves.
    """
    if case.former is not None:
        return case.state.tree == around.there and case.drafted_rendering is not None
    if case.published_rendering is not None:
        return False
    draft = case.draft
    return case.adopts if draft is None else draft.trailers.onto == case.state.tree


def unreadable(failure: FanoutError, owner: str) -> Hold:
    """What holds a variant of whose repository nothing is known."""
    if failure.reason == Reason.INTERNAL_ERROR:
        return Hold(failure.reason, str(failure), who="whoever runs fanout")
    return Hold("RepositoryUnavailable", str(failure), who=owner)


def _obstacle(case: Case, around: Around) -> Hold | None:
    """The first thing that is in the way of any draft for this variant."""
    spec, view = case.spec, case.view
    owner = "the maintainers of " + spec.repository
    if view.failure is not None:
        return unreadable(view.failure, owner)
    if spec.name in around.collisions:
        return Hold("PathCollision", around.collisions[spec.name], who=author_of(spec))
    if not view.head:
        branch = view.branch.removeprefix("refs/heads/")
        return Hold(
            "BranchMissing",
            f"repository {spec.repository} has no branch {branch}; push a first commit to it",
            who=owner,
        )
    if case.state.problem:
        return Hold(
            "InvalidPath",
            f"{spec.repository}:{spec.path}: {case.state.problem}; take it off the branch, or"
            " choose another downstream.package",
            who=owner,
        )
    if spec.path in view.others:
        return Hold(
            "OtherInstallation",
            f"{spec.repository}:{spec.path} has a draft of installation {view.others[spec.path]};"
            " only one installation may own a path",
            who="an administrator",
        )
    if around.hold is not None or around.waits is not None:
        return around.hold
    return _taken(case, around, owner)


def _taken(case: Case, around: Around, owner: str) -> Hold | None:
    """Somebody else's package or draft is where ours would go, or a person's work is on it."""
    spec, view = case.spec, case.view
    at = f"{spec.repository}:{spec.path}"
    if around.taken is not None and case.state.tree is not None and not case.moves:
        return around.taken
    foreign = case.draft is None and case.ref in view.drafts
    if case.ref in view.strangers or (foreign and not around.replaces):
        ref = case.ref.removeprefix("refs/heads/")
        return Hold(
            "PathTaken", f"branch {ref} is not a draft of {spec.name}; remove it", who=owner
        )
    if case.moves and case.state.tree not in (None, around.there):
        return Hold(
            "PathTaken",
            f"{at} holds a package that is not this variant's, which moves there; choose another"
            " path or remove it",
            who=owner,
        )
    if case.foreign and not case.adopts:
        return Hold(
            "PathTaken",
            f"{at} holds a package that fanout did not write; adopt it with adoptionPolicy:"
            " AdoptExisting, choose another path or remove it",
            who=owner,
        )
    return None
