"""Reading a function's configuration: a ConfigMap's data, or the fields of its own kind."""

import re
from collections.abc import Collection, Iterable, Mapping

from fanout.api.nearest import suggestion
from fanout.api.texts import SENTENCES
from fanout.errors import InvalidInput
from fanout.variants.functions.function import Object, mapping


class UnknownField(InvalidInput):
    """The function has no setting of this name."""


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


def data_of(config: Object) -> tuple[tuple[str, str], ...]:
    """The data, sorted, of a function that has no kind of its own. Raises InvalidInput."""
    api_version, found = config.get("apiVersion"), config.get("kind")
    if (api_version, found) != ("v1", "ConfigMap"):
        raise InvalidInput(
            f"the configuration is of kind {found} ({api_version})", remedy="use a v1 ConfigMap"
        )
    return _texts(config.get("data"), "data")


def fields_of(values: object, field: str, known: Collection[str]) -> Mapping[str, str]:
    """Texts by the names that the function knows. Raises InvalidInput for other names, and for
    what is no text."""
    found = dict(_texts(values, field))
    for key in found:
        if key not in known:
            there = f"there are {', '.join(known)}" if known else "remove it"
            raise UnknownField(
                f"{field}.{key} is not understood", remedy=suggestion(key, list(known), there)
            )
    return found


def check_words(words: Iterable[str], pattern: str) -> None:
    """Refuse words that Kubernetes would refuse where they are put. Raises InvalidInput.

    `pattern` is one of those that have a sentence in `fanout.api.texts`.
    """
    problem, remedy = SENTENCES[pattern]
    for word in words:
        if re.fullmatch(pattern, word) is None:
            raise InvalidInput(f"{word!r} {problem}", remedy=remedy)


def check_inline(config: Object, known: Collection[str]) -> None:
    """Refuse names that the function does not know, where the configuration was written for it.

    A ConfigMap of the package is often there for others too, and has a name. Raises InvalidInput.
    """
    if config.get("kind") == "ConfigMap" and not mapping(config.get("metadata")).get("name"):
        fields_of(config.get("data"), "data", known)


def text_values(config: Object, kind: str, field: str) -> tuple[tuple[str, str], ...]:
    """The map to set, sorted: `data` of a ConfigMap or `field` of the kind. Raises InvalidInput."""
    field = field if is_own_kind(config, kind) else "data"
    return _texts(config.get(field), field)


def _texts(values: object, field: str) -> tuple[tuple[str, str], ...]:
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput(f"{field} is no map", remedy="give names and values")
    for key, value in mapping(values).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"{field}.{key} is not text", remedy="put the value in quotes")
    return tuple(sorted(mapping(values).items()))
