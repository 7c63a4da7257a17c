"""Reader of stage drafts: the packages of a chain of commits, and what people added."""

from collections.abc import Mapping, Sequence

from fanout.api.promotion_policy import normalize_person
from fanout.plan.draft_trailers import DraftTrailers
from fanout.plan.stage_drafts.stage_commit import StageCommit, parse_stage_commit
from fanout.ports import ObjectReader
from fanout.reconcile.observation.commit_chain import ChainCommit, read_chain
from fanout.values import Value


class StagePackage(Value):
    """A package in a stage draft: what fanout wrote, and what the tip has."""

    trailers: DraftTrailers
    message: str  # of the commit that wrote it
    timestamp: int  # of that commit
    tree: str | None  # at the tip
    editors: frozenset[str]  # people whose commits changed it


class StageDraftContent(Value):
    """A stage draft as its branch has it; `packages` by path."""

    base: str
    timestamp: int
    is_edited: bool
    packages: Mapping[str, StagePackage]


_ChainCommit = ChainCommit[StageCommit]


def read_stage_draft(
    reader: ObjectReader, ref: str, tip: str, target_head: str
) -> StageDraftContent | None:
    """Read the branch of a stage draft; None if it is not one that fanout wrote.

    `target_head` is the head of the branch that the draft is merged to. Raises InvalidInput for a
    commit or a tree that cannot be read.
    """
    chain = read_chain(reader, ref, tip, target_head, parse_stage_commit)
    if chain is None:
        return None
    written = _find_written(chain)
    trees = reader.paths(tip, sorted(written))
    packages: dict[str, StagePackage] = {}
    for path, link in sorted(written.items()):
        assert link.stated is not None, "only fanout's commits name packages"
        trailers, tree = link.stated.packages[path], trees[path].tree
        editors = frozenset[str]()
        if tree != trailers.tree or trailers.takes:
            editors = _find_editors(reader, chain, path)
        packages[path] = StagePackage(
            trailers, link.commit.message, link.commit.timestamp, tree, editors
        )
    is_edited = any(link.stated is None for link in chain) or any(
        package.tree != package.trailers.tree for package in packages.values()
    )
    [stated, *_] = [link.stated for link in chain if link.stated is not None]
    return StageDraftContent(stated.base, chain[0].commit.timestamp, is_edited, packages)


def read_stage_trailers(reader: ObjectReader, ref: str, tip: str) -> Mapping[str, DraftTrailers]:
    """Return the trailers of the packages of a merged stage draft, by variant.

    There are none if it is not one.
    """
    trailers: dict[str, DraftTrailers] = {}
    chain = read_chain(reader, ref, tip, "", parse_stage_commit) or ()
    for path, link in _find_written(chain).items():
        assert link.stated is not None, "only fanout's commits name packages"
        trailers[link.stated.packages[path].variant] = link.stated.packages[path]
    return trailers


def _find_written(chain: Sequence[_ChainCommit]) -> Mapping[str, _ChainCommit]:
    """Return the commit that wrote each package that is still in the draft, by path."""
    written: dict[str, _ChainCommit] = {}
    removed: set[str] = set()
    # Newest first: the first line about a path is the one that holds.
    for link in chain:
        if link.stated is not None:
            for path in link.stated.packages.keys() - removed:
                written.setdefault(path, link)
            removed |= set(link.stated.removed) - written.keys()
    return written


def _find_editors(reader: ObjectReader, chain: Sequence[_ChainCommit], path: str) -> frozenset[str]:
    """Return authors and committers of the commits by which people changed the package.

    A commit of fanout that people amended keeps its message, but not the tree that it names.
    """
    editors: set[str] = set()
    for link in chain:
        before = reader.paths(link.commit.parents[0], [path])[path].tree
        after = reader.paths(link.commit.oid, [path])[path].tree
        stated = link.stated.packages.get(path) if link.stated is not None else None
        if after not in (before, stated.tree if stated is not None else None):
            editors |= {
                normalize_person(link.commit.author),
                normalize_person(link.commit.committer),
            }
        if stated is not None and not stated.takes:
            break  # what was before, fanout has replaced
    return frozenset(editors)
