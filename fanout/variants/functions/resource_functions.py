"""upsert-resource and remove-local-config-resources: add, replace and remove objects.

upsert-resource adds an object to the package, or replaces the existing one. The object is the
function's configuration, or each item if that is a List. When an object is replaced, only differing
values change, so that comments on the rest stay.

A configuration file in the package is itself an object of the package and therefore already there,
unless it is marked local-config. The mark applies to that file and is not copied.

remove-local-config-resources removes local-config objects. Kptfiles stay, since the variant would
not be a package without one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fanout.api.text_fields import normalize_inside
from fanout.errors import InvalidInput
from fanout.package.field_edits import REMOVE, canonical_text, get_value
from fanout.package.merge.merge_units import LOCAL_CONFIG, is_local_config
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Object,
    PackageFacts,
    VisibleObject,
    declared_identity,
    default_file,
    is_named_object,
    mapping,
    refuse_settings,
    with_annotations,
)

TARGET_PATH = "config.kubernetes.io/target-path"
_LOCAL_CONFIG_PATH = ("metadata", "annotations", LOCAL_CONFIG)
_FUNCTION_ANNOTATIONS = ("config.kubernetes.io/function", "config.k8s.io/function")


class _Objects(tuple[tuple[Any, str], ...]):
    """Objects with the files they are meant for; equal when their contents are."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Hash the canonical text, since plain data is not hashable."""
        return hash(canonical_text(list(self)))

    @classmethod
    def parse(cls, config: Object) -> "_Objects":
        if config.get("kind") != "List":
            return cls([_parse_object(config, LOCAL_CONFIG, *_FUNCTION_ANNOTATIONS)])
        items = config.get("items")
        if not isinstance(items, list):
            raise InvalidInput("items is not a list", remedy="write the objects as a list")
        return cls(_parse_object(item, *_FUNCTION_ANNOTATIONS) for item in items)

    def changes(self, item: VisibleObject, _facts: PackageFacts) -> Iterator[Change]:
        for new_object, target_file in self:
            if _is_same_object(new_object, target_file, item):
                yield (), new_object

    def add_objects(self, items: Sequence[VisibleObject]) -> Iterator[tuple[str, Object]]:
        for new_object, target_file in self:
            # An object that exists is replaced by `changes`, which keeps its lines.
            if not any(_is_same_object(new_object, target_file, item) for item in items):
                yield target_file or default_file(new_object), new_object


def _parse_object(item: object, *removed_annotations: str) -> tuple[Any, str]:
    """Return the object without some annotations, and the file that it requests."""
    if not is_named_object(item):
        raise InvalidInput(
            "the configuration is not an object with apiVersion, kind and metadata.name",
            remedy="set configPath to the file of the object to add",
        )
    annotations = dict(mapping(item["metadata"].get("annotations")))
    file = str(annotations.pop(TARGET_PATH, ""))
    file = normalize_inside(file) or file  # a path out of the package is refused when added
    for key in removed_annotations:
        annotations.pop(key, None)
    return with_annotations(item, annotations), file


def _is_same_object(new_object: Object, target_file: str, item: VisibleObject) -> bool:
    return (
        declared_identity(new_object) == declared_identity(item.value)
        and is_local_config(new_object) is is_local_config(item.value)
        and target_file in ("", item.file)
    )


UPSERT_RESOURCE = CatalogFunction(
    "upsert-resource",
    "2",
    _Objects.parse,
    _Objects.changes,
    includes_local=True,
    add_objects=_Objects.add_objects,
)


REMOVE_LOCAL_CONFIG_RESOURCES = CatalogFunction(
    "remove-local-config-resources",
    "1",
    refuse_settings,
    lambda _config, item, _facts: iter(
        [((), REMOVE)] if str(get_value(item.value, _LOCAL_CONFIG_PATH)).lower() == "true" else ()
    ),
    includes_local=True,
)
