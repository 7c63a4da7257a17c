"""The language of KRM functions: a ResourceList in, a ResourceList out (porch.md §8.3)."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from fanout.api.paths import path_inside
from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.package.invalid import InvalidManifest
from fanout.package.manifests import Manifest
from fanout.variants.functions.function import ERROR, Object, Result, mapping
from fanout.variants.questions import Answer, Broken, Listed, Ran

_VERSION, _KIND = "config.kubernetes.io/v1", "ResourceList"
_NEW, _OLD = "internal.config.kubernetes.io/", "config.kubernetes.io/"
_PLACES = ("path", "index")
_SEVERITIES = ("error", "warning", "info")
_LONGEST = 500  # characters of a program's own words
Place = tuple[str, int]  # file, and index of the object in it


class Returned(NamedTuple):
    """An object that a program has returned, without the annotations that say where it was."""

    value: dict[str, Any]
    file: str  # "": the program does not say
    number: int | None  # its index in the file


class Said(NamedTuple):
    """A result as a program has written it, and the place it is about."""

    result: Result
    place: Place | None
    reference: tuple[str, str, str]  # kind, namespace, name


class Output(NamedTuple):
    """What a program has answered."""

    items: tuple[Returned, ...]
    results: tuple[Said, ...]


def resource_list(items: Iterable[tuple[Place, Object]], config: str) -> dict[str, Any]:
    """What a program is given: the objects with their places, and its configuration."""
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "items": [_annotated(item, place) for place, item in items],
        "functionConfig": json.loads(config),
    }


def _annotated(item: Object, place: Place) -> dict[str, Any]:
    meta = mapping(item.get("metadata"))
    texts = dict(zip(_PLACES, (place[0], str(place[1])), strict=True))
    notes = {f"{prefix}{key}": text for prefix in (_NEW, _OLD) for key, text in texts.items()}
    annotations = {**mapping(meta.get("annotations")), **notes}
    return {**item, "metadata": {**meta, "annotations": annotations}}


def read_answer(answer: Answer) -> Output:
    """What came back. Raises InvalidInput: it did not run, failed without saying where, or what it
    wrote is no ResourceList."""
    if isinstance(answer, Broken):
        raise _failed(answer.problem, answer.remedy)
    if isinstance(answer, Listed):
        printed = [{"message": line} for line in answer.printed]
        return _output(answer.items, printed)
    assert isinstance(answer, Ran), "a run is answered by a run"
    try:
        output = _read(answer.stdout)
    except InvalidInput:
        if not answer.status:
            raise
        raise _exited(answer) from None
    if answer.status and not any(said.result.severity == ERROR for said in output.results):
        raise _exited(answer)
    return output


def _exited(answer: Ran) -> InvalidInput:
    words = " ".join(answer.stderr.split())
    words = words if len(words) <= _LONGEST else f"…{words[-_LONGEST:]}"
    return _failed(f"it ended with status {answer.status}{': ' if words else ''}{words}")


def _read(data: bytes) -> Output:
    try:
        documents = Manifest.parse(data, "").documents
    except InvalidManifest as error:
        first = error.problems[0]
        line = f" (line {first.where.line})" if first.where.line else ""
        raise _failed(f"its output cannot be read: {first.problem}{line}") from None
    value = documents[0].value if len(documents) == 1 else None
    whole = mapping(value)
    if whole.get("kind") != _KIND or not str(whole.get("apiVersion")).startswith(_OLD):
        raise _failed(f"its output is no {_KIND}")
    return _output(whole.get("items") or [], whole.get("results") or [])


def _output(items: object, results: object) -> Output:
    if not isinstance(items, list) or not isinstance(results, list):
        raise _failed(f"its output is no {_KIND}: items and results must be lists")
    found = tuple(_returned(item, number) for number, item in enumerate(items))
    return Output(found, tuple(map(_said, results)))


def _returned(item: object, number: int) -> Returned:
    meta = mapping(mapping(item).get("metadata"))
    names = (mapping(item).get("apiVersion"), mapping(item).get("kind"), meta.get("name"))
    if not isinstance(item, dict) or not all(isinstance(name, str) and name for name in names):
        raise _failed(f"items[{number}] of its output is no object with a kind and a name")
    notes = dict(mapping(meta.get("annotations")))
    place = {key: notes.get(f"{_NEW}{key}", notes.get(f"{_OLD}{key}")) for key in _PLACES}
    file, index = place["path"], place["index"]
    if file is not None and (not isinstance(file, str) or not file):
        raise _failed(f"items[{number}] of its output has no text for a path")
    if index is not None and not str(index).isdecimal():
        raise _failed(f"items[{number}] of its output has the index {index!r}")
    for key in list(notes):
        known = key.startswith(_OLD) and key.removeprefix(_OLD) in _PLACES
        if known or key.startswith(_NEW):
            del notes[key]
    clean = {key: value for key, value in meta.items() if key != "annotations"}
    whole = {**item, "metadata": {**clean, "annotations": notes} if notes else clean}
    # What leads out of the package is refused as it was given, where its name is checked.
    file = path_inside(file) or file if file else ""
    return Returned(whole, file, None if index is None else int(str(index)))


def _said(row: object) -> Said:
    said = mapping(row)
    reference, file = mapping(said.get("resourceRef")), mapping(said.get("file"))
    severity = str(said.get("severity") or "info").lower()
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    path, index = file.get("path"), file.get("index") or 0
    result = Result(
        " ".join(str(said.get("message") or "it gives no reason").split()),
        # what is not known is not passed over
        severity if severity in _SEVERITIES else ERROR,
        object=f"{kind}/{name}" if name else kind,
        field=str(mapping(said.get("field")).get("path") or ""),
        file=path if isinstance(path, str) else "",
    )
    place = (result.file, index) if result.file and isinstance(index, int) else None
    return Said(result, place, (kind, str(reference.get("namespace") or ""), name))


def _failed(problem: str, remedy: str = "") -> InvalidInput:
    return InvalidInput(problem, reason=Reason.RENDER_FAILED, remedy=remedy)


def field_path(text: str) -> tuple[str | int, ...]:
    """`spec.containers[0].image` as a path."""
    parts: list[str | int] = []
    for name in text.replace("]", "").split("."):
        head, *indices = name.split("[")
        parts += [head] if head else []
        parts += [int(index) if index.isdecimal() else index for index in indices]
    return tuple(parts)
