"""Configuration of functions: a ConfigMap's data, or fields of an own kind.

Functions are configured by texts alone; `infer_value` gives such a text the type that
it has at its place in an object.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from fanout.api.field_errors import suggest_name
from fanout.api.text_fields import PATTERN_MESSAGES
from fanout.errors import InvalidInput
from fanout.package.value_spelling import ValueSpelling
from fanout.package.yaml_scalars import format_number, resolve_scalar
from fanout.variants.functions.function_interface import Object, Path, mapping


class UnknownField(InvalidInput):
    """The function has no setting of this name."""


FUNCTION_GROUP = "fn.kpt.dev/"


def is_function_kind(config: Object, kind: str) -> bool:
    """Return whether the configuration is of the function's kind; False for a ConfigMap.

    Raises InvalidInput for other kinds.
    """
    api_version, config_kind = str(config.get("apiVersion", "")), config.get("kind")
    if (api_version, config_kind) == ("v1", "ConfigMap"):
        return False
    if api_version.startswith(FUNCTION_GROUP) and config_kind == kind:
        return True
    raise InvalidInput(
        f"the configuration is of kind {config_kind} ({api_version})",
        remedy=f"use a v1 ConfigMap or a {FUNCTION_GROUP}v1alpha1 {kind}",
    )


def parse_data(config: Object) -> tuple[tuple[str, str], ...]:
    """Return the sorted data of a ConfigMap. Raises InvalidInput for other kinds."""
    api_version, config_kind = config.get("apiVersion"), config.get("kind")
    if (api_version, config_kind) != ("v1", "ConfigMap"):
        raise InvalidInput(
            f"the configuration is of kind {config_kind} ({api_version})",
            remedy="use a v1 ConfigMap",
        )
    return parse_texts(config.get("data"), "data")


def parse_fields(values: object, field: str, known_names: Collection[str]) -> Mapping[str, str]:
    """Return texts by setting name.

    `field` is where they are in the configuration, for errors. Raises UnknownField for
    other names and InvalidInput for values that are not text.
    """
    texts = dict(parse_texts(values, field))
    for key in texts:
        if key not in known_names:
            alternatives = f"use {', '.join(known_names)}" if known_names else "remove it"
            raise UnknownField(
                f"unknown field {field}.{key}",
                remedy=suggest_name(key, list(known_names), alternatives),
            )
    return texts


@contextmanager
def errors_at(field: str) -> Iterator[None]:
    """Put the field of the configuration in front of the errors that are raised here."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{field}: {error.problem}", remedy=error.remedy) from None


def check_words(words: Iterable[str], pattern: str) -> None:
    """Raise InvalidInput for words that Kubernetes would reject at their place.

    `pattern` is one of those with a message in `PATTERN_MESSAGES`.
    """
    problem, remedy = PATTERN_MESSAGES[pattern]
    for word in words:
        if re.fullmatch(pattern, word) is None:
            raise InvalidInput(f"{word!r} {problem}", remedy=remedy)


def check_inline_names(config: Object, known_names: Collection[str]) -> None:
    """Raise InvalidInput for unknown names in a configuration for this function alone.

    A ConfigMap of the package has a name and may serve others too, so its keys are not checked.
    """
    if config.get("kind") == "ConfigMap" and not mapping(config.get("metadata")).get("name"):
        parse_fields(config.get("data"), "data", known_names)


def refuse_settings(config: Object) -> None:
    """Raise InvalidInput for any setting, for a function without settings."""
    check_inline_names(config, ())


def parse_texts(values: object, field: str) -> tuple[tuple[str, str], ...]:
    """Return texts by name, sorted. Raises InvalidInput for what is no map of texts."""
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput(f"{field} is not a map", remedy="write names and values")
    for key, value in mapping(values).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"{field}.{key} is not a string", remedy="put the value in quotes")
    return tuple(sorted(mapping(values).items()))


_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
_CONFIGURATION = frozenset({("v1", "ConfigMap"), ("v1", "Secret")})


def infer_value(text: str, spelling: ValueSpelling, path: Path, item: Object) -> object:
    """Return the value that the text is at this place of the object.

    As in the catalog, a quoted value stays text, and any other becomes what it reads as.
    Labels, annotations and a ConfigMap's data stay text, since Kubernetes requires that,
    and so does a number that would lose a digit (1.20).
    """
    if not text or spelling.quoted:
        return text
    if len(path) > 1:
        kind = (item.get("apiVersion"), item.get("kind"))
        is_data = path[0] in ("data", "stringData") and kind in _CONFIGURATION
        if path[-2] in _TEXT_MAPS or is_data:
            return text
    try:
        value = resolve_scalar(text)
    except ValueError:
        return text
    if isinstance(value, float) and format_number(value) != text:
        return text
    return value
