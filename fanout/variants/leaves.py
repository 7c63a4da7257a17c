"""The leaves of a variant: the texts and numbers in which it differs from others of its form.

Hundreds of variants differ in nothing else: the same fields, set by the same functions, each with
values of its own. What they have in common is their form. In place of the leaves a form can be
given marks, to see where each of them comes to stand.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, NamedTuple

from fanout.selection.model import Function, VariantSpec
from fanout.values import replace
from fanout.variants.canonical import canonical
from fanout.variants.functions.registry import find
from fanout.variants.model import Injection, Inputs

Leaf = str | int | float

# A mark is a name that every function takes: for a label's value, a namespace, a tag. Numbers are
# marked by numbers that nobody uses.
MARK = re.compile("zz-leaf-([0-9]+)-zz")
NUMBERS = 7_310_020_000_000


class Split(NamedTuple):
    """A variant, taken apart."""

    form: Hashable
    leaves: list[Leaf]


def split(spec: VariantSpec, inputs: Inputs) -> Split:
    """The form of what is rendered for these, and its leaves. An empty text belongs to the form."""
    parent, slash, package = spec.path.rpartition("/")
    leaves: list[Leaf] = [spec.name, parent, package]
    form = (
        slash,
        _texts(spec.context, leaves),
        spec.remove_keys,
        tuple([_function(function, leaves) for function in spec.mutators]),
        tuple([_function(function, leaves) for function in spec.validators]),
        _texts(spec.labels, leaves),
        _texts(spec.annotations, leaves),
        tuple([_injection(injection, leaves) for injection in inputs.injections]),
    )
    return Split(form, leaves)


def _texts(texts: Mapping[str, str], leaves: list[Leaf]) -> Hashable:
    if not texts:
        return ()
    names = tuple(sorted(texts))
    values = [texts[name] for name in names]
    leaves += values
    return names if all(values) else (names, tuple(map(bool, values)))


def _function(function: Function, leaves: list[Leaf]) -> Hashable:
    copied = _copied(function)
    texts = {name: function.config[name] for name in copied}
    fixed = tuple(sorted(it for it in function.config.items() if it[0] not in texts))
    form = (function.image, function.name, _texts(texts, leaves), fixed)
    further = function.further()
    return (*form, canonical(further)) if further else form


def _copied(function: Function) -> list[str]:
    """The settings that the function only copies to where it puts them."""
    found = None if function.config_path or function.exec else find(function.image)
    if found is None or found.heeds is None:
        return []
    return [name for name, text in function.config.items() if found.copies(name, text)]


def _injection(injection: Injection, leaves: list[Leaf]) -> Hashable:
    leaves += (injection.source, injection.problem)
    shape = _shape(injection.value, leaves)
    return (bool(injection.source), bool(injection.problem), shape)


def _shape(value: object, leaves: list[Leaf]) -> Hashable:
    if isinstance(value, str):
        leaves.append(value)
        return str if value else ""
    if isinstance(value, dict):
        names = tuple(sorted(value))
        return (dict, names, tuple([_shape(value[name], leaves) for name in names]))
    if isinstance(value, list):
        return (list, tuple([_shape(item, leaves) for item in value]))
    if value is None or isinstance(value, bool):
        return (value,)
    assert isinstance(value, int | float), "there is no other plain data"
    leaves.append(value)
    return int if isinstance(value, int) else float


# ---- marks -------------------------------------------------------------------------------------


def marked(spec: VariantSpec, inputs: Inputs) -> tuple[VariantSpec, Inputs]:
    """The same with marks in place of the leaves, numbered in the order of `split`."""
    mark = _marker()
    parent, slash, package = spec.path.rpartition("/")
    name, parent, package = mark(spec.name), mark(parent), mark(package)
    new = replace(
        spec,
        name=name,
        path=f"{parent}{slash}{package}",
        context=_marked_texts(spec.context, mark),
        mutators=tuple([_marked_function(function, mark) for function in spec.mutators]),
        validators=tuple([_marked_function(function, mark) for function in spec.validators]),
        labels=_marked_texts(spec.labels, mark),
        annotations=_marked_texts(spec.annotations, mark),
    )
    injections = tuple([_marked_injection(injection, mark) for injection in inputs.injections])
    return new, replace(inputs, injections=injections)


def _marker() -> Callable[[Any], Any]:
    numbers = count()

    def mark(leaf: Leaf) -> Leaf:
        number = next(numbers)
        if isinstance(leaf, str):
            return leaf and f"zz-leaf-{number}-zz"
        return type(leaf)(NUMBERS + number)

    return mark


def _marked_texts(texts: Mapping[str, str], mark: Callable[[Any], Any]) -> dict[str, str]:
    return {name: mark(texts[name]) for name in sorted(texts)}


def _marked_function(function: Function, mark: Callable[[Any], Any]) -> Function:
    texts = {name: function.config[name] for name in _copied(function)}
    return replace(function, config={**function.config, **_marked_texts(texts, mark)})


def _marked_injection(injection: Injection, mark: Callable[[Any], Any]) -> Injection:
    source, problem = mark(injection.source), mark(injection.problem)
    return replace(
        injection, source=source, problem=problem, value=_marked_value(injection.value, mark)
    )


def _marked_value(value: object, mark: Callable[[Any], Any]) -> object:
    if isinstance(value, dict):
        found = {name: _marked_value(value[name], mark) for name in sorted(value)}
        return {name: found[name] for name in value}
    if isinstance(value, list):
        return [_marked_value(item, mark) for item in value]
    return value if value is None or isinstance(value, bool) else mark(value)
