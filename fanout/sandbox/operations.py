"""What operators and functions make of plain values, in process, exactly as celpy does.

Each knows the cases whose answer is beyond doubt: values that fit, within 64 bits, not too long.
All others, errors among them, raise `UnsureError`, and celpy is asked: it has habits (`true == 1`
holds, `1 == true` is an error) that nobody wants a second time. `FaultError` is raised where celpy
is known to have an error as well, since `&&`, `||` and `has()` go on behind one.

A whole number is celpy's int and a fraction its double; a `bool` is never taken for a number.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

LARGEST = 2**63
LONGEST = 1 << 16  # characters of a text, and of all texts in a list or map
SHORT_NUMBER = 32  # characters of a text that is read as a number
ORDERED = frozenset({bool, float, int, str})
NUMBERS = frozenset({float, int})  # compared with each other, exactly
NOT_TEXT = frozenset({bool, type(None)})  # what celpy finds unequal to a text, without an error


class FaultError(Exception):
    """There is no value: celpy's answer is an error, or what an operator makes of one."""


class UnsureError(Exception):
    """Celpy has to be asked."""


def whole(value: int) -> int:
    """The number, if it fits 64 bits."""
    if -LARGEST <= value < LARGEST:
        return value
    raise UnsureError


def add(left: Any, right: Any) -> Any:
    """Two numbers of one kind, or two texts; lists are celpy's business."""
    kind = left.__class__
    if kind is right.__class__:
        if kind is str and len(left) + len(right) <= LONGEST:
            return left + right
        if kind is int:
            return whole(left + right)
        if kind is float:
            return left + right
    raise UnsureError


def numeric(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator for two whole numbers or two fractions."""

    def operation(left: Any, right: Any) -> Any:
        kind = left.__class__
        if kind is right.__class__:
            if kind is int:
                return whole(compute(left, right))
            if kind is float:
                return compute(left, right)
        raise UnsureError

    return operation


def divide(left: Any, right: Any) -> Any:
    """Whole numbers are divided towards zero; by zero nothing is."""
    if right and left.__class__ is right.__class__:
        if left.__class__ is int:
            quotient = abs(left) // abs(right)
            return whole(quotient if (left < 0) == (right < 0) else -quotient)
        if left.__class__ is float:
            return left / right
    raise UnsureError


def remainder(left: Any, right: Any) -> Any:
    """It has the sign of what is divided."""
    if right and left.__class__ is int and right.__class__ is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    raise UnsureError


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """`<` and its like, for values of one kind that have an order, and any two numbers."""

    def operation(left: Any, right: Any) -> bool:
        kind, other = left.__class__, right.__class__
        if (kind is other and kind in ORDERED) or (kind in NUMBERS and other in NUMBERS):
            return compare(left, right)
        raise UnsureError

    return operation


def equal(left: Any, right: Any) -> bool:
    """Scalars of one kind; any two numbers; null and others; lists and maps where one is empty."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind in ORDERED:
            return bool(left == right)
        if kind is list and len(left) != len(right):
            return False
        if kind is list or kind is dict:
            if left and right:
                raise UnsureError  # it may be deep
            return not left and not right
        return True  # nothing but null is left
    if kind in NUMBERS and other in NUMBERS:
        return bool(left == right)
    if left is None and other not in NUMBERS:
        return False
    if right is None and kind not in NUMBERS:
        return False
    raise UnsureError


def unequal(left: Any, right: Any) -> bool:
    """Not `equal`; but celpy does not tell a list or a map from null."""
    if right is None and left.__class__ in (list, dict):
        raise UnsureError
    if left is None and right.__class__ in (list, dict):
        raise UnsureError
    return not equal(left, right)


def within(item: Any, container: Any) -> bool:
    """`in`: a text among the keys of a map, a scalar in a list."""
    kind = item.__class__
    if container.__class__ is dict:
        if kind is str:
            return item in container
        raise UnsureError
    if container.__class__ is not list or (kind not in ORDERED and item is not None):
        raise UnsureError
    kinds = {each.__class__ for each in container}
    if kind in kinds and any(each.__class__ is kind and each == item for each in container):
        return True
    if kinds <= {kind} or (kind is str and kinds <= NOT_TEXT | {str}):
        return False
    if item is None and kinds <= {str, bool}:
        return False
    raise UnsureError


def field(owner: Any, name: str) -> Any:
    """A field of a map; nothing else has any, and celpy says so."""
    if owner.__class__ is dict and name in owner:
        return owner[name]
    raise FaultError


def choose(container: Any, key: Any) -> Any:
    """An item of a list, or of a map by a text."""
    if container.__class__ is dict and key.__class__ is str:
        if key in container:
            return container[key]
        raise FaultError
    if container.__class__ is list and key.__class__ is int and key >= 0:
        if key < len(container):
            return container[key]
        raise FaultError
    raise UnsureError


def asked_of_texts(ask: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    """A question about two texts."""

    def operation(text: Any, part: Any) -> bool:
        if text.__class__ is str and part.__class__ is str:
            return ask(text, part)
        raise UnsureError

    return operation


def negation(value: Any) -> bool:
    """Not: of a truth alone."""
    if value.__class__ is bool:
        return not value
    raise UnsureError


def minus(value: Any) -> Any:
    """The number with the other sign."""
    if value.__class__ is int:
        return whole(-value)
    if value.__class__ is float:
        return -value
    raise UnsureError


def size(value: Any) -> int:
    """Characters, items or keys; nothing has none."""
    if value.__class__ in (str, list, dict):
        return len(value)
    if value is None:
        return 0
    raise UnsureError


def to_text(value: Any) -> str:
    """`string()` of what has one spelling."""
    if value.__class__ is str:
        return value
    if value.__class__ in (int, float):
        return str(value)
    raise UnsureError


def to_whole(value: Any) -> int:
    """`int()`: cut off towards zero, or read from decimal digits."""
    if value.__class__ is int:
        return value
    if value.__class__ is float and math.isfinite(value):
        return whole(math.trunc(value))
    if value.__class__ is str and len(value) <= SHORT_NUMBER and value.isascii():
        digits = value.removeprefix("-")
        if digits.isdigit():
            return whole(int(value))
    raise UnsureError


def to_fraction(value: Any) -> float:
    """`double()` of a number."""
    if value.__class__ in (int, float):
        return float(value)
    raise UnsureError


PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": numeric(operator.sub),
    "*": numeric(operator.mul),
    "/": divide,
    "%": remainder,
    "<": ordered(operator.lt),
    "<=": ordered(operator.le),
    ">": ordered(operator.gt),
    ">=": ordered(operator.ge),
    "==": equal,
    "!=": unequal,
    "in": within,
    "field": field,
    "index": choose,
    "contains": asked_of_texts(str.__contains__),
    "endsWith": asked_of_texts(str.endswith),
    "startsWith": asked_of_texts(str.startswith),
}
SINGLE: dict[str, Callable[[Any], Any]] = {
    "!": negation,
    "double": to_fraction,
    "int": to_whole,
    "negated": minus,
    "size": size,
    "string": to_text,
}
