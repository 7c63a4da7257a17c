"""A variant that nothing asks for any more: what of it is taken out of its repository.

With `deletionPolicy: Delete` the package leaves the branch; with `Orphan` it stays, as somebody
else's. What only fanout needs goes in both: its pristine renderings and its draft. Tags stay.
"""

from dataclasses import dataclass

from fanout.api.trailers import Trailer
from fanout.plan.change import Writing
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.repository import FileCommit, PathState, RepositoryChange, VendorCommit
from fanout.plan.status import VariantLine
from fanout.selection.naming import drafts_under, vendor_ref


@dataclass(frozen=True, slots=True)
class Removal:
    """One variant that is to go, and where it is."""

    variant: str
    owner: str  # "<namespace>/<policy>"
    line: VariantLine | None  # None: nothing was ever released
    path: str
    view: RepositoryView | None  # None: its repository is not declared any more
    orphan: bool  # the package stays

    @property
    def state(self) -> PathState:
        """What is on the branch at its path."""
        return self.view.paths.get(self.path, NOTHING) if self.view else NOTHING

    @property
    def drafts(self) -> tuple[OpenDraft, ...]:
        """Its open draft; several where its path was changed."""
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
    removal: Removal, writing: Writing, reason: str, when: int
) -> RepositoryChange | None:
    """What is to be done in the repository; None: nothing is left of the variant there.

    One atomic push takes the package off the branch and forgets its renderings, a second one
    removes the draft.
    """
    view = removal.view
    if view is None:
        return None
    files: tuple[FileCommit, ...] = ()
    if removal.deletes:
        text = _message(removal, reason)
        when_on_branch = max(when, view.head_time)
        drop = (removal.path,)
        files = (FileCommit(view.branch, view.head, {}, drop, text, when_on_branch),)
    vendor = _vendor(removal, view, writing.install, when)
    remove = tuple(sorted(draft.ref for draft in removal.drafts))
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


def _vendor(removal: Removal, view: RepositoryView, install: str, when: int) -> VendorCommit | None:
    kept = {"published": view.published, "drafts": view.drafted}
    drop = tuple(f"{kind}/{removal.path}" for kind, at in kept.items() if removal.path in at)
    if not drop:
        return None
    return VendorCommit(
        ref=vendor_ref(install),
        parent=view.vendor,
        put={},
        drop=drop,
        message="Keep the pristine renderings\n",
        when=max(when, view.vendor_time),
    )


def _message(removal: Removal, reason: str) -> str:
    return (
        f"Remove {removal.path}\n\n{reason.strip()}\n\n"
        f"{Trailer.POLICY.value}: {removal.owner}\n{Trailer.VARIANT.value}: {removal.variant}\n"
    )
