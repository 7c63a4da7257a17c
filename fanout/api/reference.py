"""The page of a kind, made of the models' own descriptions, so that it cannot lag behind them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fanout.api import durations
from fanout.api.crds import structural
from fanout.api.faults import Path
from fanout.api.kinds import KINDS
from fanout.api.unsupported import TABLE, Row, is_refused
from fanout.values import frozen

_HEAD = ("| field | type | default | description |", "|---|---|---|---|")
# the page of another kind has their fields
_ELSEWHERE = {("Scenario", ("spec", "stages", 0)), ("Scenario", ("spec", "promotion"))}
_LEFT_OUT = ("apiVersion", "kind", "metadata", "status")  # alike in all kinds


def kind_page(kind: str) -> str:
    """The page of a kind as Markdown: the fields that work, then those that do not yet."""
    model = KINDS[kind]
    schema = model.model_json_schema(by_alias=True, mode="validation")
    whole = structural(schema, schema.get("$defs", {}))
    lines = [f"# {kind}", "", whole["description"], "", "```yaml"]
    lines += ["apiVersion: fanout.dev/v1alpha1", f"kind: {kind}", "```", ""]
    if model.SHORT_NAMES:
        lines += [f"Short name: `{'`, `'.join(model.SHORT_NAMES)}`.", ""]
    lines += ["## Fields", "", *_HEAD]
    own = {name: field for name, field in whole["properties"].items() if name not in _LEFT_OUT}
    lines += _Table(kind).rows(whole | {"properties": own}, ())
    return "\n".join([*lines, *_refused(kind)]) + "\n"


@frozen
class _Table:
    """The table of a kind's fields; what is refused is not in it."""

    kind: str

    def rows(self, schema: Mapping[str, Any], path: Path) -> Iterator[str]:
        """One row for each field below an object, its own fields right after it."""
        for name, field in schema["properties"].items():
            inside: Path = (*path, name)
            if is_refused(self.kind, inside):
                continue
            default = "required" if name in schema.get("required", ()) else _default(field)
            about = field["description"].replace("|", "\\|")
            yield f"| `{_written(inside)}` | {self.type(field, inside)} | {default} | {about} |"
            while "items" in field:
                inside, field = (*inside, 0), field["items"]  # noqa: PLW2901 - one step down
            if "properties" in field and (self.kind, inside) not in _ELSEWHERE:
                yield from self.rows(field, inside)

    def type(self, field: Mapping[str, Any], path: Path) -> str:
        """What may be written there, in a word or by its values."""
        if field.get("x-kubernetes-int-or-string"):
            return "number or percentage"
        if "enum" in field:
            usable = [value for value in field["enum"] if not is_refused(self.kind, path, value)]
            return ", ".join(f"`{_value(value)}`" for value in usable)
        if field["type"] == "array":
            return f"list of {self.type(field['items'], (*path, 0))}"
        if "additionalProperties" in field:
            return f"map of {self.type(field['additionalProperties'], path)}"
        return "duration" if field.get("pattern") == durations.PATTERN else str(field["type"])


def _written(path: Path) -> str:
    return ".".join("[]" if part == 0 else str(part) for part in path).replace(".[]", "[]")


def _default(field: Mapping[str, Any]) -> str:
    return f"`{_value(field['default'])}`" if "default" in field else ""


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(kind: str) -> list[str]:
    lines: list[str] = []
    for heading, former in (("Not supported yet", False), ("Not supported any more", True)):
        rows = [row for row in TABLE if row.kind == kind and row.is_former is former]
        if rows:
            about = "Refused by name wherever they are written."
            lines += ["", f"## {heading}", "", about, "", *_rows(rows)]
    return lines


def _rows(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        values = ", ".join(f"`{value}`" for value in row.values)
        remedy = f"; {row.remedy}" if row.is_former else ""
        yield f"* `{row.path}`{f': {values}' if values else ''} ({row.why}{remedy})"
