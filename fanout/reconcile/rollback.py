"""Variants that go back: each gets the package that it last had of a revision, as a new draft.

Nothing is rendered for them: neither another input nor another upstream package is looked at until
the pin goes. (Design §6, "Order and change".)
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from fanout.errors import FanoutError, InvalidInput
from fanout.gates.facts import Hold
from fanout.gates.pins import Pin
from fanout.package.limits import in_package
from fanout.plan.cases import Case
from fanout.plan.earlier import Earlier, moved_away, never_published, put_aside, without_base
from fanout.plan.merging import Files, Merged
from fanout.plan.trailers import Trailers
from fanout.ports import GitStore, Reader
from fanout.reconcile.history import History, number_of
from fanout.selection.naming import tag_ref
from fanout.values import replace
from fanout.variants.model import Inputs, Rendered

_Key = tuple[str, ...]


@dataclass(slots=True)
class Rollback:
    """Finds what variants go back to; what it found is kept until they are published again."""

    git: GitStore
    _known: dict[tuple[str, str, str], tuple[_Key, Earlier | None]] = field(default_factory=dict)

    def chosen(self, cases: Iterable[Case], pins: Mapping[str, Pin]) -> dict[str, Case]:
        """The cases that go back, by variant, at the revision of their pin."""
        with ExitStack() as stack:
            readers = _Readers(self.git, stack)
            return {
                case.spec.name: self._at(case, pins[case.spec.name], readers)
                for case in cases
                if case.spec.name in pins
            }

    def rendered(self, case: Case) -> Case:
        """The case with the package that it goes back to. Raises what Git raises."""
        earlier = case.earlier
        assert earlier is not None, "the caller has looked"
        with self.git.reader(case.view.remote) as reader:
            try:
                pristine, _ = _read(reader, earlier.pristine)
                content, files = _read(reader, earlier.tree)
            except InvalidInput as error:
                raise in_package(error, f"{case.spec.repository}:{case.spec.path}") from error
        case = replace(case, rendered=pristine)
        return case if content == pristine else replace(case, merged=Merged(content, files))

    def _at(self, case: Case, pin: Pin, readers: "_Readers") -> Case:
        case = replace(
            case,
            revision=pin.revision,
            returns=True,
            package=None,
            inputs=None,
            rendered=None,
            merged=None,
            failure=None,
        )
        try:
            earlier = self._earlier(case, pin.revision, readers)
        except FanoutError as error:
            return replace(case, failure=error)
        inputs = Inputs(earlier.digest) if earlier is not None else None
        case = replace(case, earlier=earlier, inputs=inputs)
        if case.in_force or case.standing:
            return case
        return replace(case, barred=_barred(case, pin))

    def _earlier(self, case: Case, revision: str, readers: "_Readers") -> Earlier | None:
        known = case.published
        if known is not None and known.revision == revision:
            pristine = known.pristine or case.pristine or ""
            return Earlier(revision, known.commit, known.digest, known.tree, pristine)
        if case.view.failure is not None:
            return None
        path = case.spec.path
        number = case.view.tags.get(path, 0)
        about = (case.view.key, path, case.spec.name)
        key = (revision, case.view.refs.get(tag_ref(path, number), ""), case.own.tree or "")
        before, found = self._known.get(about, ((), None))
        if before != key or (found is not None and not found.pristine):  # it may be put back
            found = readers.history(case).last(revision)
            self._known[about] = key, found
        return found


def published_before(git: GitStore, cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """The revision of each publication of each variant, the newest first; raises what Git raises.

    Nothing of a variant whose repository cannot be reached.
    """
    with ExitStack() as stack:
        readers = _Readers(git, stack)
        return {
            case.spec.name: readers.history(case).revisions()
            for case in cases
            if case.view.failure is None
        }


@dataclass(slots=True)
class _Readers:
    """One reader per repository, opened when it is needed."""

    git: GitStore
    stack: ExitStack
    _open: dict[str, tuple[Reader, dict[str, Trailers | None]]] = field(default_factory=dict)

    def history(self, case: Case) -> History:
        """What was published of the case's variant."""
        url = case.view.remote.url
        if url not in self._open:
            self._open[url] = self.stack.enter_context(self.git.reader(case.view.remote)), {}
        reader, drafts = self._open[url]
        tag = case.published.tag if case.published is not None else ""
        return History(reader, case.view, case.spec, drafts, number_of(tag, case.spec.path))


def _barred(case: Case, pin: Pin) -> Hold | None:
    """What keeps a variant from going back."""
    spec = case.spec
    if case.moves:
        return moved_away(spec, f"{case.home.path} in {case.home.repository}", pin)
    if case.earlier is None:
        return never_published(spec, pin)
    drafts = [case.draft] if case.draft is not None else []
    drafts += [stray.draft for stray in case.strays]
    merged = case.state.tree if case.unrecorded else None
    carrying = next((it for it in drafts if it.carries and it.tree != merged), None)
    if carrying is not None:
        return put_aside(spec, carrying, pin)
    return without_base(spec, pin) if not case.earlier.pristine else None


def _read(reader: Reader, tree: str) -> tuple[Rendered, Files]:
    found = reader.files(tree)
    entries = {path: entry for path, (entry, _) in found.items()}
    blobs = {entry.oid: data for entry, data in found.values()}
    files = {path: (entry.mode, data) for path, (entry, data) in found.items()}
    return Rendered(tree, entries, blobs), files
