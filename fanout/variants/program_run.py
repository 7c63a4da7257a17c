"""Run of an external KRM function: ResourceList in, ResourceList out (docs/concepts/functions.md).

Objects are matched by the file and the index that they were sent with. Only differing
values are set, so that everything else keeps its bytes. An object that is not
returned is removed from the package; a returned object that was not sent is added.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fanout.api.text_fields import normalize_inside
from fanout.control_characters import escape_unprintable
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import REMOVE
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_keys import Schemas
from fanout.package.yaml_nodes import InvalidManifest
from fanout.pending_inputs import Responses, get_response
from fanout.values import replace
from fanout.variants.function_requests import ProgramOutput, Response, ResponseError, ScriptOutput
from fanout.variants.functions.function_interface import (
    ERROR,
    ExternalFunction,
    FunctionResult,
    Object,
    UnfitObject,
    default_file,
    is_named_object,
    mapping,
    render_error,
    with_annotations,
)
from fanout.variants.overlay import Overlay, replace_object
from fanout.variants.package_preparation import ObjectPlace
from fanout.variants.pipeline_steps import FunctionStep

_RESOURCE_LIST_VERSION, _RESOURCE_LIST = "config.kubernetes.io/v1", "ResourceList"
_INTERNAL_PREFIX, _CONFIG_PREFIX = "internal.config.kubernetes.io/", "config.kubernetes.io/"
_PLACE_KEYS = ("path", "index")
_INDEX = re.compile(r"[0-9]{1,9}")
_SEVERITIES = ("error", "warning", "info")
_MAX_STDERR = 500  # characters of stderr in a message


class ReturnedObject(NamedTuple):
    """An object returned by a program, without the annotations that state its place."""

    value: dict[str, Any]
    file: str  # "": not given
    number: int | None  # its index in the file


class ProgramResult(NamedTuple):
    """A result as written by a program, and the place it concerns."""

    result: FunctionResult
    place: ObjectPlace | None
    reference: tuple[str, str, str]  # kind, namespace, name


_Output = tuple[list[ReturnedObject], list[ProgramResult]]


def build_resource_list(items: Iterable[tuple[ObjectPlace, Object]], config: str) -> dict[str, Any]:
    """Return the input of a program: the objects with their places, and its configuration.

    `config` is the configuration object as JSON.
    """
    annotated = []
    for (file, index), item in items:
        meta = mapping(item.get("metadata"))
        annotations = dict(mapping(meta.get("annotations")))
        for prefix in (_INTERNAL_PREFIX, _CONFIG_PREFIX):
            annotations |= {f"{prefix}path": file, f"{prefix}index": str(index)}
        annotated.append({**item, "metadata": {**meta, "annotations": annotations}})
    return {
        "apiVersion": _RESOURCE_LIST_VERSION,
        "kind": _RESOURCE_LIST,
        "items": annotated,
        "functionConfig": json.loads(config),
    }


def parse_response(response: Response) -> _Output:
    """Parse the response of a run.

    Raises InvalidInput if the program did not run, failed without reporting an error, or
    wrote something other than a ResourceList.
    """
    if isinstance(response, ResponseError):
        raise render_error(response.problem, response.remedy)
    if isinstance(response, ScriptOutput):
        return _build_output(response.items, [{"message": line} for line in response.printed])
    assert isinstance(response, ProgramOutput), "a run is answered by a run"
    try:
        documents = Manifest.parse(response.stdout, "").documents
        fields = mapping(documents[0].value if len(documents) == 1 else None)
        has_version = str(fields.get("apiVersion")).startswith(_CONFIG_PREFIX)
        if fields.get("kind") != _RESOURCE_LIST or not has_version:
            raise render_error(f"its output is not a {_RESOURCE_LIST}")
        output = _build_output(fields.get("items") or [], fields.get("results") or [])
    except InvalidManifest as error:
        if response.status:
            raise _exit_error(response) from None
        problem = error.problems[0]
        line = f" (line {problem.where.line})" if problem.where.line else ""
        raise render_error(f"its output cannot be read: {problem.problem}{line}") from None
    except InvalidInput:
        if not response.status:
            raise
        raise _exit_error(response) from None
    # A function exits non-zero when it reports errors, which are then shown in its own words.
    # The exit status itself is an error only if the results do not explain it.
    if response.status and not any(result.result.severity == ERROR for result in output[1]):
        raise _exit_error(response)
    return output


def _exit_error(output: ProgramOutput) -> InvalidInput:
    stderr = " ".join(output.stderr.split())
    stderr = stderr if len(stderr) <= _MAX_STDERR else f"…{stderr[-_MAX_STDERR:]}"
    return render_error(f"it ended with status {output.status}{': ' if stderr else ''}{stderr}")


def _build_output(items: object, results: object) -> _Output:
    if not isinstance(items, list) or not isinstance(results, list):
        raise render_error(f"its output is not a {_RESOURCE_LIST}: items and results must be lists")
    objects = [_parse_object(item, number) for number, item in enumerate(items)]
    return objects, [_parse_result(row) for row in results]


def _parse_object(item: object, number: int) -> ReturnedObject:
    if not is_named_object(item):
        raise render_error(f"items[{number}] of its output is not an object with a kind and a name")
    notes = dict(mapping(item["metadata"].get("annotations")))
    # Functions built with older SDKs know and set only the annotations without the prefix
    # `internal`.
    file, index = (
        notes.get(f"{_INTERNAL_PREFIX}{key}", notes.get(f"{_CONFIG_PREFIX}{key}"))
        for key in _PLACE_KEYS
    )
    if file is not None and (not isinstance(file, str) or not file):
        raise render_error(f"items[{number}] of its output has a path that is not a string")
    if index is not None and not _INDEX.fullmatch(str(index)):
        raise render_error(f"items[{number}] of its output has the index {index!r}")
    place_notes = {f"{_CONFIG_PREFIX}{key}" for key in _PLACE_KEYS}
    for key in list(notes):
        if key in place_notes or key.startswith(_INTERNAL_PREFIX):
            del notes[key]
    # A path out of the package is kept as given, for the error when its name is checked.
    file = normalize_inside(file) or file if file else ""
    return ReturnedObject(
        with_annotations(item, notes), file, None if index is None else int(str(index))
    )


def _parse_result(row: object) -> ProgramResult:
    fields = mapping(row)
    reference, file = mapping(fields.get("resourceRef")), mapping(fields.get("file"))
    severity = str(fields.get("severity") or "info").lower()
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    path, index = file.get("path"), file.get("index") or 0
    result = FunctionResult(
        " ".join(str(fields.get("message") or "no reason given").split()),
        # an unknown severity is not ignored
        severity if severity in _SEVERITIES else ERROR,
        where=ErrorLocation(
            f"{kind}/{name}" if name else kind,
            str(mapping(fields.get("field")).get("path") or ""),
            path if isinstance(path, str) else "",
        ),
    )
    located = result.where.file
    place = (located, index) if located and isinstance(index, int) else None
    return ProgramResult(result, place, (kind, str(reference.get("namespace") or ""), name))


def parse_result_path(text: str) -> tuple[str | int, ...]:
    """Parse a path as results write it (`spec.containers[0].image`)."""
    parts: list[str | int] = []
    for name in text.replace("]", "").split("."):
        head, *indices = name.split("[")
        parts += [head] if head else []
        parts += [int(index) if _INDEX.fullmatch(index) else index for index in indices]
    return tuple(parts)


_AddedObjects = list[tuple[str, Object]]  # file below the pipeline's directory, added object


def run_external_function(
    step: FunctionStep,
    function: ExternalFunction,
    visible: Mapping[ObjectPlace, Overlay],
    occupied: Collection[ObjectPlace],
    responses: Responses,
    schemas: Schemas,
) -> tuple[_AddedObjects, list[FunctionResult]]:
    """Run the function on the visible objects; return the added objects and the results.

    `occupied` are the places of all objects; `schemas` describe the kinds that the
    package defines. Raises InputPending while the program has not run, and InvalidInput.
    """
    prefix_length = len(step.directory_prefix)
    sent = {(file[prefix_length:], index): overlay for (file, index), overlay in visible.items()}
    items = [(place, overlay.value) for place, overlay in sent.items()]
    config = str(step.config)
    request = function.build_request(config, build_resource_list(items, config))
    returned, program_results = parse_response(get_response(request, responses))
    results = []
    for program_result in program_results:
        place = program_result.place if program_result.place in sent else None
        reference = program_result.reference
        if place is None and reference[2]:
            same = (at for at, it in sent.items() if _object_reference(it) == reference)
            place = next(same, None)
        where = program_result.result.where
        if place is not None:
            line = sent[place].line_of(parse_result_path(where.field))
            where = replace(where, file=f"{step.directory_prefix}{place[0]}", line=line)
        elif where.file:
            where = replace(where, file=f"{step.directory_prefix}{where.file}")
        results.append(program_result.result._replace(function=function.name, where=where))
    if step.validates:
        return [], results
    not_sent = {
        (file[prefix_length:], index)
        for file, index in occupied
        if file.startswith(step.directory_prefix)
    }
    return _apply_returned(returned, sent, not_sent - sent.keys(), schemas), results


def _apply_returned(
    items: Sequence[ReturnedObject],
    sent: Mapping[ObjectPlace, Overlay],
    not_sent: Collection[ObjectPlace],
    schemas: Schemas,
) -> _AddedObjects:
    returned: set[ObjectPlace] = set()
    added: _AddedObjects = []
    for item in items:
        file = item.file or default_file(item.value)
        place = (file, -1 if item.number is None else item.number)
        # Otherwise a program could overwrite an object that its selectors keep from it, by
        # returning one with that object's place.
        if place in returned or place in not_sent:
            problem = "two objects" if place in returned else "another object than before"
            where = f"{escape_unprintable(file)}, index {place[1]}"
            raise InvalidInput(f"it returns {problem} at {where}")
        if item.number is not None:
            returned.add(place)
        if place not in sent:
            added.append((file, item.value))
            continue
        try:
            replace_object(sent[place], item.value, schemas)
        except UnfitObject as unfit:
            kind, _, name = _object_reference(sent[place])
            problem = f"{escape_unprintable(file)}: {kind}/{name}: {unfit.problem}"
            raise InvalidInput(problem, reason=unfit.reason, remedy=unfit.remedy) from None
    for place, overlay in sent.items():
        if place not in returned:
            overlay.set((), REMOVE)
    return added


def _object_reference(overlay: Overlay) -> tuple[str, str, str]:
    meta = mapping(overlay.value.get("metadata"))
    return (str(overlay.value.get("kind")), str(meta.get("namespace") or ""), str(meta.get("name")))
