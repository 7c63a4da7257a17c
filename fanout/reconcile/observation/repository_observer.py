"""Observer of downstream repositories: what gates and planner need, read from mirrors.

Commits are immutable, so everything is memoized by commit id: in a long-running process
a repository without changes costs its listing and nothing more.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.errors import FanoutError, InvalidInput
from fanout.package.package_limits import SizeLimits
from fanout.plan.observation.repository_state import (
    Commit,
    OtherBranch,
    PathState,
    RecordTrace,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryState,
    SetState,
    parse_trace,
)
from fanout.plan.publication_statement import PublicationStatement
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.listing_requests import list_read_refs
from fanout.reconcile.observation.mirror_access import read_with_recovery
from fanout.reconcile.observation.other_installations import (
    DraftedPaths,
    find_other_installations,
    read_drafted_paths,
)
from fanout.reconcile.observation.publication_reader import StatementIndex, read_statement_index
from fanout.reconcile.observation.set_reader import read_set
from fanout.selection.ref_names import (
    draft_path,
    drafts_prefix,
    record_traces_ref,
    vendor_ref,
)
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import replace

_Draft = TypeVar("_Draft")
_BranchKey = tuple[str, str, str]
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
    # by ref, commit and head of the target branch
    branches: dict[_BranchKey, SetState | OtherBranch] = field(default_factory=dict)
    other_paths: DraftedPaths = field(default_factory=dict)

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
        for ref, oid, target in list(self.branches):
            if tips.get(ref) != oid or target not in ("", head):
                del self.branches[ref, oid, target]


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
            branches = {ref: _get_branch(memo, reader, ref, tips[ref], head) for ref in tips}
            sets = {ref: it for ref, it in branches.items() if isinstance(it, SetState)}
            removed_paths = {path for it in sets.values() for path in it.removed_trees}
            # A draft may be the only trace of an orphaned variant.
            drafted_paths = {path for it in sets.values() for path in it.drafts}
            # And a branch that is no set's may be in the place of a draft.
            drafted_paths |= {draft_path(ref) for ref in tips}
            package_paths = sorted({*paths, *drafted_paths, *removed_paths} - {""})
            on_branch = _read_paths(memo, reader, head, package_paths)
            pristine = _read_paths(memo, reader, vendor, _rendering_paths(package_paths))
            memo.statements = read_statement_index(reader, vendor, memo.statements)
            traces = _read_traces(memo, reader, refs.get(record_traces_ref(self.install), ""))
        memo.keep_present(head, vendor, tips)
        published = _filter_trees(pristine, "published/", package_paths)
        obsolete = frozenset(path for path in removed_paths if on_branch[path].tree is None)
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
            sets=sets,
            unmanaged_drafts={
                ref: it for ref, it in branches.items() if isinstance(it, OtherBranch)
            },
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


def _get_branch(
    memo: _RepositoryMemo, reader: ObjectReader, ref: str, oid: str, head: str
) -> SetState | OtherBranch:
    # Of a draft of one variant whose tip is fanout's own nothing depends on the target branch.
    unedited_key = ref, oid, ""
    if unedited_key in memo.branches:
        return memo.branches[unedited_key]
    key = ref, oid, head
    if key not in memo.branches:
        branch: SetState | OtherBranch
        try:
            branch = read_set(reader, *key, writer=memo.writer)
        except InvalidInput:  # an unreadable commit does not show that the set is fanout's
            branch = OtherBranch(has_commits=not reader.contains(head, oid))
        is_fixed = isinstance(branch, SetState) and not branch.is_edited and bool(draft_path(ref))
        memo.branches[unedited_key if is_fixed else key] = branch
        return branch
    return memo.branches[key]


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
