"""Parameters and placeholders of compiled templates.

A variant is split into its shape (fields, functions, structure) and its parameters,
the texts and numbers in which it differs from other variants of that shape. For
compilation the parameters are replaced by markers; a marker in the output is turned
into a placeholder, whose value is one parameter or a concatenation of constant texts
and parameters.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeGuard

from fanout.selection.variant_spec import FunctionSpec, VariantSpec
from fanout.values import replace
from fanout.variants.canonical_json import canonical_text
from fanout.variants.function_registry import find_function
from fanout.variants.render_model import Injection, RenderInputs

Parameter = str | int | float

# A marker is valid wherever functions check texts: as label value, namespace, tag. Numbers are
# marked by numbers that do not occur otherwise.
MARKER = re.compile("zz-leaf-([0-9]+)-zz")
# Markers are recognized in output by value alone: the range is far from ports, sizes in
# bytes and timestamps in milliseconds, and exact in a float.
NUMBER_MARKERS = 7_310_020_000_000


class ParameterizedInputs(NamedTuple):
    """A variant's inputs, separated into shape and parameters."""

    shape: Hashable
    parameters: list[Parameter]


def split_parameters(spec: VariantSpec, inputs: RenderInputs) -> ParameterizedInputs:
    """Separate the inputs of a rendering into shape and parameters.

    Renderings of variants with equal shapes differ only in their parameters. An empty text
    belongs to the shape, because functions treat it as absent.
    """
    parent, slash, package = spec.path.rpartition("/")
    # The order here and in `mark_parameters` must be the same: a marker's number is the index
    # in this list.
    parameters: list[Parameter] = [spec.name, parent, package]
    shape = (
        slash,
        _split_texts(spec.context, parameters),
        spec.remove_keys,
        tuple([_split_function(function, parameters) for function in spec.mutators]),
        tuple([_split_function(function, parameters) for function in spec.validators]),
        _split_texts(spec.labels, parameters),
        _split_texts(spec.annotations, parameters),
        tuple([_split_injection(injection, parameters) for injection in inputs.injections]),
    )
    return ParameterizedInputs(shape, parameters)


def _split_texts(texts: Mapping[str, str], parameters: list[Parameter]) -> Hashable:
    if not texts:
        return ()
    names = tuple(sorted(texts))
    values = [texts[name] for name in names]
    parameters += values
    return names if all(values) else (names, tuple(map(bool, values)))


def _split_function(function: FunctionSpec, parameters: list[Parameter]) -> Hashable:
    passed_through = _passed_through_settings(function)
    texts = {name: function.config[name] for name in passed_through}
    fixed = tuple(sorted(it for it in function.config.items() if it[0] not in texts))
    shape = (function.image, function.name, _split_texts(texts, parameters), fixed)
    further_fields = function.extra_fields()
    return (*shape, canonical_text(further_fields)) if further_fields else shape


def _passed_through_settings(function: FunctionSpec) -> list[str]:
    """Return the names of the settings that the function writes unchanged."""
    # With a configuration file the settings are not the variant's, and an executable may do
    # anything with its settings.
    catalog_function = (
        None if function.config_path or function.exec else find_function(function.image)
    )
    if catalog_function is None or catalog_function.depends_on is None:
        return []
    return [
        name
        for name, text in function.config.items()
        if catalog_function.passes_through(name, text)
    ]


def _split_injection(injection: Injection, parameters: list[Parameter]) -> Hashable:
    parameters += (injection.source, injection.problem)
    value_shape = _split_value(injection.value, parameters)
    return (bool(injection.source), bool(injection.problem), value_shape)


def _split_value(value: object, parameters: list[Parameter]) -> Hashable:
    if isinstance(value, str):
        parameters.append(value)
        return str if value else ""
    if isinstance(value, dict):
        names = tuple(sorted(value))
        return (dict, names, tuple([_split_value(value[name], parameters) for name in names]))
    if isinstance(value, list):
        return (list, tuple([_split_value(item, parameters) for item in value]))
    # Booleans and null leave no value that could serve as a marker, so they belong to the shape.
    if value is None or isinstance(value, bool):
        return (value,)
    assert isinstance(value, int | float), "there is no other plain data"
    parameters.append(value)
    return int if isinstance(value, int) else float


# ---- markers -----------------------------------------------------------------------------------


def mark_parameters(spec: VariantSpec, inputs: RenderInputs) -> tuple[VariantSpec, RenderInputs]:
    """Return the inputs with a marker for every parameter, in `split_parameters` order."""
    mark = _new_marker()
    parent, slash, package = spec.path.rpartition("/")
    name, parent, package = mark(spec.name), mark(parent), mark(package)
    marked_spec = replace(
        spec,
        name=name,
        path=f"{parent}{slash}{package}",
        context=_mark_texts(spec.context, mark),
        mutators=tuple([_mark_function(function, mark) for function in spec.mutators]),
        validators=tuple([_mark_function(function, mark) for function in spec.validators]),
        labels=_mark_texts(spec.labels, mark),
        annotations=_mark_texts(spec.annotations, mark),
    )
    injections = tuple([_mark_injection(injection, mark) for injection in inputs.injections])
    return marked_spec, replace(inputs, injections=injections)


def _new_marker() -> Callable[[Any], Any]:
    numbers = count()

    def mark(parameter: Parameter) -> Parameter:
        number = next(numbers)
        if isinstance(parameter, str):
            return parameter and f"zz-leaf-{number}-zz"
        return type(parameter)(NUMBER_MARKERS + number)

    return mark


def _mark_texts(texts: Mapping[str, str], mark: Callable[[Any], Any]) -> dict[str, str]:
    return {name: mark(texts[name]) for name in sorted(texts)}


def _mark_function(function: FunctionSpec, mark: Callable[[Any], Any]) -> FunctionSpec:
    texts = {name: function.config[name] for name in _passed_through_settings(function)}
    return replace(function, config={**function.config, **_mark_texts(texts, mark)})


def _mark_injection(injection: Injection, mark: Callable[[Any], Any]) -> Injection:
    source, problem = mark(injection.source), mark(injection.problem)
    return replace(
        injection, source=source, problem=problem, value=_mark_value(injection.value, mark)
    )


def _mark_value(value: object, mark: Callable[[Any], Any]) -> object:
    if isinstance(value, dict):
        # Numbered in sorted order like the parameters, but kept in the order of the value: it is
        # the order in which the file is written.
        marked_items = {name: _mark_value(value[name], mark) for name in sorted(value)}
        return {name: marked_items[name] for name in value}
    if isinstance(value, list):
        return [_mark_value(item, mark) for item in value]
    return value if value is None or isinstance(value, bool) else mark(value)


_MAX_PARAMETERS = 1_000_000  # bounds the range of number markers

Concatenation = tuple[str | int, ...]  # constant texts and parameter numbers


class Placeholder(NamedTuple):
    """A placeholder in a value: the index of the parameter or concatenation that fills it."""

    value_index: int


class PlaceholderTable:
    """Registry of the concatenations used by a template.

    Indexes below the number of parameters mean a single parameter; concatenations follow.
    """

    def __init__(self, parameter_count: int) -> None:
        self.parameter_count = parameter_count
        self._indexes: dict[Concatenation, int] = {
            (number,): number for number in range(parameter_count)
        }

    def replace_markers(self, value: object) -> object:
        """Return the value with a placeholder for every text and number with a marker."""
        if isinstance(value, str):
            pieces: list[str | int] = list(MARKER.split(value))
            if len(pieces) == 1:
                return value
            pieces[1::2] = map(int, pieces[1::2])
            return self._placeholder_for(tuple([piece for piece in pieces if piece != ""]))
        if isinstance(value, dict):
            return {name: self.replace_markers(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.replace_markers(item) for item in value]
        return (
            self._placeholder_for((int(value) - NUMBER_MARKERS,))
            if _is_number_marker(value)
            else value
        )

    def _placeholder_for(self, concatenation: Concatenation) -> Placeholder:
        return Placeholder(self._indexes.setdefault(concatenation, len(self._indexes)))

    @property
    def concatenations(self) -> tuple[Concatenation, ...]:
        """Return the concatenations that are more than one parameter, in index order."""
        return tuple(self._indexes)[self.parameter_count :]


def concatenate(
    parameters: Sequence[Parameter], concatenations: Iterable[Concatenation], max_length: int
) -> list[str] | None:
    """Return the text of each concatenation with these parameters.

    Returns None where one would be longer than `max_length` characters.
    """
    texts = []
    for concatenation in concatenations:
        parts = [part if isinstance(part, str) else str(parameters[part]) for part in concatenation]
        if sum(map(len, parts)) > max_length:
            return None
        texts.append("".join(parts))
    return texts


def has_marker(value: object) -> bool:
    """Return whether a marker occurs anywhere in the value, keys of maps included."""
    if isinstance(value, str):
        return MARKER.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(has_marker, value.values())) or any(map(has_marker, value))
    if isinstance(value, list):
        return any(map(has_marker, value))
    return _is_number_marker(value)


def _is_number_marker(value: object) -> TypeGuard[int | float]:
    return (
        isinstance(value, int | float)
        and NUMBER_MARKERS <= value < NUMBER_MARKERS + _MAX_PARAMETERS
    )


def fill_placeholders(value: object, values: Sequence[Parameter]) -> Any:
    """Return the value with every placeholder replaced by its entry of `values`."""
    if isinstance(value, Placeholder):
        return values[value.value_index]
    if isinstance(value, dict):
        return {name: fill_placeholders(item, values) for name, item in value.items()}
    return [fill_placeholders(item, values) for item in value] if isinstance(value, list) else value


def has_placeholder(value: object) -> bool:
    """Return whether a placeholder occurs anywhere in the value."""
    return count_placeholders(value) > 0


def count_placeholders(value: object) -> int:
    """Count the placeholders in the value."""
    if isinstance(value, dict | list):
        return sum(map(count_placeholders, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Placeholder)
