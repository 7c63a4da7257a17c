"""Reads what people made of published packages: edited, broken, or taken back.

Only a package whose tree is another than the published one is read, and once for each state of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from fanout.errors import FanoutError, InvalidInput
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.limits import in_package
from fanout.plan.adoption import Lock, read_lock
from fanout.plan.cases import Case
from fanout.plan.merging import Files
from fanout.plan.reverted import Reverted, differs, revision_of
from fanout.plan.soundness import new_faults
from fanout.ports import Reader
from fanout.reconcile.contents import Contents
from fanout.reconcile.reading import Reading
from fanout.selection.naming import tag_ref
from fanout.values import frozen, replace

_DEPTH = 10_000  # of commits on the branch of renderings

_Key = tuple[str | None, ...]
_Found = tuple[Reverted | None, tuple[InvalidInput, ...]]


@dataclass(slots=True)
class ByHand:
    """What was found of each place, kept as long as nothing changes there; one per process."""

    contents: Contents
    _known: dict[tuple[str, str], tuple[_Key, _Found]] = field(default_factory=dict)

    def looked_at(self, case: Case, reading: Reading) -> Case:
        """The case with what people made of its published package. Raises what `reading` does."""
        published, home = case.published, case.home
        tree = home.state.tree
        if (
            published is None
            or case.unrecorded
            or case.line.place != (home.view.key, home.path)
            or home.view.failure is not None
            or tree in (None, published.tree)
        ):
            return case
        place, key = (home.view.key, home.path), (tree, published.tree, home.view.vendor)
        known = self._known.get(place)
        if known is None or known[0] != key:
            found = _Looking(case, reading(home.view.remote), self.contents).found()
            known = self._known[place] = key, found
        reverted, faults = known[1]
        return replace(case, reverted=reverted, faults=() if reverted else faults)


@lru_cache(maxsize=16)  # renderings of one place are read one after the other
def _lock(kptfile: bytes | None) -> Lock | None:
    """The state of upstream that a package says it is, if it says so."""
    try:
        return read_lock(kptfile, KPTFILE)
    except FanoutError:
        return None


@frozen
class _Looking:
    """One package that is not as it was published."""

    case: Case
    reader: Reader
    contents: Contents

    def found(self) -> _Found:
        return self._reverted(), self._faults()

    def _reverted(self) -> Reverted | None:
        case = self.case
        assert case.published is not None, "asked of what is published"
        assert case.own.tree is not None, "and still there"
        tag = self._earlier()
        kptfiles = [self._kptfile(tree) for tree in (case.own.tree, case.published.tree)]
        if kptfiles[0] and kptfiles[0] == kptfiles[1] and not tag:
            return None  # it says what was published
        lock, was = map(_lock, kptfiles)
        if lock is not None and was is not None and not lock.is_of(was.repo, was.directory):
            return Reverted(f"is a clone of {lock.directory} in {lock.repo}", elsewhere=True)
        if lock is not None and (differs(lock, was) if was else self._other_commit(lock)):
            shown = revision_of(lock, case.spec.upstream_package)
            return Reverted(f"shows {shown} by its Kptfile", self._pristine(lock))
        if tag and lock is not None:
            return Reverted(f"is as tag {tag} has it", self._pristine(lock))
        return None

    def _other_commit(self, lock: Lock) -> bool:
        published = self.case.published
        return published is not None and lock.commit != published.commit

    def _kptfile(self, tree: str) -> bytes | None:
        """The Kptfile in a tree of the package, if it can be read."""
        if not self.reader.has(tree):
            return None
        try:
            entry = self.reader.entry(tree, KPTFILE)
            return self.contents.blob(self.reader, entry.oid) if entry else None
        except FanoutError:
            return None

    def _earlier(self) -> str:
        """The tag of an earlier publication that is just what stands there."""
        home = self.case.home
        present = self.case.published.merge if self.case.published else ""  # has another tree
        for number in range(home.view.tags.get(home.path, 0), 0, -1):
            tag = tag_ref(home.path, number)
            commit = home.view.refs.get(tag, "")
            if commit and commit != present and self.reader.has(commit):
                state = self.reader.paths(commit, [home.path])[home.path]
                if state.tree == home.state.tree:
                    return tag.removeprefix("refs/tags/")
        return ""

    def _pristine(self, lock: Lock) -> str | None:
        """The newest rendering of the same state of upstream that was published before."""
        seen: dict[str, bool] = {}
        for tree in self._renderings():
            if tree not in seen:
                found = _lock(self._kptfile(tree))
                seen[tree] = found is not None and not differs(found, lock)
                if seen[tree]:
                    return tree
        return None

    def _renderings(self) -> Iterator[str]:
        """What the branch of renderings had at the path, the newest first; not the present one."""
        home = self.case.home
        path = f"published/{home.path}"
        present = self.case.published.pristine if self.case.published else ""
        commit = home.view.vendor
        for _ in range(_DEPTH):
            if not commit or not self.reader.has(commit):
                return
            tree = self.reader.paths(commit, [path])[path].tree
            if tree is not None and tree not in (present, home.pristine):
                yield tree
            parents = self.reader.commit(commit).parents
            commit = parents[0] if parents else ""

    def _faults(self) -> tuple[InvalidInput, ...]:
        """What people's edits have broken in the package."""
        case = self.case
        assert case.published is not None, "asked of what is published"
        assert case.own.tree is not None, "and still there"
        before = dict.fromkeys((case.published.tree, case.pristine))
        try:
            known = [self._files(tree) for tree in before if tree and self.reader.has(tree)]
            return new_faults(self._files(case.own.tree), known, case.home.path)
        except InvalidInput as error:
            return (in_package(error, case.home.path),)

    def _files(self, tree: str) -> Files:
        return self.contents.files(self.reader, tree)
