"""Validation of one object: all errors at once, with field and remedy (design §2)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.record_rules import check_effect
from fanout.api.validators.unsupported_fields import check_unsupported, is_unsupported

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
        return FieldError(path, "unknown field here", f"move it to {parent_names}")
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
    return FieldError(path, f"unsupported value {format_value(value)}", remedy)


def _text_message(value: Any, _: Mapping[str, Any]) -> ProblemAndRemedy:
    remedy = "quote it" if isinstance(value, (bool, int, float)) else "write a string"
    return f"expected a string, got {describe_value(value)}", remedy


def _type_message(expected: str) -> Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]:
    def build_message(value: Any, _: Mapping[str, Any]) -> ProblemAndRemedy:
        return f"expected {expected}, got {describe_value(value)}", f"write {expected}"

    return build_message


def _bound_message(comparison: str) -> Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]:
    def build_message(value: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
        limit = next(iter(details.values()))
        return f"{format_value(value)} is out of range", f"write {comparison} {limit}"

    return build_message


def _empty_text_message(_: Any, __: Mapping[str, Any]) -> ProblemAndRemedy:
    return "is empty", "write a value"


def _empty_list_message(_: Any, __: Mapping[str, Any]) -> ProblemAndRemedy:
    return "is empty", "add at least one entry"


def _length_message(_: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
    limit = pluralize(details["max_length"], "character")
    return f"is longer than {limit}", "shorten it"


def _too_many_message(_: Any, details: Mapping[str, Any]) -> ProblemAndRemedy:
    return f"has more than {details['max_length']} entries", "write fewer"


_MESSAGE_BUILDERS: Mapping[str, Callable[[Any, Mapping[str, Any]], ProblemAndRemedy]] = {
    "value_error": _validator_message,
    "string_pattern_mismatch": _pattern_message,
    "string_type": _text_message,
    "string_too_short": _empty_text_message,
    "string_too_long": _length_message,
    "too_short": _empty_list_message,
    "too_long": _too_many_message,
    "tuple_type": _type_message("a list"),
    "mapping_type": _type_message("an object"),
    "dict_type": _type_message("an object"),
    "model_type": _type_message("an object"),
    "model_attributes_type": _type_message("an object"),
    "bool_type": _type_message("true or false"),
    "int_type": _type_message("an integer"),
    "float_type": _type_message("a number"),
    "greater_than_equal": _bound_message("at least"),
    "less_than_equal": _bound_message("at most"),
    "greater_than": _bound_message("more than"),
}


class EmbeddedSpec(NamedTuple):
    """Embedded spec as an object of its own kind. `spec_path` is its place in the outer object."""

    kind: str
    data: Mapping[str, Any]
    spec_path: FieldPath

    def relocate_error(self, error: FieldError) -> FieldError:
        """Return the error with its path in the outer object."""
        path = (*self.spec_path, *error.path[1:])
        return FieldError(path, error.problem, error.remedy, error.severity, error.intended_field)


def find_embedded_specs(kind: str, data: Mapping[str, Any]) -> Iterator[EmbeddedSpec]:
    """Yield the specs of other kinds that an object of this kind embeds."""
    if kind != "Scenario":
        return
    spec = as_mapping(data.get("spec"))
    if "stages" in spec:
        yield EmbeddedSpec("UpstreamPolicy", {"spec": {"stages": spec["stages"]}}, ("spec",))
    if "promotion" in spec:
        # A PromotionPolicy must name policies; in a scenario it governs the only one.
        promotion = {"policies": ["*"], **as_mapping(spec["promotion"])}
        yield EmbeddedSpec("PromotionPolicy", {"spec": promotion}, ("spec", "promotion"))


def check_scenario_source(kind: str, data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield an error unless a Scenario has exactly one of `policy` and `stages`."""
    spec = as_mapping(data.get("spec"))
    if kind != "Scenario" or not isinstance(data.get("spec"), Mapping):
        return
    if "policy" in spec and "stages" in spec:
        yield FieldError(("spec",), "policy and stages exclude each other", "keep one of them")
    if "policy" not in spec and not spec.get("stages"):
        yield FieldError(("spec",), "policy or stages is missing", "add it")


_FIELD_WORD = re.compile(r"\w+")
__all__ = [
    "FieldError",
    "cross_check",
    "is_fanout_object",
    "validate_object",
    "validate_stored_record",
]


def is_fanout_object(data: Mapping[str, Any]) -> bool:
    """Return whether the object is of group fanout.dev, of any version and kind."""
    version = data.get("apiVersion")
    return isinstance(version, str) and version.startswith(f"{GROUP}/")


def validate_object(data: Mapping[str, Any]) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    """Return the parsed object and no errors, or None and all errors of the data.

    Warnings are reported by `cross_check`. `status` is not read: fanout alone writes it.
    """
    parsed, errors = _validate(data)
    covered = {error.path for error in errors}
    effect_errors = check_effect(data) if isinstance(data, Mapping) else ()
    errors = sort_errors([*errors, *(it for it in effect_errors if it.path not in covered)])
    return (None, errors) if errors else (parsed, ())


def validate_stored_record(
    data: Mapping[str, Any],
) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    """Parse a record that is on record, which may be one without any effect.

    Return it, or None and all errors.
    """
    return _validate(data)


def _validate(data: Mapping[str, Any]) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    if not isinstance(data, Mapping):
        return None, (
            FieldError((), "is not an object", "write apiVersion, kind, metadata and spec"),
        )
    if errors := tuple(_check_identity(data)):
        return None, errors
    # Without a known version and kind no rule applies, so identity errors are returned alone
    # above.
    model = KINDS[data["kind"]]
    key_errors: list[FieldError] = []
    text_keyed = _with_text_keys(
        {key: data[key] for key in data if key != "status"}, (), key_errors
    )
    data_errors = [
        *key_errors,
        *_check_empty(text_keyed, ()),
        *_check_with_embedded(data["kind"], text_keyed, check_unsupported),
    ]
    parsed, model_errors = _parse_model(model, text_keyed)
    rule_errors = [
        *_check_with_embedded(data["kind"], text_keyed, check_rules),
        *check_scenario_source(data["kind"], text_keyed),
    ]
    # A list in place of an object is one error; the fields that the object lacks are not reported.
    placed_errors = (error for error in rule_errors if not _is_in_list(text_keyed, error.path))
    further_errors = _without_follow_ons([*model_errors, *placed_errors])
    # An unsupported or empty field usually breaks rules and models below it as well; those errors
    # would only repeat the first one in other words.
    covered = {error.path for error in data_errors}
    errors = sort_errors(
        [*data_errors, *(error for error in further_errors if not _is_covered(error.path, covered))]
    )
    return (None, errors) if errors else (parsed, ())


def _is_in_list(data: Any, path: FieldPath) -> bool:
    """Return whether the path names a field of a list."""
    for part in path:
        if isinstance(data, list) and isinstance(part, str):
            return True
        is_present = part in data if isinstance(data, Mapping) else isinstance(data, list)
        data = data[part] if is_present else None
    return False


def _check_with_embedded(
    kind: str,
    data: Mapping[str, Any],
    check: Callable[[str, Mapping[str, Any]], Iterator[FieldError]],
) -> Iterator[FieldError]:
    """Yield the errors of an object and of the specs that it embeds."""
    yield from check(kind, data)
    for part in find_embedded_specs(kind, data):
        yield from map(part.relocate_error, check(part.kind, part.data))


def _check_identity(data: Mapping[str, Any]) -> Iterator[FieldError]:
    version, kind = data.get("apiVersion"), data.get("kind")
    if version is None:
        yield FieldError(("apiVersion",), "is missing", f"write {API_VERSION}")
    elif version != API_VERSION:
        yield FieldError(
            ("apiVersion",),
            f"unsupported apiVersion {format_value(version)}",
            f"write {API_VERSION}",
        )
    if kind is None:
        yield FieldError(("kind",), "is missing", f"use one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        remedy = suggest_name(str(kind), tuple(KINDS), f"use one of {', '.join(KINDS)}")
        yield FieldError(("kind",), f"unknown kind {format_value(kind)}", remedy)


def _parse_model(
    model: type[KRMObject], data: Mapping[str, Any]
) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    try:
        return model.model_validate(data, by_alias=True, by_name=False), ()
    except ValidationError as error:
        # A list with only invalid entries counts as empty; that error would be redundant.
        details = [
            detail
            for detail in error.errors(include_url=False)
            if not (detail["type"] == "too_short" and detail["input"])
        ]
        errors = [translate_error(model, detail, data) for detail in details]
        # A value has an error for each alternative of its type; the first one counts.
        first_errors = {model_error.path: model_error for model_error in reversed(errors)}
        return None, tuple(first_errors.values())


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


def _is_covered(path: FieldPath, covered: set[FieldPath]) -> bool:
    """Return whether there is an error at the path itself or above it; one is enough."""
    return any(path[:length] in covered for length in range(len(path) + 1))
