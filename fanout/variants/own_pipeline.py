"""A package's own pipeline, run on its files as they stand: what `kpt fn render` makes of them.

Nothing is cloned, injected or written to the Kptfile. The verbs on plain directories render so, and
so it is told what a package that is taken over was before people changed it.
"""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.revision import Revision
from fanout.package.tree import Entry, blob_id
from fanout.values import replace
from fanout.variants.context import CONTEXT
from fanout.variants.functions.function import Result, mapping
from fanout.variants.model import Limits, UpstreamPackage
from fanout.variants.overlay import Overlay
from fanout.variants.prepare import prepare
from fanout.variants.prepared import PreparedPackage
from fanout.variants.questions import Answers
from fanout.variants.whole import Whole

_BREADTH_FIRST = "kpt.dev/bfs-rendering"
Files = Mapping[str, tuple[str, bytes]]


def own_pipeline(
    files: Files, limits: Limits, answers: Answers
) -> tuple[dict[str, tuple[str, bytes]], tuple[Result, ...]]:
    """The package after its pipeline, and what the functions had to say.

    Raises InvalidInput with file and line inside the package, and Unanswered where the world is to
    be asked something first.
    """
    _check(files)
    entries = {path: (Entry(mode, blob_id(data)), data) for path, (mode, data) in files.items()}
    nowhere = Revision(name="", commit="", when=0)
    prepared = _without_context(prepare(UpstreamPackage("", "", nowhere, "", entries), limits))
    whole = _run(prepared, answers)
    result, blobs = whole.write()
    known = {entry.oid: data for entry, data in entries.values()} | blobs
    after = {path: (entry.mode, known[entry.oid]) for path, entry in sorted(result.items())}
    return after, tuple(whole.results)


def _run(prepared: PreparedPackage, answers: Answers) -> Whole:
    overlays = {place: Overlay(place[0], part) for place, part in prepared.objects.items()}
    whole = Whole(prepared, {}, overlays, answers=answers, growth=prepared.growth())
    whole.run(prepared.functions)
    return whole


def _check(files: Files) -> None:
    if KPTFILE not in files:
        raise InvalidInput(
            "there is no Kptfile",
            reason=Reason.INVALID_PACKAGE,
            remedy="name the directory of a package, or make it one with `kpt pkg init`",
        )


def _without_context(prepared: PreparedPackage) -> PreparedPackage:
    """Without the package context that a variant would get, if the package has none."""
    _refuse_breadth_first(prepared)
    if CONTEXT in prepared.entries:
        return prepared
    for function in prepared.functions:
        if function.config_file == CONTEXT:
            raise InvalidInput(
                f"{function.function.name}: there is no {CONTEXT}",
                reason=Reason.RENDER_FAILED,
                remedy="add the file, or correct configPath",
                where=function.where,
            )
    return replace(
        prepared,
        manifests={path: it for path, it in prepared.manifests.items() if path != CONTEXT},
        objects={place: it for place, it in prepared.objects.items() if place[0] != CONTEXT},
        local=frozenset(place for place in prepared.local if place[0] != CONTEXT),
    )


def _refuse_breadth_first(prepared: PreparedPackage) -> None:
    document = prepared.manifests[KPTFILE].documents[0]
    metadata = mapping(mapping(document.value).get("metadata"))
    subpackages = any(path.endswith(f"/{KPTFILE}") for path in prepared.manifests)
    if mapping(metadata.get("annotations")).get(_BREADTH_FIRST) == "true" and subpackages:
        path = ("metadata", "annotations", _BREADTH_FIRST)
        raise InvalidInput(
            "the package around a subpackage cannot be rendered before it",
            reason=Reason.RENDER_FAILED,
            remedy="take the annotation away; subpackages are rendered first",
            where=Where(KPTFILE, ".".join(path), KPTFILE, document.line_of(path)),
        )
