"""Changes of the branches of sets: which packages each has after the pass, and new commits.

A draft whose packages change is written anew from the head of the target branch. Nothing that
people wrote is lost: where they have committed to the branch of a stage, commits are appended
(docs/concepts/drafts-and-git.md); the new draft of one variant has the old one as a further
parent.
"""

from collections.abc import Iterable

from fanout.plan.changes.commit_chain import WrittenPackage, restore_packages, write_packages
from fanout.plan.changes.next_drafts import build_draft, draft_subject, replaced_drafts
from fanout.plan.changes.planned_sets import PlannedSet
from fanout.plan.commit_statement import CommitStatement
from fanout.plan.observation.repository_state import (
    BranchUpdate,
    OpenDraft,
    RepositoryState,
    StoredTree,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import draft_path
from fanout.values import Value, field


class BranchChanges(Value):
    """Changes of the branches of the sets of one repository.

    `trees` are the packages that the new commits name; `removed_refs` the branches on which
    nothing remains.
    """

    writes: tuple[BranchUpdate, ...] = ()
    trees: tuple[StoredTree, ...] = ()
    removed_refs: tuple[str, ...] = ()


class _DraftPlan(Value):
    """The packages that come and leave on one branch."""

    written: list[RenderedVariant] = field(default_factory=list)
    published: list[OpenDraft] = field(default_factory=list)
    withdrawn: list[OpenDraft] = field(default_factory=list)


def plan_branches(
    state: RepositoryState,
    written: Iterable[RenderedVariant],
    published: Iterable[OpenDraft],
    withdrawn: Iterable[OpenDraft],
    removal_sets: Iterable[PlannedSet],
    *,
    appends: bool = False,
) -> BranchChanges:
    """Plan the branches of the sets of one repository.

    `written` are released variants with new content, `published` the packages whose content is
    on the target branch after this pass, `withdrawn` those that leave their draft unpublished.
    `appends`: the server refuses to replace a branch, so each is continued.
    """
    plans: dict[str, _DraftPlan] = {}
    for variant in written:
        plans.setdefault(variant.observed.draft_ref, _DraftPlan()).written.append(variant)
    for draft in published:
        plans.setdefault(draft.ref, _DraftPlan()).published.append(draft)
    for draft in withdrawn:
        plans.setdefault(draft.ref, _DraftPlan()).withdrawn.append(draft)
    writes: list[BranchUpdate] = []
    # Two owners of one name would have the same sets.
    removed_refs: set[str] = set()
    for ref, plan in sorted(plans.items()):
        if (write := _plan_branch(state, ref, plan, appends=appends)) is not None:
            writes.append(write)
        elif ref in state.sets:
            removed_refs.add(ref)
    for removal_set in removal_sets:
        update = removal_set.choose_update(appends=appends)
        writes += [update] if update is not None else []
        removed_refs |= {removal_set.ref} if removal_set.is_removed else set()
    trees = tuple(
        StoredTree(variant.draft_content.entries, variant.draft_content.tree)
        for plan in plans.values()
        for variant in plan.written
        if variant.draft_content is not None
    )
    return BranchChanges(tuple(writes), trees, tuple(sorted(removed_refs)))


def _plan_branch(
    state: RepositoryState, ref: str, plan: _DraftPlan, *, appends: bool
) -> BranchUpdate | None:
    """Return the new commits of one branch, or None if no package is left on it.

    The branch of one variant is always written anew: what it replaces is a further parent.
    """
    branch, is_shared = state.sets.get(ref), not draft_path(ref)
    written_paths = {variant.spec.path for variant in plan.written}
    withdrawn = {draft.path for draft in plan.withdrawn} - written_paths
    leaving = withdrawn | {draft.path for draft in plan.published} | written_paths
    removed = sorted(leaving - written_paths)
    present = branch.drafts.values() if branch is not None and is_shared else ()
    staying = [draft for draft in present if draft.path not in leaving]
    if not plan.written and not staying:
        return None
    # Only the branch has the commits of people: those whose edits the new content takes over, and
    # those beside all packages, unless they were merged with the rest.
    takes_edits = any(replaced_drafts(variant) for variant in plan.written)
    is_unmerged = bool(staying) or takes_edits or not plan.published
    is_edited = branch is not None and branch.is_edited and is_unmerged
    is_appended = is_shared and branch is not None and (appends or is_edited)
    # After the target branch: a reader takes the first parent for it.
    replaced = [state.refs[ref]] if appends and not is_shared and ref in state.refs else []
    packages = [
        WrittenPackage(
            build_draft(variant),
            draft_subject(variant),
            variant.selected.upstream_time,
            # Their branches go or are written anew, and have commits of people.
            (
                *(
                    it.commit
                    for at, it in replaced_drafts(variant)
                    if at.identity == state.identity and not (is_appended and it.ref == ref)
                ),
                *replaced,
            ),
        )
        for variant in plan.written
    ]
    if branch is None or not is_appended:
        packages += [
            WrittenPackage(it, f"Update {it.path} at {it.trailers.revision}", 0) for it in staying
        ]
        commits = write_packages(ref, packages, state.head, state.head_time)
        return BranchUpdate(ref, state.head, tuple(commits))
    floor = max(state.head_time, branch.timestamp)
    appended = [*write_packages(ref, packages, branch.base, floor)]
    if removed:
        # A withdrawn package gets back what the target branch has. What was published is left as
        # it is: put back, a merge of the draft would revert the publication.
        paths = [path for path in removed if path in withdrawn]
        trees = {path: state.find_tree(path) for path in paths}
        statement = CommitStatement(
            ref=ref,
            policy=branch.policy,
            stage=branch.stage,
            base=branch.base,
            restored=tuple(removed),
        )
        subject = removed[0] if len(removed) == 1 else f"{len(removed)} packages"
        subject = f"Take {subject} out of the draft"
        appended.append(restore_packages(subject, statement, trees, floor))
    return BranchUpdate(ref, branch.commit, tuple(appended))
