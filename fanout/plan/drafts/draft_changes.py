"""Changes of the branches of drafts: which packages each has after the pass, and new commits.

A draft whose packages change is written anew from the head of the target branch. Nothing that
people wrote is lost: where they have committed to the branch of a stage, commits are appended
(docs/concepts/drafts-and-git.md); the new draft of one variant has the old one as a further
parent.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from fanout.plan.commit_limits import split_by_commit
from fanout.plan.commit_statement import CommitStatement, format_message, state_packages
from fanout.plan.drafts.next_draft import build_draft, draft_subject, replaced_drafts
from fanout.plan.edits.merge_disputes import conflict_paragraph
from fanout.plan.observation.repository_state import (
    EMPTY_PATH,
    BranchCommit,
    BranchUpdate,
    OpenDraft,
    RepositoryState,
    StoredTree,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import draft_path
from fanout.values import Value, field


class DraftChanges(Value):
    """Changes of the drafts of one repository.

    `trees` are the packages that the new commits name; `removed_refs` the branches on which
    nothing remains.
    """

    writes: tuple[BranchUpdate, ...] = ()
    trees: tuple[StoredTree, ...] = ()
    removed_refs: tuple[str, ...] = ()


class _Package(Value):
    """A package as a commit of the draft is to write it."""

    draft: OpenDraft
    subject: str  # of a commit that writes this package alone
    timestamp: int  # of the upstream commit; 0: not known, and not needed
    taken: tuple[str, ...] = ()  # tips of drafts whose edits it takes over, as further parents


class _DraftPlan(Value):
    """The packages that come and leave on one branch."""

    written: list[RenderedVariant] = field(default_factory=list)
    published: list[OpenDraft] = field(default_factory=list)
    withdrawn: list[OpenDraft] = field(default_factory=list)


def plan_drafts(
    state: RepositoryState,
    written: Iterable[RenderedVariant],
    published: Iterable[OpenDraft],
    withdrawn: Iterable[OpenDraft],
    *,
    appends: bool = False,
) -> DraftChanges:
    """Plan the branches of the drafts of one repository.

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
    removed_refs: list[str] = []
    for ref, plan in sorted(plans.items()):
        write = _plan_branch(state, ref, plan, appends=appends)
        if write is not None:
            writes.append(write)
        elif ref in state.sets:
            removed_refs.append(ref)
    trees = tuple(
        StoredTree(variant.draft_content.entries, variant.draft_content.tree)
        for plan in plans.values()
        for variant in plan.written
        if variant.draft_content is not None
    )
    return DraftChanges(tuple(writes), trees, tuple(removed_refs))


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
        _Package(
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
            _Package(it, f"Update {it.path} at {it.trailers.revision}", 0) for it in staying
        ]
        commits = _build_commits(ref, packages, state.head, state.head_time)
        return BranchUpdate(ref, state.head, tuple(commits))
    floor = max(state.head_time, branch.timestamp)
    appended = [*_build_commits(ref, packages, branch.base, floor)]
    if removed:
        # A withdrawn package gets back what the target branch has. What was published is left as
        # it is: put back, a merge of the draft would revert the publication.
        paths = [path for path in removed if path in withdrawn]
        trees = {path: state.path_states.get(path, EMPTY_PATH).tree for path in paths}
        subject = removed[0] if len(removed) == 1 else f"{len(removed)} packages"
        statement = CommitStatement(
            ref=ref,
            policy=branch.policy,
            stage=branch.stage,
            base=branch.base,
            restored=tuple(removed),
        )
        appended.append(
            BranchCommit(
                trees_by_path={path: tree for path, tree in trees.items() if tree is not None},
                dropped_paths=tuple(path for path, tree in trees.items() if tree is None),
                message=format_message(f"Take {subject} out of the draft", statement),
                timestamp=floor,
            )
        )
    return BranchUpdate(ref, branch.commit, tuple(appended))


def _build_commits(
    ref: str, packages: Iterable[_Package], base: str, floor: int
) -> Iterator[BranchCommit]:
    """Yield a chain of commits for each upstream commit."""
    ordered = sorted(packages, key=lambda it: (*_source(it), it.draft.path))
    for _, group in groupby(ordered, _source):
        for chunk in split_by_commit(tuple(group)):
            drafts = [it.draft for it in chunk]
            trailers = drafts[0].trailers
            subject = (
                chunk[0].subject
                if len(chunk) == 1
                else f"Update {len(chunk)} packages at {trailers.revision}"
            )
            lines = [
                f"{it.path}: {line}" if it.is_shared else line
                for it in drafts
                for line in it.rejected_lines
            ]
            trees = {it.path: it.tree for it in drafts if it.tree is not None}
            assert len(trees) == len(chunk), "a package that people took out of a draft was edited"
            yield BranchCommit(
                trees_by_path=trees,
                message=format_message(
                    subject,
                    state_packages(ref, base, {it.path: it.trailers for it in drafts}),
                    conflict_paragraph(lines),
                ),
                # The time comes from the inputs, not from the clock: the same inputs give the same
                # commit id.
                timestamp=max(floor, *(it.timestamp for it in chunk)),
                more_parents=tuple(dict.fromkeys(tip for it in chunk for tip in it.taken)),
            )


def _source(package: _Package) -> tuple[str, str]:
    return package.draft.trailers.revision, package.draft.trailers.commit
