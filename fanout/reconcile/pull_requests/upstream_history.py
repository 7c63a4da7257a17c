"""Upstream's commits between the revisions of a request, read from the mirror of the upstream.

Only those that touch the package count. How far back is read is bounded: an old revision may be
thousands of commits behind, and a text shows the newest.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from fanout.api.fanout_configuration import ForgeProgram
from fanout.errors import FanoutError
from fanout.plan.changes.next_drafts import find_next_draft
from fanout.plan.observation.repository_state import Commit, Remote
from fanout.plan.pull_requests.forge_urls import RepositoryUrls, find_urls
from fanout.plan.pull_requests.request_values import UpstreamCommit, UpstreamHistory
from fanout.plan.rendered_variant import RenderedVariant
from fanout.ports import GitStore, ObjectReader
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.observation.upstream_packages import get_upstream_path, get_upstream_tag
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import Value, replace

_MAX_HISTORIES: Final = 3  # of a request: packages may come from several revisions
_MAX_SHOWN: Final = 20  # commits of a history
_MAX_READ: Final = 1000  # commits, on both sides
_MAX_SKEW: Final = 24 * 3600  # seconds by which the clocks of authors differ
_MAX_KEPT: Final = 256  # histories

_Span = tuple[str, str, str, str]  # old revision, its commit, new revision, its commit


class CommitSpan(Value):
    """Commits that one revision has and another lacks, as far as they touch a package."""

    commits: tuple[Commit, ...] = ()  # the newest first
    is_cut: bool = False  # older ones may be missing
    is_backward: bool = False  # the older revision has them


@dataclass(slots=True)
class UpstreamHistoryReader:
    """Reads upstream's commits between revisions; one per process.

    They are kept by repository, with the secret that it is reached with, path and commits.
    """

    git: GitStore
    programs: Mapping[str, ForgeProgram]  # of hosts that are listed as forges
    _spans: dict[tuple[str, str, str, str], CommitSpan] = field(default_factory=dict)

    def read_histories(
        self, resolved_policy: ResolvedPolicy, variants: Sequence[RenderedVariant]
    ) -> tuple[UpstreamHistory, ...]:
        """Return the histories of the revisions that drafts replace, that of most packages first.

        What cannot be read is left out: without it a text still says what it is about.
        """
        if resolved_policy.upstream is None or resolved_policy.declaration is None:
            return ()
        spans: Counter[_Span] = Counter()
        for variant in variants:
            draft, published = find_next_draft(variant), variant.observed.published
            if draft is not None:
                old = (published.revision, published.commit) if published is not None else ("", "")
                spans[(*old, draft.trailers.revision, draft.trailers.commit)] += 1
        remote = build_remote(resolved_policy.upstream)
        path, urls = get_upstream_path(resolved_policy), find_urls(remote.url, self.programs)
        histories: list[UpstreamHistory] = []
        for span, _ in sorted(spans.items(), key=lambda it: (-it[1], it[0]))[:_MAX_HISTORIES]:
            old_revision, old_commit, revision, commit = span
            commits = None
            if old_commit and old_commit != commit:
                commits = self._read_span(remote, path, old_commit, commit)
            if commits is None and urls is None:
                continue
            tag = "" if revision == commit else get_upstream_tag(resolved_policy, revision)
            package = resolved_policy.upstream_spec.package
            history = _build_history(commits or CommitSpan(), urls)
            histories.append(
                replace(
                    history,
                    package=package,
                    old_revision=old_revision if commits is not None else "",
                    revision=revision,
                    tag_url=urls.find_tag(tag) if urls is not None and tag else "",
                    compare_url=urls.compare(old_commit, commit)
                    if urls is not None and commits is not None
                    else "",
                )
            )
        return tuple(histories)

    def _read_span(self, remote: Remote, path: str, old: str, new: str) -> CommitSpan | None:
        """Return the commits between two others, or None if they cannot be read."""
        key = remote.key, path, old, new
        span = self._spans.get(key)
        if span is None:
            try:
                with self.git.reader(remote) as reader:
                    span = read_span(reader, path, old, new)
            except FanoutError:
                return None
            if len(self._spans) >= _MAX_KEPT:
                self._spans.clear()
            self._spans[key] = span
        return span


def read_span(reader: ObjectReader, path: str, old: str, new: str) -> CommitSpan:
    """Return the commits that `new` has and `old` lacks, or else those that it lacks of `old`.

    A merge counts if it differs from all of its parents. Raises what reading raises.
    """
    missing, is_cut = _walk(reader, old, new)
    is_backward = not missing and not is_cut
    if is_backward:
        missing, is_cut = _walk(reader, new, old)
    trees: dict[str, str | None] = {}

    def find_tree(commit: str) -> str | None:
        if commit not in trees:
            state = reader.paths(commit, [path])[path] if reader.has(commit) else None
            trees[commit] = state.tree if state is not None else None
        return trees[commit]

    commits = tuple(
        it
        for it in missing
        if find_tree(it.oid) not in ([find_tree(parent) for parent in it.parents] or [None])
    )
    return CommitSpan(commits, is_cut, is_backward and bool(commits))


def _walk(reader: ObjectReader, old: str, new: str) -> tuple[list[Commit], bool]:
    """Return the commits that `new` has and `old` lacks, newest first, and whether some are left.

    From the newest to the oldest, as Git does it: what an ancestor of `old` is an ancestor of, is
    hidden, also if it was seen before.
    """
    hidden = {new: False} | {old: True}
    commits = {it: reader.commit(it) for it in (old, new)}
    queue = [(-it.timestamp, it.oid) for it in commits.values()]
    heapify(queue)
    done: dict[str, bool] = {}
    order: list[str] = []
    oldest = commits[new].timestamp  # of what is not hidden
    while queue and len(commits) <= _MAX_READ:
        # What is hidden may still hide what was seen, as far as clocks differ.
        if -queue[0][0] < oldest - _MAX_SKEW and all(hidden[oid] for _, oid in queue):
            break
        _, oid = heappop(queue)
        if done.get(oid) is hidden[oid]:
            continue
        if oid not in done:
            order.append(oid)
        done[oid] = hidden[oid]
        if not hidden[oid]:
            oldest = min(oldest, commits[oid].timestamp)
        for parent in commits[oid].parents:
            if parent not in commits:
                if not reader.has(parent):
                    continue  # of a repository that lacks its beginning
                commits[parent] = reader.commit(parent)
                hidden[parent] = hidden[oid]
            elif hidden[oid] and not hidden[parent]:
                hidden[parent] = True
            else:
                continue
            heappush(queue, (-commits[parent].timestamp, parent))
    is_cut = any(not hidden[oid] for _, oid in queue)
    return [commits[oid] for oid in order if not hidden[oid]], is_cut


def _build_history(span: CommitSpan, urls: RepositoryUrls | None) -> UpstreamHistory:
    """Build a history without revisions, with the newest commits."""
    commits = [
        UpstreamCommit(
            commit=it.oid,
            subject=it.message.strip().partition("\n")[0],
            author=it.author.rpartition(" <")[0],
            url=urls.find_commit(it.oid) if urls is not None else "",
        )
        for it in span.commits
    ]
    return UpstreamHistory(
        package="",
        old_revision="",
        revision="",
        commits=tuple(commits[:_MAX_SHOWN]),
        authors=tuple(dict.fromkeys(it.author for it in commits if it.author)),
        omitted=max(0, len(commits) - _MAX_SHOWN),
        is_cut=span.is_cut,
        is_backward=span.is_backward,
    )
