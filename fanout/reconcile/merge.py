"""Reads what people changed and merges it into the renderings that are due."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fanout.errors import Unavailable
from fanout.plan.adoption import as_cloned
from fanout.plan.cases import Case
from fanout.plan.merging import Edits, Files, merge
from fanout.ports import GitStore, Reader
from fanout.telemetry.counters import Counters


@dataclass(frozen=True, slots=True)
class Merger:
    """Puts people's edits into renderings."""

    git: GitStore
    counters: Counters

    def merged(self, case: Case) -> Case:
        """A rendered case with people's edits in it.

        Raises InvalidInput, with file and line, for what cannot be merged, and what Git raises.
        """
        self.counters.add("merges")
        with self.git.reader(case.view.remote) as reader:
            edits = _edits(case, reader, self._origin(case))
        return replace(case, merged=merge(_rendering(case), edits))

    def _origin(self, case: Case) -> Files | None:
        """Upstream's files from which the package that is taken over was made."""
        if case.origin is None:
            return None
        with self.git.reader(case.origin.upstream) as reader:
            return _files(reader, case.origin.tree)


def _rendering(case: Case) -> Files:
    assert case.rendered is not None, "what is merged is rendered"
    assert case.package is not None, "and comes from somewhere"
    content = {entry.oid: data for entry, data in case.package.upstream.files.values()}
    content |= case.rendered.blobs
    entries = case.rendered.entries.items()
    return {path: (entry.mode, content[entry.oid]) for path, entry in entries}


def _edits(case: Case, reader: Reader, origin: Files | None) -> Edits:
    """What fanout wrote and what people made of it, on the branch and in the draft."""
    published = drafted = None
    if case.edited and case.state.tree is not None and case.pristine is not None:
        published = (_files(reader, case.pristine), _files(reader, case.state.tree))
    elif case.foreign and case.state.tree is not None and origin is not None:
        local = _files(reader, case.state.tree)
        published = (as_cloned(origin, local), local)
    draft = case.draft
    if draft is not None and draft.edited and draft.tree is not None:
        base = _base(reader, (draft.trailers.tree, case.view.drafted.get(case.spec.path, "")))
        drafted = (_files(reader, base), _files(reader, draft.tree))
    return Edits(published, drafted)


def _base(reader: Reader, trees: Sequence[str]) -> str:
    """The draft as fanout wrote it; where that commit was amended away, its pristine rendering."""
    for tree in trees:
        if tree and reader.has(tree):
            return tree
    raise Unavailable(
        "what fanout wrote on the draft's branch is in no commit any more",
        reason="BaseMissing",
        remedy="remove the branch; the next pass writes the draft anew",
    )


def _files(reader: Reader, tree: str) -> Files:
    entries = reader.entries(tree)
    return {path: (entry.mode, reader.blob(entry.oid)) for path, entry in entries.items()}
