"""Changes of the branches of drafts: which packages each has after the pass, and new commits.

A draft whose packages change is written anew from the head of the target branch. Nothing that
people wrote is lost: where they have committed to the branch of a stage, commits are appended
(design-forges, "Who is in a request"); the new draft of one variant has the old one as a further
parent.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from fanout.plan.commit_limits import split_by_commit
from fanout.plan.commit_statement import (
    CommitStatement,
    format_message,
    state_packages,
)
from fanout.plan.drafts.draft_statement import (
    build_draft_statement,
    draft_subject,
    new_conflict_lines,
    replaced_drafts,
)
from fanout.plan.drafts.next_draft import build_draft
from fanout.plan.edits.merge_disputes import conflict_paragraph
from fanout.plan.observation.repository_state import (
    EMPTY_PATH,
    BranchCommit,
    BranchUpdate,
    OpenDraft,
    RepositoryState,
    SetState,
    StoredTree,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.ref_names import draft_path, install_of
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
        write: BranchUpdate | None = None
        if not draft_path(ref):
            write = _plan_stage_draft(state, ref, plan, appends=appends)
        elif plan.written:
            write = _build_draft(state, ref, plan.written[0], appends=appends)
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


def _build_draft(
    state: RepositoryState, ref: str, variant: RenderedVariant, *, appends: bool
) -> BranchUpdate:
    """Return the commit of the draft of one variant.

    Its further parents are the drafts that it takes over, and with `appends` the one it replaces.
    """
    assert variant.draft_content is not None, "a draft is rendered before it is written"
    path, replaced = variant.spec.path, replaced_drafts(variant)
    parents = [draft.commit for at, draft in replaced if at.identity == state.identity]
    # As a further parent: a reader takes the first one for the target branch.
    parents += filter(None, [state.refs.get(ref)]) if appends else ()
    statement = build_draft_statement(variant, install_of(ref))
    commit = BranchCommit(
        trees_by_path={path: variant.draft_content.tree},
        message=format_message(
            draft_subject(variant),
            state_packages(ref, state.head, {path: statement}),
            conflict_paragraph(new_conflict_lines(variant)),
        ),
        # The time comes from the inputs, not from the clock: the same inputs give the same commit
        # id.
        timestamp=max(variant.selected.upstream_time, state.head_time),
        more_parents=tuple(dict.fromkeys(parents)),
    )
    return BranchUpdate(ref, state.head, (commit,))


def _plan_stage_draft(
    state: RepositoryState, ref: str, plan: _DraftPlan, *, appends: bool
) -> BranchUpdate | None:
    """Return the new commits of one stage draft, or None if no package is left in it."""
    branch = state.sets.get(ref)
    present = list(branch.drafts.values()) if branch is not None else []
    written_paths = {variant.spec.path for variant in plan.written}
    withdrawn = {draft.path for draft in plan.withdrawn} - written_paths
    removed = (withdrawn | {draft.path for draft in plan.published}) - written_paths
    leaving = written_paths | removed
    staying = [draft for draft in present if draft.path not in leaving]
    if not plan.written and not staying:
        return None
    # Only the branch has the commits of people: those whose edits the new content takes over, and
    # those beside all packages, unless they were merged with the rest.
    takes_edits = any(replaced_drafts(variant) for variant in plan.written)
    is_unmerged = bool(staying) or takes_edits or not plan.published
    is_appended = branch is not None and (appends or (branch.is_edited and is_unmerged))
    packages = [
        _Package(
            build_draft(variant),
            draft_subject(variant),
            variant.selected.upstream_time,
            # Their branches go or are written anew, and have commits of people.
            tuple(
                it.commit
                for at, it in replaced_drafts(variant)
                if at.identity == state.identity and not (is_appended and it.ref == ref)
            ),
        )
        for variant in plan.written
    ]
    if branch is not None and is_appended:
        floor = max(state.head_time, branch.timestamp)
        appended = [*_build_commits(ref, packages, branch.base, floor)]
        if removed:
            appended.append(_removal_commit(state, branch, sorted(removed), withdrawn, floor))
        return BranchUpdate(ref, branch.commit, tuple(appended))
    packages += [
        _Package(draft, f"Update {draft.path} at {draft.trailers.revision}", 0) for draft in staying
    ]
    commits = _build_commits(ref, packages, state.head, state.head_time)
    return BranchUpdate(ref, state.head, tuple(commits))


def _removal_commit(
    state: RepositoryState,
    branch: SetState,
    removed: Sequence[str],
    withdrawn: Collection[str],
    timestamp: int,
) -> BranchCommit:
    """Return the commit that takes packages out of a draft that people committed to.

    A withdrawn package gets back what the target branch has. What was published is left as it
    is: put back, a merge of the draft would revert the publication.
    """
    present_trees = {
        path: tree
        for path in removed
        if path in withdrawn and (tree := state.path_states.get(path, EMPTY_PATH).tree) is not None
    }
    subject_packages = removed[0] if len(removed) == 1 else f"{len(removed)} packages"
    subject = f"Take {subject_packages} out of the draft"
    return BranchCommit(
        trees_by_path=present_trees,
        dropped_paths=tuple(
            path for path in removed if path in withdrawn and path not in present_trees
        ),
        message=format_message(
            subject,
            CommitStatement(
                ref=branch.ref,
                policy=branch.policy,
                stage=branch.stage,
                base=branch.base,
                restored=tuple(removed),
            ),
        ),
        timestamp=timestamp,
    )


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
            lines = [f"{it.path}: {line}" for it in drafts for line in it.rejected_lines]
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
