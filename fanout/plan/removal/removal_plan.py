"""Removal of variants without a target, and of packages that a move left behind.

With `deletionPolicy: Delete` the package is removed from the branch; with `Orphan` it
stays unmanaged, and so do drafts with edits. Pristine renderings and other drafts are
removed in both cases. Tags stay. The instant of a removal is on record before anything
is pushed: decisions made until then do not count for a variant that comes back (design
§3, "Order of effects").
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.commit_trailers import Trailer
from fanout.api.results import Hold
from fanout.gates.gate_wording import format_names
from fanout.plan import plan_wording
from fanout.plan.actions import ActionKind, ActionSubject, PlanAction
from fanout.plan.drafts.draft_changes import plan_drafts
from fanout.plan.observation.repository_state import (
    CommitIdentity,
    FileCommit,
    OpenDraft,
    PublicationMerge,
    RepositoryChange,
    RepositoryPath,
    RepositoryState,
    VendorCommit,
)
from fanout.plan.records.policy_status import VariantLine
from fanout.plan.removal.removal_drafts import (
    DraftedRemoval,
    RemovalDraftOwner,
    RemovalDraftPlan,
    add_removals,
    is_merged,
    is_reviewed,
    list_removal_writes,
)
from fanout.selection.ref_names import drafts_prefix, vendor_ref
from fanout.values import replace

_MAX_NAMED = 2  # packages named in one commit subject


class PackageRemoval(RepositoryPath, kw_only=True):
    """Removal of one variant from one place."""

    variant: str
    owner: str  # policy as in trailers: "<namespace>/<policy>"
    status_line: VariantLine | None  # None: nothing was ever released there
    keeps_package: bool  # the package stays
    moved_tree: str = ""  # tree that moved with the variant
    keeps_drafts: bool = False  # only the remaining package is removed
    stage: str = ""  # as recorded; "": none
    needs_approvals: bool = False  # its stage requires approvals of a change
    # Head of the branch by which it is removed at once, because people approved it; "": none.
    approved_branch: str = ""

    @property
    def removed_drafts(self) -> tuple[OpenDraft, ...]:
        """Return the open drafts of the variant to remove; several where its path was changed."""
        if self._keeps_all_drafts:
            return ()
        return tuple(it for it in self._own_drafts if not (self.keeps_package and it.has_edits))

    @property
    def _keeps_all_drafts(self) -> bool:
        """Return whether no draft of the variant goes in this pass.

        One stays until its package is removed if nothing else shows that this is fanout's.
        """
        return self.keeps_drafts or (self.awaits_review and self._recorded_tree is None)

    @property
    def orphaned_drafts(self) -> tuple[OpenDraft, ...]:
        """Return the drafts that stay with an orphaned package because they have edits."""
        if self.keeps_drafts or not self.keeps_package:
            return ()
        return tuple(it for it in self._own_drafts if it.has_edits)

    @property
    def _own_drafts(self) -> tuple[OpenDraft, ...]:
        return tuple(
            draft
            for draft in (self.repository_state.drafts if self.repository_state else ())
            if (draft.trailers.policy, draft.trailers.variant) == (self.owner, self.variant)
        )

    @property
    def expected_tree(self) -> str | None:
        """Return the tree of the unedited package, or None if it is not managed by fanout.

        It is the pristine rendering, so edits that later revisions merged still count as edits.
        The recorded status knows it also where the branch of renderings is lost or was changed.
        """
        if self._recorded_tree is not None:
            return self._recorded_tree
        # A draft that changed nothing is no sign of a publication: its tree was there
        # before.
        drafted_trees = [
            it.tree
            for it in self._own_drafts
            if not self.keeps_drafts and it.trailers.onto != it.tree
        ]
        return self.path_state.tree if self.path_state.tree in drafted_trees else None

    @property
    def _recorded_tree(self) -> str | None:
        """Return the tree of the unedited package as records or renderings have it, or None."""
        if self.moved_tree:
            return self.moved_tree
        published = self.status_line.published if self.status_line else None
        grant = self.status_line.grant if self.status_line else None
        if published:
            return published.pristine or self.pristine_tree or published.tree
        if self.pristine_tree:
            return self.pristine_tree
        # The pass ended before recording it, or a person merged the draft.
        return grant.tree if grant and self.path_state.tree == grant.tree else None

    @property
    def removes_package(self) -> bool:
        """Return whether a package is removed from the branch."""
        return (
            not self.keeps_package
            and self.path_state.tree is not None
            and self.expected_tree is not None
        )

    @property
    def awaits_review(self) -> bool:
        """Return whether the package leaves by a branch that people review, and is there still."""
        state = self.repository_state
        return (
            state is not None
            and is_reviewed(state, needs_approvals=self.needs_approvals)
            and self.removes_package
            and not self.approved_branch
        )

    @property
    def edits(self) -> Mapping[str, str]:
        """Return what is removed although it was edited: description to tree or commit id."""
        edits: dict[str, str] = {}
        if (
            self.removes_package
            and self.path_state.tree is not None
            and self.path_state.tree != self.expected_tree
        ):
            edits[f"the package {self.path}"] = self.path_state.tree
        for draft in self.removed_drafts:
            if draft.has_edits:
                edits[f"the draft {draft.ref.removeprefix('refs/heads/')}"] = draft.commit
        return edits

    @property
    def dropped_renderings(self) -> tuple[str, ...]:
        """Return the directories of pristine renderings that nothing needs any more."""
        if self.repository_state is None:
            return ()
        is_published = self.path in self.repository_state.published_renderings
        directories = [f"published/{self.path}"] if is_published and not self.awaits_review else []
        if (
            self.path in self.repository_state.drafted_renderings
            and not self._keeps_all_drafts
            and not self._has_other_draft
        ):
            directories.append(f"drafts/{self.path}")
        return tuple(directories)

    @property
    def _has_other_draft(self) -> bool:
        """Return whether another variant has an open draft at the path."""
        own_keys = {draft.key for draft in self._own_drafts}
        drafts = self.repository_state.drafts if self.repository_state else ()
        return any(draft.path == self.path for draft in drafts if draft.key not in own_keys)


def draft_removal(removal: PackageRemoval, reason: str, hold: Hold | None = None) -> DraftedRemoval:
    """Return the removal of a package by a branch; `hold` keeps it from joining one."""
    assert removal.repository_state is not None, "a repository with such a branch is observed"
    assert removal.path_state.tree is not None, "only a package that is there is removed"
    published = removal.status_line.published if removal.status_line is not None else None
    return DraftedRemoval(
        variant=removal.variant,
        stage=removal.stage,
        repository=removal.repository,
        repository_state=removal.repository_state,
        path=removal.path,
        tree=removal.path_state.tree,
        reason=reason,
        published_at=published.at if published is not None else None,
        hold=hold,
    )


def build_removal_change(
    removals: Sequence[PackageRemoval],
    install: str,
    identity: CommitIdentity,
    reason: str,
    timestamp: int,
    *,
    appends: bool = False,
) -> RepositoryChange | None:
    """Build the change of one repository, or None if nothing is to be removed.

    `removals` are all in one repository; `timestamp` is in Unix seconds. One atomic push removes
    packages and their renderings, a second one the drafts. Packages whose removal awaits a review
    are removed on a branch. `appends`: the server refuses to replace a branch.
    """
    state = removals[0].repository_state
    if state is None:
        return None
    files: tuple[FileCommit, ...] = ()
    pushed = (it for it in removals if it.removes_package and not it.awaits_review)
    packages = sorted(pushed, key=lambda it: it.path)
    if packages:
        paths, text = tuple(it.path for it in packages), removal_message(packages, reason)
        # Never older than its parent: history walks of Git rely on commit times.
        files = (
            FileCommit(
                ref=state.branch,
                parent=state.head,
                content_by_path={},
                dropped_paths=paths,
                message=text,
                timestamp=max(timestamp, state.head_time),
                more_parents=tuple(
                    dict.fromkeys(filter(None, (it.approved_branch for it in packages)))
                ),
            ),
        )
    vendor = _drop_renderings(removals, state, install, timestamp)
    drafts = [draft for removal in removals for draft in removal.removed_drafts]
    branches = plan_drafts(state, [], [], drafts, appends=appends)
    removal_drafts = _plan_removal_drafts(removals, install, reason)
    writes = [*branches.writes, *list_removal_writes(removal_drafts, appends=appends)]
    # And the removal drafts of the packages of which the branch has none any more.
    owners = {removal_draft_owner(it, install).find_ref(it.stage) for it in removals}
    own_sets = [state.sets[ref] for ref in sorted(owners & state.sets.keys())]
    approved = {it.approved_branch for it in packages}
    emptied = (
        draft.ref
        for draft in own_sets
        if draft.commit in approved or (is_merged(draft, state) and not draft.faults)
    )
    draft_refs = sorted({*branches.removed_refs, *emptied})
    touched = [*(commit.ref for commit in files), *(it.ref for it in writes)]
    touched += [*([vendor.ref] if vendor else []), *draft_refs]
    if not touched:
        return None
    return RepositoryChange(
        remote=state.remote,
        identity=identity,
        expected={ref: state.refs.get(ref, "") for ref in sorted(touched)},
        branches=tuple(writes),
        files=files,
        vendor=vendor,
        removed_drafts=tuple(draft_refs),
        drafts_under=drafts_prefix(install),
    )


def _plan_removal_drafts(
    removals: Sequence[PackageRemoval], install: str, reason: str
) -> list[RemovalDraftPlan]:
    """Plan the branches that remove the packages after a review.

    Raises InvalidInput if a branch has nothing but commits of others.
    """
    removals_by_draft: dict[tuple[RemovalDraftOwner, str], list[DraftedRemoval]] = {}
    for removal in removals:
        if removal.awaits_review:
            key = removal_draft_owner(removal, install), removal.stage
            removals_by_draft.setdefault(key, []).append(draft_removal(removal, reason))
    return [add_removals(owner, wanted) for (owner, _), wanted in removals_by_draft.items()]


def removal_draft_owner(removal: PackageRemoval, install: str) -> RemovalDraftOwner:
    """Return whose removal draft the package is in: of its policy, or of the variant itself."""
    namespace, _, policy = removal.owner.partition("/")
    return RemovalDraftOwner(install, namespace, policy or removal.variant)


def _drop_renderings(
    removals: Sequence[PackageRemoval], state: RepositoryState, install: str, timestamp: int
) -> VendorCommit | None:
    drop = {path for removal in removals for path in removal.dropped_renderings}
    drop |= {f"published/{it.path}" for it in removals if it.path in state.obsolete_renderings}
    if not drop:
        return None
    return VendorCommit(
        ref=vendor_ref(install),
        parent=state.vendor_head,
        trees_by_path={},
        dropped_paths=tuple(sorted(drop)),
        message="Keep the pristine renderings\n",
        timestamp=max(timestamp, state.vendor_time),
        last_statements=state.last_statements,
    )


def removal_message(removals: Sequence[PackageRemoval], reason: str) -> str:
    """Return the message of the commit that removes packages of one policy from a branch."""
    paths = [removal.path for removal in removals]
    variants = dict.fromkeys(removal.variant for removal in removals)
    subject = " and ".join(paths) if len(paths) <= _MAX_NAMED else f"{len(paths)} packages"
    parts = [f"Remove {subject}"]
    if len(paths) > _MAX_NAMED:
        parts.append("\n".join(f"* {path}" for path in paths))
    trailers = [f"{Trailer.POLICY.value}: {removals[0].owner}"]
    trailers += [f"{Trailer.VARIANT.value}: {variant}" for variant in variants]
    return "\n\n".join([*parts, reason.strip(), "\n".join(trailers)]) + "\n"


class VariantRemoval(ActionSubject, kw_only=True):
    """Removal of one variant whose target no longer exists, from all its places.

    `stage` is as recorded.
    """

    package_removals: tuple[PackageRemoval, ...]
    first_due: datetime  # first time at which it was due

    @property
    def awaits_review(self) -> bool:
        """Return whether a package of the variant leaves its branch after a review."""
        return any(removal.awaits_review for removal in self.package_removals)


def removal_due_since(
    variant: str, status_line: VariantLine | None, removed: Mapping[str, datetime], now: datetime
) -> datetime:
    """Return when the removal was first due: now, or in a pass that was cut off.

    `removed` has recorded removals by variant name; one that a publication followed is
    over.
    """
    recorded = removed.get(variant)
    published = status_line.published if status_line is not None else None
    if recorded is None or (published is not None and published.at > recorded):
        return now
    return recorded


def removal_actions(variant_removal: VariantRemoval) -> Iterator[PlanAction]:
    """Yield the actions of the removal of one variant."""
    record_action = variant_removal.build_action(ActionKind.RECORD, detail=plan_wording.TARGET_GONE)
    removals = variant_removal.package_removals
    for removal in removals:
        if removal.removes_package and not removal.awaits_review:
            yield replace(
                record_action,
                kind=ActionKind.REMOVE_PACKAGE,
                repository=removal.repository,
                path=removal.path,
                tree=removal.path_state.tree or "",
            )
    # One action per draft: several places may be in one repository.
    removals_by_draft: dict[tuple[str, str], tuple[PackageRemoval, OpenDraft]] = {}
    for removal in removals:
        for draft in removal.removed_drafts:
            removals_by_draft.setdefault((removal.repository, draft.ref), (removal, draft))
    for removal, draft in removals_by_draft.values():
        yield replace(
            record_action,
            kind=ActionKind.REMOVE_DRAFT,
            repository=removal.repository,
            path=removal.path,
            ref=draft.ref,
            expected=draft.commit,
        )
    if any(removal.removes_package for removal in removals):
        return
    has_orphan = any(it.keeps_package and it.path_state.tree for it in removals)
    remainder = "its package stays on the branch" if has_orphan else "nothing of it is on a branch"
    drafts = {draft.ref for removal in removals for draft in removal.orphaned_drafts}
    names = format_names(ref.removeprefix("refs/heads/") for ref in drafts)
    edits = f", and so does what people committed to {names}" if drafts else ""
    detail = f"that {variant_removal.variant} is gone with its target; {remainder}{edits}"
    yield replace(record_action, detail=detail)


def build_removal_commits(
    removals: Sequence[tuple[VariantRemoval, PackageRemoval]],
) -> tuple[PublicationMerge, ...]:
    """Build one commit per policy that removes packages from one branch."""
    removals_by_owner: dict[str, list[tuple[VariantRemoval, PackageRemoval]]] = {}
    for variant_removal, removal in removals:
        if removal.removes_package and not removal.awaits_review:
            removals_by_owner.setdefault(removal.owner, []).append((variant_removal, removal))
    commits: list[PublicationMerge] = []
    for _, pairs in sorted(removals_by_owner.items()):
        times = [int(variant_removal.first_due.timestamp()) for variant_removal, _ in pairs]
        packages = sorted((it for _, it in pairs), key=lambda it: it.path)
        states = (it.repository_state for it in packages)
        times += [state.head_time for state in states if state is not None]
        reason = "Its target is gone." if len(packages) == 1 else "Their targets are gone."
        commits.append(
            PublicationMerge(
                drafts=(),
                message=removal_message(packages, reason),
                timestamp=max(times),
                dropped_paths=tuple(removal.path for removal in packages),
            )
        )
    return tuple(commits)
