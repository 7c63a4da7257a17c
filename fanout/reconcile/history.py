"""What was published of a variant before: its downstream repository remembers all of it.

Every publication has a tag, and the draft that it merged says in its trailers what it was. Where a
person merged it in another way, as by squashing, the package's Kptfile and the branch of renderings
have to tell.
"""

from collections.abc import Iterator
from hashlib import sha256

from fanout.errors import FanoutError
from fanout.package.kptfile import NAME as KPTFILE
from fanout.plan.adoption import Lock, read_lock
from fanout.plan.earlier import Earlier
from fanout.plan.observation import NOTHING, RepositoryView
from fanout.plan.reverted import differs, revision_of
from fanout.plan.trailers import NONE, Trailers, read_trailers
from fanout.ports import Reader
from fanout.selection.model import VariantSpec
from fanout.selection.naming import tag_ref
from fanout.values import frozen

_DEPTH = 64  # of a person's commits on top of a draft
_RENDERINGS = 10_000  # commits on the branch of renderings
_COMMITS = 10_000  # of the branch
_DIGITS = 40  # of a digest


def number_of(tag: str, path: str) -> int:
    """The number in a publication's tag, without `refs/tags/`; 0 for one of another path."""
    number = tag.removeprefix(f"{path}/v")
    return int(number) if number != tag and number.isdecimal() else 0


def lock_in(reader: Reader, tree: str) -> Lock | None:
    """The state of upstream that a tree of a package says it is, if it says so."""
    if not reader.has(tree):
        return None
    try:
        entry = reader.entry(tree, KPTFILE)
        return read_lock(reader.blob(entry.oid), KPTFILE) if entry is not None else None
    except FanoutError:
        return None


def renderings(reader: Reader, vendor: str, path: str) -> Iterator[str]:
    """What the branch of renderings had as published at the path, the newest first."""
    commit, before = vendor, ""
    for _ in range(_RENDERINGS):
        if not commit or not reader.has(commit):
            return
        tree = reader.paths(commit, [f"published/{path}"])[f"published/{path}"].tree
        if tree is not None and tree != before:
            yield tree
            before = tree
        parents = reader.commit(commit).parents
        commit = parents[0] if parents else ""


@frozen
class History:
    """The publications of one variant at its path."""

    reader: Reader
    view: RepositoryView
    spec: VariantSpec
    drafts: dict[str, Trailers | None]  # what is known of drafts by their tips: many share a merge
    number: int = 0  # of the newest publication on record

    def revisions(self) -> tuple[str, ...]:
        """The revision of each publication that is on the branch, the newest first."""
        publications = self._merged() if self._lacks_tags else self._publications()
        return tuple(found.revision for found, _, _ in publications)

    def newest(self) -> tuple[str, str, Earlier] | None:
        """The last publication by its tag: the tag, its commit, and what the draft said it was.

        None where no draft says so; a person may have merged it in another way.
        """
        present = self.view.paths.get(self.spec.path, NOTHING).tree
        for number in range(self.view.tags.get(self.spec.path, 0), 0, -1):
            commit, said, found = self._tagged(number)
            if not commit or not (self._tree(commit) == present or self._on_branch(commit)):
                continue
            if said is None or found is None:
                return None
            return tag_ref(self.spec.path, number), commit, found
        return None

    def _tree(self, commit: str) -> str | None:
        return self.reader.paths(commit, [self.spec.path])[self.spec.path].tree

    def _on_branch(self, commit: str) -> bool:
        """A tag alone is no publication: a server that dies in a push leaves some refs behind."""
        return self.reader.contains(self.view.head, commit)

    def last(self, revision: str) -> Earlier | None:
        """The last publication of a revision, as it was when it was last in force.

        What people changed in it before the next one came is in it.
        """
        for found, end, onto in self._publications():
            if found.revision == revision:
                return self._as_last_in_force(found, end, onto)
        for found, end, onto in self._merged() if self._lacks_tags else ():
            if found.revision == revision:
                return self._as_last_in_force(found, end, onto)
        return None

    @property
    def _lacks_tags(self) -> bool:
        """Whether tags of publications are gone, or two of them point to one commit.

        Numbers are given without gaps. Only then the branch is walked, which takes a look at each
        of its commits.
        """
        known = self.view.tags.get(self.spec.path, 0)
        newest = max(known, self.number, int(self.spec.path in self.view.published))
        numbers = range(1, known + 1)
        commits = {self.view.refs.get(tag_ref(self.spec.path, number), "") for number in numbers}
        return len(commits - {""}) < newest

    def _merged(self) -> Iterator[tuple[Earlier, str, str]]:
        """As `_publications`, by the commits of the branch that merged a draft of the variant."""
        commit = end = self.view.head
        onto = ""
        for _ in range(_COMMITS):
            if not commit or not self.reader.has(commit):
                return
            parents = self.reader.commit(commit).parents
            before = parents[0] if parents else ""
            tree = self._tree(commit)
            said = None
            if tree is not None and not (before and self._tree(before) == tree):
                said = self._trailers(commit)
            if said is not None and tree is not None:
                found = self._published(tree, said)
                if found is not None:
                    yield found, end, onto
                end, onto = before, said.onto
            commit = before

    def _publications(self) -> Iterator[tuple[Earlier, str, str]]:
        """Each with the last commit that had it, and the tree that the next one replaced."""
        end, onto = self.view.head, ""
        for number in range(self.view.tags.get(self.spec.path, 0), 0, -1):
            commit, said, found = self._tagged(number)
            if not commit:
                continue
            if found is not None:
                yield found, end, onto
            parents = self.reader.commit(commit).parents
            end, onto = parents[0] if parents else "", said.onto if said is not None else ""

    def _tagged(self, number: int) -> tuple[str, Trailers | None, Earlier | None]:
        """The commit with this number's tag, "" where there is none, and what it published."""
        path = self.spec.path
        commit = self.view.refs.get(tag_ref(path, number), "")
        if not commit or not self.reader.has(commit):
            return "", None, None
        said, tree = self._trailers(commit), self.reader.paths(commit, [path])[path].tree
        return commit, said, self._published(tree, said) if tree is not None else None

    def _published(self, tree: str, said: Trailers | None) -> Earlier | None:
        if said is not None:
            pristine = said.rendered if said.rendered and self.reader.has(said.rendered) else ""
            if not pristine:
                lock = lock_in(self.reader, tree)
                pristine = self._rendering(lock) if lock is not None else ""
            return Earlier(said.revision, said.commit, said.digest, tree, pristine)
        lock = lock_in(self.reader, tree)
        pristine = self._rendering(lock) if lock is not None else ""
        if lock is None or not pristine:
            return None  # not one of fanout's
        # what it was made of is not written down anywhere: no other inputs have this digest
        digest = sha256(f"published {pristine}".encode()).hexdigest()[:_DIGITS]
        return Earlier(revision_of(lock, lock.directory), lock.commit, digest, tree, pristine)

    def _as_last_in_force(self, found: Earlier, end: str, onto: str) -> Earlier:
        """With the tree that stood there last, as far as it is still of the same revision."""
        path = self.spec.path
        there = self.reader.paths(end, [path])[path].tree if self.reader.has(end) else None
        if there == found.tree:
            return found
        known = lock_in(self.reader, found.tree)
        for tree in (there, onto):
            if tree in (None, "", NONE):
                continue
            lock = lock_in(self.reader, tree)
            if known is not None and lock is not None and not differs(lock, known):
                return Earlier(found.revision, found.commit, found.digest, tree, found.pristine)
        return found

    def _trailers(self, commit: str) -> Trailers | None:
        """What the draft says that a commit published for the variant; None where none is known."""
        found = self.reader.commit(commit)
        own = read_trailers(found.message)  # a person moved the branch forward to the draft
        if own is not None and own.variant == self.spec.name:
            return own
        for parent in found.parents[1:]:
            said = self._drafted(parent)
            if said is not None and said.variant == self.spec.name:
                return said
        return None

    def _drafted(self, tip: str) -> Trailers | None:
        if tip not in self.drafts:
            self.drafts[tip] = self._read(tip)
        return self.drafts[tip]

    def _read(self, tip: str) -> Trailers | None:
        commit = tip
        for _ in range(_DEPTH):
            if not self.reader.has(commit):
                return None
            found = self.reader.commit(commit)
            said = read_trailers(found.message)
            if said is not None or not found.parents:
                return said
            commit = found.parents[0]
        return None

    def _rendering(self, lock: Lock) -> str:
        """The newest rendering of the same state of upstream that was published there."""
        for tree in renderings(self.reader, self.view.vendor, self.spec.path):
            found = lock_in(self.reader, tree)
            same = found is not None and found.is_of(lock.repo, lock.directory)
            if found is not None and same and not differs(found, lock):
                return tree
        return ""
