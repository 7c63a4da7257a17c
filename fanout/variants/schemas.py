"""Checks objects against schemas: those of Kubernetes, and of CustomResourceDefinitions.

Kubernetes publishes its kinds in a small part of JSON Schema: types, fields, required ones, lists,
maps, alternatives, references. Here each definition is turned into functions once, which is a
hundred times faster than a validator of all of JSON Schema, and finds every fault and not only the
first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
Schema = Mapping[str, Any]
_OBJECT = ("apiVersion", "kind", "metadata")  # of every object, whatever its definition says
_DEEPEST = 200


class Fault(NamedTuple):
    """What is wrong with a value."""

    path: Path
    problem: str


@dataclass(slots=True)
class _Sheet:
    """What was found in one object."""

    strict: bool
    faults: list[Fault] = field(default_factory=list)


_Check = Callable[[Any, Path, _Sheet], None]


class Schemas:
    """The kinds of one version of Kubernetes."""

    def __init__(
        self, version: str, kinds: Mapping[str, str], definitions: Mapping[str, Schema]
    ) -> None:
        self.version = version
        self._kinds = kinds  # `apps/v1/Deployment` → name of its definition
        self._definitions = definitions
        self._checks: dict[str, _Check] = {}

    def faults(self, item: Mapping[str, Any], *, strict: bool) -> list[Fault] | None:
        """Everything that is wrong with the object; None when it is of no known kind.

        `strict` finds fields too that the kind does not have.
        """
        name = self._kinds.get(f"{item.get('apiVersion')}/{item.get('kind')}")
        if name is None:
            return None
        sheet = _Sheet(strict)
        self._named(name)(item, (), sheet)
        return sheet.faults

    def _named(self, name: str) -> _Check:
        check = self._checks.get(name)
        if check is None:

            def later(value: Any, path: Path, sheet: _Sheet) -> None:
                """A definition may refer to itself before it is there."""
                self._checks[name](value, path, sheet)

            self._checks[name] = later
            check = self._checks[name] = _compiled(self._definitions[name], self._named)
        return check


def custom_faults(schema: Schema, item: Mapping[str, Any], *, strict: bool) -> list[Fault]:
    """Everything that is wrong with an object by its kind's `openAPIV3Schema`."""
    sheet = _Sheet(strict)
    known = {**{name: {} for name in _OBJECT}, **_map(schema.get("properties"))}
    _structural({**schema, "properties": known}, 0)(item, (), sheet)
    return sheet.faults


def _compiled(schema: Schema, named: Callable[[str], _Check]) -> _Check:
    if "$ref" in schema:
        return named(schema["$ref"])
    if "oneOf" in schema:
        return _any_of(tuple(kind for one in schema["oneOf"] for kind in _types(one)))
    kinds = _types(schema)
    fields = {name: _compiled(one, named) for name, one in schema.get("properties", {}).items()}
    extra = schema.get("additionalProperties", True)
    items = schema.get("items")
    return _shape(
        _Shape(
            kinds,
            tuple(schema.get("enum", ())),
            tuple(schema.get("required", ())),
            fields,
            _compiled(extra, named) if isinstance(extra, dict) else None,
            extra is False,
            _compiled(items, named) if items is not None else None,
        )
    )


def _structural(schema: Schema, depth: int) -> _Check:
    """The schema of a CustomResourceDefinition, as far as it says of what shape a value is."""
    if depth > _DEEPEST:
        return _any_of(())
    if schema.get("x-kubernetes-int-or-string"):
        return _any_of(("integer", "string", "null"))
    fields = {
        name: _structural(one, depth + 1)
        for name, one in _map(schema.get("properties")).items()
        if isinstance(one, dict)
    }
    extra, items = schema.get("additionalProperties"), schema.get("items")
    free = not fields or extra is not None or schema.get("x-kubernetes-preserve-unknown-fields")
    required = schema.get("required")
    enum = schema.get("enum")
    return _shape(
        _Shape(
            # null counts as not given: what may not be null the server takes out or fills in
            (*_types(schema), "null") if "type" in schema else (),
            tuple(enum) if isinstance(enum, list) else (),
            tuple(required) if isinstance(required, list) else (),
            fields,
            _structural(extra, depth + 1) if isinstance(extra, dict) else None,
            not free,
            _structural(items, depth + 1) if isinstance(items, dict) else None,
        )
    )


class _Shape(NamedTuple):
    types: tuple[str, ...]  # none: any
    enum: tuple[Any, ...]
    required: tuple[str, ...]
    fields: Mapping[str, _Check]
    others: _Check | None  # of fields that are not named
    closed: bool  # in a strict check there are no others
    items: _Check | None


def _shape(shape: _Shape) -> _Check:
    fits = _any_of(shape.types)

    def check(value: Any, path: Path, sheet: _Sheet) -> None:
        if isinstance(value, dict):
            if shape.types and "object" not in shape.types:
                fits(value, path, sheet)
            else:
                _fields(shape, value, path, sheet)
        elif isinstance(value, list):
            if shape.types and "array" not in shape.types:
                fits(value, path, sheet)
            elif shape.items is not None:
                for index, item in enumerate(value):
                    shape.items(item, (*path, index), sheet)
        else:
            fits(value, path, sheet)
        if shape.enum and value is not None and value not in shape.enum:
            choices = ", ".join(map(str, shape.enum))
            sheet.faults.append(Fault(path, f"{_shown(value)} is none of {choices}"))

    return check


def _fields(shape: _Shape, value: dict[str, Any], path: Path, sheet: _Sheet) -> None:
    for name in shape.required:
        if name not in value:
            sheet.faults.append(Fault((*path, name), "the field is missing"))
    for name, child in value.items():
        check = shape.fields.get(name, shape.others)
        if check is not None:
            check(child, (*path, name), sheet)
        elif shape.closed and sheet.strict:
            sheet.faults.append(Fault((*path, name), "the field is not known"))


def _any_of(types: tuple[str, ...]) -> _Check:
    def check(value: Any, path: Path, sheet: _Sheet) -> None:
        if types and not any(_is(value, name) for name in types):
            wanted = " or ".join(_WORDS[name] for name in dict.fromkeys(types) if name != "null")
            sheet.faults.append(Fault(path, f"{_shown(value)} is no {wanted}"))

    return check


_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "boolean",
    "object": "map",
    "array": "list",
    "null": "null",
}


def _is(value: Any, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "integer":
            whole = isinstance(value, float) and value.is_integer()
            return whole or (isinstance(value, int) and not isinstance(value, bool))
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case _:
            return value is None


def _types(schema: Schema) -> tuple[str, ...]:
    said = schema.get("type", ())
    names = (said,) if isinstance(said, str) else tuple(said)
    return tuple(name for name in names if name in _WORDS)


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    text = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text.lower() if isinstance(value, bool) else text if len(text) <= 60 else f"{text[:57]}…"
