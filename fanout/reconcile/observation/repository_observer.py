"""Observer of downstream repositories: what gates and planner need, read from mirrors.

Among it is what the vendor branch states about publications.

Commits are immutable, so everything is memoized by commit id: in a long-running process
a repository without changes costs its listing and nothing more.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from fanout.errors import FanoutError, InvalidInput
from fanout.package.package_limits import SizeLimits
from fanout.plan.commit_statement import PublicationStatement, VendorMessage, parse_vendor_message
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
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.repository_access import list_read_refs, read_with_recovery
from fanout.reconcile.observation.set_reader import is_statement_for, read_packages, read_set
from fanout.selection.ref_names import (
    SetScope,
    draft_path,
    drafts_prefix,
    record_traces_ref,
    scope_of,
    vendor_ref,
)
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import Value, replace

_BranchKey = tuple[str, str, str]
_DraftedPaths = Mapping[tuple[str, str], frozenset[str]]
"""Paths of stage drafts of other installations, by ref and commit."""
_RENDERING_BRANCH_PATTERN = re.compile(r"refs/heads/fanout/([^/]+)/rendered")
_TAG_PATTERN = re.compile(r"refs/tags/(.+)/v([1-9][0-9]{0,17})")
# Numbers are assigned without gaps, and some tags may have been deleted. A tag far above the others
# is none of fanout's: readers go through the numbers one by one, and new ones would be above it.
_MAX_GAP = 10_000
_MAX_COMMITS = 100_000  # of the vendor branch, with statements
_TRACE_LIMITS = SizeLimits(files=100_000, depth=1, file_size=4096)


class StatementIndex(Value):
    """The newest statement about each path, the used numbers, and the newest commit with either."""

    vendor_head: str
    newest_commit: str
    by_path: Mapping[str, PublicationStatement]
    used_numbers: Mapping[str, int]  # by path that was left

    def find_highest_numbers(self, refs: Mapping[str, str]) -> dict[str, int]:
        """Return the highest publication number of each path, by the vendor branch and by tags."""
        highest = dict(self.used_numbers)
        for path, statement in self.by_path.items():
            highest[path] = max(highest.get(path, 0), statement.number)
        distant: list[tuple[int, str]] = []
        for match in filter(None, map(_TAG_PATTERN.fullmatch, refs)):
            path, number = match[1], int(match[2])
            if number > highest.get(path, 0) + _MAX_GAP:
                distant.append((number, path))
            elif number > highest.get(path, 0):
                highest[path] = number
        for number, path in sorted(distant):
            if highest.get(path, 0) < number <= highest.get(path, 0) + _MAX_GAP:
                highest[path] = number
        return highest


NO_STATEMENTS = StatementIndex("", "", {}, {})


def list_statements(
    reader: ObjectReader, vendor_commit: str
) -> Iterator[tuple[str, VendorMessage]]:
    """Yield the commits that state something, newest first, from a commit of the vendor branch.

    The branch need not be whole: what the mirror lacks ends the list.
    """
    oid = vendor_commit
    # Bounded: anybody who may push can have pushed this branch.
    for _ in range(_MAX_COMMITS):
        if not oid or not reader.has(oid):
            return
        message = parse_vendor_message(reader.commit(oid).message)
        if message.statements or message.used_numbers:
            yield oid, message
        oid = message.previous


def read_statement_index(
    reader: ObjectReader, vendor_head: str, known: StatementIndex
) -> StatementIndex:
    """Return the newest statements at a head of the vendor branch.

    `known` are those of an earlier head; only what came after it is read.
    """
    if known.vendor_head == vendor_head:
        return known
    newest_commit = ""
    by_path: dict[str, PublicationStatement] = {}
    used_numbers: dict[str, int] = {}
    for oid, message in list_statements(reader, vendor_head):
        newest_commit = newest_commit or oid
        if oid == known.newest_commit:
            by_path = {**known.by_path, **by_path}
            used_numbers = {**known.used_numbers, **used_numbers}
            break
        for statement in message.statements:
            by_path.setdefault(statement.path, statement)
        for path, number in message.used_numbers.items():
            used_numbers.setdefault(path, number)
    return StatementIndex(vendor_head, newest_commit, by_path, used_numbers)


@dataclass(slots=True)
class _RepositoryMemo:
    """Values read of one repository in earlier passes, by commit."""

    path_states: dict[str, dict[str, PathState]] = field(default_factory=dict)
    observed_paths: list[str] = field(default_factory=list)  # paths whose state is observed
    writer: str = ""  # committer of the vendor branch, which is fanout's
    statements: StatementIndex = NO_STATEMENTS
    traces_commit: str = ""
    traces: Mapping[str, RecordTrace] = field(default_factory=dict)  # of that commit
    state: RepositoryState | None = None
    # by ref, commit and head of the target branch
    branches: dict[_BranchKey, SetState | OtherBranch] = field(default_factory=dict)
    other_paths: _DraftedPaths = field(default_factory=dict)

    def read_paths(
        self, reader: ObjectReader, commit: str, paths: list[str]
    ) -> Mapping[str, PathState]:
        """Return at least the states of these paths at a commit; "" has none."""
        if not commit:
            return {}
        states = self.path_states.setdefault(commit, {})
        missing_paths = [path for path in paths if path not in states]
        if missing_paths:
            states.update(reader.paths(commit, missing_paths))
        return states

    def read_traces(self, reader: ObjectReader, commit: str) -> Mapping[str, RecordTrace]:
        """Return the traces of records by path; a file that is none is left out."""
        if self.traces_commit != commit:
            entries = reader.entries(reader.commit(commit).tree, _TRACE_LIMITS) if commit else {}
            traces = {
                path: parse_trace(reader.blob(entry.oid, _TRACE_LIMITS.file_size))
                for path, entry in entries.items()
            }
            self.traces = {path: trace for path, trace in traces.items() if trace is not None}
            self.traces_commit = commit
        return self.traces

    def read_branch(
        self, reader: ObjectReader, ref: str, oid: str, head: str
    ) -> SetState | OtherBranch:
        """Return what is on a branch below `drafts/`, at its commit; `head`: of the target."""
        # Of a draft of one variant whose tip is fanout's own nothing depends on the target branch.
        unedited_key, key = (ref, oid, ""), (ref, oid, head)
        branch = self.branches.get(unedited_key) or self.branches.get(key)
        if branch is None:
            try:
                branch = read_set(reader, *key, writer=self.writer)
            except InvalidInput:  # an unreadable commit does not show that the set is fanout's
                branch = OtherBranch(has_commits=not reader.contains(head, oid))
            is_fixed = isinstance(branch, SetState) and not branch.is_edited and draft_path(ref)
            self.branches[unedited_key if is_fixed else key] = branch
        return branch

    def read_other_paths(
        self, git: GitStore, install: str, request: RefListingRequest, refs: Mapping[str, str]
    ) -> None:
        """Read the paths of the stage drafts of other installations that the listing has.

        The branch of a draft of one variant is named by its path. What a draft of a stage has, only
        its commits say: such a branch is fetched once for each commit. One that cannot be fetched
        or read counts for nothing. `request` is the one that the repository was listed with.
        """
        drafts = {
            (ref, refs[ref])
            for _, ref in _list_drafts(refs, install)
            if scope_of(ref) is SetScope.STAGE
        }
        new_drafts = drafts - self.other_paths.keys()
        paths = {key: self.other_paths[key] for key in drafts & self.other_paths.keys()}
        if not new_drafts:
            self.other_paths = paths
            return
        with git.reader(request.remote) as reader:
            missing_refs = sorted(ref for ref, commit in new_drafts if not reader.has(commit))
        if missing_refs:
            patterns = (*request.mirrored_patterns, *missing_refs)
            git.list_refs([RefListingRequest(request.remote, patterns)])
        with git.reader(request.remote) as reader:
            for ref, commit in new_drafts:
                counts = partial(is_statement_for, ref)
                try:
                    # Without the target branch, which may be another one for another installation.
                    packages = read_packages(reader, commit, counts) if reader.has(commit) else ()
                    paths[ref, commit] = frozenset(packages)
                except InvalidInput:  # it is not for this installation to say what is wrong with it
                    paths[ref, commit] = frozenset()
        self.other_paths = paths

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
    # by key of the remote, and branch
    _memos: dict[tuple[str, str], _RepositoryMemo] = field(default_factory=dict)

    def retain(self, places: Iterable[tuple[Remote, str]]) -> None:
        """Forget all repositories but these; the branch is the one that is published to."""
        present = {(remote.key, branch) for remote, branch in places}
        self._memos = {key: memo for key, memo in self._memos.items() if key in present}

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

        def read() -> RepositoryState:
            memo = self._memos.setdefault((remote.key, branch), _RepositoryMemo())
            state = memo.state
            if (
                state is not None
                and (state.remote, state.refs, state.pushes_tags) == (remote, refs, pushes_tags)
                and memo.observed_paths == wanted_paths
            ):
                # Memos compare by identity: an equal but new state would invalidate every variant
                # below it.
                return state
            memo.read_other_paths(self.git, self.install, listing_request, refs)
            state = self._read_changed(memo, remote, branch, refs, wanted_paths, pushes_tags)
            memo.observed_paths = wanted_paths
            if not state.head and refs:
                # What is missing was perhaps renamed.
                memo.state = replace(state, default_branch=self.git.read_default_branch(remote))
            return memo.state or state

        try:
            with BARRIER:
                return read_with_recovery(self.git, listing_request, read)
        except FanoutError as error:
            return RepositoryState(remote=remote, branch=branch, refs=listing.refs, failure=error)

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
            commits: list[Commit | None] = []
            for ref in ref_names:
                try:
                    commits.append(reader.commit(refs[ref]) if ref in refs else None)
                except InvalidInput as error:
                    raise InvalidInput(
                        f"{remote.url}: branch {ref.removeprefix('refs/heads/')}: {error.problem}",
                        reason=error.reason,
                        remedy=error.remedy,
                        where=error.where,
                    ) from error
            head_time, vendor_time = (it.timestamp if it is not None else 0 for it in commits)
            memo.writer = commits[1].committer if commits[1] is not None else ""
            branches = {ref: memo.read_branch(reader, ref, tips[ref], head) for ref in tips}
            sets = {ref: it for ref, it in branches.items() if isinstance(it, SetState)}
            removed_paths = {path for it in sets.values() for path in it.removed_trees}
            # A draft may be the only trace of an orphaned variant.
            drafted_paths = {path for it in sets.values() for path in it.drafts}
            # And a branch that is no set's may be in the place of a draft.
            drafted_paths |= {draft_path(ref) for ref in tips}
            package_paths = sorted({*paths, *drafted_paths, *removed_paths} - {""})
            on_branch = memo.read_paths(reader, head, package_paths)
            rendering_paths = [
                f"{kind}/{it}" for kind in ("published", "drafts") for it in package_paths
            ]
            pristine = memo.read_paths(reader, vendor, rendering_paths)
            memo.statements = read_statement_index(reader, vendor, memo.statements)
            traces = memo.read_traces(reader, refs.get(record_traces_ref(self.install), ""))
        memo.keep_present(head, vendor, tips)
        published = _filter_trees(pristine, "published/", package_paths)
        obsolete = frozenset(path for path in removed_paths if on_branch[path].tree is None)
        # Those of the paths that another installation has a draft at, with its name.
        wanted_paths, other_installations = set(paths), dict[str, str]()
        for other, ref in _list_drafts(refs, self.install):
            other_paths = memo.other_paths.get((ref, refs[ref]), frozenset())
            if path := draft_path(ref):
                other_paths = frozenset([path])
            other_installations |= dict.fromkeys(other_paths & wanted_paths, other)
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
            other_installations=other_installations,
            pushes_tags=pushes_tags,
            publication_numbers=memo.statements.find_highest_numbers(refs),
            publication_statements=memo.statements.by_path,
            used_numbers=memo.statements.used_numbers,
            last_statements=memo.statements.newest_commit,
            record_traces=traces,
        )
        return memo.state


def _list_drafts(refs: Mapping[str, str], install: str) -> Iterator[tuple[str, str]]:
    """Yield the drafts of other installations, which are known by their rendering branches."""
    installs = {match[1] for ref in refs if (match := _RENDERING_BRANCH_PATTERN.fullmatch(ref))}
    for other in sorted(installs - {install}):
        yield from ((other, ref) for ref in refs if ref.startswith(drafts_prefix(other)))


def _filter_trees(states: Mapping[str, PathState], kind: str, paths: list[str]) -> dict[str, str]:
    states_by_path = ((path, states.get(f"{kind}{path}")) for path in paths)
    return {path: state.tree for path, state in states_by_path if state is not None and state.tree}
