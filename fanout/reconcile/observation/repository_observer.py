"""Observer of downstream repositories: what gates and planner need, read from mirrors.

Commits are immutable, so everything is memoized by commit id: in a long-running process
a repository without changes costs its listing and nothing more.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from fanout.api.promotion_policy import normalize_person
from fanout.errors import FanoutError, InvalidInput
from fanout.package.package_limits import SizeLimits, add_package
from fanout.plan.draft_trailers import NO_VALUE, DraftTrailers, parse_trailers
from fanout.plan.edits.draft_damage import find_new_faults
from fanout.plan.edits.edit_merge import PackageFiles
from fanout.plan.edits.merge_disputes import (
    parse_conflict_paragraph,
    parse_disputes,
    settled_keys,
)
from fanout.plan.observation.repository_state import (
    Commit,
    OpenDraft,
    OtherBranch,
    PathState,
    RecordTrace,
    RefListing,
    RefListingRequest,
    Remote,
    RemovalDraft,
    RepositoryState,
    parse_trace,
)
from fanout.plan.publication_statement import PublicationStatement
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.commit_chain import is_of_target
from fanout.reconcile.observation.mirror_access import read_with_recovery
from fanout.reconcile.observation.misplaced_changes import find_outside_changes
from fanout.reconcile.observation.other_installations import (
    DraftedPaths,
    find_other_installations,
    read_drafted_paths,
)
from fanout.reconcile.observation.publication_reader import StatementIndex, read_statement_index
from fanout.reconcile.observation.removal_draft_reader import read_removal_draft
from fanout.reconcile.observation.repository_listing import list_read_refs
from fanout.reconcile.observation.stage_draft_reader import SharedDraft, read_stage_draft
from fanout.selection.ref_names import (
    drafts_prefix,
    is_removal_draft,
    is_stage_draft,
    record_traces_ref,
    vendor_ref,
)
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import replace

_Draft = TypeVar("_Draft")
_DraftKey = tuple[str, str, str]
_TAG_PATTERN = re.compile(r"refs/tags/(.+)/v([1-9][0-9]{0,17})")
_TRACE_LIMITS = SizeLimits(files=100_000, depth=1, file_size=4096)
_MAX_EDIT_COMMITS = 64  # commits by people on top of a draft
_MAX_CARRIED_COMMITS = 1024  # commits by people in all drafts that a draft took over


@dataclass(slots=True)
class _RepositoryMemo:
    """Values read of one repository in earlier passes, by commit."""

    path_states: dict[str, dict[str, PathState]] = field(default_factory=dict)
    observed_paths: list[str] = field(default_factory=list)  # paths whose state is observed
    writer: str = ""  # committer of the vendor branch, which is fanout's
    statements: StatementIndex = field(default_factory=StatementIndex)
    traces_commit: str = ""
    traces: Mapping[str, RecordTrace] = field(default_factory=dict)  # of that commit
    state: RepositoryState | None = None
    # by ref, commit and head of the target branch; None: the draft has no commit of fanout
    drafts: dict[_DraftKey, OpenDraft | None] = field(default_factory=dict)
    shared_drafts: dict[_DraftKey, SharedDraft | None] = field(default_factory=dict)
    other_paths: DraftedPaths = field(default_factory=dict)
    removal_drafts: dict[_DraftKey, RemovalDraft | None] = field(default_factory=dict)

    def reuse_state(
        self, remote: Remote, refs: Mapping[str, str], paths: list[str], pushes_tags: bool
    ) -> RepositoryState | None:
        """Return the state of the last pass, or None if something of it may differ.

        Memos compare by identity: an equal but new state would invalidate every variant below it.
        """
        state = self.state
        is_same = (
            state is not None
            and (state.remote, state.refs, state.pushes_tags) == (remote, refs, pushes_tags)
            and self.observed_paths == paths
        )
        return state if is_same else None

    def keep_present(self, head: str, vendor: str, tips: Mapping[str, str]) -> None:
        """Keep only values of commits that present refs point to.

        Else a long-running process would keep the paths of every commit it ever saw.
        """
        for oid in self.path_states.keys() - {head, vendor}:
            del self.path_states[oid]
        for drafts in (self.drafts, self.shared_drafts, self.removal_drafts):
            for ref, oid, target in list(drafts):
                if tips.get(ref) != oid or target not in ("", head):
                    del drafts[ref, oid, target]


@dataclass(slots=True)
class RepositoryObserver:
    """Reads repository states; one per process."""

    git: GitStore
    install: str
    _memos: dict[str, _RepositoryMemo] = field(default_factory=dict)

    def read_state(
        self,
        remote: Remote,
        branch: str,
        listing: RefListing | FanoutError,
        paths: Iterable[str],
        *,
        pushes_tags: bool = True,
    ) -> RepositoryState:
        """Return the state of the listed repository; a failure becomes part of the state.

        `paths`: paths of all variants that are published to it. `pushes_tags`: False if its
        publications get no tags.
        """
        if isinstance(listing, FanoutError):
            return RepositoryState(remote=remote, branch=branch, refs={}, failure=listing)
        refs, wanted_paths = listing.refs, sorted(set(paths))
        listing_request = RefListingRequest(remote, list_read_refs(branch, self.install))
        try:
            with BARRIER:
                return read_with_recovery(
                    self.git,
                    listing_request,
                    lambda: self._read_listed(
                        listing_request, branch, refs, wanted_paths, pushes_tags
                    ),
                )
        except FanoutError as error:
            return RepositoryState(remote=remote, branch=branch, refs=listing.refs, failure=error)

    def _read_listed(
        self,
        listing_request: RefListingRequest,
        branch: str,
        refs: Mapping[str, str],
        paths: list[str],
        pushes_tags: bool,
    ) -> RepositoryState:
        """Return the state of the last pass if nothing changed, else a new one."""
        remote = listing_request.remote
        memo = self._memos.setdefault(f"{remote.key}#{branch}", _RepositoryMemo())
        state = memo.reuse_state(remote, refs, paths, pushes_tags)
        if state is not None:
            return state
        memo.other_paths = read_drafted_paths(
            self.git, listing_request, refs, self.install, memo.other_paths
        )
        state = self._read_changed(memo, remote, branch, refs, paths, pushes_tags)
        memo.observed_paths = paths
        if not state.head and refs:
            # What is missing was perhaps renamed.
            memo.state = replace(state, default_branch=self.git.read_default_branch(remote))
        return memo.state or state

    def _read_changed(
        self,
        memo: _RepositoryMemo,
        remote: Remote,
        branch: str,
        refs: Mapping[str, str],
        paths: list[str],
        pushes_tags: bool,
    ) -> RepositoryState:
        prefix, ref_names = drafts_prefix(self.install), (branch, vendor_ref(self.install))
        head, vendor = (refs.get(it, "") for it in ref_names)
        tips = {ref: oid for ref, oid in refs.items() if ref.startswith(prefix)}
        with self.git.reader(remote) as reader:
            head_time, vendor_time, memo.writer = _read_heads(reader, remote, ref_names, refs)
            shared_drafts = _get_shared_drafts(memo, reader, self.install, tips, head)
            removal_drafts = _get_removal_drafts(memo, reader, self.install, tips, head)
            own_refs = [ref for ref in tips if ref not in shared_drafts | removal_drafts]
            shared = [it for it in shared_drafts.values() if it]
            packages = [draft for it in shared for draft in it.drafts]
            # A draft may be the only trace of an orphaned variant.
            drafted_paths = {_package_path(prefix, ref) for ref in own_refs}
            drafted_paths |= {it.path for it in packages} | _removed_paths(removal_drafts.values())
            package_paths = sorted({*paths, *drafted_paths} - {""})
            on_branch = _read_paths(memo, reader, head, package_paths)
            pristine = _read_paths(memo, reader, vendor, _rendering_paths(package_paths))
            memo.statements = read_statement_index(reader, vendor, memo.statements)
            drafts = {it: _get_draft(memo, reader, prefix, it, tips[it], head) for it in own_refs}
            unmanaged = _find_unmanaged(reader, (drafts, shared_drafts, removal_drafts), tips, head)
            traces = _read_traces(memo, reader, refs.get(record_traces_ref(self.install), ""))
        memo.keep_present(head, vendor, tips)
        published = _filter_trees(pristine, "published/", package_paths)
        removed = _removed_paths(removal_drafts.values())
        obsolete = frozenset(path for path in removed if on_branch[path].tree is None)
        memo.state = RepositoryState(
            remote=remote,
            branch=branch,
            refs=refs,
            head=head,
            head_time=head_time,
            vendor_head=vendor,
            vendor_time=vendor_time,
            path_states=on_branch,
            published_renderings={it: published[it] for it in published if it not in obsolete},
            obsolete_renderings=obsolete & published.keys(),
            drafted_renderings=_filter_trees(pristine, "drafts/", package_paths),
            drafts={ref: it for ref, it in drafts.items() if it and ref not in unmanaged}
            | {draft.key: draft for draft in packages},
            stage_drafts={it.stage_draft.ref: it.stage_draft for it in shared},
            removal_drafts={ref: draft for ref, draft in removal_drafts.items() if draft},
            unmanaged_drafts=unmanaged,
            other_installations=find_other_installations(
                refs, self.install, paths, memo.other_paths
            ),
            pushes_tags=pushes_tags,
            publication_numbers=_find_highest_numbers(refs, memo.statements.by_path),
            publication_statements=memo.statements.by_path,
            last_statements=memo.statements.newest_commit,
            record_traces=traces,
        )
        return memo.state


@contextmanager
def _name_branch(remote: Remote, ref: str) -> Iterator[None]:
    """Add repository and branch to the error of a branch whose head is no readable commit."""
    try:
        yield
    except InvalidInput as error:
        place = f"{remote.url}: branch {ref.removeprefix('refs/heads/')}"
        raise InvalidInput(
            f"{place}: {error.problem}", reason=error.reason, remedy=error.remedy, where=error.where
        ) from error


def _read_paths(
    memo: _RepositoryMemo, reader: ObjectReader, commit: str, paths: list[str]
) -> Mapping[str, PathState]:
    if not commit:
        return {}
    states = memo.path_states.setdefault(commit, {})
    missing_paths = [path for path in paths if path not in states]
    if missing_paths:
        states.update(reader.paths(commit, missing_paths))
    return states


def _read_traces(
    memo: _RepositoryMemo, reader: ObjectReader, commit: str
) -> Mapping[str, RecordTrace]:
    """Return the traces of records by path; a file that is none is left out."""
    if memo.traces_commit != commit:
        entries = reader.entries(reader.commit(commit).tree, _TRACE_LIMITS) if commit else {}
        contents = {
            path: reader.blob(entry.oid, _TRACE_LIMITS.file_size) for path, entry in entries.items()
        }
        traces = {path: parse_trace(data) for path, data in contents.items()}
        memo.traces = {path: trace for path, trace in traces.items() if trace is not None}
        memo.traces_commit = commit
    return memo.traces


def _read_heads(
    reader: ObjectReader, remote: Remote, ref_names: Iterable[str], refs: Mapping[str, str]
) -> tuple[int, int, str]:
    """Return the times of both heads, and the committer of the vendor branch, which is fanout."""
    commits: list[Commit | None] = []
    for ref in ref_names:
        with _name_branch(remote, ref):
            commits.append(reader.commit(refs[ref]) if ref in refs else None)
    head_time, vendor_time = (it.timestamp if it is not None else 0 for it in commits)
    return head_time, vendor_time, commits[1].committer if commits[1] is not None else ""


def _get_draft(
    memo: _RepositoryMemo, reader: ObjectReader, prefix: str, ref: str, oid: str, head: str
) -> OpenDraft | None:
    key = ref, oid, head
    # Of a draft whose tip is fanout's own nothing depends on the target branch.
    unedited_key = ref, oid, ""
    if unedited_key in memo.drafts:
        return memo.drafts[unedited_key]
    if key not in memo.drafts:
        try:
            draft = _read_draft(reader, _package_path(prefix, ref), *key, memo.writer)
        except InvalidInput:  # an unreadable commit does not show that the draft is fanout's
            draft = None
        memo.drafts[key if draft is None or draft.is_edited else unedited_key] = draft
        return draft
    return memo.drafts[key]


def _get_shared_drafts(
    memo: _RepositoryMemo, reader: ObjectReader, install: str, tips: Mapping[str, str], head: str
) -> dict[str, SharedDraft | None]:
    shared = [(ref, oid, head) for ref, oid in tips.items() if is_stage_draft(install, ref)]
    read = partial(_read_shared_draft, writer=memo.writer)
    return _read_tips(memo.shared_drafts, read, reader, shared)


def _get_removal_drafts(
    memo: _RepositoryMemo, reader: ObjectReader, install: str, tips: Mapping[str, str], head: str
) -> dict[str, RemovalDraft | None]:
    removals = [(ref, oid, head) for ref, oid in tips.items() if is_removal_draft(install, ref)]
    read = partial(read_removal_draft, writer=memo.writer)
    return _read_tips(memo.removal_drafts, read, reader, removals)


def _read_tips(
    memo: dict[_DraftKey, _Draft | None],
    read: Callable[[ObjectReader, str, str, str], _Draft | None],
    reader: ObjectReader,
    keys: Iterable[_DraftKey],
) -> dict[str, _Draft | None]:
    """Return what `read` makes of each tip, from the memo where it has it; None: not fanout's."""
    drafts: dict[str, _Draft | None] = {}
    for key in keys:
        if key not in memo:
            try:
                memo[key] = read(reader, *key)
            except InvalidInput:  # an unreadable commit does not show that the draft is fanout's
                memo[key] = None
        drafts[key[0]] = memo[key]
    return drafts


def _find_unmanaged(
    reader: ObjectReader,
    all_drafts: Iterable[Mapping[str, OpenDraft | SharedDraft | RemovalDraft | None]],
    tips: Mapping[str, str],
    head: str,
) -> dict[str, OtherBranch]:
    """Return the branches that fanout did not write where they are, by ref."""
    unmanaged: dict[str, OtherBranch] = {}
    for ref, draft in chain.from_iterable(it.items() for it in all_drafts):
        if draft is None:
            unmanaged[ref] = OtherBranch(has_commits=not reader.contains(head, tips[ref]))
        elif isinstance(draft, OpenDraft) and draft.is_copy:
            unmanaged[ref] = OtherBranch(draft.trailers.variant)
    return unmanaged


def _removed_paths(drafts: Iterable[RemovalDraft | None]) -> set[str]:
    return {path for draft in drafts if draft is not None for path in draft.trees_by_path}


def _read_shared_draft(
    reader: ObjectReader, ref: str, oid: str, target_head: str, writer: str
) -> SharedDraft | None:
    shared = read_stage_draft(reader, ref, oid, target_head)
    if shared is None:
        return None
    stage_draft, outside = shared.stage_draft, tuple[InvalidInput, ...]()
    if stage_draft.is_edited or reader.commit(oid).committer != writer:
        paths = [it.path for it in shared.drafts]
        outside = find_outside_changes(reader, oid, stage_draft.base, target_head, paths)
    return SharedDraft(
        replace(stage_draft, is_edited=stage_draft.is_edited or bool(outside)),
        tuple(_check_shared_draft(reader, it, outside) for it in shared.drafts),
    )


def _check_shared_draft(
    reader: ObjectReader, draft: OpenDraft, outside: tuple[InvalidInput, ...]
) -> OpenDraft:
    """Return the draft with its faults and the conflicts that people settled in it."""
    faults: tuple[InvalidInput, ...] = ()
    settled = frozenset[str]()
    try:
        faults = _find_faults(reader, draft.path, draft.tree, draft.trailers)
        if not faults:
            settled = _find_resolved_conflicts(reader, draft.tree, draft.trailers)
    except InvalidInput as error:  # content that no package may have; other drafts are still read
        faults = (add_package(error, draft.path),)
    return replace(draft, settled_keys=settled, faults=(*faults, *outside))


def _package_path(prefix: str, ref: str) -> str:
    return ref.removeprefix(prefix).rpartition("/")[0]


def _read_draft(
    reader: ObjectReader, path: str, ref: str, oid: str, target_head: str, writer: str
) -> OpenDraft | None:
    """Return the draft at a tip, or None if neither the tip nor a commit of the draft is fanout's.

    What the target branch has is no commit of the draft. `writer` is the committer of fanout.
    """
    commit = tip = reader.commit(oid)
    has_joints = len(tip.parents) > 1
    # Bounded: a branch below drafts/ may be pushed by anyone, with any history.
    for _ in range(_MAX_EDIT_COMMITS):
        trailers = parse_trailers(commit.message)
        if trailers is not None and trailers.ref_at(path) == ref:
            break
        trailers = None
        if not commit.parents or is_of_target(
            reader, commit.parents[0], tip=oid, target_head=target_head
        ):
            break
        commit = reader.commit(commit.parents[0])
        has_joints |= len(commit.parents) > 1
    if trailers is None:
        return None
    tree = reader.paths(oid, [path])[path].tree if path else None
    is_own_commit, is_amended = commit.oid == oid, tree != trailers.tree
    faults: tuple[InvalidInput, ...] = ()
    outside: tuple[InvalidInput, ...] = ()
    resolved_conflicts, editors = frozenset[str](), frozenset[str]()
    try:
        faults = _find_faults(reader, path, tree, trailers)
        if not faults:
            resolved_conflicts = _find_resolved_conflicts(reader, tree, trailers)
        # An unedited draft with one parent contains no commits of people: no walk in the common
        # case.
        if not is_own_commit or is_amended or len(tip.parents) != 1:
            editors = _find_editors(reader, tip, amended=is_own_commit and is_amended)
        # An amended commit keeps its message. Comparing whole directories would dominate a pass.
        if not is_own_commit or commit.committer != writer:
            base = commit.parents[0] if commit.parents else ""
            outside = find_outside_changes(reader, oid, base, target_head, [path])
    except InvalidInput as error:  # content that no package may have; other drafts are still read
        faults = (add_package(error, path),)
    has_conflicts = trailers.conflicts != NO_VALUE
    return OpenDraft(
        ref=ref,
        path=path,
        commit=oid,
        tree=tree,
        trailers=trailers,
        is_edited=not is_own_commit or is_amended or bool(outside),
        settled_keys=resolved_conflicts,
        faults=(*faults, *outside),
        editors=editors,
        rejected_lines=parse_conflict_paragraph(commit.message) if has_conflicts else (),
        timestamp=commit.timestamp,
        has_joints=has_joints,
        is_copy=tree != trailers.tree and _is_of_other_path(reader, commit, path, trailers),
    )


def _is_of_other_path(
    reader: ObjectReader, commit: Commit, path: str, trailers: DraftTrailers
) -> bool:
    """Return whether fanout wrote its commit for a package at another path.

    It changes that package, and leaves this path as its parent has it.
    """
    if not commit.parents or trailers.tree == trailers.onto:
        return False
    parent = commit.parents[0]
    before, after = (reader.paths(it, [path])[path].tree for it in (parent, commit.oid))
    return before == after != trailers.tree and bool(
        reader.changed_files(commit.oid, [parent], [path], limit=1)
    )


def _find_editors(reader: ObjectReader, tip: Commit, *, amended: bool) -> frozenset[str]:
    """Return authors and committers of commits in the draft that fanout did not make.

    A commit of fanout has the draft that it carries over as a further parent. `amended`:
    the tip is a commit of fanout that somebody amended.
    """
    editors: set[str] = set()
    pending_commits = [tip]
    for _ in range(_MAX_CARRIED_COMMITS):
        if not pending_commits:
            break
        commit = pending_commits.pop()
        is_own_commit = parse_trailers(commit.message) is not None
        if not is_own_commit or (amended and commit.oid == tip.oid):
            editors |= {normalize_person(commit.author), normalize_person(commit.committer)}
        # The first parent of fanout's commit is the published branch, whose people did not edit
        # this draft; the first parent of a person's commit is the draft itself.
        pending_commits += map(
            reader.commit, commit.parents[1:] if is_own_commit else commit.parents[:1]
        )
    return frozenset(editors)


def _find_resolved_conflicts(
    reader: ObjectReader, tree: str | None, trailers: DraftTrailers
) -> frozenset[str]:
    """Return the keys of conflicts that people decided on the draft.

    Empty if the tree that fanout wrote is no longer available for comparison.
    """
    conflicts = parse_disputes(trailers.conflicts)
    if not conflicts or tree in (None, trailers.tree) or not reader.has(trailers.tree):
        return frozenset()
    return settled_keys(conflicts, reader.entries(trailers.tree), reader.entries(tree))


def _find_faults(
    reader: ObjectReader, path: str, tree: str | None, trailers: DraftTrailers
) -> tuple[InvalidInput, ...]:
    """Return faults of the draft that neither the rendering nor its base tree has."""
    if tree in (trailers.rendered, trailers.onto):
        return ()
    baseline_trees = [
        it for it in (trailers.rendered, trailers.onto) if it != NO_VALUE and reader.has(it)
    ]
    if trailers.rendered not in baseline_trees and reader.has(trailers.tree):
        baseline_trees.append(trailers.tree)
    files = _read_files(reader, tree) if tree is not None else {}
    baselines = [_read_files(reader, it) for it in baseline_trees]
    return find_new_faults(files, baselines, path, reader.limits)


def _read_files(reader: ObjectReader, tree: str) -> PackageFiles:
    files = reader.files(tree).items()
    return {path: (entry.mode, data) for path, (entry, data) in files}


def _rendering_paths(paths: list[str]) -> list[str]:
    return [f"{kind}/{path}" for kind in ("published", "drafts") for path in paths]


def _filter_trees(states: Mapping[str, PathState], kind: str, paths: list[str]) -> dict[str, str]:
    states_by_path = ((path, states.get(f"{kind}{path}")) for path in paths)
    return {path: state.tree for path, state in states_by_path if state is not None and state.tree}


def _find_highest_numbers(
    refs: Mapping[str, str], statements: Mapping[str, PublicationStatement]
) -> dict[str, int]:
    """Return the highest publication number of every path, by tags and statements."""
    highest = {path: statement.number for path, statement in statements.items()}
    for ref in refs:
        if match := _TAG_PATTERN.fullmatch(ref):
            highest[match[1]] = max(highest.get(match[1], 0), int(match[2]))
    return highest
