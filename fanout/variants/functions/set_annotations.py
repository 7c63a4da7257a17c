"""set-annotations: the same annotations on every object of a package and on its pod templates."""

from collections.abc import Iterator

from fanout.api.texts import LABEL_KEY
from fanout.errors import InvalidInput
from fanout.values import frozen
from fanout.variants.functions.config import check_words, is_own_kind, text_values
from fanout.variants.functions.fields import Field, Values, further, set_values
from fanout.variants.functions.function import Change, Facts, InProcess, Object, kinds_only
from fanout.variants.functions.pods import BATCH, in_templates

_ANNOTATIONS = ("metadata", "annotations")

FIELDS: tuple[Field, ...] = (
    Field((), _ANNOTATIONS),
    Field(("spec", "jobTemplate"), _ANNOTATIONS, frozenset({"CronJob"}), BATCH),
    *in_templates((), _ANNOTATIONS),
)


@frozen
class _Config:
    values: Values
    fields: tuple[Field, ...]


def _configure(config: Object) -> _Config:
    values = text_values(config, "SetAnnotations", "annotations")
    if not values:
        raise InvalidInput("no annotations are given", remedy="name at least one annotation")
    check_words([key for key, _ in values], LABEL_KEY)
    rows: object = None
    if is_own_kind(config, "SetAnnotations"):
        rows = config.get("additionalAnnotationFields")
    return _Config(values, FIELDS + further(rows, "additionalAnnotationFields"))


def _changes(config: _Config, item: Object, _facts: Facts) -> Iterator[Change]:
    return set_values(config.fields, config.values, item)


SET_ANNOTATIONS = InProcess("set-annotations", "1", _configure, _changes, heeds=kinds_only)
