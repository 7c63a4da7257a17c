"""Reader of stage drafts: the packages of a chain of commits, and what people added."""

from collections.abc import Mapping, Sequence

from fanout.api.promotion_policy import normalize_person
from fanout.plan.draft_trailers import NO_VALUE, DraftTrailers
from fanout.plan.edits.merge_disputes import parse_conflict_paragraph
from fanout.plan.observation.repository_state import OpenDraft, StageDraft
from fanout.plan.stage_drafts.stage_commit import StageCommit, parse_stage_commit
from fanout.ports import ObjectReader
from fanout.reconcile.observation.commit_chain import ChainCommit, read_chain
from fanout.values import Value


class SharedDraft(Value):
    """A stage draft and the drafts of its packages, in order of path."""

    stage_draft: StageDraft
    drafts: tuple[OpenDraft, ...]


_ChainCommit = ChainCommit[StageCommit]


def read_stage_draft(
    reader: ObjectReader, ref: str, tip: str, target_head: str
) -> SharedDraft | None:
    """Read the branch of a stage draft; None if it is not one that fanout wrote.

    What people changed is not checked: the drafts have no faults and no settled conflicts.
    `target_head` is the head of the branch that the draft is merged to. Raises InvalidInput for a
    commit or a tree that cannot be read.
    """
    chain = read_chain(reader, ref, tip, target_head, parse_stage_commit)
    if chain is None:
        return None
    written = _find_written(chain)
    trees = reader.paths(tip, sorted(written))
    drafts: list[OpenDraft] = []
    for path, link in sorted(written.items()):
        assert link.stated is not None, "only fanout's commits name packages"
        trailers, tree = link.stated.packages[path], trees[path].tree
        editors = frozenset[str]()
        if tree != trailers.tree or trailers.takes:
            editors = _find_editors(reader, chain, path)
        has_conflicts = trailers.conflicts != NO_VALUE
        lines = parse_conflict_paragraph(link.commit.message) if has_conflicts else ()
        drafts.append(
            OpenDraft(
                ref=ref,
                path=path,
                commit=tip,
                tree=tree,
                trailers=trailers,
                is_shared=True,
                is_edited=tree != trailers.tree,
                editors=editors,
                rejected_lines=tuple(
                    line.removeprefix(f"{path}: ") for line in lines if line.startswith(f"{path}: ")
                ),
                timestamp=link.commit.timestamp,
            )
        )
    [stated, *_] = [link.stated for link in chain if link.stated is not None]
    stage_draft = StageDraft(
        ref=ref,
        commit=tip,
        timestamp=chain[0].commit.timestamp,
        base=stated.base,
        is_edited=any(link.stated is None for link in chain) or any(it.is_edited for it in drafts),
    )
    return SharedDraft(stage_draft, tuple(drafts))


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
