"""Where the leaves of a variant came to stand: recipes for the values that are made of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from fanout.variants.leaves import MARK, NUMBERS, Leaf

_MOST = 1_000_000  # leaves

Recipe = tuple[str | int, ...]  # a text: pieces that stay, and numbers of leaves


class Slot(NamedTuple):
    """In place of a value that has a mark: which recipe it is made by."""

    recipe: int


class Slots:
    """Recipes by number. The leaves are the first, each by itself."""

    def __init__(self, leaves: int) -> None:
        self.leaves = leaves
        self._numbers: dict[Recipe, int] = {(number,): number for number in range(leaves)}

    def of(self, value: object) -> object:
        """The value with slots for all texts and numbers that have a mark; else itself."""
        if isinstance(value, str):
            pieces: list[str | int] = list(MARK.split(value))
            if len(pieces) == 1:
                return value
            pieces[1::2] = map(int, pieces[1::2])
            return self._slot(tuple([piece for piece in pieces if piece != ""]))
        if isinstance(value, dict):
            return {name: self.of(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        return self._slot((int(value) - NUMBERS,)) if _is_number(value) else value

    def _slot(self, recipe: Recipe) -> Slot:
        return Slot(self._numbers.setdefault(recipe, len(self._numbers)))

    @property
    def joined(self) -> tuple[Recipe, ...]:
        """The recipes of what is more than a leaf."""
        return tuple(self._numbers)[self.leaves :]


def joined(leaves: Sequence[Leaf], recipes: Iterable[Recipe], longest: int) -> list[str] | None:
    """The texts that these recipes make of these leaves; None where one would be too long."""
    made = []
    for recipe in recipes:
        parts = [part if isinstance(part, str) else str(leaves[part]) for part in recipe]
        if sum(map(len, parts)) > longest:
            return None
        made.append("".join(parts))
    return made


def holds_mark(value: object) -> bool:
    """Is there a mark anywhere in it?"""
    if isinstance(value, str):
        return MARK.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(holds_mark, value.values())) or any(map(holds_mark, value))
    if isinstance(value, list):
        return any(map(holds_mark, value))
    return _is_number(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and NUMBERS <= value < NUMBERS + _MOST


def filled(value: object, values: Sequence[Leaf]) -> Any:
    """The value with what the recipes made in its slots."""
    if isinstance(value, Slot):
        return values[value.recipe]
    if isinstance(value, dict):
        return {name: filled(item, values) for name, item in value.items()}
    return [filled(item, values) for item in value] if isinstance(value, list) else value


def has_slot(value: object) -> bool:
    """Is there a slot anywhere in it?"""
    return count_slots(value) > 0


def count_slots(value: object) -> int:
    """How many slots are in it?"""
    if isinstance(value, dict | list):
        return sum(map(count_slots, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Slot)
