"""All that is wrong with a package, found in one go: what `fanout package validate` tells."""

from collections.abc import Iterator, Mapping

from fanout.api.reasons import Reason
from fanout.api.texts import shown
from fanout.cli.pipelines import rendered
from fanout.cli.workshop import Workshop
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, Path, get, show
from fanout.package.invalid import InvalidManifest
from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.kptfile import kptfile_of
from fanout.package.kptfile_rules import functions_of, kptfile_faults
from fanout.package.manifests import Document, Manifest
from fanout.package.merge.documents import is_manifest
from fanout.package.merge.packages import Files
from fanout.values import frozen, replace
from fanout.variants.duplicates import duplicates
from fanout.variants.functions.function import Result
from fanout.variants.parts import parts_of
from fanout.variants.pipeline import read_pipelines
from fanout.variants.points import Point, find_points
from fanout.variants.questions import Programs
from fanout.variants.results import errors_of

_Manifests = Mapping[str, Manifest]
_Faults = Iterator[InvalidInput]
_NAME: Path = ("metadata", "name")
_WORDS: tuple[Path, ...] = (("apiVersion",), ("kind",), _NAME, ("metadata", "namespace"))


@frozen
class Faults:
    """What is wrong with a package, and what its functions only warn of."""

    faults: list[InvalidInput]
    warnings: tuple[Result, ...] = ()


def faults_of(files: Files, tools: Workshop) -> Faults:
    """Every fault, with file and line inside the package, by place.

    A package in which nothing else is wrong is rendered too, in memory, for what shows only then.
    """
    warnings: tuple[Result, ...] = ()
    manifests: dict[str, Manifest] = {}
    faults: list[InvalidInput] = []
    for path, (_, data) in files.items():
        if is_manifest(path):
            try:
                manifests[path] = Manifest.parse(data, path)
            except InvalidManifest as error:
                faults += error.problems
    if KPTFILE not in files:
        faults.append(_refused("there is no Kptfile", "add one, as `kpt pkg init` does"))
    faults += _kptfiles(manifests, tools)
    for find in (_names, duplicates, _points):
        faults += find(manifests)
    if not faults:
        try:
            _, results = rendered(files, tools)
        except InvalidInput as error:
            faults.append(error)
        else:
            faults += map(_told, errors_of(results))
            warnings = tuple(result for result in results if result.severity == "warning")
    return Faults(sorted(faults, key=lambda it: (it.where.file, it.where.line)), warnings)


def _told(result: Result) -> InvalidInput:
    """An error that a function has found."""
    where = Where(result.object, result.field, result.file, result.line)
    return _refused(f"{result.message} ({result.function})", "correct the package", where)


def _kptfiles(manifests: _Manifests, tools: Workshop) -> _Faults:
    others = {path: manifest for path, manifest in manifests.items() if not _is_kptfile(path)}
    for path, manifest in manifests.items():
        if not _is_kptfile(path):
            continue
        try:
            document = kptfile_of(manifest)
        except InvalidInput as error:
            yield error
            continue
        faults = kptfile_faults(document)
        yield from faults
        wrong = {fault.where.field for fault in faults}
        for entry_path, entry in functions_of(document.value):
            section, index = entry_path[1:]
            field = f"pipeline.{section}[{index}]"
            if not any(name == field or name.startswith(f"{field}.") for name in wrong):
                where = Where(KPTFILE, field, path, document.line_of(entry_path))
                alone = _alone(document, {"pipeline": {section: [entry]}})
                yield from _caught(tools.programs, {**others, path: alone}, where)


def _is_kptfile(path: str) -> bool:
    return path.rpartition("/")[2] == KPTFILE


def _caught(programs: Programs, manifests: _Manifests, where: Where) -> _Faults:
    """Is there such a function, and is what it is configured by right? A file that it reads may
    still be changed by the functions before it, so that is left to the rendering."""
    try:
        for function in read_pipelines(manifests, programs):
            if function.config is not None:
                function.step(lambda _: {})
    except InvalidInput as error:
        yield InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=where)


def _alone(document: Document, value: object) -> Manifest:
    """The document as the only one of its file, with another value."""
    return Manifest(b"", "", document.file, [replace(document, value=value)])


def _points(manifests: _Manifests) -> _Faults:
    """Marks that are no injection points, and points that could not be told apart."""
    known: dict[str, Point] = {}
    for path, manifest in manifests.items():
        for number, part in parts_of(manifest).items():
            try:
                points = find_points([(path, number, part)])
            except InvalidInput as error:
                yield error
                continue
            for point in points:
                other = known.setdefault(point.key, point)
                if other is not point:
                    yield _refused(
                        f"there is an injection point {point.key} at {other.file}:{other.line} too",
                        "rename one of the two objects",
                        Where(f"{point.kind}/{point.name}", "", path, point.line),
                    )


def _names(manifests: _Manifests) -> _Faults:
    """Names that YAML takes for a number or a boolean: no such object has an identity."""
    for path, manifest in manifests.items():
        for part in () if _is_kptfile(path) else parts_of(manifest).values():
            words = [get(part.value, word) for word in _WORDS]
            if MISSING in (words[1], words[2] if words[0] is MISSING else words[0]):
                continue  # values of a tool, or the like
            for word, value in zip(_WORDS, words, strict=True):
                if value is MISSING or value is None or isinstance(value, str):
                    continue
                where = Where(str(words[1]), show(word), path, part.line_of(word))
                yield _refused(f"{shown(value)} is no text", "put it in quotes", where)


def _refused(problem: str, remedy: str, where: Where | None = None) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.INVALID_PACKAGE, remedy=remedy, where=where)
