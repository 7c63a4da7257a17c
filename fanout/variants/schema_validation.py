"""Validation of objects by schemas of Kubernetes and CustomResourceDefinitions.

Kubernetes publishes its kinds in a small part of JSON Schema: types, fields, required
fields, lists, maps, alternatives, references. Each definition is compiled to
functions once, which is a hundred times faster than a validator of complete JSON
Schema and reports all errors instead of the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

Path = tuple[str | int, ...]
Schema = Mapping[str, Any]
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")  # allowed in every object
_MAX_DEPTH = 200


class SchemaViolation(NamedTuple):
    """An error in a value, at its path in the object."""

    path: Path
    problem: str


@dataclass(slots=True)
class _Report:
    """Errors found in one object."""

    strict: bool
    faults: list[SchemaViolation] = field(default_factory=list)


_Validator = Callable[[Any, Path, _Report], None]


class KindSchemas:
    """Schemas of the kinds of one Kubernetes version."""

    def __init__(
        self, version: str, kinds: Mapping[str, str], definitions: Mapping[str, Schema]
    ) -> None:
        self.version = version
        self._kinds = kinds  # `apps/v1/Deployment` → name of its definition
        self._definitions = definitions
        self._validators: dict[str, _Validator] = {}

    def find_faults(self, item: Mapping[str, Any], *, strict: bool) -> list[SchemaViolation] | None:
        """Return all errors of the object, or None for an unknown kind.

        `strict` also reports fields that the kind does not have.
        """
        if (name := self._kinds.get(f"{item.get('apiVersion')}/{item.get('kind')}")) is None:
            return None
        report = _Report(strict)
        self._validator_of(name)(item, (), report)
        return report.faults

    def _validator_of(self, name: str) -> _Validator:
        if name not in self._validators:
            # Definitions may refer to themselves (JSONSchemaProps does): the reference, which is
            # looked up when it is called, must be there before the definition is compiled.
            def deferred(value: Any, path: Path, report: _Report) -> None:
                self._validators[name](value, path, report)

            self._validators[name] = deferred
            self._validators[name] = _compile_schema(self._definitions[name], self._validator_of)
        return self._validators[name]


def find_custom_faults(
    schema: Schema, item: Mapping[str, Any], *, strict: bool
) -> list[SchemaViolation]:
    """Return all errors of an object by its kind's `openAPIV3Schema`."""
    report = _Report(strict)
    properties = {
        **{name: {} for name in _OBJECT_FIELDS},
        **_mapping_or_empty(schema.get("properties")),
    }
    _compile_structural({**schema, "properties": properties}, 0)(item, (), report)
    return report.faults


def _compile_schema(schema: Schema, validator_of: Callable[[str], _Validator]) -> _Validator:
    if "$ref" in schema:
        return validator_of(schema["$ref"])
    if "oneOf" in schema:
        types = (name for subschema in schema["oneOf"] for name in _type_names(subschema))
        return partial(_validate_type, tuple(types))
    fields = {
        name: _compile_schema(subschema, validator_of)
        for name, subschema in schema.get("properties", {}).items()
    }
    extra = schema.get("additionalProperties", True)
    items = schema.get("items")
    return _Shape(
        _type_names(schema),
        tuple(schema.get("enum", ())),
        tuple(schema.get("required", ())),
        fields,
        _compile_schema(extra, validator_of) if isinstance(extra, dict) else None,
        extra is False,
        _compile_schema(items, validator_of) if items is not None else None,
    ).validate


def _compile_structural(schema: Schema, depth: int) -> _Validator:
    """Compile a structural schema, as far as it defines the shape of values."""
    # The schema is part of the package and may nest deeper than Python's stack; below this depth
    # any value is valid.
    if depth > _MAX_DEPTH:
        return partial(_validate_type, ())
    if schema.get("x-kubernetes-int-or-string"):
        return partial(_validate_type, ("integer", "string", "null"))
    fields = {
        name: _compile_structural(subschema, depth + 1)
        for name, subschema in _mapping_or_empty(schema.get("properties")).items()
        if isinstance(subschema, dict)
    }
    extra, items = schema.get("additionalProperties"), schema.get("items")
    open_ended = (
        not fields or extra is not None or schema.get("x-kubernetes-preserve-unknown-fields")
    )
    required = schema.get("required")
    enum = schema.get("enum")
    return _Shape(
        # null counts as absent: the server removes it or sets the default
        (*types, "null") if (types := _type_names(schema)) else (),
        tuple(enum) if isinstance(enum, list) else (),
        tuple(required) if isinstance(required, list) else (),
        fields,
        _compile_structural(extra, depth + 1) if isinstance(extra, dict) else None,
        not open_ended,
        _compile_structural(items, depth + 1) if isinstance(items, dict) else None,
    ).validate


class _Shape(NamedTuple):
    """Shape of values; its `validate` is a validator."""

    types: tuple[str, ...]  # empty: any type
    enum: tuple[Any, ...]
    required: tuple[str, ...]
    fields: Mapping[str, _Validator]
    other_fields: _Validator | None  # for fields not in `fields`
    closed: bool  # a strict check reports other fields
    items: _Validator | None

    def validate(self, value: Any, path: Path, report: _Report) -> None:
        if isinstance(value, dict) and (not self.types or "object" in self.types):
            for name in self.required:
                if name not in value:
                    problem = "required field is missing"
                    report.faults.append(SchemaViolation((*path, name), problem))
            for name, child in value.items():
                if (validator := self.fields.get(name, self.other_fields)) is not None:
                    validator(child, (*path, name), report)
                elif self.closed and report.strict:
                    report.faults.append(SchemaViolation((*path, name), "unknown field"))
        elif isinstance(value, list) and (not self.types or "array" in self.types):
            if self.items is not None:
                for index, item in enumerate(value):
                    self.items(item, (*path, index), report)
        else:
            _validate_type(self.types, value, path, report)
        if self.enum and value is not None and value not in self.enum:
            problem = f"{_describe_value(value)} is not one of {', '.join(map(str, self.enum))}"
            report.faults.append(SchemaViolation(path, problem))


def _validate_type(types: tuple[str, ...], value: Any, path: Path, report: _Report) -> None:
    if types and not any(_TYPES[name][1](value) for name in types):
        expected = " or ".join(_TYPES[name][0] for name in dict.fromkeys(types) if name != "null")
        report.faults.append(SchemaViolation(path, f"{_describe_value(value)} is not a {expected}"))


# By type: its word in messages, and whether a value has it.
_TYPES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("string", lambda value: isinstance(value, str)),
    "integer": (
        "whole number",
        lambda value: (
            value.is_integer()
            if isinstance(value, float)
            else isinstance(value, int) and not isinstance(value, bool)
        ),
    ),
    "number": (
        "number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ),
    "boolean": ("boolean", lambda value: isinstance(value, bool)),
    "object": ("map", lambda value: isinstance(value, dict)),
    "array": ("list", lambda value: isinstance(value, list)),
    "null": ("null", lambda value: value is None),
}


def _type_names(schema: Schema) -> tuple[str, ...]:
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return tuple(name for name in names if isinstance(name, str) and name in _TYPES)


def _mapping_or_empty(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _describe_value(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    text = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text.lower() if isinstance(value, bool) else text if len(text) <= 60 else f"{text[:57]}…"
