"""Mapping of the fields of another program, and conversion of objects by its tables.

A field without a row is unknown to the other program too and is reported as such.

A faulty field is removed together with everything that would mean something else without it: a
function without its selectors changes other objects, a target without its package goes elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, as_list, as_mapping, format_path
from fanout.api.kind_registry import field_names_at
from fanout.api.object_meta import DEFAULT_NAMESPACE, KRMObject
from fanout.api.text_fields import format_value, join_words
from fanout.api.validators.object_validation import is_fanout_object
from fanout.values import Value, replace


class SourceField(Value):
    """Field of the source object, with the path of its counterpart."""

    path: FieldPath
    value: Any
    target: FieldPath
    source_object: Mapping[str, Any]


class TargetField(Value):
    """Value for a field of fanout's object, and the source field that it comes from."""

    path: FieldPath
    value: Any
    source: FieldPath


class Remark(Value):
    """Message about a field of the source object.

    `is_lost`: the field requests something that the import does not carry over.
    `invalidates`: the field of fanout's object that is unusable without it; dependent
    fields are dropped together with it.
    """

    path: FieldPath
    problem: str
    remedy: str = ""
    is_lost: bool = True
    invalidates: FieldPath | None = None


Conversion = Iterator[TargetField | Remark]
"""Values and remarks that fields of the source object are converted to."""
FieldConverter = Callable[[SourceField], Conversion]
ObjectRemark = tuple[int, Remark]
"""A remark, with the place in the input of the object that it is about."""


class ImportResult(Value):
    """Objects of fanout, and the remarks about the source objects."""

    objects: tuple[Mapping[str, Any], ...]
    remarks: tuple[ObjectRemark, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether everything that the source objects request was carried over."""
        return not any(remark.is_lost for _, remark in self.remarks)


LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def copy_value(source: SourceField) -> Conversion:
    """Copy the value unchanged."""
    yield TargetField(source.target, source.value, source.path)


def copy_text(source: SourceField) -> Conversion:
    """Copy the value unless it is empty text, which is how Go writes an absent one."""
    if source.value != "":
        yield from copy_value(source)


def copy_distinct(source: SourceField) -> Conversion:
    """Copy a list without repeated values; each element keeps its source path."""
    values = as_list(source.value)
    # Compared one by one: values may be mappings, which have no hash.
    first_indices = [index for index, value in enumerate(values) if value not in values[:index]]
    for position, index in enumerate(first_indices):
        yield TargetField((*source.target, position), values[index], (*source.path, index))
    if not values:
        yield from copy_value(source)


def copy_without_prefixes(*prefixes: str) -> FieldConverter:
    """Return a converter that drops map keys with these prefixes."""

    def convert_field(source: SourceField) -> Conversion:
        if not isinstance(source.value, Mapping):
            yield from copy_value(source)
            return
        remaining = {
            key: it for key, it in source.value.items() if not str(key).startswith(prefixes)
        }
        if remaining:
            yield TargetField(source.target, remaining, source.path)

    return convert_field


def report_unsupported(
    *ignored_values: Any,
    problem: str,
    remedy: str = "",
    is_lost: bool = True,
    invalidates: FieldPath | None = None,
) -> FieldConverter:
    """Return a converter for an unsupported field, which reports all but the ignored values.

    `problem` has the value in place of `{}`; for `is_lost` and `invalidates` see `Remark`.
    """

    def convert_field(source: SourceField) -> Conversion:
        if source.value not in ignored_values:
            sentence = problem.format(format_value(source.value))
            yield Remark(source.path, sentence, remedy, is_lost, invalidates)

    return convert_field


def ignore_field(_: SourceField) -> Conversion:
    """Ignore a field that a program wrote, that has no effect, or that is converted elsewhere."""
    return iter(())


UNCHANGED = "as it is"
_SERVER_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionGracePeriodSeconds", "finalizers", "ownerReferences", "managedFields"),
    *("selfLink", "generateName"),
)


class FieldMapping(Value):
    """Source field, its counterpart ("" for none), converter, and description for docs."""

    source: str
    target: str
    convert: FieldConverter
    description: str = UNCHANGED


def ignored_field(source: str, description: str, target: str = "") -> FieldMapping:
    """Return the row of a field without effect, or that is converted together with others."""
    return FieldMapping(source, target, ignore_field, description)


def unsupported_field(
    source: str, description: str, *ignored_values: Any, problem: str, **report: Any
) -> FieldMapping:
    """Return the row of a field without counterpart; for the rest see `report_unsupported`."""
    convert = report_unsupported(*ignored_values, problem=problem, **report)
    return FieldMapping(source, "", convert, description)


class KindMapping(Value):
    """Source kind with its fields, and the kind of fanout that it becomes."""

    kind: str
    api_version: str
    target_kind: str
    rows: tuple[FieldMapping, ...]


def server_field_mappings(program: str) -> Iterator[FieldMapping]:
    """Yield the fields that the API server and the program's controllers write."""
    for server_field in _SERVER_FIELDS:
        yield ignored_field(f"metadata.{server_field}", "set by the API server")
    yield unsupported_field(
        "metadata.deletionTimestamp",
        "objects that are being deleted are left out and reported",
        problem="is being deleted since {}",
        remedy="import it if it is to stay",
        invalidates=(),
    )
    yield ignored_field("status", f"written by {program}, not by people")


TargetPathResolver = Callable[[str, FieldPath], FieldPath]
"""From the pattern of a counterpart and the path of what was found: the counterpart's path."""


def resolve_target_path(pattern: str, path: FieldPath) -> FieldPath:
    """Return the path of a counterpart; each `[*]` takes the next index of the source."""
    indices = (part for part in path if isinstance(part, int))
    steps = pattern.replace("[*]", ".*").split(".") if pattern else []
    return tuple(next(indices) if step == "*" else step for step in steps)


def convert_object(
    mapping: KindMapping,
    item: Mapping[str, Any],
    resolve_path: TargetPathResolver = resolve_target_path,
) -> Conversion:
    """Yield target fields and remarks for the fields of an object, in its own order."""
    rows = {row.source: row for row in mapping.rows}
    # The patterns of all parents of a field: `spec`, `spec.targets[*]`.
    sources = [row.source.split(".") for row in mapping.rows]
    parents = {".".join(it[:length]) for it in sources for length in range(1, len(it))}
    patterns = parents | rows.keys()

    def convert_below(value: Any, path: FieldPath, pattern: str) -> Conversion:
        if not isinstance(value, Mapping):
            yield Remark(path, f"must be an object, got {format_value(value)}", "correct it")
            return
        for key, inner in value.items():
            if path or key not in ("apiVersion", "kind"):
                inner_pattern = f"{pattern}.{key}" if pattern else str(key)
                yield from convert_field(inner, (*path, str(key)), inner_pattern)

    def convert_field(value: Any, path: FieldPath, pattern: str) -> Conversion:
        if value is None:  # Go reads null as absent
            return
        if (row := rows.get(pattern)) is not None:
            yield from row.convert(SourceField(path, value, resolve_path(row.target, path), item))
        elif f"{pattern}[*]" in patterns and isinstance(value, list | tuple):
            for index, inner in enumerate(value):
                if inner in (None, {}, ""):
                    yield Remark((*path, index), "is empty", "remove it")
                else:
                    yield from convert_field(inner, (*path, index), f"{pattern}[*]")
        elif f"{pattern}[*]" in patterns:
            yield Remark(path, f"must be a list, got {format_value(value)}", "correct it")
        elif pattern in parents:
            yield from convert_below(value, path, pattern)
        else:
            yield Remark(path, f"is not a known field of {mapping.kind}", "correct or remove it")

    return convert_below(item, (), "")


SourceKey = tuple[str, str, str]


def read_kind(item: Any) -> Any:
    """Return the `kind` of an object as written, of any type."""
    return as_mapping(item).get("kind")


def read_key(item: Any) -> SourceKey:
    """Return kind, namespace and name of an object."""
    meta = as_mapping(item, "metadata")
    namespace = meta.get("namespace") or DEFAULT_NAMESPACE
    return str(read_kind(item)), str(namespace), str(meta.get("name"))


def find_mapping(item: Any, mappings: Iterable[KindMapping]) -> KindMapping | None:
    """Return the mapping of the object's kind and version, or None."""
    identity = as_mapping(item).get("apiVersion"), read_kind(item)
    return next((it for it in mappings if (it.api_version, it.kind) == identity), None)


def duplicate_remark() -> Remark:
    """Return the remark about a second object of the same kind, namespace and name."""
    problem = "is in the input twice; the first one is used"
    return Remark(("metadata", "name"), problem, "remove one")


def unconvertible_remark(item: Any, mappings: Iterable[KindMapping]) -> Remark:
    """Return the remark about an object of a kind that is not converted."""
    convertible_kinds = join_words([f"{it.kind} {it.api_version}" for it in mappings], "and")
    version, kind = as_mapping(item).get("apiVersion"), read_kind(item)
    if is_fanout_object(as_mapping(item)):
        return Remark(("apiVersion",), "is already an object of fanout", "keep it as it is")
    if not kind:
        problem = "is not an object: apiVersion and kind are required"
        return Remark((), problem, "complete or remove it")
    object_type = " ".join(format_value(part) for part in (kind, version) if part)
    problem = f"{object_type} is not translated; supported: {convertible_kinds}"
    remedy = "declare it beside the result if it is a target or injected into packages"
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


class AssembledObject(Value):
    """Object, or None if nothing of it is left, and the remarks about its fields.

    `original_paths` has for each path the one among the leaves.
    """

    data: Mapping[str, Any] | None
    original_paths: Mapping[FieldPath, FieldPath]
    leaves: LeafValues
    units: RemovalUnits
    remarks: tuple[Remark, ...] = ()

    def nearest_existing(self, path: FieldPath) -> FieldPath:
        """Return the path, or its longest prefix that exists in the object."""
        return next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.original_paths)

    def source_path(self, path: FieldPath) -> FieldPath:
        """Return the source field of a field of the object, or of the nearest parent.

        It is that of the first value at or below the field.
        """
        original_path = self.original_paths[self.nearest_existing(path)]
        leaf_path, (_, source) = next(
            (at, leaf)
            for at, leaf in self.leaves.items()
            if at[: len(original_path)] == original_path
        )
        return source[: max(len(source) - (len(leaf_path) - len(original_path)), 0)]

    def removal_unit(self, path: FieldPath) -> tuple[FieldPath, str]:
        """Return path and noun of what is removed with a field: at most the object."""
        nearest = self.nearest_existing(path)
        unit, noun = _find_unit((*self.original_paths[nearest], *path[len(nearest) :]), self.units)
        if any(leaf[: len(unit)] == unit for leaf in self.leaves):
            return unit, noun
        return (), OBJECT_NOUN


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
        root: dict[str | int, Any] = {}
        for path, leaf in leaves.items():
            parent = root
            for part in path[:-1]:
                # Lists are mappings by index at first, since entries may be missing; the gaps are
                # closed when the plain data is made.
                parent = parent.setdefault(part, {})
            parent[path[-1]] = leaf
        original_paths: dict[FieldPath, FieldPath] = {}
        data = _to_plain_data(kind, root, (), (), original_paths)
        draft = AssembledObject(data, original_paths, leaves, units)
        errors = [error for error in validate_data(data) if error.severity == "error"]
        if not errors:
            return replace(draft, remarks=tuple(remarks))
        invalid_units = []
        for error in errors:
            missing = format_path(error.path[len(draft.nearest_existing(error.path)) :])
            problem = f"{missing} {error.problem}" if missing else error.problem
            unit, noun = draft.removal_unit(error.path)
            invalid_units.append(unit)
            remedy = _left_out_remedy(noun, _REMOVE_ADVICE.sub("", error.remedy))
            remarks.append(Remark(draft.source_path(error.path), problem, remedy))
        # Removing one unit can make another field invalid, hence validated again. It ends because
        # every error removes at least one leaf: `unit` falls back to the whole object.
        leaves = _without_units(leaves, invalid_units)
    return AssembledObject(None, {}, {}, units, tuple(it for it in remarks if it.is_lost))


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


def _left_out_remedy(noun: str, advice: str) -> str:
    return f"{noun} is left out{': ' if advice else ''}{advice}"
