"""How a field becomes one of fanout's, where it does not matter whose field it is."""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.foreign.pieces import Convert, Found, Put, Remark
from fanout.api.places import items
from fanout.api.texts import shown

KUBECTL_S_OWN = "kubectl.kubernetes.io/last-applied-configuration"


def copied(found: Found) -> Iterator[Put | Remark]:
    """The same value."""
    yield Put(found.to, found.value, found.path)


def text(found: Found) -> Iterator[Put | Remark]:
    """The same value; empty text is how Go writes that there is none."""
    if found.value != "":
        yield from copied(found)


def once(found: Found) -> Iterator[Put | Remark]:
    """The same list; what is in it twice counts once, and each element keeps its own place."""
    values = items(found.value)
    kept = [index for index, value in enumerate(values) if value not in values[:index]]
    for at, index in enumerate(kept):
        yield Put((*found.to, at), values[index], (*found.path, index))
    if not values:
        yield from copied(found)


def without(*prefixes: str) -> Convert:
    """The same map without the keys that begin so: they speak to other programs."""

    def convert(found: Found) -> Iterator[Put | Remark]:
        if not isinstance(found.value, Mapping):
            yield from copied(found)
            return
        left = {key: it for key, it in found.value.items() if not str(key).startswith(prefixes)}
        if left:
            yield Put(found.to, left, found.path)

    return convert


def only(*harmless: Any, problem: str, remedy: str) -> Convert:
    """A field without a counterpart, that asks for nothing only by these values."""

    def convert(found: Found) -> Iterator[Put | Remark]:
        if found.value not in harmless:
            yield Remark(found.path, problem, remedy)

    return convert


def needed(*harmless: Any, problem: str, remedy: str) -> Convert:
    """As `only`, but what has another value cannot be translated at all."""

    def convert(found: Found) -> Iterator[Put | Remark]:
        if found.value not in harmless:
            yield Remark(found.path, problem.format(shown(found.value)), remedy, spoils=())

    return convert


def noted(*harmless: Any, problem: str) -> Convert:
    """A field without a counterpart, without which nothing is lost."""

    def convert(found: Found) -> Iterator[Put | Remark]:
        if found.value not in harmless:
            yield Remark(found.path, problem, lost=False)

    return convert


def passed_over(_: Found) -> Iterator[Put | Remark]:
    """A field that is nobody's wish: a program wrote it, or nothing hangs on it."""
    return iter(())
