"""Tables of another program's fields, and the conversion of objects along them.

A field without a row is unknown to the other program too and is reported as such.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fanout.api.field_errors import FieldPath
from fanout.api.text_fields import format_value
from fanout.migrate import field_conversion
from fanout.migrate.field_conversion import FieldConverter, Remark, SourceField, TargetField
from fanout.values import frozen

UNCHANGED = "as it is"
_SERVER_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionGracePeriodSeconds", "finalizers", "ownerReferences", "managedFields"),
    *("selfLink", "generateName"),
)


@frozen
class FieldMapping:
    """Source field, its counterpart ("" for none), converter, and description for docs."""

    source: str
    target: str
    convert: FieldConverter
    description: str = UNCHANGED


@frozen
class KindMapping:
    """Source kind with its fields, and the kind of fanout that it becomes."""

    kind: str
    version: str
    target_kind: str
    rows: tuple[FieldMapping, ...]


def server_field_mappings(program: str) -> Iterator[FieldMapping]:
    """Yield the fields that the API server and the program's controllers write."""
    for field in _SERVER_FIELDS:
        yield FieldMapping(
            f"metadata.{field}", "", field_conversion.ignore_field, "the API server's own"
        )
    yield FieldMapping(
        "metadata.deletionTimestamp",
        "",
        field_conversion.reject_object(
            problem="is being deleted, since {}", remedy="import it if it is to stay"
        ),
        "what is being deleted is left out and named",
    )
    yield FieldMapping(
        "status", "", field_conversion.ignore_field, f"written by {program}, not by people"
    )


TargetPathResolver = Callable[[str, FieldPath], FieldPath]
"""From the pattern of a counterpart and the path of what was found: the counterpart's path."""


def resolve_target_path(pattern: str, path: FieldPath) -> FieldPath:
    """Return the path of a counterpart.

    Each `[*]` of its pattern takes the next index of the source.
    """
    indices = (part for part in path if isinstance(part, int))
    steps = pattern.replace("[*]", ".*").split(".") if pattern else []
    return tuple(next(indices) if step == "*" else step for step in steps)


def convert_object(
    mapping: KindMapping,
    item: Mapping[str, Any],
    resolve_path: TargetPathResolver = resolve_target_path,
) -> Iterator[TargetField | Remark]:
    """Yield target fields and remarks for the fields of an object, in its own order."""
    return _ObjectConversion(mapping, item, resolve_path).convert_below(item, (), "")


class _ObjectConversion:
    """Conversion of one object along the table of its kind."""

    def __init__(
        self, mapping: KindMapping, item: Mapping[str, Any], resolve_path: TargetPathResolver
    ) -> None:
        self._rows: dict[str, FieldMapping] = {row.source: row for row in mapping.rows}
        self._parents = {part for row in mapping.rows for part in _parent_patterns(row.source)}
        self._known = self._parents | self._rows.keys()
        self._kind = mapping.kind
        self._object = item
        self._resolve_path = resolve_path

    def convert_below(
        self, value: Any, path: FieldPath, pattern: str
    ) -> Iterator[TargetField | Remark]:
        """Yield target fields and remarks for the fields below a value."""
        if not isinstance(value, Mapping):
            yield Remark(path, f"must be an object and is {format_value(value)}", "correct it")
            return
        for key, inner in value.items():
            if not path and key in ("apiVersion", "kind"):
                continue
            inner_pattern = f"{pattern}.{key}" if pattern else str(key)
            yield from self._convert_field(inner, (*path, str(key)), inner_pattern)

    def _convert_field(
        self, value: Any, path: FieldPath, pattern: str
    ) -> Iterator[TargetField | Remark]:
        if value is None:  # Go reads null as absent
            return
        if pattern in self._rows:
            row = self._rows[pattern]
            yield from row.convert(
                SourceField(path, value, self._resolve_path(row.target, path), self._object)
            )
        elif f"{pattern}[*]" in self._known:
            yield from self._convert_list(value, path, f"{pattern}[*]")
        elif pattern in self._parents:
            yield from self.convert_below(value, path, pattern)
        else:
            problem = f"is no field of a {self._kind} that is known"
            yield Remark(path, problem, "correct or remove it")

    def _convert_list(
        self, value: Any, path: FieldPath, pattern: str
    ) -> Iterator[TargetField | Remark]:
        if not isinstance(value, list | tuple):
            yield Remark(path, f"must be a list and is {format_value(value)}", "correct it")
            return
        for index, inner in enumerate(value):
            if inner in (None, {}, ""):
                yield Remark((*path, index), "is empty", "remove it")
            else:
                yield from self._convert_field(inner, (*path, index), pattern)


def _parent_patterns(pattern: str) -> Iterator[str]:
    """Yield the patterns of all parents of a field: `spec`, `spec.targets[*]`."""
    steps = pattern.split(".")
    yield from (".".join(steps[:length]) for length in range(1, len(steps)))


def build_field_tables(origins: Sequence[KindMapping], group: str) -> str:
    """Return Markdown with a section and a table of fields for every converted kind."""
    mappings_by_kind = [
        {(row.source, row.target, row.description): row for row in it.rows} for it in origins
    ]
    common_mappings = [
        row
        for key, row in mappings_by_kind[0].items()
        if all(key in rows for rows in mappings_by_kind)
    ]
    sections = [_build_section("All kinds", common_mappings)]
    for origin, rows in zip(origins, mappings_by_kind, strict=True):
        own_mappings = (
            row for key, row in rows.items() if not all(key in other for other in mappings_by_kind)
        )
        sections.append(_build_section(_section_title(origin, group), own_mappings))
    return "\n".join("\n".join(section) for section in sections)


def _section_title(origin: KindMapping, group: str) -> str:
    return f"{origin.kind} ({group}/{origin.version}) becomes {origin.target_kind}"


def _build_section(title: str, rows: Iterable[FieldMapping]) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| field | becomes | how |\n|---|---|---|"
    for row in rows:
        target = f"`{row.target.replace('[*]', '[]')}`" if row.target else "nothing"
        yield f"| `{row.source.replace('[*]', '[]')}` | {target} | {row.description} |"
    yield ""
