"""Reader of the branch of a set: packages as written and as edited, and what people added.

The commits of a set are those between the head of its branch and the first commit that the target
branch has. A statement counts only if it was written for this branch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from fanout.api.promotion_policy import normalize_person
from fanout.errors import InvalidInput
from fanout.package.package_limits import add_package
from fanout.plan.commit_statement import NO_VALUE, CommitStatement, PackageStatement, parse_message
from fanout.plan.edits.draft_damage import describe_outside_files, find_new_faults
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.edits.merge_disputes import parse_conflict_paragraph, parse_disputes, settled_keys
from fanout.plan.observation.repository_state import Commit, OpenDraft, OtherBranch, SetState
from fanout.ports import ObjectReader
from fanout.selection.ref_names import SetScope, draft_path, scope_of
from fanout.values import Value, replace

_MAX_EDIT_COMMITS = 64  # commits by people on top of fanout's newest one
_MAX_CARRIED_COMMITS = 1024  # commits by people in all drafts that a draft took over
_MAX_COMMITS = 4096  # of a branch
_MAX_TARGET_COMMITS = 100_000  # of the target branch above a commit of a draft
_MAX_OUTSIDE_FILES = 100  # changed files outside of packages that are counted


class SetCommit(Value):
    """One commit of a branch; `stated` is None for a commit that fanout did not write for it."""

    commit: Commit
    stated: CommitStatement | None


class _Contents(Value):
    """Statements of a branch about its packages: of each path the newest one."""

    written: Mapping[str, tuple[SetCommit, PackageStatement]]  # by path
    removed: frozenset[str]
    restored: Mapping[str, SetCommit]  # by path

    @classmethod
    def collect(cls, commits: Sequence[SetCommit]) -> "_Contents":
        """Collect the statements of the commits of a branch."""
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
        return cls(written, frozenset(removed), restored)

    def find_outside_changes(
        self,
        reader: ObjectReader,
        tip: str,
        target_head: str,
        base: str,
        own_paths: Collection[str],
        writer: str,
    ) -> tuple[InvalidInput, ...]:
        """Return a fault for each changed file outside of the packages of a set, `own_paths`.

        `base` is the commit of the target branch that fanout wrote the set on. What the target
        branch has alike is no edit, nor what the set has from that branch. There is none in a set
        that is merged already.
        """
        # Packages that were taken out of the set are as the commit had them that took them out.
        taken_out = sorted(self.restored)
        present = reader.paths(tip, taken_out) if taken_out else {}
        packages = set(own_paths)
        for path, link in self.restored.items():
            if link.commit.committer == writer:
                then = reader.paths(link.commit.oid, [path])[path]
                packages |= {path} if then.tree == present[path].tree else set()
        try:
            if not target_head or reader.contains(target_head, tip):
                return ()
            merge_base = reader.merge_base(target_head, tip)
            # The target branch may have been set back behind the base, whose files are nobody's
            # edit.
            bases = [it for it in (merge_base, base) if it and reader.has(it)]
            if reader.contains(target_head, base):
                bases = [merge_base]
            paths = reader.changed_files(tip, [*bases, target_head], packages, _MAX_OUTSIDE_FILES)
        except InvalidInput as error:  # content that no commit may have
            return (error,)
        return describe_outside_files(paths, packages, is_removal=not self.written)


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
        if commit.committer == writer:
            return stated
        # A person amended it, or made it up: what counts are packages that the commit has, and that
        # fanout has rendered.
        states = reader.paths(commit.oid, sorted(stated.packages))
        packages = {
            path: it
            for path, it in stated.packages.items()
            if states[path].tree is not None and reader.has(it.rendered)
        }
        return None if stated.packages and not packages else replace(stated, packages=packages)

    if (commits := read_commits(reader, tip, target_head, select)) is None:
        return _describe_other(reader, ref, tip, target_head, writer)
    contents, is_shared = _Contents.collect(commits), scope_of(ref) is SetScope.STAGE
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
        own_paths = trees.keys() - {path for path in contents.removed if trees[path] is not None}
        faults = contents.find_outside_changes(
            reader, tip, target_head, stated.base, own_paths, writer
        )
        is_edited |= bool(faults)
    drafts = {
        path: _judge_edits(
            reader,
            OpenDraft(
                ref=ref,
                path=path,
                commit=tip,
                tree=trees[path],
                trailers=package,
                # What people committed beside the package of a draft of one variant is an edit
                # of it.
                is_edited=trees[path] != package.tree if is_shared else is_edited,
                timestamp=link.commit.timestamp,
            ),
            commits,
            link,
            faults,
        )
        for path, (link, package) in sorted(contents.written.items())
    }
    removed_trees: Mapping[str, str] = {}
    if contents.removed and reader.has(stated.base):  # else a person wrote the message
        base_states = reader.paths(stated.base, sorted(contents.removed))
        removed_trees = {
            path: it.tree for path, it in base_states.items() if it.tree and trees[path] is None
        }
    return SetState(
        ref=ref,
        commit=tip,
        tree=commits[0].commit.tree,
        timestamp=commits[0].commit.timestamp,
        base=stated.base,
        policy=stated.policy,
        stage=stated.stage,
        drafts=drafts,
        removed_trees=removed_trees,
        idle_paths=contents.removed - removed_trees.keys(),
        is_edited=is_edited,
        faults=faults,
        editors=frozenset().union(*(_list_people(it.commit) for it in commits if not it.stated)),
        has_joints=any(len(it.commit.parents) > 1 for it in commits),
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
        if (stated := parse_message(commit.message)) is not None:
            stated = select(commit, stated)
        if stated is not None and base not in ("", stated.base):
            return None
        base = stated.base if stated is not None else base
        commits.append(SetCommit(commit, stated))
        if not commit.parents or (not base and len(commits) > _MAX_EDIT_COMMITS):
            return None
        oid = commit.parents[0]
    return None


def read_packages(
    reader: ObjectReader, tip: str, counts: Callable[[CommitStatement], bool]
) -> Mapping[str, PackageStatement]:
    """Return what a branch, which may be merged, states of its packages, by path.

    There are none if it is no branch of a set. Raises InvalidInput as `read_commits` does.
    """
    commits = read_commits(reader, tip, "", lambda _, it: it if counts(it) else None)
    written = _Contents.collect(commits).written if commits is not None else {}
    return {path: package for path, (_, package) in written.items()}


def is_statement_for(ref: str, stated: CommitStatement) -> bool:
    """Return whether a statement was written for the branch.

    A draft of one variant has its path in the name of its branch, and no other package.
    """
    if stated.ref != ref:
        return False
    return scope_of(ref) is not SetScope.VARIANT or list(stated.packages) == [draft_path(ref)]


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
        if not (parents := reader.commit(oid).parents):
            return False
        oid = parents[0]
    return True  # nothing is written over what might be of others


def _describe_other(
    reader: ObjectReader, ref: str, tip: str, target_head: str, writer: str
) -> OtherBranch:
    """Describe a branch that is no set's: whose draft it is, and whether it may be replaced."""
    newest, oid = None, tip
    for _ in range(_MAX_EDIT_COMMITS):
        commit = reader.commit(oid)
        newest = parse_message(commit.message)
        if (
            newest is not None
            or not commit.parents
            or _is_of_target(reader, commit.parents[0], tip=tip, target_head=target_head)
        ):
            break
        oid = commit.parents[0]
    if newest is None or newest.ref == ref:
        return OtherBranch(has_commits=not reader.contains(target_head, tip))
    if not newest.ref:
        # An earlier version of fanout wrote it; if not all of its commits, people have commits.
        oid = tip
        for _ in range(_MAX_COMMITS):
            if oid != tip and reader.contains(target_head, oid):
                return OtherBranch(has_commits=False)
            commit = reader.commit(oid)
            stated = parse_message(commit.message)
            is_own = stated is not None and not stated.ref and commit.committer == writer
            if not is_own or len(commit.parents) != 1:  # the others have commits of people
                break
            oid = commit.parents[0]
        return OtherBranch(has_commits=True)
    return OtherBranch(next((it.variant for it in newest.packages.values()), ""))


def _judge_edits(
    reader: ObjectReader,
    draft: OpenDraft,
    commits: Sequence[SetCommit],
    link: SetCommit,
    outside: tuple[InvalidInput, ...],
) -> OpenDraft:
    """Return the draft, written by `link`, with its faults (`outside`, too), editors, conflicts."""
    stated, rejected = draft.trailers, tuple[str, ...]()
    if stated.conflicts != NO_VALUE:
        rejected = parse_conflict_paragraph(link.commit.message)
        if draft.is_shared:
            prefix = f"{draft.path}: "
            own = (line for line in rejected if line.startswith(prefix))
            rejected = tuple(line.removeprefix(prefix) for line in own)
    faults, settled, editors = outside, frozenset[str](), frozenset[str]()
    try:
        own_faults: tuple[InvalidInput, ...] = ()
        if draft.tree not in (stated.rendered, stated.onto):
            # What neither the rendering nor the base tree of the draft has.
            baseline_trees = [
                it for it in (stated.rendered, stated.onto) if it != NO_VALUE and reader.has(it)
            ]
            if stated.rendered not in baseline_trees and reader.has(stated.tree):
                baseline_trees.append(stated.tree)
            files = _read_files(reader, draft.tree) if draft.tree is not None else {}
            baselines = [_read_files(reader, it) for it in baseline_trees]
            own_faults = find_new_faults(files, baselines, draft.path, reader.limits)
        faults = (*own_faults, *outside)
        conflicts = parse_disputes(stated.conflicts)
        # Conflicts that people decided; unknown if the tree that fanout wrote is gone.
        if (
            conflicts
            and not own_faults
            and draft.tree not in (None, stated.tree)
            and reader.has(stated.tree)
        ):
            written, present = reader.entries(stated.tree), reader.entries(draft.tree)
            settled = settled_keys(conflicts, written, present)
        # No walk in the common case: a draft that nobody edited.
        if draft.is_edited or stated.takes:
            editors = _find_editors(reader, commits, draft)
    except InvalidInput as error:  # content that no package may have; other drafts are still read
        faults = (add_package(error, draft.path), *outside)
    return replace(
        draft, rejected_lines=rejected, faults=faults, settled_keys=settled, editors=editors
    )


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
            pending = [reader.commit(tip) for tip in link.commit.parents[1:]]
            for _ in range(_MAX_CARRIED_COMMITS):
                if not pending:
                    break
                commit = pending.pop()
                is_own = parse_message(commit.message) is not None
                if not is_own:
                    editors |= _list_people(commit)
                # The first parent of fanout's commit is the published branch, whose people did not
                # edit this draft; the first parent of a person's commit is the draft itself.
                pending += map(reader.commit, commit.parents[1:] if is_own else commit.parents[:1])
    return frozenset(editors)


def _list_people(commit: Commit) -> set[str]:
    return {normalize_person(commit.author), normalize_person(commit.committer)}


def _read_files(reader: ObjectReader, tree: str) -> PackageFiles:
    return {path: (entry.mode, data) for path, (entry, data) in reader.files(tree).items()}
