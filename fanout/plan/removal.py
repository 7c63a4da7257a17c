"""A variant that nothing asks for any more, or that has moved: what of it goes from one place.

With `deletionPolicy: Delete` the package leaves the branch; with `Orphan` it stays, as somebody
else's. What only fanout needs goes in both: its pristine renderings and its draft. Tags stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fanout.api.trailers import Trailer
from fanout.plan.change import Writing
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.repository import FileCommit, PathState, RepositoryChange, VendorCommit
from fanout.plan.status import VariantLine
from fanout.selection.naming import drafts_under, vendor_ref


@dataclass(frozen=True, slots=True)
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

    @property
    def state(self) -> PathState:
        """What is on the branch at its path."""
        return self.view.paths.get(self.path, NOTHING) if self.view else NOTHING

    @property
    def drafts(self) -> tuple[OpenDraft, ...]:
        """Its open drafts in the repository; several where its path was changed."""
        known = self.view.drafts.values() if self.view and not self.drafts_stay else ()
        return tuple(
            draft
            for draft in known
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
    def edited(self) -> tuple[str, ...]:
        """What is to go although people have worked on it, in words."""
        found = []
        if self.deletes and self.state.tree != self.expected:
            found.append(f"the package {self.path}")
        drafts = (it.ref.removeprefix("refs/heads/") for it in self.drafts if it.carries)
        return (*found, *(f"the draft {ref}" for ref in drafts))


def removal_change(
    removals: Sequence[Removal], writing: Writing, reason: str, when: int
) -> RepositoryChange | None:
    """What is to be done in one repository; None: nothing is left of the variant there.

    One atomic push takes the packages off the branch and forgets their renderings, a second one
    removes the drafts.
    """
    view = removals[0].view
    if view is None:
        return None
    files: tuple[FileCommit, ...] = ()
    going = tuple(removal.path for removal in removals if removal.deletes)
    if going:
        text = _message(removals[0], going, reason)
        files = (FileCommit(view.branch, view.head, {}, going, text, max(when, view.head_time)),)
    vendor = _vendor(removals, view, writing.install, when)
    remove = tuple(sorted({draft.ref for removal in removals for draft in removal.drafts}))
    touched = [commit.ref for commit in files] + ([vendor.ref] if vendor else []) + list(remove)
    if not touched:
        return None
    return RepositoryChange(
        remote=view.remote,
        identity=writing.identity,
        expected={ref: view.refs.get(ref, "") for ref in sorted(touched)},
        files=files,
        vendor=vendor,
        remove=remove,
        drafts_under=drafts_under(writing.install),
    )


def _vendor(
    removals: Sequence[Removal], view: RepositoryView, install: str, when: int
) -> VendorCommit | None:
    drop = [f"published/{it.path}" for it in removals if it.path in view.published]
    drop += [
        f"drafts/{it.path}" for it in removals if it.path in view.drafted and not it.drafts_stay
    ]
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


def _message(removal: Removal, paths: Sequence[str], reason: str) -> str:
    return (
        f"Remove {' and '.join(paths)}\n\n{reason.strip()}\n\n"
        f"{Trailer.POLICY.value}: {removal.owner}\n{Trailer.VARIANT.value}: {removal.variant}\n"
    )
