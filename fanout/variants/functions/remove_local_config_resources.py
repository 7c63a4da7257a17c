"""remove-local-config-resources: takes objects that are for tools alone out of the package.

Kptfiles stay: without one the variant would be no package any more.
"""

from collections.abc import Iterator

from fanout.package.edits import REMOVE
from fanout.variants.functions.config import check_inline
from fanout.variants.functions.function import (
    LOCAL_CONFIG,
    Change,
    Facts,
    InProcess,
    Object,
    mapping,
)


def _configure(config: Object) -> None:
    """It has nothing to configure. Raises InvalidInput for what is given all the same."""
    check_inline(config, ())


def _changes(_config: None, item: Object, _facts: Facts) -> Iterator[Change]:
    note = mapping(mapping(item.get("metadata")).get("annotations")).get(LOCAL_CONFIG)
    if str(note).lower() == "true":
        yield (), REMOVE


REMOVE_LOCAL_CONFIG_RESOURCES = InProcess(
    "remove-local-config-resources", "1", _configure, _changes, sees_local=True
)
