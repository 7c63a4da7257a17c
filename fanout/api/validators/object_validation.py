"""Validation of one object: all errors at once, with field and remedy (design §2)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from fanout.api.field_errors import FieldError, FieldPath, sort_errors
from fanout.api.field_paths import as_mapping
from fanout.api.kind_registry import KINDS
from fanout.api.name_suggestions import suggest_name
from fanout.api.object_meta import API_VERSION, GROUP, KRMObject
from fanout.api.text_fields import format_value
from fanout.api.validators.cross_references import cross_check
from fanout.api.validators.field_rules import check_rules
from fanout.api.validators.unsupported_fields import check_unsupported
from fanout.api.validators.validation_messages import translate_error


class EmbeddedSpec(NamedTuple):
    """Embedded spec as an object of its own kind.

    `spec_path` is its place in the outer object.
    """

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
__all__ = ["FieldError", "cross_check", "is_fanout_object", "validate_object"]


def is_fanout_object(data: Mapping[str, Any]) -> bool:
    """Return whether the object is of group fanout.dev, of any version and kind."""
    version = data.get("apiVersion")
    return isinstance(version, str) and version.startswith(f"{GROUP}/")


def validate_object(data: Mapping[str, Any]) -> tuple[KRMObject | None, tuple[FieldError, ...]]:
    """Return the parsed object and no errors, or None and all errors of the data.

    Warnings are reported by `cross_check`. `status` is not read: fanout alone writes it.
    """
    if not isinstance(data, Mapping):
        return None, (FieldError((), "is no object", "write apiVersion, kind, metadata and spec"),)
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
            ("apiVersion",), f"{format_value(version)} is not known here", f"write {API_VERSION}"
        )
    if kind is None:
        yield FieldError(("kind",), "is missing", f"use one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        remedy = suggest_name(str(kind), tuple(KINDS), f"use one of {', '.join(KINDS)}")
        yield FieldError(("kind",), f"there is no kind {format_value(kind)}", remedy)


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
        return None, tuple(
            _first_per_field(translate_error(model, detail, data) for detail in details)
        )


def _first_per_field(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Yield the first error of each field; a value has one for each alternative."""
    reported: set[FieldPath] = set()
    for error in errors:
        if error.path not in reported:
            yield error
        reported.add(error.path)


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
                problem = f"the key {name} is no text to YAML"
                errors.append(FieldError((*path, name), problem, "put it in quotes"))
            result[name] = _with_text_keys(value, (*path, name), errors)
        return result
    if isinstance(data, (list, tuple)):
        return [_with_text_keys(item, (*path, index), errors) for index, item in enumerate(data)]
    return data


def _check_empty(data: object, path: FieldPath) -> Iterator[FieldError]:
    """Yield an error for each key without a value; `after:` must not mean "no gate"."""
    if data is None:
        yield FieldError(path, "has no value", "give it one, or remove the key")
    elif isinstance(data, Mapping) and path != ("metadata",):
        for key, value in data.items():
            yield from _check_empty(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _check_empty(value, (*path, index))


def _is_covered(path: FieldPath, covered: set[FieldPath]) -> bool:
    """Return whether there is an error at the path itself or above it; one is enough."""
    return any(path[:length] in covered for length in range(len(path) + 1))
