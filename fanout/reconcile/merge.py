"""Reads what people changed and merges it into the renderings that are due."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import field

from fanout.errors import InvalidInput, Unavailable
from fanout.package.limits import in_package, sizes_of
from fanout.plan.cases import Case
from fanout.plan.cloned import change_since_cloned
from fanout.plan.disputes import chosen_winners, read
from fanout.plan.merging import Change, Edits, Files, merge
from fanout.plan.observation import OpenDraft, RepositoryView
from fanout.plan.trailers import NONE
from fanout.ports import GitStore, Reader
from fanout.reconcile.answers import Answering
from fanout.reconcile.contents import Contents
from fanout.telemetry.counters import Counters
from fanout.values import frozen, replace
from fanout.variants.model import Limits


@frozen
class Merger:
    """Puts people's edits into renderings."""

    git: GitStore
    counters: Counters
    limits: Limits
    answers: Answering
    contents: Contents

    def merged(self, case: Case) -> Case:
        """A rendered case with people's edits in it.

        Raises InvalidInput, with file and line, for what cannot be merged, Unanswered where the
        pipeline of a package that is taken over asks for something first, and what Git raises.
        """
        self.counters.add("merges")
        with self._work(case) as work:
            edits = work.edits()
        merged = merge(_rendering(case), edits, case.choices)
        self.limits.check_sizes(sizes_of(merged.files))
        return replace(case, merged=merged)

    def drafted(self, case: Case) -> Change | None:
        """What fanout wrote on the variant's open draft, and what people made of it.

        None where there is no draft. Raises as `merged` does.
        """
        if case.draft is None or case.draft.tree is None:
            return None
        with self._work(case) as work:
            return work.drafted(case.view, case.spec.path, case.draft, case.draft.tree)

    def taken_over(self, case: Case, local: Files) -> Change | None:
        """What people changed in a package that is taken over, as far as its origin is known."""
        if case.origin is None:
            return None
        with self.git.reader(case.origin.upstream) as reader:
            origin = self.contents.files(reader, case.origin.tree)
        return change_since_cloned(origin, local, self.limits, self.answers.known)

    @contextmanager
    def _work(self, case: Case) -> Iterator["_Work"]:
        """The work on one case; what is opened for it is closed behind it."""
        with ExitStack() as stack:
            yield _Work(case, self, stack)


def _rendering(case: Case) -> Files:
    assert case.rendered is not None, "what is merged is rendered"
    assert case.package is not None, "and comes from somewhere"
    content = {entry.oid: data for entry, data in case.package.upstream.files.values()}
    content |= case.rendered.blobs
    entries = case.rendered.entries.items()
    return {path: (entry.mode, content[entry.oid]) for path, entry in entries}


@frozen
class _Work:
    """Finds what fanout wrote and what people made of it: on the branch and in drafts."""

    case: Case
    merger: Merger
    stack: ExitStack
    readers: dict[str, Reader] = field(default_factory=dict)  # by URL: those that were needed

    def edits(self) -> Edits:
        case = self.case
        drafts = [(case.view, case.spec.path, case.draft)] if case.draft is not None else []
        drafts += [(stray.view, stray.path, stray.draft) for stray in case.strays]
        return Edits(
            self._published(case.own.tree),
            tuple(
                self.drafted(view, path, draft, draft.tree)
                for view, path, draft in drafts
                if draft.carries and draft.tree is not None
            ),
        )

    def drafted(self, view: RepositoryView, path: str, draft: OpenDraft, tree: str) -> Change:
        """What fanout wrote on a draft, and the tree that became of it."""
        return self._as_written(view, path, draft), self._files(view, tree)

    def _published(self, tree: str | None) -> Change | None:
        """What people made of the package that is published, where it stands as this tree."""
        case, home = self.case, self.case.home.view
        if tree is None or not self._has(home, tree):
            return None
        if case.foreign:
            return self.merger.taken_over(case, self._files(home, tree))
        if case.pristine is None or case.pristine == tree:
            return None
        return self._files(home, case.pristine), self._files(home, tree)

    def _as_written(self, view: RepositoryView, path: str, draft: OpenDraft) -> Files:
        """The draft as fanout would have written it, had nobody committed to it.

        It is on the branch of drafts only where no earlier draft's commits went into it. Otherwise
        it is merged again from what it was merged from, with the same winners. Where a commit was
        amended away, the pristine rendering has to do.
        """
        said = draft.trailers
        pristine = said.rendered or view.drafted.get(path, "")
        if not said.takes and self._has(view, said.tree):
            return self._files(view, said.tree)
        if not pristine or not self._has(view, pristine):
            raise Unavailable(
                "what fanout wrote on the draft's branch is in no commit any more",
                reason="BaseMissing",
                remedy="remove the branch; the next pass writes the draft anew",
            )
        rendering = self._files(view, pristine)
        if not said.takes:
            return rendering
        published = self._published(said.onto if said.onto != NONE else None)
        return merge(rendering, Edits(published), chosen_winners(read(said.conflicts))).files

    def _reader(self, view: RepositoryView) -> Reader:
        url = view.remote.url
        if url not in self.readers:
            self.readers[url] = self.stack.enter_context(self.merger.git.reader(view.remote))
        return self.readers[url]

    def _has(self, view: RepositoryView, tree: str) -> bool:
        return self.merger.contents.known(tree) is not None or self._reader(view).has(tree)

    def _files(self, view: RepositoryView, tree: str) -> Files:
        known = self.merger.contents.known(tree)
        if known is not None:
            return known
        try:
            return self.merger.contents.files(self._reader(view), tree)
        except InvalidInput as error:
            home, spec = self.case.home, self.case.spec
            place = (
                (home.repository, home.path) if view is home.view else (spec.repository, spec.path)
            )
            raise in_package(error, ":".join(place)) from error
