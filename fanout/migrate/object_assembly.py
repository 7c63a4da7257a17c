"""Assembly of valid objects from converted fields; selection of convertible objects.

A faulty field is removed together with everything that would mean something else
without it: a function without its selectors changes other objects, a target without its
package goes elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, format_path
from fanout.api.field_paths import as_mapping
from fanout.api.kind_registry import field_names_at
from fanout.api.object_meta import DEFAULT_NAMESPACE, KRMObject
from fanout.api.text_fields import format_value, join_words
from fanout.api.validators.object_validation import is_fanout_object
from fanout.migrate.field_conversion import Remark, TargetField
from fanout.migrate.field_mapping import KindMapping
from fanout.values import frozen

SourceKey = tuple[str, str, str]


def read_kind(item: Any) -> Any:
    """Return the `kind` of an object as written, of any type."""
    return as_mapping(item).get("kind")


def read_key(item: Any) -> SourceKey:
    """Return kind, namespace and name of an object."""
    meta = as_mapping(as_mapping(item).get("metadata"))
    namespace = meta.get("namespace") or DEFAULT_NAMESPACE
    return str(read_kind(item)), str(namespace), str(meta.get("name"))


def find_mapping(item: Any, mappings: Sequence[KindMapping], group: str) -> KindMapping | None:
    """Return the mapping of the object's kind and version, or None."""
    version, kind = as_mapping(item).get("apiVersion"), read_kind(item)
    for mapping in mappings:
        if (version, kind) == (f"{group}/{mapping.version}", mapping.kind):
            return mapping
    return None


def duplicate_remark() -> Remark:
    """Return the remark about a second object of the same kind, namespace and name."""
    problem = "is in the input already; the first one is taken"
    return Remark(("metadata", "name"), problem, "remove one")


def unconvertible_remark(item: Any, mappings: Sequence[KindMapping], group: str) -> Remark:
    """Return the remark about an object of a kind that is not converted."""
    convertible_kinds = join_words(
        [f"{origin.kind} {group}/{origin.version}" for origin in mappings], "and"
    )
    version, kind = as_mapping(item).get("apiVersion"), read_kind(item)
    if is_fanout_object(as_mapping(item)):
        return Remark(("apiVersion",), "is an object of fanout's already", "keep it as it is")
    if not kind:
        problem = "is no object: it needs an apiVersion and a kind"
        return Remark((), problem, "complete it, or take it out")
    object_type = " ".join(format_value(part) for part in (kind, version) if part)
    problem = f"{object_type} is not translated; there are {convertible_kinds}"
    remedy = "declare it beside the result if variants are made for it or filled from it"
    return Remark(("kind",), problem, remedy)


ObjectValidator = Callable[[Mapping[str, Any]], Iterable[FieldError]]
_REMOVE_ADVICE = re.compile("^remove it(; |$)")  # advice that the conversion has followed already
OBJECT_NOUN = "the object"
RemovalUnits = Mapping[str, str]
"""Nouns of the units that are removed whole, by path pattern; the longest match counts.

A `*` is any key or index. The pattern "" is always present.
"""


LeafValues = dict[FieldPath, tuple[Any, FieldPath]]
"""Every value without values of its own, and the other program's field that it comes from."""


@frozen
class _ObjectDraft:
    """Object under assembly.

    `original_paths` maps each of its paths to the path among the leaves.
    """

    data: dict[str, Any]
    original_paths: Mapping[FieldPath, FieldPath]
    leaves: LeafValues
    units: RemovalUnits

    def nearest_existing(self, path: FieldPath) -> FieldPath:
        """Return the path, or its longest prefix that exists in the object."""
        return next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.original_paths)

    def source_path(self, path: FieldPath) -> FieldPath:
        """Return the source field of a path: that of the first value at or below it."""
        original_path = self.original_paths[path]
        leaf_path, (_, source) = next(
            (at, leaf)
            for at, leaf in self.leaves.items()
            if at[: len(original_path)] == original_path
        )
        return source[: max(len(source) - (len(leaf_path) - len(original_path)), 0)]

    def removal_unit(self, path: FieldPath) -> tuple[FieldPath, str]:
        """Return path and noun of what is removed with a field.

        The object if nothing smaller exists.
        """
        nearest = self.nearest_existing(path)
        unit, noun = _find_unit((*self.original_paths[nearest], *path[len(nearest) :]), self.units)
        if any(leaf[: len(unit)] == unit for leaf in self.leaves):
            return unit, noun
        return (), OBJECT_NOUN


@frozen
class AssembledObject:
    """Object, or None if nothing of it is left, and the remarks about its fields."""

    data: Mapping[str, Any] | None
    remarks: tuple[Remark, ...]
    object_draft: _ObjectDraft | None = field(default=None, repr=False)

    def source_path(self, path: FieldPath) -> FieldPath:
        """Return the source field of a field of the object, or of the nearest parent."""
        return (
            self.object_draft.source_path(self.object_draft.nearest_existing(path))
            if self.object_draft
            else ()
        )


def assemble_object(
    kind: type[KRMObject],
    converted_fields: Iterable[TargetField | Remark],
    validate_data: ObjectValidator,
    units: RemovalUnits,
) -> AssembledObject:
    """Assemble an object of this kind that `validate_data` accepts, or none.

    Fields with errors are removed with their units and reported, until no error is left.
    """
    leaves: LeafValues = {}
    remarks: list[Remark] = []
    invalid_units: list[FieldPath] = []
    for converted in converted_fields:
        if isinstance(converted, TargetField):
            leaves.update(_flatten(converted.path, converted.value, converted.source))
        elif converted.invalidates is None:
            remarks.append(converted)
        else:
            unit, noun = _find_unit(converted.invalidates, units)
            invalid_units.append(unit)
            remarks.append(
                Remark(converted.path, converted.problem, _left_out_remedy(noun, converted.remedy))
            )
    leaves = _without_units(leaves, invalid_units)
    while leaves:
        object_draft = _build_draft(kind, leaves, units)
        errors = [error for error in validate_data(object_draft.data) if error.severity == "error"]
        if not errors:
            return AssembledObject(object_draft.data, tuple(remarks), object_draft)
        remarks += [_error_remark(error, object_draft) for error in errors]
        # Removing one unit can make another field invalid, hence validated again. It ends because
        # every error removes at least one leaf: `unit` falls back to the whole object.
        leaves = _without_units(
            leaves, [object_draft.removal_unit(error.path)[0] for error in errors]
        )
    return AssembledObject(None, tuple(remark for remark in remarks if remark.is_lost))


def _flatten(
    path: FieldPath, value: Any, source: FieldPath
) -> Iterator[tuple[FieldPath, tuple[Any, FieldPath]]]:
    if value and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten((*path, key), inner, (*source, key))
    elif value and isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _flatten((*path, index), inner, (*source, index))
    else:
        yield path, (value, source)


def _without_units(leaves: LeafValues, units: Iterable[FieldPath]) -> LeafValues:
    removed = set(units)
    return {
        path: leaf
        for path, leaf in leaves.items()
        if not any(path[:length] in removed for length in range(len(path) + 1))
    }


def _build_draft(kind: type[KRMObject], leaves: LeafValues, units: RemovalUnits) -> _ObjectDraft:
    root: dict[str | int, Any] = {}
    for path, leaf in leaves.items():
        parent = root
        for part in path[:-1]:
            # Lists are mappings by index at first, since entries may be missing; the gaps are
            # closed when the plain data is made.
            parent = parent.setdefault(part, {})
        parent[path[-1]] = leaf
    original_paths: dict[FieldPath, FieldPath] = {}
    return _ObjectDraft(
        _to_plain_data(kind, root, (), (), original_paths), original_paths, leaves, units
    )


def _to_plain_data(
    kind: type[KRMObject],
    node: Any,
    path: FieldPath,
    original_path: FieldPath,
    original_paths: dict[FieldPath, FieldPath],
) -> Any:
    """Return the value of a node: lists without gaps, fields in the order of the model."""
    original_paths[path] = original_path
    if isinstance(node, tuple):
        return node[0]
    if all(isinstance(key, int) for key in node):
        return [
            _to_plain_data(kind, node[key], (*path, index), (*original_path, key), original_paths)
            for index, key in enumerate(sorted(node))
        ]
    # In the order of the model, so that the written YAML does not depend on the order of the
    # source.
    order = field_names_at(kind, path)
    keys = sorted(node, key=lambda key: order.index(key) if key in order else len(order))
    return {
        key: _to_plain_data(kind, node[key], (*path, key), (*original_path, key), original_paths)
        for key in keys
    }


def _find_unit(path: FieldPath, units: RemovalUnits) -> tuple[FieldPath, str]:
    """Return the path and noun of the most specific unit that the field belongs to."""
    return max(
        (
            (path[: len(steps)], noun)
            for pattern, noun in {"": OBJECT_NOUN, **units}.items()
            for steps in [tuple(pattern.split(".")) if pattern else ()]
            if len(steps) <= len(path)
            and all(step in ("*", part) for step, part in zip(steps, path, strict=False))
        ),
        key=lambda candidate: len(candidate[0]),
    )


def _error_remark(error: FieldError, object_draft: _ObjectDraft) -> Remark:
    nearest = object_draft.nearest_existing(error.path)
    missing = format_path(error.path[len(nearest) :])
    problem = f"{missing} {error.problem}" if missing else error.problem
    advice = _REMOVE_ADVICE.sub("", error.remedy)
    return Remark(
        object_draft.source_path(nearest),
        problem,
        _left_out_remedy(object_draft.removal_unit(error.path)[1], advice),
    )


def _left_out_remedy(noun: str, advice: str) -> str:
    return f"{noun} is left out{': ' if advice else ''}{advice}"
