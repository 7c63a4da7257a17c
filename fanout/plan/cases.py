"""One variant at a time: what it is to be, what stands on its branch, and what is in the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.gates.model import Hold
from fanout.package.merge.conflicts import Choices
from fanout.plan.adoption import Origin
from fanout.plan.disputes import read
from fanout.plan.merging import Merged
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.repository import PathState
from fanout.plan.status import PublishedLine, VariantLine
from fanout.plan.trailers import NONE
from fanout.selection.model import VariantSpec
from fanout.selection.naming import draft_ref
from fanout.variants.model import Inputs, Rendered
from fanout.variants.prepared import PreparedPackage


@dataclass(frozen=True, slots=True)
class Case:
    """A variant in this pass. Fields below the line are filled in as the pass goes on."""

    spec: VariantSpec
    view: RepositoryView
    ref: str  # of its draft
    state: PathState  # what is on the branch at its path
    line: VariantLine
    draft: OpenDraft | None = None
    published: PublishedLine | None = None
    unrecorded: bool = False  # the publication was found in Git and is not on record yet
    adopts: bool = False  # its policy lets it take over a package that is there already
    origin: Origin | None = None  # of the package that it takes over
    tag: str = ""  # the tag that an unrecorded publication has already
    choices: Choices = field(default_factory=dict)  # winners that people chose
    obstacle: Hold | None = None  # nothing can be written for it, whatever the candidate
    # ----
    revision: str = ""  # the candidate
    package: PreparedPackage | None = None  # upstream's, at that revision
    inputs: Inputs | None = None
    rendered: Rendered | None = None
    merged: Merged | None = None  # the rendering with what people changed in it
    failure: FanoutError | None = None  # its rendering failed

    @property
    def upstream_commit(self) -> str:
        """The upstream commit of the candidate."""
        return self.package.upstream.revision.commit if self.package else ""

    @property
    def onto(self) -> str:
        """What a draft written now is for."""
        return self.state.tree or NONE

    @property
    def pristine(self) -> str | None:
        """The rendering that was published, without anybody's edits; None: it is nowhere.

        The status knows its id. So the branch of renderings may be lost, or somebody may have
        committed to it: where nothing was merged, the repository's own history has the tree.
        """
        known = self.published.pristine if self.published else ""
        if known in ("", self.vendored):
            return self.vendored
        assert self.published is not None, "its pristine rendering is known"
        return known if known == self.published.tree else None

    @property
    def vendored(self) -> str | None:
        """What the branch of renderings has as published at the path."""
        path = self.spec.path
        if self.unrecorded and path in self.view.drafted:
            return self.view.drafted[path]
        return self.view.published.get(path)

    @property
    def edited(self) -> bool:
        """Did a person change, or take away, what was published?

        The pristine rendering tells also where the status was lost. Where nothing tells, the
        edits of earlier revisions may be in what was published.
        """
        if self.published is None and self.vendored is None:
            return False
        known = self.published.pristine if self.published else ""
        return self.state.tree != (known or self.vendored)

    @property
    def baseless(self) -> bool:
        """Can nobody tell people's edits in what is published from what fanout put there?"""
        published = self.published is not None and self.state.tree is not None
        return published and self.edited and self.pristine is None

    @property
    def removed(self) -> bool:
        """Did somebody take the published package off the branch?"""
        return (
            self.published is not None
            and self.state.tree is None
            and self.view.failure is None
            and (self.line.repository, self.line.path) == (self.view.key, self.spec.path)
        )

    @property
    def foreign(self) -> bool:
        """Does a package that fanout did not write, or does not know any more, stand there?"""
        if self.state.tree is None:
            return False
        unknown = self.published is None and self.spec.path not in self.view.published
        return unknown or (self.adopts and self.baseless)

    @property
    def content(self) -> Rendered | None:
        """What its draft is to hold."""
        return self.merged.content if self.merged is not None else self.rendered

    @property
    def merges(self) -> bool:
        """Have people changed something that the new rendering must not lose?"""
        return self.edited or self.foreign or (self.draft is not None and self.draft.carries)

    @property
    def in_force(self) -> bool:
        """Is the candidate, with these inputs, what is published?"""
        return (
            self.published is not None
            and self.inputs is not None
            and (self.published.revision, self.published.digest)
            == (self.revision, self.inputs.digest)
        )

    @property
    def standing(self) -> bool:
        """Is the open draft what the candidate's rendering asks for?"""
        return (
            self.draft is not None
            and self.inputs is not None
            and self.draft.trailers.digest == self.inputs.digest
            and self.draft.trailers.revision == self.revision
            and self.draft.trailers.onto == self.onto
            and self._as_chosen(self.draft)
            and self.draft.trailers.rendered == self.view.drafted.get(self.spec.path)
        )

    def _as_chosen(self, draft: OpenDraft) -> bool:
        """Has each disputed value the chosen winner? Who commits to it has the last word."""
        if not self.choices or draft.edited:
            return True
        found = read(draft.trailers.conflicts)
        return all(self.choices.get(item.key, item.winner) is item.winner for item in found)

    @property
    def hold(self) -> Hold | None:
        """What is in the way of a draft for the candidate, whatever the gates say."""
        return self.obstacle or _taken_away(self) or _broken(self) or _in_the_way_of(self)

    @property
    def wants_draft(self) -> bool:
        """Is a draft to be rendered? Digests and ids decide, never bytes. (Design §5.)"""
        return (
            self.inputs is not None
            and self.failure is None
            and not self.spec.suspended
            and not self.in_force
            and not self.standing
            and self.hold is None
        )


def open_case(
    install: str,
    spec: VariantSpec,
    view: RepositoryView,
    line: VariantLine | None,
    collisions: Mapping[str, str],
    now: datetime,
    *,
    adopts: bool = False,
) -> Case:
    """What is known about a variant before the gates choose its revision."""
    ref = draft_ref(install, spec.path, spec.policy or spec.name)
    state = view.paths.get(spec.path, NOTHING)
    draft = view.drafts.get(ref)
    case = Case(
        spec=spec,
        view=view,
        ref=ref,
        state=state,
        line=line or VariantLine(view.key, spec.path),
        draft=draft if draft and draft.trailers.variant == spec.name else None,
        adopts=adopts,
    )
    found = _publication(case, now)
    case = replace(
        case,
        published=found or case.line.published,
        unrecorded=found is not None,
    )
    return replace(case, obstacle=_obstacle(case, collisions))


def _publication(case: Case, now: datetime) -> PublishedLine | None:
    """A publication that Git shows and the status does not know yet.

    Found when a pass was ended between its push and its record, and when a person merged a draft.
    The clocks start now: nothing can be back-dated. (Design §6, "Checks".)
    """
    tree, known, grant, draft = (
        case.state.tree,
        case.line.published,
        case.line.grant,
        case.draft,
    )
    if tree is None or (known is not None and known.tree == tree) or _unmoved(case):
        return None
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
        )
    if grant is not None and grant.tree == tree:
        return PublishedLine(
            grant.revision,
            grant.commit,
            grant.digest,
            tree,
            now,
            merge=case.view.head,
            pristine=case.view.published.get(case.spec.path, ""),
        )
    return None


def _unmoved(case: Case) -> bool:
    """Is the tree on the branch no sign of a publication, since it was there before?

    A draft that takes a package over may change nothing in it. Its publication shows in the branch
    of renderings, which the same push moves.
    """
    if case.spec.path in case.view.published:
        return False
    draft = case.draft
    return case.adopts if draft is None else draft.trailers.onto == case.state.tree


def _obstacle(case: Case, collisions: Mapping[str, str]) -> Hold | None:
    """The first thing that is in the way of any draft for this variant."""
    spec, view = case.spec, case.view
    owner = "the maintainers of " + spec.repository
    if view.failure is not None:
        return Hold("RepositoryUnavailable", str(view.failure), who=owner)
    if spec.name in collisions:
        return Hold("PathCollision", collisions[spec.name], who=_author(spec))
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
    return _moved(case) or _taken(case, owner)


def _author(spec: VariantSpec) -> str:
    return "the policy's author" if spec.policy else f"the author of PackageVariant {spec.name}"


def _moved(case: Case) -> Hold | None:
    line, spec = case.line, case.spec
    if (line.repository, line.path) == (case.view.key, spec.path):
        return None
    return Hold(
        "PathChanged",
        f"{spec.name} is at {line.path} in {line.repository} and is now to be at {spec.path}"
        f" in {case.view.key}; moves are not supported yet: set the path back",
        who=_author(spec),
    )


def _taken(case: Case, owner: str) -> Hold | None:
    """Somebody else's package or draft is where ours would go, or a person's work is on it."""
    spec, view = case.spec, case.view
    at = f"{spec.repository}:{spec.path}"
    if case.ref in view.strangers or (case.draft is None and case.ref in view.drafts):
        ref = case.ref.removeprefix("refs/heads/")
        return Hold(
            "PathTaken", f"branch {ref} is not a draft of {spec.name}; remove it", who=owner
        )
    if case.foreign and not case.adopts:
        return Hold(
            "PathTaken",
            f"{at} holds a package that fanout did not write; adopt it with adoptionPolicy:"
            " AdoptExisting, choose another path or remove it",
            who=owner,
        )
    return None


def chosen(case: Case, revision: str, package: PreparedPackage, inputs: Inputs) -> Case:
    """The case at its candidate."""
    return replace(
        case,
        revision=revision,
        package=package,
        inputs=inputs,
        rendered=None,
        merged=None,
        failure=None,
    )


def _taken_away(case: Case) -> Hold | None:
    """What a person removed is not put back, and is not in force, whatever was to come next."""
    if not case.removed:
        return None
    spec = case.spec
    give_up = "remove the PackageVariant"
    if spec.policy:
        give_up = f"take its target out and `fanout remove {spec.policy} {spec.name} --reason WHY`"
    return Hold(
        "EditedDownstream",
        f"{spec.repository}:{spec.path} was removed from the branch by hand; put it back, as with"
        f" `git revert`, or {give_up}",
        who="the maintainers of " + spec.repository,
    )


def _broken(case: Case) -> Hold | None:
    """What people committed to the draft cannot be used: it is neither published nor rewritten."""
    draft, spec = case.draft, case.spec
    if draft is None or not draft.faults or case.unrecorded:
        return None
    first, *more = draft.faults
    others = f" (and {len(more)} more)" if more else ""
    branch = draft.ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_BROKEN,
        f"{first}{others}; correct it on branch {branch}, or remove the branch to have the draft"
        " written anew",
        who="the maintainers of " + spec.repository,
    )


def _in_the_way_of(case: Case) -> Hold | None:
    if case.inputs is None or case.in_force or case.standing:
        return None
    spec = case.spec
    at = f"{spec.repository}:{spec.path}"
    owner = "the maintainers of " + spec.repository
    if case.baseless and not case.foreign:
        lost = "has something else" if case.vendored else "does not have it"
        return Hold(
            "BaseMissing",
            f"{at} has people's edits, and fanout's branch of renderings {lost}: nobody can tell"
            " the edits from upstream's; restore that branch, or set adoptionPolicy: AdoptExisting"
            " to take the package over anew, with its upstreamLock as the base",
            who=owner,
        )
    if case.inputs.unmet:
        missing = "; ".join(f"{item.point}: {item.problem}" for item in case.inputs.unmet)
        return Hold(
            "RequiredInjectionMissing",
            f"{at}: nothing to inject: {missing}",
            who="whoever owns the cluster objects",
        )
    return None
