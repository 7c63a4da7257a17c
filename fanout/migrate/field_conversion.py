"""Conversion of single fields of another program, and the results of an import."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldPath
from fanout.api.field_paths import as_list
from fanout.api.text_fields import format_value
from fanout.values import frozen


@frozen
class SourceField:
    """Field of the source object, with the path of its counterpart."""

    path: FieldPath
    value: Any
    target: FieldPath
    source_object: Mapping[str, Any]


@frozen
class TargetField:
    """Value for a field of fanout's object, and the source field that it comes from."""

    path: FieldPath
    value: Any
    source: FieldPath


@frozen
class Remark:
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


FieldConverter = Callable[[SourceField], Iterator[TargetField | Remark]]
ObjectRemark = tuple[int, Remark]
"""A remark, with the place in the input of the object that it is about."""


@frozen
class ImportResult:
    """Objects of fanout, and the remarks about the source objects."""

    objects: tuple[Mapping[str, Any], ...]
    remarks: tuple[ObjectRemark, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether everything that the source objects request was carried over."""
        return not any(remark.is_lost for _, remark in self.remarks)


LAST_APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def copy_value(source: SourceField) -> Iterator[TargetField | Remark]:
    """Copy the value unchanged."""
    yield TargetField(source.target, source.value, source.path)


def copy_text(source: SourceField) -> Iterator[TargetField | Remark]:
    """Copy the value unless it is empty text, which is how Go writes an absent one."""
    if source.value != "":
        yield from copy_value(source)


def copy_distinct(source: SourceField) -> Iterator[TargetField | Remark]:
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

    def convert_field(source: SourceField) -> Iterator[TargetField | Remark]:
        if not isinstance(source.value, Mapping):
            yield from copy_value(source)
            return
        remaining = {
            key: it for key, it in source.value.items() if not str(key).startswith(prefixes)
        }
        if remaining:
            yield TargetField(source.target, remaining, source.path)

    return convert_field


def report_unsupported(*ignored_values: Any, problem: str, remedy: str) -> FieldConverter:
    """Return a converter for an unsupported field: other values are reported as lost."""

    def convert_field(source: SourceField) -> Iterator[TargetField | Remark]:
        if source.value not in ignored_values:
            yield Remark(source.path, problem, remedy)

    return convert_field


def reject_object(*ignored_values: Any, problem: str, remedy: str) -> FieldConverter:
    """Return a converter that rejects the object unless the value is one of these."""

    def convert_field(source: SourceField) -> Iterator[TargetField | Remark]:
        if source.value not in ignored_values:
            yield Remark(
                source.path, problem.format(format_value(source.value)), remedy, invalidates=()
            )

    return convert_field


def note_unsupported(*ignored_values: Any, problem: str) -> FieldConverter:
    """Return a converter for an unsupported field that is mentioned but loses nothing."""

    def convert_field(source: SourceField) -> Iterator[TargetField | Remark]:
        if source.value not in ignored_values:
            yield Remark(source.path, problem, is_lost=False)

    return convert_field


def ignore_field(_: SourceField) -> Iterator[TargetField | Remark]:
    """Ignore a field that a program wrote or that has no effect."""
    return iter(())
