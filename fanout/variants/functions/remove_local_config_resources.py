"""remove-local-config-resources: remove local-config objects from the package.

Kptfiles stay, since the variant would not be a package without one.
"""

from collections.abc import Iterator

from fanout.package.field_edits import REMOVE
from fanout.package.merge.merge_units import LOCAL_CONFIG
from fanout.variants.functions.function_config import refuse_settings
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Object,
    PackageFacts,
    mapping,
)


def _changes(_config: None, item: Object, _facts: PackageFacts) -> Iterator[Change]:
    annotation = mapping(mapping(item.get("metadata")).get("annotations")).get(LOCAL_CONFIG)
    if str(annotation).lower() == "true":
        yield (), REMOVE


REMOVE_LOCAL_CONFIG_RESOURCES = CatalogFunction(
    "remove-local-config-resources", "1", refuse_settings, _changes, includes_local=True
)
