"""Finds the one variant that a verb is about, and its files on each side."""

from fanout.cli.naming import names_of
from fanout.cli.start import Program
from fanout.errors import InvalidInput
from fanout.package.merge.conflicts import Conflict
from fanout.package.tree import Entry
from fanout.plan.cases import Case
from fanout.reconcile.merge import Merger
from fanout.reconcile.passes import Mode
from fanout.variants.render import render


@dataclass(frozen=True, slots=True)
class Sides:
    """A variant's files by path: upstream's, as rendered, in its draft, as published."""

    upstream: Mapping[str, bytes]
    rendered: Mapping[str, bytes]
    draft: Mapping[str, bytes]
    published: Mapping[str, bytes]
    conflicts: tuple[Conflict, ...] = ()


def find_case(program: Program, called: str) -> Case:
    """The variant of this name, target or place (`repository:path`). Raises InvalidInput."""
    observed = program.observe(Mode(namespace=program.settings.namespace))
    found = [
        (item, case)
        for item in observed.policies
        for case in item.cases
        if called in names_of(case)
    ]
    if len(found) == 1:
        item, case = found[0]
        if item.problem is not None:
            raise item.problem
        return case
    raise InvalidInput(
        f"there is no variant {called}" if not found else f"{called} is not one variant alone",
        reason="NotFound",
        remedy="see `fanout get variants`",
    )


def sides(program: Program, case: Case) -> Sides:
    """Read and render all sides; a side that is not there is empty."""
    if case.failure is not None:
        raise case.failure
    if case.package is None or case.inputs is None:
        raise InvalidInput(
            f"{case.spec.name} has no candidate: its stage is {case.spec.stage or 'not given'}",
            reason="NoRevision",
            remedy="see `fanout explain`",
        )
    case = _rendered(program, case)
    assert case.package is not None, "it has been rendered"
    rendered = case.content
    assert rendered is not None, "it has been rendered"
    upstream = {path: data for path, (_, data) in case.package.upstream.files.items()}
    known = {entry.oid: data for entry, data in case.package.upstream.files.values()}
    known |= rendered.blobs
    drafted = case.draft.tree if case.draft else None
    return Sides(
        upstream=upstream,
        rendered={path: known[entry.oid] for path, entry in rendered.entries.items()},
        draft=_files(program, case, drafted),
        published=_files(program, case, case.state.tree),
        conflicts=case.merged.conflicts if case.merged else (),
    )


def _rendered(program: Program, case: Case) -> Case:
    """The case with its rendering, and in it what people changed."""
    if case.rendered is not None:
        return case
    assert case.package is not None, "the caller has looked"
    assert case.inputs is not None, "the caller has looked"
    package, spec, inputs = case.package, case.spec, case.inputs
    answers = program.reconciler.answers
    rendered = answers.through(lambda known: render(package, spec, inputs, known))
    case = replace(case, rendered=rendered)
    return Merger(program.world.git, program.world.counters).merged(case) if case.merges else case


def _files(program: Program, case: Case, tree: str | None) -> Mapping[str, bytes]:
    if tree is None:
        return {}
    with program.world.git.reader(case.view.remote) as reader:
        entries: Mapping[str, Entry] = reader.entries(tree)
        return {path: reader.blob(entry.oid) for path, entry in entries.items()}
