"""Validation of one object: all errors at once, with field and remedy."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fanout.api.field_errors import (
    VERY_SIMILAR,
    FieldError,
    FieldPath,
    InvalidValue,
    as_mapping,
    find_similar_name,
    format_path,
    is_field_of_list,
    sort_errors,
    suggest_name,
)
from fanout.api.kind_registry import KINDS, field_names_at, find_field_parents
from fanout.api.object_meta import API_VERSION, GROUP, KRMObject
from fanout.api.text_fields import (
    PATTERN_MESSAGES,
    describe_value,
    format_value,
    join_words,
    pluralize,
)
from fanout.api.validators.field_rules import check_rules
from fanout.api.validators.record_rules import check_effect
from fanout.api.validators.unsupported_fields import check_unsupported, is_unsupported
from fanout.values import replace

_MAX_SUGGESTED_PARENTS = 3  # a field that fits in more places gets no suggestion


def translate_error(model: type[BaseModel], error: ErrorDetails, data: object) -> FieldError:
    """Translate one error of pydantic about an object of this model; `data`: as written."""
    # pydantic adds names of alternatives and validators (`constrained-str`, `literal['']`) and
    # marks keys (`[key]`). Parts that are not in the object are dropped, except a missing field.
    parts: list[str | int] = []
    for number, part in enumerate(error["loc"]):
        is_last = number == len(error["loc"]) - 1
        if isinstance(data, Mapping) and part in data:
            parts.append(part)
            data = data[part]
        elif isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int):
            parts.append(part)
            data = data[part] if part < len(data) else None
        elif is_last and error["type"] == "missing":
            parts.append(part)
    path, value = tuple(parts), error["input"]
    if error["type"] == "extra_forbidden":
        return _unknown_field(model, path)
    if error["type"] == "missing":
        return FieldError(path, "is missing", "add it")
    if error["type"] in ("enum", "literal_error"):
        # The text of pydantic is `'All', 'Any' or 'Majority'`.
        expected = str(error["ctx"]["expected"])
        allowed = re.findall(r"'([^']*)'", expected) or [expected.lower()]
        supported = [it for it in allowed if not is_unsupported(model.__name__, path, it)]
        remedy = f"use {join_words([it or repr(it) for it in supported], 'or')}"
        return FieldError(path, f"unsupported value {format_value(value)}", remedy)
    problem, remedy = _explain_value(error)
    if error["type"].startswith("model_") and (field_names := _supported_fields(model, path)):
        remedy = f"write {join_words(field_names, 'or')} below it"
    return FieldError(path, problem, remedy)


def _unknown_field(model: type[BaseModel], path: FieldPath) -> FieldError:
    """Report an unknown field, misspelled or misplaced. Unsupported ones are not suggested."""
    name, kind = str(path[-1]), model.__name__
    field_names = _supported_fields(model, path[:-1])
    # A near-certain misspelling is preferred to the right name in the wrong place, and that
    # to a vague likeness.
    intended = find_similar_name(name, field_names, VERY_SIMILAR)
    parents = [
        parent
        for parent in find_field_parents(model, name)
        for home in [(*parent, name)]
        if not any(is_unsupported(kind, home[: n + 1]) for n in range(len(home)))
    ]
    if not intended and 0 < len(parents) <= _MAX_SUGGESTED_PARENTS:
        parent_names = [format_path(parent).replace("[0]", "[]") for parent in parents]
        remedy = f"move it to {join_words(parent_names, 'or')}"
        return FieldError(path, "unknown field here", remedy)
    intended = intended or find_similar_name(name, field_names)
    fallback = f"remove it; there are {', '.join(field_names)}" if field_names else "remove it"
    remedy = f"did you mean {intended}?" if intended else fallback
    return FieldError(path, "unknown field", remedy, intended_field=intended)


def _supported_fields(model: type[BaseModel], path: FieldPath) -> list[str]:
    return [
        name
        for name in field_names_at(model, path)
        if not is_unsupported(model.__name__, (*path, name))
    ]


def _explain_value(error: ErrorDetails) -> tuple[str, str]:
    value, details = error["input"], error.get("ctx", {})
    problem, remedy = error["msg"], "correct it"
    match error["type"]:
        case "value_error":
            invalid = details["error"]
            assert isinstance(invalid, InvalidValue), f"a validator raised {invalid!r}"
            problem, remedy = invalid.problem, invalid.remedy
        case "string_pattern_mismatch":
            problem, remedy = PATTERN_MESSAGES[details["pattern"]]
            problem = f"{format_value(value)} {problem}"
        case "string_type":
            problem = f"expected a string, got {describe_value(value)}"
            remedy = "quote it" if isinstance(value, (bool, int, float)) else "write a string"
        case "string_too_short":
            problem, remedy = "is empty", "write a value"
        case "too_short":
            problem, remedy = "is empty", "add at least one entry"
        case "string_too_long":
            limit = pluralize(details["max_length"], "character")
            problem, remedy = f"is longer than {limit}", "shorten it"
        case "too_long":
            problem, remedy = f"has more than {details['max_length']} entries", "write fewer"
        case "greater_than_equal" | "less_than_equal" | "greater_than" as comparison:
            limit = next(iter(details.values()))
            problem = f"{format_value(value)} is out of range"
            remedy = f"write {_COMPARISONS[comparison]} {limit}"
        case name if expected := _EXPECTED_TYPES.get(name):
            problem = f"expected {expected}, got {describe_value(value)}"
            remedy = f"write {expected}"
    return problem, remedy


_COMPARISONS: Mapping[str, str] = {
    "greater_than_equal": "at least",
    "less_than_equal": "at most",
    "greater_than": "more than",
}
_EXPECTED_TYPES: Mapping[str, str] = {
    "tuple_type": "a list",
    "mapping_type": "an object",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
}

_FIELD_WORD = re.compile(r"\w+")


def is_fanout_object(data: Mapping[str, Any]) -> bool:
    """Return whether the object is of group fanout.dev, of any version and kind."""
    version = data.get("apiVersion")
    return isinstance(version, str) and version.startswith(f"{GROUP}/")


def validate_object(data: Mapping[str, Any]) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    """Return the parsed object and no errors, or None and all errors of the data.

    Warnings are reported by `cross_check`. `status` is not read: fanout alone writes it.
    """
    parsed, errors = validate_stored_record(data)
    covered = {error.path for error in errors}
    effect_errors = check_effect(data) if isinstance(data, Mapping) else ()
    errors = sort_errors([*errors, *(it for it in effect_errors if it.path not in covered)])
    return (None, errors) if errors else (parsed, ())


def validate_stored_record(
    data: Mapping[str, Any],
) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    """Parse a record that may be one without any effect; return it, or None and all errors."""
    if not isinstance(data, Mapping):
        return None, (
            FieldError((), "is not an object", "write apiVersion, kind, metadata and spec"),
        )
    if errors := tuple(_check_identity(data)):
        return None, errors
    # Without a known version and kind no rule applies, so identity errors are returned alone above.
    kind = data["kind"]
    key_errors: list[FieldError] = []
    text_keyed = _with_text_keys(
        {key: data[key] for key in data if key != "status"}, (), key_errors
    )
    data_errors = [
        *key_errors,
        *_check_empty(text_keyed, ()),
        *_check_with_embedded(kind, text_keyed, check_unsupported),
    ]
    model, parsed = KINDS[kind], None
    model_errors: Iterable[FieldError] = ()
    try:
        parsed = model.model_validate(text_keyed, by_alias=True, by_name=False)
    except ValidationError as invalid:
        # A list with only invalid entries counts as empty; that error would be redundant.
        details = [
            it
            for it in invalid.errors(include_url=False)
            if not (it["type"] == "too_short" and it["input"])
        ]
        translated = [translate_error(model, it, text_keyed) for it in details]
        # A value has an error for each alternative of its type; the first one counts.
        model_errors = {error.path: error for error in reversed(translated)}.values()
    rule_errors = _check_with_embedded(kind, text_keyed, check_rules)
    # A list in place of an object is one error; the fields that the object lacks are not reported.
    placed_errors = (it for it in rule_errors if not is_field_of_list(text_keyed, it.path))
    # An unsupported or empty field usually breaks rules and models below it as well; those errors
    # would only repeat the first one in other words.
    covered = {error.path for error in data_errors}
    further_errors = (
        error
        for error in _without_follow_ons([*model_errors, *placed_errors])
        if not any(error.path[:length] in covered for length in range(len(error.path) + 1))
    )
    errors = sort_errors([*data_errors, *further_errors])
    return (None, errors) if errors else (parsed, ())


def _check_with_embedded(
    kind: str,
    data: Mapping[str, Any],
    check: Callable[[str, Mapping[str, Any]], Iterator[FieldError]],
) -> Iterator[FieldError]:
    """Yield the errors of an object, and of the specs of other kinds that a scenario embeds."""
    yield from check(kind, data)
    spec = as_mapping(data, "spec") if kind == "Scenario" else {}
    embedded: list[tuple[str, Mapping[str, Any], FieldPath]] = []
    if "stages" in spec:
        embedded.append(("UpstreamPolicy", {"stages": spec["stages"]}, ("spec",)))
    if "promotion" in spec:
        # A PromotionPolicy must name policies; in a scenario it governs the only one.
        promotion = {"policies": ["*"], **as_mapping(spec["promotion"])}
        embedded.append(("PromotionPolicy", promotion, ("spec", "promotion")))
    for embedded_kind, embedded_spec, path in embedded:
        for error in check(embedded_kind, {"spec": embedded_spec}):
            yield replace(error, path=(*path, *error.path[1:]))


def _check_identity(data: Mapping[str, Any]) -> Iterator[FieldError]:
    version, kind = data.get("apiVersion"), data.get("kind")
    if version is None:
        yield FieldError(("apiVersion",), "is missing", f"write {API_VERSION}")
    elif version != API_VERSION:
        problem = f"unsupported apiVersion {format_value(version)}"
        yield FieldError(("apiVersion",), problem, f"write {API_VERSION}")
    if kind is None:
        yield FieldError(("kind",), "is missing", f"use one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        remedy = suggest_name(str(kind), tuple(KINDS), f"use one of {', '.join(KINDS)}")
        yield FieldError(("kind",), f"unknown kind {format_value(kind)}", remedy)


def _without_follow_ons(errors: Sequence[FieldError]) -> Iterator[FieldError]:
    """Drop errors about missing fields that are present under a misspelled name."""
    intended: set[FieldPath] = {
        (*error.path[:-1], error.intended_field) for error in errors if error.intended_field
    }
    for error in errors:
        missing = {
            error.path,
            *((*error.path, word) for word in _FIELD_WORD.findall(error.problem)),
        }
        if not (error.problem.endswith("is missing") and missing & intended):
            yield error


def _with_text_keys(data: Any, path: FieldPath, errors: list[FieldError]) -> Any:
    """Return the data with every key as text and append an error for each other key.

    YAML reads the keys `on`, `1` and `null` as a boolean, a number and nothing.
    """
    if isinstance(data, Mapping):
        result = {}
        for key, value in data.items():
            name = key if isinstance(key, str) else format_value(key)
            if not isinstance(key, str):
                problem = f"expected a string as key, got {describe_value(key)}"
                errors.append(FieldError((*path, name), problem, "quote it"))
            result[name] = _with_text_keys(value, (*path, name), errors)
        return result
    if isinstance(data, (list, tuple)):
        return [_with_text_keys(item, (*path, index), errors) for index, item in enumerate(data)]
    return data


def _check_empty(data: object, path: FieldPath) -> Iterator[FieldError]:
    """Yield an error for each key without a value; `after:` must not mean "no gate"."""
    if data is None:
        yield FieldError(path, "has no value", "set a value, or remove the key")
    elif isinstance(data, Mapping) and path != ("metadata",):
        for key, value in data.items():
            yield from _check_empty(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _check_empty(value, (*path, index))
