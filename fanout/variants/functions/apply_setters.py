"""apply-setters: set the values that `kpt-set` comments name."""

import re
from collections import ChainMap
from collections.abc import Iterator

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.package.manifest import Manifest
from fanout.package.yaml_scalars import resolve_scalar
from fanout.variants.functions.field_specs import SortedTexts
from fanout.variants.functions.function_config import infer_value, parse_data
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Matching,
    Object,
    PackageFacts,
    UnfitObject,
)
from fanout.variants.functions.setter_patterns import (
    derive_values,
    fill_pattern,
    find_setter_patterns,
    setter_names,
    single_setter,
)

_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_/][^\n]*\Z")


def _changes(config: SortedTexts, item: Object, facts: PackageFacts) -> Iterator[Change]:
    assert facts.text is not None
    values = dict(config)
    for path, pattern in find_setter_patterns(facts.text):
        value = get_value(item, path)
        if value is MISSING or not any(name in values for name in setter_names(pattern)):
            continue
        if isinstance(value, list):
            name = single_setter(pattern)
            if not name:
                raise UnfitObject(path, f"{pattern} is not a setter of a list", "name one setter")
            list_elements = parse_elements(values[name])
            if list_elements is None:
                raise UnfitObject(path, f"{name} is not a list", "write a list as YAML")
            yield path, list_elements
        elif not isinstance(value, dict):
            spelling = facts.text.spelling(path)
            # A pattern may combine several setters of which only some are given; the others keep
            # the values that they have in the text.
            setter_values = ChainMap(values, derive_values(pattern, spelling.text or ""))
            missing_names = [name for name in setter_names(pattern) if name not in setter_values]
            if missing_names:
                raise UnfitObject(
                    path,
                    f"there is no value for {', '.join(dict.fromkeys(missing_names))}",
                    "add it; it cannot be derived from the current value",
                )
            assert facts.size_limiter is not None, "a function that reads texts has a size limiter"
            text = fill_pattern(pattern, setter_values, facts.size_limiter, path)
            yield path, infer_value(text, spelling, path, item)


def parse_elements(text: str) -> list[object] | None:
    """Return the list that the text represents, empty for no text, or None if it is no list."""
    if not text.strip():
        return []
    try:
        documents = Manifest.parse(text.encode(), "setter").documents
    except InvalidInput:
        return None
    value = documents[0].value if len(documents) == 1 else None
    return value if isinstance(value, list) else None


def _depends_on(_config: SortedTexts, item: Object, facts: PackageFacts) -> Iterator[object]:
    """Yield the present values, from which setters without a given value are derived."""
    assert facts.text is not None
    yield from (get_value(item, path) for path, _ in find_setter_patterns(facts.text))


def _find_names(config: SortedTexts, _item: Object, facts: PackageFacts) -> Iterator[str]:
    """Yield the given setters that the object has."""
    assert facts.text is not None
    given_names = dict(config).keys()
    for _, pattern in find_setter_patterns(facts.text):
        yield from given_names & set(setter_names(pattern))


APPLY_SETTERS = CatalogFunction(
    "apply-setters",
    "2",
    parse_data,
    _changes,
    reads_text=True,
    includes_local=True,
    depends_on=_depends_on,
    # A text that stays text everywhere, being neither number nor list.
    passes_through=lambda _name, text: (
        _PLAIN_TEXT.match(text) is not None and isinstance(resolve_scalar(text), str)
    ),
    matching=Matching(
        lambda config: frozenset(dict(config)), _find_names, "no field has a setter {}".format
    ),
)
