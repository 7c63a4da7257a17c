"""Reads what people changed and merges it into the renderings that are due."""

from dataclasses import dataclass, replace

from fanout.errors import Unavailable
from fanout.plan.adoption import as_cloned
from fanout.plan.cases import Case
from fanout.plan.disputes import chosen_winners, read
from fanout.plan.merging import Change, Edits, Files, merge
from fanout.plan.observation import OpenDraft
from fanout.plan.trailers import NONE
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
        return replace(case, merged=merge(_rendering(case), edits, case.choices))

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
    published = _published(case, case.state.tree, reader, origin)
    draft = case.draft
    if draft is None or not draft.carries or draft.tree is None:
        return Edits(published)
    written = _as_written(case, draft, reader, origin)
    return Edits(published, ((written, _files(reader, draft.tree)),))


def _published(case: Case, tree: str | None, reader: Reader, origin: Files | None) -> Change | None:
    """What people made of the package that is published, where it stands as this tree."""
    if tree is None or not reader.has(tree):
        return None
    if case.foreign:
        local = _files(reader, tree)
        return (as_cloned(origin, local), local) if origin is not None else None
    if case.pristine in (None, tree):
        return None
    return _files(reader, case.pristine), _files(reader, tree)


def _as_written(case: Case, draft: OpenDraft, reader: Reader, origin: Files | None) -> Files:
    """The draft as fanout would have written it, had nobody committed to it.

    It is on the branch of drafts only where no earlier draft's commits went into it. Otherwise it
    is merged again from what it was merged from, with the same winners. Where a commit was amended
    away, the pristine rendering has to do.
    """
    said = draft.trailers
    pristine = said.rendered or case.view.drafted.get(case.spec.path, "")
    if not said.takes and reader.has(said.tree):
        return _files(reader, said.tree)
    if not pristine or not reader.has(pristine):
        raise Unavailable(
            "what fanout wrote on the draft's branch is in no commit any more",
            reason="BaseMissing",
            remedy="remove the branch; the next pass writes the draft anew",
        )
    rendering = _files(reader, pristine)
    if not said.takes:
        return rendering
    onto = said.onto if said.onto != NONE else None
    published = _published(case, onto, reader, origin)
    return merge(rendering, Edits(published), chosen_winners(read(said.conflicts))).files


def _files(reader: Reader, tree: str) -> Files:
    entries = reader.entries(tree)
    return {path: (entry.mode, reader.blob(entry.oid)) for path, entry in entries.items()}
