"""A variant that nothing asks for any more, or that has moved: what of it goes from one place.

With `deletionPolicy: Delete` the package leaves the branch; with `Orphan` it stays, as somebody
else's, and so do drafts that hold a person's commits. What only fanout needs goes in both: its
pristine renderings and its other drafts. Tags stay.
"""

from collections.abc import Mapping, Sequence

from fanout.api.trailers import Trailer
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.repository import (
    FileCommit,
    Identity,
    PathState,
    RepositoryChange,
    VendorCommit,
)
from fanout.plan.status import VariantLine
from fanout.selection.naming import drafts_under, vendor_ref
from fanout.values import frozen

_NAMED = 2  # packages that one subject has room for


@frozen
class Removal:
    """What is to go from one place."""

    variant: str
    owner: str  # as trailers call the policy: "<namespace>/<policy>"
    line: VariantLine | None  # if it is there; None: nothing was ever released there
    path: str
    view: RepositoryView | None  # None: its repository is not declared any more
    orphan: bool  # the package stays
    taken: str = ""  # the tree that the variant took along when it left this place
    drafts_stay: bool = False  # only a package that was left behind goes
    repository: str = ""  # name of the Repository object; "": none is declared

    @property
    def state(self) -> PathState:
        """What is on the branch at its path."""
        return self.view.paths.get(self.path, NOTHING) if self.view else NOTHING

    @property
    def drafts(self) -> tuple[OpenDraft, ...]:
        """Its open drafts in the repository that go; several where its path was changed."""
        if self.drafts_stay:
            return ()
        return tuple(it for it in self._own_drafts if not (self.orphan and it.carries))

    @property
    def drafts_given_up(self) -> tuple[OpenDraft, ...]:
        """Its drafts that stay with the package, because a person's commits are in them."""
        if self.drafts_stay or not self.orphan:
            return ()
        return tuple(it for it in self._own_drafts if it.carries)

    @property
    def _own_drafts(self) -> tuple[OpenDraft, ...]:
        return tuple(
            draft
            for draft in (self.view.drafts.values() if self.view else ())
            if (draft.trailers.policy, draft.trailers.variant) == (self.owner, self.variant)
        )

    @property
    def expected(self) -> str | None:
        """The tree that the package has when nobody changed it; None: it is not fanout's.

        The pristine rendering, so that edits which later revisions took along are edits still;
        the status knows it also where the branch of renderings is lost or was changed.
        """
        if self.taken:
            return self.taken
        published = self.line.published if self.line else None
        grant = self.line.grant if self.line else None
        pristine = self.view.published.get(self.path) if self.view else None
        if published:
            return published.pristine or pristine or published.tree
        if pristine:
            return pristine
        # a pass was ended before it was recorded, or a person merged the draft
        written = [grant.tree] if grant else []
        written += [it.tree for it in self.drafts if it.tree and it.trailers.onto != it.tree]
        return self.state.tree if self.state.tree in written else None

    @property
    def deletes(self) -> bool:
        """Does a package leave the branch?"""
        return not self.orphan and self.state.tree is not None and self.expected is not None

    @property
    def edited(self) -> Mapping[str, str]:
        """What is to go although people have worked on it, in words: the tree or the commit."""
        found: dict[str, str] = {}
        if self.deletes and self.state.tree is not None and self.state.tree != self.expected:
            found[f"the package {self.path}"] = self.state.tree
        for draft in self.drafts:
            if draft.carries:
                found[f"the draft {draft.ref.removeprefix('refs/heads/')}"] = draft.commit
        return found

    @property
    def forgets(self) -> tuple[str, ...]:
        """The pristine renderings that nobody needs any more, by their directories."""
        if self.view is None:
            return ()
        found = [f"published/{self.path}"] if self.path in self.view.published else []
        if self.path in self.view.drafted and not self.drafts_stay and not self._drafted_by_others:
            found.append(f"drafts/{self.path}")
        return tuple(found)

    @property
    def _drafted_by_others(self) -> bool:
        """Is an open draft of another variant at the path?"""
        own = {draft.ref for draft in self._own_drafts}
        known = self.view.drafts if self.view else ()
        return any(path_of(ref) == self.path for ref in known if ref not in own)


def path_of(ref: str) -> str:
    """The path of a draft: it is between the installation and the policy in the branch's name."""
    return ref.split("/", 4)[4].rpartition("/")[0]


def removal_change(
    removals: Sequence[Removal], install: str, identity: Identity, reason: str, when: int
) -> RepositoryChange | None:
    """What is to be done in one repository; None: nothing is left of the variant there.

    One atomic push takes the packages off the branch and forgets their renderings, a second one
    removes the drafts.
    """
    view = removals[0].view
    if view is None:
        return None
    files: tuple[FileCommit, ...] = ()
    going = sorted((it for it in removals if it.deletes), key=lambda it: it.path)
    if going:
        paths, text = tuple(it.path for it in going), message(going, reason)
        files = (FileCommit(view.branch, view.head, {}, paths, text, max(when, view.head_time)),)
    vendor = _vendor(removals, view, install, when)
    remove = tuple(sorted({draft.ref for removal in removals for draft in removal.drafts}))
    touched = [commit.ref for commit in files] + ([vendor.ref] if vendor else []) + list(remove)
    if not touched:
        return None
    return RepositoryChange(
        remote=view.remote,
        identity=identity,
        expected={ref: view.refs.get(ref, "") for ref in sorted(touched)},
        files=files,
        vendor=vendor,
        remove=remove,
        drafts_under=drafts_under(install),
    )


def _vendor(
    removals: Sequence[Removal], view: RepositoryView, install: str, when: int
) -> VendorCommit | None:
    drop = {path for removal in removals for path in removal.forgets}
    if not drop:
        return None
    return VendorCommit(
        ref=vendor_ref(install),
        parent=view.vendor,
        put={},
        drop=tuple(sorted(drop)),
        message="Keep the pristine renderings\n",
        when=max(when, view.vendor_time),
    )


def message(removals: Sequence[Removal], reason: str) -> str:
    """The message of the commit that takes these packages, all of one policy, off a branch."""
    paths = [removal.path for removal in removals]
    variants = dict.fromkeys(removal.variant for removal in removals)
    subject = " and ".join(paths) if len(paths) <= _NAMED else f"{len(paths)} packages"
    parts = [f"Remove {subject}"]
    if len(paths) > _NAMED:
        parts.append("\n".join(f"* {path}" for path in paths))
    trailers = [f"{Trailer.POLICY.value}: {removals[0].owner}"]
    trailers += [f"{Trailer.VARIANT.value}: {variant}" for variant in variants]
    return "\n\n".join([*parts, reason.strip(), "\n".join(trailers)]) + "\n"
