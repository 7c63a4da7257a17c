"""Reads what the gates and the planner need of each downstream repository from its mirror.

What a commit holds never changes, so everything is kept by commit id: in a process that stays, a
repository in which nothing moved costs its listing and nothing more.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fanout.api.people import person
from fanout.errors import FanoutError, InvalidInput
from fanout.package.limits import in_package
from fanout.plan.disputes import read as read_disputes
from fanout.plan.disputes import settled_by
from fanout.plan.merging import Files
from fanout.plan.observation import OpenDraft, RepositoryView
from fanout.plan.rejected import read_lines
from fanout.plan.repository import Commit, Listing, Look, PathState, Remote
from fanout.plan.soundness import new_faults
from fanout.plan.trailers import NONE, Trailers, read_trailers
from fanout.ports import GitStore, Reader
from fanout.reconcile.rereading import read_again
from fanout.selection.naming import drafts_under, vendor_ref
from fanout.telemetry.barrier import BARRIER
from fanout.values import frozen

_TAG = re.compile(r"refs/tags/(.+)/v([1-9][0-9]*)")
_RENDERED = re.compile(r"refs/heads/fanout/([^/]+)/rendered")
_DEPTH = 64  # of a person's commits on top of a draft
_WORK = 1024  # commits of people, in all that a draft has taken in


@frozen
class _Tip:
    """What is at the tip of a draft branch."""

    trailers: Trailers | None  # of the newest commit of fanout's on it
    own: bool  # that commit is the tip
    tree: str | None
    faults: tuple[InvalidInput, ...] = ()  # what people's work has put into it and breaks it
    settled: frozenset[str] = frozenset()  # keys of the disputes that people's commits decided
    people: frozenset[str] = frozenset()  # whose commits are in it
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts, as fanout's commit says


@dataclass(slots=True)
class _Known:
    """What was read of one repository before, by commit."""

    paths: dict[str, dict[str, PathState]] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # paths, for the view
    view: RepositoryView | None = None
    tips: dict[tuple[str, str], _Tip] = field(default_factory=dict)


@dataclass(slots=True)
class Views:
    """Makes `RepositoryView`s; one per process."""

    git: GitStore
    install: str
    _known: dict[str, _Known] = field(default_factory=dict)

    def read(
        self,
        remote: Remote,
        branch: str,
        listing: Listing | FanoutError,
        paths: Iterable[str],
    ) -> RepositoryView:
        """The repository as listed; `paths` are those of all variants that go there."""
        if isinstance(listing, FanoutError):
            return RepositoryView(remote, branch, {}, failure=listing)
        refs, wanted = listing.refs, sorted(set(paths))
        look = Look(remote, (branch, f"{drafts_under(self.install)}*", vendor_ref(self.install)))
        try:
            with BARRIER:
                return read_again(self.git, look, lambda: self._read(remote, branch, refs, wanted))
        except FanoutError as error:
            return RepositoryView(remote, branch, listing.refs, failure=error)

    def _read(
        self, remote: Remote, branch: str, refs: Mapping[str, str], paths: list[str]
    ) -> RepositoryView:
        known = self._known.setdefault(f"{remote.url}#{branch}", _Known())
        view = known.view
        if view is not None and (view.remote, view.refs, known.asked) == (remote, refs, paths):
            return view  # the very same, so that whoever kept something of it can tell
        head, vendor = refs.get(branch, ""), refs.get(vendor_ref(self.install), "")
        prefix = drafts_under(self.install)
        tips = {ref: oid for ref, oid in refs.items() if ref.startswith(prefix)}
        with self.git.reader(remote) as reader:
            # A draft may be all that tells of a variant whose target is gone.
            there = sorted({*paths, *(_path(prefix, ref) for ref in tips)} - {""})
            on_branch = _paths(known, reader, head, there)
            both = [f"{kind}/{path}" for kind in ("published", "drafts") for path in there]
            pristine = _paths(known, reader, vendor, both)
            times = [_time(known, reader, oid) for oid in (head, vendor)]
            found = {ref: _tip(known, reader, prefix, ref, oid) for ref, oid in tips.items()}
        _forget(known, {head, vendor}, tips)
        known.asked = paths
        known.view = RepositoryView(
            remote=remote,
            branch=branch,
            refs=refs,
            head=head,
            head_time=times[0],
            vendor=vendor,
            vendor_time=times[1],
            paths=on_branch,
            published=_trees(pristine, "published/", there),
            drafted=_trees(pristine, "drafts/", there),
            drafts={
                ref: _draft(ref, tips[ref], tip, tip.trailers)
                for ref, tip in found.items()
                if tip.trailers is not None
            },
            strangers={ref: tips[ref] for ref, tip in found.items() if tip.trailers is None},
            others=_others(refs, self.install, paths),
            tags=_tags(refs),
        )
        return known.view


def _paths(known: _Known, reader: Reader, commit: str, paths: list[str]) -> Mapping[str, PathState]:
    if not commit:
        return {}
    states = known.paths.setdefault(commit, {})
    missing = [path for path in paths if path not in states]
    if missing:
        states.update(reader.paths(commit, missing))
    return states


def _time(known: _Known, reader: Reader, commit: str) -> int:
    if commit and commit not in known.times:
        known.times[commit] = reader.commit(commit).when
    return known.times.get(commit, 0)


def _tip(known: _Known, reader: Reader, prefix: str, ref: str, oid: str) -> _Tip:
    if (ref, oid) not in known.tips:
        try:
            known.tips[ref, oid] = _read_tip(reader, _path(prefix, ref), oid)
        except InvalidInput:  # a commit that cannot be read says of no draft that it is ours
            known.tips[ref, oid] = _Tip(None, own=False, tree=None)
    return known.tips[ref, oid]


def _path(prefix: str, ref: str) -> str:
    """The path of the package that a draft's branch is for."""
    return ref.removeprefix(prefix).rpartition("/")[0]


def _read_tip(reader: Reader, path: str, oid: str) -> _Tip:
    commit = tip = reader.commit(oid)
    for _ in range(_DEPTH):
        trailers = read_trailers(commit.message)
        if trailers is not None or not commit.parents:
            break
        commit = reader.commit(commit.parents[0])
    tree = reader.paths(oid, [path])[path].tree if path else None
    own = commit.oid == oid
    faults: tuple[InvalidInput, ...] = ()
    settled, people = frozenset[str](), frozenset[str]()
    try:
        faults = _faults(reader, path, tree, trailers)
        if not faults and trailers is not None:
            settled = _settled(reader, tree, trailers)
        if trailers is not None and not (own and tree == trailers.tree and len(tip.parents) == 1):
            people = _people(reader, tip, amended=own and tree != trailers.tree)
    except InvalidInput as error:  # what no package may be; other drafts are read all the same
        faults = (in_package(error, path),)
    disputed = trailers is not None and trailers.conflicts != NONE
    rejected = read_lines(commit.message) if disputed else ()
    return _Tip(trailers, own, tree, faults, settled, people, rejected)


def _people(reader: Reader, tip: Commit, *, amended: bool) -> frozenset[str]:
    """Who wrote or committed what fanout did not, in the draft and in those that it has taken in.

    A commit of fanout's has the draft that it takes in as a further parent. `amended`: the tip is
    one of fanout's that somebody has changed.
    """
    found: set[str] = set()
    left = [tip]
    for _ in range(_WORK):
        if not left:
            break
        commit = left.pop()
        own = read_trailers(commit.message) is not None
        if not own or (amended and commit.oid == tip.oid):
            found |= {person(commit.author), person(commit.committer)}
        left += map(reader.commit, commit.parents[1:] if own else commit.parents[:1])
    return frozenset(found)


def _settled(reader: Reader, tree: str | None, trailers: Trailers) -> frozenset[str]:
    """What people decided on the draft; nothing where what they changed is not known any more."""
    found = read_disputes(trailers.conflicts)
    if not found or tree in (None, trailers.tree) or not reader.has(trailers.tree):
        return frozenset()
    return settled_by(found, reader.entries(trailers.tree), reader.entries(tree))


def _faults(
    reader: Reader, path: str, tree: str | None, trailers: Trailers | None
) -> tuple[InvalidInput, ...]:
    """What is wrong in the draft and neither in the rendering nor in what it was written onto."""
    if trailers is None or tree in (trailers.rendered, trailers.onto):
        return ()
    known = [it for it in (trailers.rendered, trailers.onto) if it != NONE and reader.has(it)]
    if trailers.rendered not in known and reader.has(trailers.tree):
        known.append(trailers.tree)
    files = _files(reader, tree) if tree is not None else {}
    return new_faults(files, [_files(reader, it) for it in known], path)


def _files(reader: Reader, tree: str) -> Files:
    files = reader.files(tree).items()
    return {path: (entry.mode, data) for path, (entry, data) in files}


def _draft(ref: str, oid: str, tip: _Tip, trailers: Trailers) -> OpenDraft:
    """A person has edited it when the tip is not fanout's, or is amended."""
    edited = not tip.own or tip.tree != trailers.tree
    return OpenDraft(
        ref, oid, tip.tree, trailers, edited, tip.settled, tip.faults, tip.people, tip.rejected
    )


def _trees(states: Mapping[str, PathState], kind: str, paths: list[str]) -> dict[str, str]:
    found = ((path, states.get(f"{kind}{path}")) for path in paths)
    return {path: state.tree for path, state in found if state is not None and state.tree}


def _others(refs: Mapping[str, str], install: str, paths: list[str]) -> dict[str, str]:
    """Paths on which another installation, known by its vendor branch, has a draft."""
    installs = {found[1] for ref in refs if (found := _RENDERED.fullmatch(ref))} - {install}
    if not installs:
        return {}
    known = set(paths)
    others = {}
    for ref in refs:
        for other in installs:
            path = ref.removeprefix(drafts_under(other)).rpartition("/")[0]
            if ref.startswith(drafts_under(other)) and path in known:
                others[path] = other
    return others


def _tags(refs: Mapping[str, str]) -> dict[str, int]:
    """The highest published number of every path."""
    highest: dict[str, int] = {}
    for ref in refs:
        found = _TAG.fullmatch(ref)
        if found:
            highest[found[1]] = max(highest.get(found[1], 0), int(found[2]))
    return highest


def _forget(known: _Known, commits: set[str], tips: Mapping[str, str]) -> None:
    """Keep only what the present refs point to."""
    known.paths = {oid: states for oid, states in known.paths.items() if oid in commits}
    known.times = {oid: when for oid, when in known.times.items() if oid in commits}
    known.tips = {key: tip for key, tip in known.tips.items() if tips.get(key[0]) == key[1]}
