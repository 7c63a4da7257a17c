"""Reading a function's configuration: a ConfigMap's data, or the fields of its own kind."""

from fanout.errors import InvalidInput
from fanout.variants.functions.function import Object, mapping

FUNCTION_GROUP = "fn.kpt.dev/"


def is_own_kind(config: Object, kind: str) -> bool:
    """Is the configuration an object of this kind, not a ConfigMap? Raises InvalidInput."""
    api_version, found = str(config.get("apiVersion", "")), config.get("kind")
    if (api_version, found) == ("v1", "ConfigMap"):
        return False
    if api_version.startswith(FUNCTION_GROUP) and found == kind:
        return True
    raise InvalidInput(
        f"the configuration is of kind {found} ({api_version})",
        remedy=f"use a v1 ConfigMap or a {FUNCTION_GROUP}v1alpha1 {kind}",
    )


def text_values(config: Object, kind: str, field: str) -> tuple[tuple[str, str], ...]:
    """The map to set, sorted: `data` of a ConfigMap or `field` of the kind. Raises InvalidInput."""
    field = field if is_own_kind(config, kind) else "data"
    values = mapping(config.get(field))
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"{field}.{key} is not text", remedy="put the value in quotes")
    return tuple(sorted(values.items()))
