"""Reader of the branch of a set: packages as written and as edited, and what people added.

The commits of a set are those between the head of its branch and the first commit that the target
branch has. A statement counts only if it was written for this branch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from fanout.api.promotion_policy import normalize_person
from fanout.errors import InvalidInput
from fanout.package.package_limits import add_package
from fanout.plan.commit_statement import (
    NO_VALUE,
    CommitStatement,
    PackageStatement,
    parse_message,
)
from fanout.plan.edits.draft_damage import find_new_faults
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.edits.merge_disputes import (
    parse_conflict_paragraph,
    parse_disputes,
    settled_keys,
)
from fanout.plan.observation.repository_state import Commit, OpenDraft, OtherBranch, SetState
from fanout.ports import ObjectReader
from fanout.reconcile.observation.misplaced_changes import find_outside_changes
from fanout.selection.ref_names import draft_path, install_of, is_removal_draft, is_stage_draft
from fanout.values import Value, replace

_MAX_EDIT_COMMITS = 64  # commits by people on top of fanout's newest one
_MAX_CARRIED_COMMITS = 1024  # commits by people in all drafts that a draft took over
_MAX_COMMITS = 4096  # of a branch
_MAX_TARGET_COMMITS = 100_000  # of the target branch above a commit of a draft


class SetCommit(Value):
    """One commit of a branch; `stated` is None for a commit that fanout did not write for it."""

    commit: Commit
    stated: CommitStatement | None


class _Contents(Value):
    """Statements of a branch about its packages: of each path the newest one."""

    written: Mapping[str, tuple[SetCommit, PackageStatement]]  # by path
    removed: frozenset[str]
    restored: Mapping[str, SetCommit]  # by path


def read_set(
    reader: ObjectReader, ref: str, tip: str, target_head: str, *, writer: str
) -> SetState | OtherBranch:
    """Read the branch of a set.

    `target_head` is the head of the branch that the set is merged to, `writer` the committer of
    fanout. Raises InvalidInput for a commit or a tree that cannot be read.
    """

    def select(commit: Commit, stated: CommitStatement) -> CommitStatement | None:
        if not is_statement_for(ref, stated):
            return None
        return stated if commit.committer == writer else _select_present(reader, commit, stated)

    commits = read_commits(reader, tip, target_head, select)
    if commits is None:
        return _describe_other(reader, ref, tip, target_head, writer)
    contents = _collect_contents(commits)
    [stated, *_] = [it.stated for it in commits if it.stated is not None]
    tip_states = reader.paths(tip, sorted({*contents.written, *contents.removed}))
    trees = {path: state.tree for path, state in tip_states.items()}
    is_edited = any(it.stated is None for it in commits) or any(
        trees[path] != package.tree for path, (_, package) in contents.written.items()
    )
    is_edited |= any(trees[path] is not None for path in contents.removed)
    faults: tuple[InvalidInput, ...] = ()
    # Whoever amends a commit of fanout keeps its message, and not its committer. Comparing whole
    # directories of each draft would dominate a pass.
    if is_edited or commits[0].commit.committer != writer:
        # What people put back on a branch of removals is not removed: it is to be as it was.
        restored = {path for path in contents.removed if trees[path] is not None}
        untouched = _list_untouched(reader, tip, contents.restored, writer)
        own_paths = {*(trees.keys() - restored), *untouched}
        try:
            faults = find_outside_changes(
                reader, tip, stated.base, target_head, own_paths, is_removal=not contents.written
            )
        except InvalidInput as error:  # content that no commit may have
            faults = (error,)
        is_edited |= bool(faults)
    drafts = (
        _build_draft(ref, path, tip, link, trees[path], is_set_edited=is_edited)
        for path, (link, _) in sorted(contents.written.items())
    )
    removed_trees = _find_removed_trees(reader, stated.base, contents.removed, trees)
    return SetState(
        ref=ref,
        commit=tip,
        tree=commits[0].commit.tree,
        timestamp=commits[0].commit.timestamp,
        base=stated.base,
        policy=stated.policy,
        stage=stated.stage,
        drafts={it.path: _judge_edits(reader, it, commits, faults) for it in drafts},
        removed_trees=removed_trees,
        is_removal=is_removal_draft(install_of(ref), ref),
        idle_paths=contents.removed - removed_trees.keys(),
        is_edited=is_edited,
        faults=faults,
        editors=frozenset().union(*(_list_people(it.commit) for it in commits if not it.stated)),
        has_joints=any(len(it.commit.parents) > 1 for it in commits),
    )


def _find_removed_trees(
    reader: ObjectReader, base: str, removed: Collection[str], trees: Mapping[str, str | None]
) -> Mapping[str, str]:
    """Return the trees in the base of the packages that are removed at the tip, by path.

    `trees` are those at the tip.
    """
    if not removed or not reader.has(base):  # in a message that a person wrote
        return {}
    base_trees = {path: state.tree for path, state in reader.paths(base, sorted(removed)).items()}
    return {path: tree for path, tree in base_trees.items() if tree and trees[path] is None}


def _build_draft(
    ref: str,
    path: str,
    tip: str,
    link: SetCommit,
    tree: str | None,
    *,
    is_set_edited: bool,
) -> OpenDraft:
    """Build the draft of one package; `link` is the commit that wrote it, `tree` its tree at `tip`.

    What people committed beside the package of a draft of one variant is an edit of it.
    """
    assert link.stated is not None, "only fanout's commits name packages"
    package, is_shared = link.stated.packages[path], is_stage_draft(install_of(ref), ref)
    return OpenDraft(
        ref=ref,
        path=path,
        commit=tip,
        tree=tree,
        trailers=package,
        is_shared=is_shared,
        is_edited=tree != package.tree if is_shared else is_set_edited,
        rejected_lines=_list_rejected(link, package, path, is_shared=is_shared),
        timestamp=link.commit.timestamp,
    )


def read_commits(
    reader: ObjectReader,
    tip: str,
    target_head: str,
    select: Callable[[Commit, CommitStatement], CommitStatement | None],
) -> Sequence[SetCommit] | None:
    """Return the commits of a branch, newest first; None if it is no branch of a set.

    They end above the first commit that the target branch has, or that a statement names as base.
    `select` returns what counts of a statement on this branch, or None. Raises InvalidInput for a
    commit that cannot be read.
    """
    commits: list[SetCommit] = []
    base, oid = "", tip
    # Bounded: a branch below drafts/ may be pushed by anyone, with any history.
    for _ in range(_MAX_COMMITS):
        if oid == base or (
            oid != tip and _is_of_target(reader, oid, tip=tip, target_head=target_head)
        ):
            return commits if base else None
        commit = reader.commit(oid)
        stated = parse_message(commit.message)
        if stated is not None:
            stated = select(commit, stated)
        if stated is not None and base not in ("", stated.base):
            return None
        base = stated.base if stated is not None else base
        commits.append(SetCommit(commit, stated))
        if not commit.parents or (not base and len(commits) > _MAX_EDIT_COMMITS):
            return None
        oid = commit.parents[0]
    return None


def _select_present(
    reader: ObjectReader, commit: Commit, stated: CommitStatement
) -> CommitStatement | None:
    """Return what counts of the statement of a commit that a person amended, or made up.

    Packages that the commit has, and that fanout has rendered. None if it is about no such package.
    """
    states = reader.paths(commit.oid, sorted(stated.packages))
    packages = {
        path: it
        for path, it in stated.packages.items()
        if states[path].tree is not None and reader.has(it.rendered)
    }
    return None if stated.packages and not packages else replace(stated, packages=packages)


def read_packages(
    reader: ObjectReader, tip: str, counts: Callable[[CommitStatement], bool]
) -> Mapping[str, PackageStatement]:
    """Return what a branch, which may be merged, states of its packages, by path.

    There are none if it is no branch of a set. Raises InvalidInput as `read_commits` does.
    """
    commits = read_commits(reader, tip, "", lambda _, it: it if counts(it) else None)
    written = _collect_contents(commits).written if commits is not None else {}
    return {path: package for path, (_, package) in written.items()}


def is_statement_for(ref: str, stated: CommitStatement) -> bool:
    """Return whether a statement was written for the branch.

    A draft of one variant has its path in the name of its branch, and no other package.
    """
    if stated.ref != ref:
        return False
    install = install_of(ref)
    is_of_many = is_stage_draft(install, ref) or is_removal_draft(install, ref)
    return is_of_many or list(stated.packages) == [draft_path(ref)]


def _is_of_target(reader: ObjectReader, commit: str, *, tip: str, target_head: str) -> bool:
    """Return whether a commit below the tip of a draft is one of the target branch.

    A rebase puts commits with the trailers of a draft on the target branch; nothing from there on
    is part of a draft that somebody begins on them. A merge has the draft beside the branch, as
    further parents: its commits are still those of the draft, also below what came later.
    """
    if not reader.contains(target_head, commit) or reader.contains(target_head, tip):
        return False
    oid = target_head
    for _ in range(_MAX_TARGET_COMMITS):
        if oid == commit:
            return True
        parents = reader.commit(oid).parents
        if not parents:
            return False
        oid = parents[0]
    return True  # nothing is written over what might be of others


def _describe_other(
    reader: ObjectReader, ref: str, tip: str, target_head: str, writer: str
) -> OtherBranch:
    """Describe a branch that is no set's: whose draft it is, and whether it may be replaced."""
    stated = _find_newest_statement(reader, tip, target_head)
    if stated is None or stated.ref == ref:
        return OtherBranch(has_commits=not reader.contains(target_head, tip))
    if not stated.ref:
        return OtherBranch(has_commits=not _is_of_earlier_version(reader, tip, target_head, writer))
    return OtherBranch(next((it.variant for it in stated.packages.values()), ""))


def _find_newest_statement(
    reader: ObjectReader, tip: str, target_head: str
) -> CommitStatement | None:
    oid = tip
    for _ in range(_MAX_EDIT_COMMITS):
        commit = reader.commit(oid)
        stated = parse_message(commit.message)
        if stated is not None:
            return stated
        if not commit.parents or _is_of_target(
            reader, commit.parents[0], tip=tip, target_head=target_head
        ):
            return None
        oid = commit.parents[0]
    return None


def _is_of_earlier_version(reader: ObjectReader, tip: str, target_head: str, writer: str) -> bool:
    """Return whether an earlier version of fanout wrote all commits of the branch."""
    oid = tip
    for _ in range(_MAX_COMMITS):
        if oid != tip and reader.contains(target_head, oid):
            return True
        commit = reader.commit(oid)
        stated = parse_message(commit.message)
        if stated is None or stated.ref or commit.committer != writer:
            return False
        if len(commit.parents) != 1:  # the others have commits of people
            return False
        oid = commit.parents[0]
    return False


def _collect_contents(commits: Sequence[SetCommit]) -> _Contents:
    written: dict[str, tuple[SetCommit, PackageStatement]] = {}
    removed: set[str] = set()
    restored: dict[str, SetCommit] = {}
    # Newest first: the first line about a path is the one that holds.
    for link in commits:
        if link.stated is None:
            continue
        stated_paths = written.keys() | removed | restored.keys()
        written |= {
            path: (link, package)
            for path, package in link.stated.packages.items()
            if path not in stated_paths
        }
        removed |= set(link.stated.removed) - stated_paths
        restored |= {path: link for path in link.stated.restored if path not in stated_paths}
    return _Contents(written, frozenset(removed), restored)


def _list_untouched(
    reader: ObjectReader, tip: str, restored: Mapping[str, SetCommit], writer: str
) -> Collection[str]:
    """Return the packages that left the set and are as the commit that took them out has them."""
    if not restored:
        return ()
    trees = reader.paths(tip, sorted(restored))
    return [
        path
        for path, link in restored.items()
        if link.commit.committer == writer
        and reader.paths(link.commit.oid, [path])[path].tree == trees[path].tree
    ]


def _list_rejected(
    link: SetCommit, package: PackageStatement, path: str, *, is_shared: bool
) -> tuple[str, ...]:
    """Return the lines of a commit about values of one package that its merge rejected."""
    if package.conflicts == NO_VALUE:
        return ()
    lines = parse_conflict_paragraph(link.commit.message)
    if not is_shared:
        return lines
    prefix = f"{path}: "
    return tuple(line.removeprefix(prefix) for line in lines if line.startswith(prefix))


def _judge_edits(
    reader: ObjectReader,
    draft: OpenDraft,
    commits: Sequence[SetCommit],
    outside: tuple[InvalidInput, ...],
) -> OpenDraft:
    """Return the draft with its faults, its editors, and the conflicts that people settled in it.

    `outside` are the faults beside all packages of the set.
    """
    faults, settled, editors = outside, frozenset[str](), frozenset[str]()
    try:
        own_faults = _find_faults(reader, draft)
        faults = (*own_faults, *outside)
        if not own_faults:
            settled = _find_settled_conflicts(reader, draft)
        # No walk in the common case: a draft that nobody edited.
        if draft.is_edited or draft.trailers.takes:
            editors = _find_editors(reader, commits, draft)
    except InvalidInput as error:  # content that no package may have; other drafts are still read
        faults = (add_package(error, draft.path), *outside)
    return replace(draft, faults=faults, settled_keys=settled, editors=editors)


def _find_editors(
    reader: ObjectReader, commits: Sequence[SetCommit], draft: OpenDraft
) -> frozenset[str]:
    """Return authors and committers of the commits by which people changed the package.

    On the branch of one variant each commit of a person is about its package. A commit of fanout
    that people amended keeps its message, but not the tree that it names. One that takes over
    earlier drafts has their tips as further parents.
    """
    editors: set[str] = set()
    path = draft.path
    for link in commits:
        before, after = (
            reader.paths(it, [path])[path].tree for it in (link.commit.parents[0], link.commit.oid)
        )
        stated = link.stated.packages.get(path) if link.stated is not None else None
        is_by_person = link.stated is None and not draft.is_shared
        if is_by_person or after not in (before, stated.tree if stated is not None else None):
            editors |= _list_people(link.commit)
        if stated is not None:
            if not stated.takes:
                break  # what was before, fanout has replaced
            editors |= _find_carried_editors(reader, link.commit.parents[1:])
    return frozenset(editors)


def _find_carried_editors(reader: ObjectReader, tips: Sequence[str]) -> set[str]:
    """Return authors and committers of commits of people in drafts that another one took over."""
    editors: set[str] = set()
    pending = [reader.commit(tip) for tip in tips]
    for _ in range(_MAX_CARRIED_COMMITS):
        if not pending:
            break
        commit = pending.pop()
        is_own = parse_message(commit.message) is not None
        if not is_own:
            editors |= _list_people(commit)
        # The first parent of fanout's commit is the published branch, whose people did not edit
        # this draft; the first parent of a person's commit is the draft itself.
        pending += map(reader.commit, commit.parents[1:] if is_own else commit.parents[:1])
    return editors


def _list_people(commit: Commit) -> set[str]:
    return {normalize_person(commit.author), normalize_person(commit.committer)}


def _find_settled_conflicts(reader: ObjectReader, draft: OpenDraft) -> frozenset[str]:
    """Return the keys of conflicts that people decided on the draft.

    Empty if the tree that fanout wrote is no longer available for comparison.
    """
    conflicts, written = parse_disputes(draft.trailers.conflicts), draft.trailers.tree
    if not conflicts or draft.tree in (None, written) or not reader.has(written):
        return frozenset()
    return settled_keys(conflicts, reader.entries(written), reader.entries(draft.tree))


def _find_faults(reader: ObjectReader, draft: OpenDraft) -> tuple[InvalidInput, ...]:
    """Return faults of the draft that neither the rendering nor its base tree has."""
    stated = draft.trailers
    if draft.tree in (stated.rendered, stated.onto):
        return ()
    baseline_trees = [
        it for it in (stated.rendered, stated.onto) if it != NO_VALUE and reader.has(it)
    ]
    if stated.rendered not in baseline_trees and reader.has(stated.tree):
        baseline_trees.append(stated.tree)
    files = _read_files(reader, draft.tree) if draft.tree is not None else {}
    baselines = [_read_files(reader, it) for it in baseline_trees]
    return find_new_faults(files, baselines, draft.path, reader.limits)


def _read_files(reader: ObjectReader, tree: str) -> PackageFiles:
    files = reader.files(tree).items()
    return {path: (entry.mode, data) for path, (entry, data) in files}
