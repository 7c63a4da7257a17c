"""Drafts of one package each, as tests write them, and what of them a change has."""

from collections.abc import Iterable, Mapping
from typing import Any

from fanout.package.tree_ids import TreeEntry
from fanout.plan.observation.repository_state import BranchCommit, BranchUpdate, StoredTree
from fanout.values import Value


class PackageDraft(Value, kw_only=True):
    """One commit that replaces the package at `path` in its base."""

    ref: str
    base: str
    path: str
    entries: Mapping[str, TreeEntry]
    tree: str
    message: str
    timestamp: int
    more_parents: tuple[str, ...] = ()

    @property
    def branch(self) -> BranchUpdate:
        commit = BranchCommit(
            trees_by_path={self.path: self.tree},
            message=self.message,
            timestamp=self.timestamp,
            more_parents=self.more_parents,
        )
        return BranchUpdate(self.ref, self.base, (commit,))


def draft_fields(drafts: Iterable[PackageDraft]) -> dict[str, Any]:
    """The fields of a change that writes drafts."""
    listed = list(drafts)
    return {
        "trees": tuple(StoredTree(it.entries, it.tree) for it in listed),
        "branches": tuple(it.branch for it in listed),
    }
