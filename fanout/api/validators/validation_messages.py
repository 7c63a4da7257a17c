"""Messages for pydantic's errors: problem and remedy for people."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from fanout.api.field_errors import FieldError, FieldPath, InvalidValue, format_path
from fanout.api.kind_registry import field_names_at, find_field_parents
from fanout.api.name_suggestions import VERY_SIMILAR, find_similar_name
from fanout.api.text_fields import PATTERN_MESSAGES, format_value, join_words, pluralize
from fanout.api.validators.unsupported_fields import is_unsupported

ProblemAndRemedy = tuple[str, str]
_MAX_SUGGESTED_PARENTS = 3  # a field that fits in more places gets no suggestion


def translate_error(model: type[BaseModel], error: ErrorDetails, data: object) -> FieldError:
    """Translate one error of pydantic about an object of this model.

    `data` is the object as written.
    """
    path = _error_path(data, error)
    value, details = error["input"], error.get("ctx", {})
    if error["type"] == "extra_forbidden":
        return _unknown_field(model, path)
    if error["type"] == "missing":
        return FieldError(path, "is missing", "add it")
    if error["type"] in ("enum", "literal_error"):
        return _unknown_value(model, path, value, str(details["expected"]))
    build_message = _MESSAGE_BUILDERS.get(error["type"])
    problem, remedy = (
        build_message(value, details) if build_message else (error["msg"], "correct it")
    )
    if error["type"].startswith("model_") and (field_names := _supported_fields(model, path)):
        remedy = f"write {join_words(field_names, 'or')} below it"
    return FieldError(path, problem, remedy)


def _error_path(data: object, error: ErrorDetails) -> FieldPath:
    """Return the path of an error in the object as written.

    pydantic adds names of alternatives and validators (`constrained-str`, `literal['']`)
    and marks keys (`[key]`). Parts that are not in the object are dropped, except a missing
    field.
    """
    path: list[str | int] = []
    for number, part in enumerate(error["loc"]):
        is_last = number == len(error["loc"]) - 1
        if isinstance(data, Mapping) and part in data:
            path.append(part)
            data = data[part]
        elif isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int):
            path.append(part)
            data = data[part] if part < len(data) else None
        elif is_last and error["type"] == "missing":
            path.append(part)
    return tuple(path)


def _unknown_field(model: type[BaseModel], path: FieldPath) -> FieldError:
    """Report an unknown field: misspelled or in the wrong place.

    Unsupported fields are not suggested.
    """
    parent, name = path[:-1], str(path[-1])
    kind = model.__name__
    field_names = _supported_fields(model, parent)
    # A near-certain misspelling is preferred to the right name in the wrong place, and that
    # to a vague likeness.
    intended = find_similar_name(name, field_names, VERY_SIMILAR)
    parents = [
        home for home in find_field_parents(model, name) if _is_supported(kind, (*home, name))
    ]
    if not intended and 0 < len(parents) <= _MAX_SUGGESTED_PARENTS:
        parent_names = join_words(
            [format_path(home).replace("[0]", "[]") for home in parents], "or"
        )
        return FieldError(path, "is no field of this object", f"it belongs in {parent_names}")
    intended = intended or find_similar_name(name, field_names)
    fallback = f"remove it; there are {', '.join(field_names)}" if field_names else "remove it"
    remedy = f"did you mean {intended}?" if intended else fallback
    return FieldError(path, "is no known field", remedy, intended_field=intended)


def _supported_fields(model: type[BaseModel], path: FieldPath) -> list[str]:
    return [
        name
        for name in field_names_at(model, path)
        if not is_unsupported(model.__name__, (*path, name))
    ]


def _is_supported(kind: str, path: FieldPath) -> bool:
    return not any(is_unsupported(kind, path[:length]) for length in range(1, len(path) + 1))


def _validator_message(_: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
    error = details["error"]
    assert isinstance(error, InvalidValue), f"a validator raised {error!r}"
    return error.problem, error.remedy


def _pattern_message(value: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
    problem, remedy = PATTERN_MESSAGES[details["pattern"]]
    return f"{format_value(value)} {problem}", remedy


def _unknown_value(
    model: type[BaseModel], path: FieldPath, value: Any, expected: str
) -> FieldError:
    """Report a value outside a list.

    `expected` is pydantic's text: `'All', 'Any' or 'Majority'`.
    """
    allowed = re.findall(r"'([^']*)'", expected) or [expected.lower()]
    supported = [item for item in allowed if not is_unsupported(model.__name__, path, item)]
    remedy = f"use {join_words([item or repr(item) for item in supported], 'or')}"
    return FieldError(path, f"{format_value(value)} is not known", remedy)


def _text_message(value: Any, _: Mapping[str, Any]) -> ProblemAndRemedy:
    if isinstance(value, (bool, int, float)):
        return f"must be text, and {format_value(value)} is none to YAML", "put it in quotes"
    return f"must be text and is {format_value(value)}", "write text"


def _type_message(expected: str) -> Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]:
    def build_message(value: Any, _: Mapping[str, Any]) -> ProblemAndRemedy:
        given = f"{format_value(value)!r}" if isinstance(value, str) else format_value(value)
        return f"must be {expected} and is {given}", f"write {expected}"

    return build_message


def _bound_message(comparison: str) -> Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]:
    def build_message(value: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
        limit = next(iter(details.values()))
        return f"is {format_value(value)}", f"write {comparison} {limit}"

    return build_message


def _empty_text_message(_: Any, __: Mapping[str, Any]) -> ProblemAndRemedy:
    return "is empty", "write something"


def _empty_list_message(_: Any, __: Mapping[str, Any]) -> ProblemAndRemedy:
    return "names nothing", "name at least one"


def _length_message(_: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
    limit = pluralize(details["max_length"], "character")
    return f"is longer than {limit}", "make it shorter"


_MESSAGE_BUILDERS: Mapping[str, Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]] = {
    "value_error": _validator_message,
    "string_pattern_mismatch": _pattern_message,
    "string_type": _text_message,
    "string_too_short": _empty_text_message,
    "string_too_long": _length_message,
    "too_short": _empty_list_message,
    "tuple_type": _type_message("a list"),
    "mapping_type": _type_message("an object"),
    "dict_type": _type_message("an object"),
    "model_type": _type_message("an object"),
    "model_attributes_type": _type_message("an object"),
    "bool_type": _type_message("true or false"),
    "int_type": _type_message("a whole number"),
    "float_type": _type_message("a number"),
    "greater_than_equal": _bound_message("at least"),
    "less_than_equal": _bound_message("at most"),
    "greater_than": _bound_message("more than"),
}
