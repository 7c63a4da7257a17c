"""set-annotations: set annotations on all objects of a package and pod templates."""

from fanout.values import Value
from fanout.variants.functions.field_specs import (
    BATCH,
    FieldSpec,
    SortedTexts,
    parse_field_specs,
    pod_template_fields,
    set_values,
)
from fanout.variants.functions.function_config import is_function_kind, parse_values
from fanout.variants.functions.function_interface import CatalogFunction, Object, kind_values

_ANNOTATIONS = ("metadata", "annotations")

FIELDS: tuple[FieldSpec, ...] = (
    FieldSpec((), _ANNOTATIONS),
    FieldSpec(("spec", "jobTemplate"), _ANNOTATIONS, frozenset({"CronJob"}), BATCH),
    *pod_template_fields((), _ANNOTATIONS),
)


class _Config(Value):
    values: SortedTexts
    fields: tuple[FieldSpec, ...]


def _configure(config: Object) -> _Config:
    values = parse_values(config, "SetAnnotations", "annotations")
    rows: object = None
    if is_function_kind(config, "SetAnnotations"):
        rows = config.get("additionalAnnotationFields")
    return _Config(values, FIELDS + parse_field_specs(rows, "additionalAnnotationFields"))


SET_ANNOTATIONS = CatalogFunction(
    "set-annotations",
    "1",
    _configure,
    lambda config, item, _facts: set_values(config.fields, config.values, item),
    depends_on=kind_values,
)
