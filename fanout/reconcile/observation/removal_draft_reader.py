"""Reader of removal drafts: the packages that a chain of commits takes off the branch."""

from fanout.errors import InvalidInput
from fanout.plan.observation.repository_state import RemovalDraft
from fanout.plan.removal.removal_drafts import parse_removal_commit
from fanout.ports import ObjectReader
from fanout.reconcile.observation.commit_chain import read_chain
from fanout.reconcile.observation.misplaced_changes import find_outside_changes


def read_removal_draft(
    reader: ObjectReader, ref: str, tip: str, target_head: str, *, writer: str
) -> RemovalDraft | None:
    """Read the branch of a removal draft; None if it is not one that fanout wrote.

    `writer` is the committer of fanout. Raises InvalidInput for a commit or a tree that cannot be
    read.
    """
    chain = read_chain(reader, ref, tip, target_head, parse_removal_commit)
    if chain is None:
        return None
    statements = [link.stated for link in chain if link.stated is not None]
    removed: set[str] = set()
    restored: set[str] = set()
    # Newest first: the first line about a path is the one that holds.
    for stated in statements:
        removed |= set(stated.removed) - restored
        restored |= set(stated.restored) - removed
    base_trees = reader.paths(statements[0].base, sorted(removed))
    tip_trees = reader.paths(tip, sorted(removed))
    trees_by_path = {
        path: tree
        for path in sorted(removed)
        if tip_trees[path].tree is None and (tree := base_trees[path].tree) is not None
    }
    is_edited = any(link.stated is None for link in chain)
    faults: tuple[InvalidInput, ...] = ()
    # Whoever amends a commit of fanout keeps its message, and not its committer.
    if is_edited or chain[0].commit.committer != writer:
        faults = find_outside_changes(
            reader, tip, statements[0].base, target_head, removed | restored, is_removal=True
        )
    return RemovalDraft(
        ref=ref,
        commit=tip,
        timestamp=chain[0].commit.timestamp,
        base=statements[0].base,
        policy=statements[0].policy,
        stage=statements[0].stage,
        trees_by_path=trees_by_path,
        idle_paths=frozenset(removed - trees_by_path.keys()),
        is_edited=is_edited
        or bool(faults)
        or any(tip_trees[path].tree is not None for path in removed),
        faults=faults,
        has_joints=any(len(link.commit.parents) > 1 for link in chain),
    )
