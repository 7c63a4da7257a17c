"""One variant at a time: what it is to be, what stands on its branch, and what is in the way."""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.facts import Hold
from fanout.package.merge.conflicts import NO_CHOICES, Choices
from fanout.plan.adoption import Origin
from fanout.plan.disputes import Dispute, disputes_of, read
from fanout.plan.earlier import Earlier
from fanout.plan.merging import Merged
from fanout.plan.moving import Former, Leaving, Stray
from fanout.plan.observation import OpenDraft, Renderings, RepositoryView
from fanout.plan.repository import PathState
from fanout.plan.reverted import Reverted, taken_back
from fanout.plan.soundness import remedied
from fanout.plan.status import PublishedLine, VariantLine
from fanout.plan.trailers import NONE
from fanout.selection.model import VariantSpec
from fanout.selection.naming import install_of, vendor_ref
from fanout.values import frozen, replace
from fanout.variants.model import Inputs, Rendered
from fanout.variants.prepared import PreparedPackage


@frozen
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
    alien: bool = False  # what was published at its path was published for another
    tag: str = ""  # the tag that an unrecorded publication has already
    choices: Choices = NO_CHOICES  # winners of its merge conflicts
    former: Former | None = None  # the other place, where its published package is or was
    strays: tuple[Stray, ...] = ()  # its drafts at other places
    leavings: tuple[Leaving, ...] = ()  # where it was, and its package still is
    partners: frozenset[str] = frozenset()  # variants with which it changes places
    waits: Hold | None = None  # for another variant, which is no fault of anybody's
    reverted: Reverted | None = None  # somebody took back what is published
    faults: tuple[InvalidInput, ...] = ()  # what people have broken in what is published
    lost_tag: str = ""  # of the published revision, which upstream does not have any more
    rewound: str = ""  # its newest publication is not on record any more: a sentence
    unfinished: Renderings | None = None  # before a publication of which only these moved
    obstacle: Hold | None = None  # nothing can be written for it, whatever the candidate
    # ----
    revision: str = ""  # the candidate
    package: PreparedPackage | None = None  # upstream's, at that revision
    inputs: Inputs | None = None
    rendered: Rendered | None = None
    merged: Merged | None = None  # the rendering with what people changed in it
    failure: FanoutError | None = None  # its rendering failed
    returns: bool = False  # it goes back to the candidate, and nothing is rendered for it
    earlier: Earlier | None = None  # what it goes back to; None: it never had the revision
    barred: Hold | None = None  # what keeps it from going back

    @property
    def upstream_commit(self) -> str:
        """The upstream commit of the candidate."""
        if self.earlier is not None:
            return self.earlier.commit
        return self.package.upstream.revision.commit if self.package else ""

    @property
    def upstream_time(self) -> int:
        """When that commit was made; what was published before is no newer than its branch."""
        return self.package.upstream.revision.when if self.package else 0

    @property
    def granted(self) -> bool:
        """Is exactly what its draft holds released on record, for the place where it is to go?"""
        grant, draft = self.line.grant, self.draft
        return (
            grant is not None
            and draft is not None
            and self.line.granted_place == (self.view.key, self.spec.path)
            and (grant.revision, grant.digest) == (draft.trailers.revision, draft.trailers.digest)
        )

    @property
    def moves(self) -> bool:
        """Is its published package still at another place?"""
        return self.former is not None and not self.unrecorded

    @property
    def home(self) -> Former:
        """Where its own package is, as far as it has one."""
        if self.former is not None and self.moves:
            return self.former
        return Former(self.view, self.spec.repository, self.spec.path)

    @property
    def own(self) -> PathState:
        """What is on the branch of its own package."""
        if self.former is not None and self.moves:
            return self.former.state
        return self.state

    @property
    def onto(self) -> str:
        """What a draft written now is for: the tree of its own package, wherever that is."""
        return self.own.tree or NONE

    @property
    def published_rendering(self) -> str | None:
        """The tree under `published/` at its path, as it was before an unfinished push."""
        if self.unfinished is not None:
            return self.unfinished.published
        return self.view.published.get(self.spec.path)

    @property
    def drafted_rendering(self) -> str | None:
        """The tree under `drafts/` at its path, as it was before an unfinished push."""
        if self.unfinished is not None:
            return self.unfinished.drafted
        return self.view.drafted.get(self.spec.path)

    @property
    def pristine(self) -> str | None:
        """The rendering that was published, without anybody's edits; None: it is nowhere.

        The status knows its id. So the branch of renderings may be lost, or somebody may have
        committed to it: where nothing was merged, the repository's own history has the tree.
        """
        if self.reverted is not None:
            return self.reverted.pristine
        known = self.published.pristine if self.published else ""
        if known in ("", self.vendored):
            return self.vendored
        assert self.published is not None, "its pristine rendering is known"
        return known if known == self.published.tree else None

    @property
    def vendored(self) -> str | None:
        """What the branch of renderings has as published at the path."""
        if self.alien and not self.moves:
            return None
        if self.unrecorded and self.drafted_rendering is not None:
            return self.drafted_rendering
        if self.former is not None and self.moves:
            return self.former.pristine
        return self.published_rendering

    @property
    def edited(self) -> bool:
        """Did a person change, or take away, what was published?

        The pristine rendering tells also where the status was lost. Where nothing tells, the
        edits of earlier revisions may be in what was published.
        """
        if self.published is None and self.vendored is None:
            return False
        if self.reverted is not None:
            return self.own.tree != self.reverted.pristine
        known = self.published.pristine if self.published else ""
        return self.own.tree != (known or self.vendored)

    @property
    def shows_edits(self) -> bool:
        """Is what is published there still, with people's edits in it?"""
        there = self.published is not None and self.own.tree is not None
        return there and self.reverted is None and self.edited

    @property
    def baseless(self) -> bool:
        """Can nobody tell people's edits in what is published from what fanout put there?"""
        published = self.published is not None and self.own.tree is not None
        return published and self.edited and self.pristine is None

    @property
    def removed(self) -> bool:
        """Did somebody take the published package off the branch?

        Where the records are lost its pristine rendering shows that it was published.
        """
        return (
            self.own.tree is None
            and (self.published is not None or self.vendored is not None)
            and self.home.view.failure is None
            and self.line.place == (self.home.view.key, self.home.path)
        )

    @property
    def undone(self) -> Hold | None:
        """Why the published revision is not what is in force: somebody took it back."""
        if self.removed:
            return _taken_away(self)
        if self.reverted is None or self.published is None:
            return None
        at = f"{self.home.repository}:{self.home.path}"
        return taken_back(self.spec, at, self.reverted, self.published)

    @property
    def foreign(self) -> bool:
        """Does a package that fanout did not write, or does not know any more, stand there?"""
        if self.state.tree is None or self.moves:
            return False
        unknown = self.published is None and self.published_rendering is None
        return unknown or self.alien or (self.adopts and self.baseless)

    @property
    def content(self) -> Rendered | None:
        """What its draft is to hold."""
        return self.merged.content if self.merged is not None else self.rendered

    @property
    def merges(self) -> bool:
        """Have people changed something that the new rendering must not lose?"""
        if self.edited or self.foreign or (self.draft is not None and self.draft.carries):
            return True
        return bool(self.strays) and any(stray.draft.carries for stray in self.strays)

    @property
    def in_force(self) -> bool:
        """Is the candidate, with these inputs, what is published?"""
        return (
            self.published is not None
            and not self.moves
            and self.reverted is None
            and self.inputs is not None
            and (self.published.revision, self.published.digest)
            == (self.revision, self.inputs.digest)
        )

    @property
    def reads(self) -> Mapping[str, str]:
        """The cluster objects in what is published, as far as it is on record or can be told."""
        if self.published is None:
            return {}
        if not self.published.reads and self.in_force and self.inputs is not None:
            return self.inputs.reads
        return self.published.reads

    @property
    def standing(self) -> bool:
        """Is the open draft what the candidate's rendering asks for?"""
        return (
            self.draft is not None
            and self.inputs is not None
            and self.draft.trailers.digest == self.inputs.digest
            and self.draft.trailers.revision == self.revision
            and self.draft.trailers.onto == self.onto
            and (self.earlier is None or self.draft.trailers.tree == self.earlier.tree)
            and self._as_chosen(self.draft)
            and self.draft.trailers.rendered == self.drafted_rendering
            and all(it.taken_by(self.draft) for it in self.strays)
        )

    @property
    def disputes(self) -> tuple[Dispute, ...]:
        """Those of a draft that is written now; people's commits may have settled some before."""
        if self.merged is None:
            return ()
        taken = [self.draft] if self.draft is not None else []
        taken += [stray.draft for stray in self.strays if stray.draft.carries]
        settled = (
            item.key
            for draft in taken
            for item in read(draft.trailers.conflicts)
            if item.decided or item.key in draft.settled
        )
        return disputes_of(self.merged.conflicts, settled)

    def _as_chosen(self, draft: OpenDraft) -> bool:
        """Has each disputed value the chosen winner? Who commits to it has the last word."""
        if draft.trailers.conflicts == NONE or self.choices == NO_CHOICES:
            return True
        found = (it for it in read(draft.trailers.conflicts) if it.key not in draft.settled)
        return all(self.choices.winner(item.key, item.winner) is item.winner for item in found)

    @property
    def hold(self) -> Hold | None:
        """What is in the way of a draft for the candidate, whatever the gates say."""
        return (
            self.obstacle
            or _taken_away(self)
            or _without_base(self)
            or self.waits
            or _broken(self)
            or self.barred
            or _in_the_way_of(self)
        )

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
        returns=False,
        earlier=None,
        barred=None,
    )


def _taken_away(case: Case) -> Hold | None:
    """What a person removed is not put back, and is not in force, whatever was to come next."""
    if not case.removed:
        return None
    spec = case.spec
    give_up = "remove the PackageVariant"
    if spec.policy:
        give_up = f"take its target out and `fanout remove {spec.policy} {spec.name} --reason WHY`"
    at = f"{case.home.repository}:{case.home.path}"
    if case.published is None:
        branch = vendor_ref(install_of(case.ref)).removeprefix("refs/heads/")
        give_up = f"take published/{spec.path} off branch {branch} to have it written anew"
    return Hold(
        "EditedDownstream",
        f"{at} was removed from the branch by hand; put it back, as with `git revert`, or"
        f" {give_up}",
        who="the maintainers of " + spec.repository,
    )


def _without_base(case: Case) -> Hold | None:
    """No draft can be written over what somebody put in place of what was published."""
    found = case.reverted
    if found is None or not (found.elsewhere or found.pristine is None):
        return None
    return case.undone


def _broken(case: Case) -> Hold | None:
    """What people committed to the draft cannot be used: it is neither published nor rewritten."""
    draft = case.draft
    if draft is None or not draft.faults:
        draft = next((stray.draft for stray in case.strays if stray.draft.faults), None)
    if draft is None or case.unrecorded:
        return None
    first, *more = draft.faults
    others = f" (and {len(more)} more)" if more else ""
    branch = draft.ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_BROKEN,
        f"{remedied(first)} on branch {branch}{others}, or remove the branch to have the draft"
        " written anew",
        who="the maintainers of " + case.spec.repository,
    )


def _in_the_way_of(case: Case) -> Hold | None:
    if case.inputs is None or case.in_force or case.standing or case.returns:
        return None
    spec = case.spec
    if case.baseless and not case.foreign:
        lost = "has something else" if case.vendored else "does not have it"
        return Hold(
            "BaseMissing",
            f"{spec.repository}:{spec.path} has people's edits, and fanout's branch of renderings"
            f" {lost}: nobody can tell the edits from upstream's; restore that branch, or set"
            " adoptionPolicy: AdoptExisting to take the package over anew, with its upstreamLock"
            " as the base",
            who="the maintainers of " + spec.repository,
        )
    if case.inputs.unmet:
        missing = "; ".join(f"{item.point}: {item.problem}" for item in case.inputs.unmet)
        return Hold(
            "RequiredInjectionMissing",
            f"{spec.repository}:{spec.path}: nothing to inject: {missing}",
            who="whoever owns the cluster objects",
        )
    return None
