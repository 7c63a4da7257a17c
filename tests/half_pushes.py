"""Worlds in which a push moved some of its refs and not others, as a server leaves them that died.

Git's file backend renames the lock of one ref after the other, also in an atomic push. A world is
made of three: as it was before a pass, as the pass leaves it, and as a pass leaves it whose
push was refused (its releases are on record). The refs of each subset are set by hand.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pygit2
from diagonal import choose, running_story
from fleet import Fleet, Repo

_FEW = 4  # refs of which every choice is tried

Ref = tuple[str, str]
"""Name of the repository, and full name of the ref."""


@dataclass(frozen=True)
class Push:
    """A pass that pushes, and the world on both sides of it."""

    fleet: Fleet
    before: Mapping[Ref, str]
    after: Mapping[Ref, str]
    undisturbed: Any  # what the world comes to when every push is whole
    now: datetime  # when it has come to that

    @property
    def moved(self) -> tuple[Ref, ...]:
        """The refs that the pass moved, in order."""
        both = self.before.keys() | self.after.keys()
        return tuple(sorted(ref for ref in both if self.before.get(ref) != self.after.get(ref)))

    def subsets(self) -> list[frozenset[Ref]]:
        """Choices of refs that moved: all there are in `make soak-story`, else a diagonal."""
        return choose(self._all_subsets(), running_story())

    def _all_subsets(self) -> Iterator[frozenset[Ref]]:
        """Every choice of refs that moved, none and all included.

        Of many refs only what a server can leave: drafts go after all others have moved.
        """
        deleted = [ref for ref in self.moved if ref not in self.after]
        if len(self.moved) <= _FEW or not deleted:
            yield from _choices(self.moved)
            return
        others = frozenset(self.moved) - frozenset(deleted)
        yield from _choices(sorted(others))
        yield from (others | drafts for drafts in _choices(deleted) if drafts)

    def half_done(self, moved: frozenset[Ref], *, recorded: bool) -> Fleet:
        """The world in which these refs moved and the others did not.

        `recorded`: the pass has put on record that it was done; else that it was to be.
        """
        self.fleet.now = self.now
        root = self.fleet.root
        shutil.rmtree(root)
        _copy(_kept(root, "done" if recorded else "refused"), root)
        shutil.rmtree(root / "git")
        _copy(_kept(root, "done") / "git", root / "git")
        for ref in self.moved:
            oid = (self.after if ref in moved else self.before).get(ref)
            name, full = ref
            references = pygit2.Repository(str(self.fleet.repos[name].path)).references
            if oid:
                references.create(full, oid, force=True)
            elif full in references:
                references.delete(full)
        return self.fleet


def pushed(
    fleet: Fleet,
    outcome: Callable[[Fleet], object],
    act: Callable[[Fleet], object] = Fleet.sweep,
) -> Push:
    """Return the pushes of a command line, by default the fleet's next sweep."""
    root = fleet.root
    before = refs(fleet)
    _copy(root, _kept(root, "before"))
    for repo in fleet.repos.values():
        repo.hook("pre-receive", "exit 1")
    act(fleet)
    assert refs(fleet) == before
    for repo in fleet.repos.values():
        (repo.path / "hooks" / "pre-receive").unlink()
    root.rename(_kept(root, "refused"))
    _copy(_kept(root, "before"), root)
    act(fleet)
    after = refs(fleet)
    _copy(root, _kept(root, "done"))
    undisturbed = outcome(fleet)
    return Push(fleet, before, after, undisturbed, fleet.now)


def refs(fleet: Fleet) -> dict[Ref, str]:
    """Every ref of every repository."""
    return {
        (name, ref): oid for name, repo in fleet.repos.items() for ref, oid in repo.refs().items()
    }


def tree(repo: Repo, ref: str) -> str:
    """The id of what a commit holds."""
    return repo.object_id(f"{ref}^{{tree}}")


def _choices(moved: Sequence[Ref]) -> Iterator[frozenset[Ref]]:
    for count in range(len(moved) + 1):
        yield from map(frozenset, combinations(moved, count))


def _copy(source: Path, target: Path) -> None:
    """A copy that shares Git's objects, which nobody writes to."""

    def copy(file: str, to: str) -> object:
        if "/objects/" not in file:
            return shutil.copy2(file, to)
        os.link(file, to)
        return to

    shutil.copytree(source, target, symlinks=True, copy_function=copy)


def _kept(root: Path, name: str) -> Path:
    return root.with_name(f"{root.name}-{name}")
