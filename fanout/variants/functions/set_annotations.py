"""set-annotations: the same annotations on every object of a package and on its pod templates."""

from collections.abc import Iterator
from dataclasses import dataclass

from fanout.errors import InvalidInput
from fanout.variants.functions.config import is_own_kind, text_values
from fanout.variants.functions.fields import Field, Values, set_values
from fanout.variants.functions.function import Change, Facts, InProcess, Object, mapping
from fanout.variants.functions.pods import BATCH, in_templates

_ANNOTATIONS = ("metadata", "annotations")

FIELDS: tuple[Field, ...] = (
    Field((), _ANNOTATIONS),
    Field(("spec", "jobTemplate"), _ANNOTATIONS, frozenset({"CronJob"}), BATCH),
    *in_templates((), _ANNOTATIONS),
)


@dataclass(frozen=True, slots=True)
class _Config:
    values: Values
    fields: tuple[Field, ...]


def _configure(config: Object) -> _Config:
    values = text_values(config, "SetAnnotations", "annotations")
    if not values:
        raise InvalidInput(
            "set-annotations: no annotations are given", remedy="name at least one annotation"
        )
    rows: object = None
    if is_own_kind(config, "SetAnnotations"):
        rows = config.get("additionalAnnotationFields")
    extra = tuple(_extra(row) for row in rows) if isinstance(rows, list) else ()
    return _Config(values, FIELDS + extra)


def _extra(row: object) -> Field:
    """An entry of `additionalAnnotationFields`: `path` with ``/``, and which objects have it."""
    wanted = {key: value for key, value in mapping(row).items() if value is not None}
    unknown = sorted(set(wanted) - {"group", "version", "kind", "path", "create"})
    path = tuple(str(wanted.get("path", "")).replace("[]", "/*").strip("/").split("/"))
    if unknown or not all(path):
        raise InvalidInput(
            f"additionalAnnotationFields: {', '.join(unknown) or 'path'} is not understood",
            remedy="give path and, where it helps, group, version, kind and create",
        )
    # Elements of a list are never made, nor is anything where `create` does not say so.
    listed = len(path) - path[::-1].index("*") if "*" in path else 0
    there = listed if wanted.get("create") else len(path)
    return Field(
        at=path[:there],
        below=path[there:],
        kinds=frozenset({str(wanted["kind"])}) if "kind" in wanted else frozenset(),
        groups=frozenset({str(wanted["group"])}) if "group" in wanted else None,
        version=str(wanted.get("version", "")),
    )


def _changes(config: _Config, item: Object, _facts: Facts) -> Iterator[Change]:
    return set_values(config.fields, config.values, item)


SET_ANNOTATIONS = InProcess("set-annotations", "1", _configure, _changes)
