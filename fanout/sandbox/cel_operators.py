"""CEL operators and functions on plain values, with exactly celpy's results.

Each covers the cases whose result is certain: values of matching types, within 64 bits,
not too long. All others, errors included, raise `UncertainAnswerError`, and celpy
evaluates the expression: it has habits (`true == 1` holds, `1 == true` is an error)
that are not worth imitating. `EvaluationError` is raised where celpy is known to
have an error too, since `&&`, `||` and `has()` continue after one. A Python int is
celpy's int and a float its double; a `bool` is never taken for a number.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

INT_LIMIT = 2**63
MAX_TEXT_LENGTH = 1 << 16  # characters of a text, and of all texts in a list or map
MAX_NUMBER_LENGTH = 32  # characters of a text that is read as a number
ORDERED_TYPES = frozenset({bool, float, int, str})
NUMBER_TYPES = frozenset({float, int})  # compared with each other, exactly
# types that celpy compares with a text without an error, as unequal
UNEQUAL_TO_TEXT = frozenset({bool, type(None)})


class EvaluationError(Exception):
    """There is no value: celpy's result is an error, or what an operator makes of one."""


class UncertainAnswerError(Exception):
    """The result is not certain; celpy must evaluate the expression."""


def check_int64(value: int) -> int:
    """Return the number if it fits 64 bits. Raises UncertainAnswerError."""
    if -INT_LIMIT <= value < INT_LIMIT:
        return value
    raise UncertainAnswerError


def add(left: Any, right: Any) -> Any:
    """Add two numbers of one type, or two texts; lists are left to celpy."""
    # `__class__` and not isinstance, here and below: a bool is an int to isinstance,
    # and never to CEL.
    kind = left.__class__
    if kind is right.__class__:
        if kind is str and len(left) + len(right) <= MAX_TEXT_LENGTH:
            return left + right
        if kind is int:
            return check_int64(left + right)
        if kind is float:
            return left + right
    raise UncertainAnswerError


def build_arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Build an operator for two whole numbers or two fractions."""

    def operation(left: Any, right: Any) -> Any:
        kind = left.__class__
        if kind is right.__class__:
            if kind is int:
                return check_int64(compute(left, right))
            if kind is float:
                return compute(left, right)
        raise UncertainAnswerError

    return operation


def divide(left: Any, right: Any) -> Any:
    """Divide; whole numbers towards zero. Division by zero is left to celpy."""
    if right and left.__class__ is right.__class__:
        if left.__class__ is int:
            quotient = abs(left) // abs(right)
            return check_int64(quotient if (left < 0) == (right < 0) else -quotient)
        if left.__class__ is float:
            return left / right
    raise UncertainAnswerError


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder, with the sign of the dividend."""
    if right and left.__class__ is int and right.__class__ is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    raise UncertainAnswerError


def build_comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Build a comparison such as `<` for values of one ordered type, and any two numbers."""

    def operation(left: Any, right: Any) -> bool:
        kind, other = left.__class__, right.__class__
        if (kind is other and kind in ORDERED_TYPES) or (
            kind in NUMBER_TYPES and other in NUMBER_TYPES
        ):
            return compare(left, right)
        raise UncertainAnswerError

    return operation


def is_equal(left: Any, right: Any) -> bool:
    """Compare scalars of one type, numbers, null, and containers of which one is empty."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind in ORDERED_TYPES:
            return bool(left == right)
        if kind is list and len(left) != len(right):
            return False
        if kind is list or kind is dict:
            if left and right:
                raise UncertainAnswerError  # it may be deep
            return not left and not right
        return True  # only null remains
    if kind in NUMBER_TYPES and other in NUMBER_TYPES:
        return bool(left == right)
    if left is None and other not in NUMBER_TYPES:
        return False
    if right is None and kind not in NUMBER_TYPES:
        return False
    raise UncertainAnswerError


def is_unequal(left: Any, right: Any) -> bool:
    """Negate `is_equal`.

    Celpy does not tell a list or a map from null, so these are uncertain.
    """
    if right is None and left.__class__ in (list, dict):
        raise UncertainAnswerError
    if left is None and right.__class__ in (list, dict):
        raise UncertainAnswerError
    return not is_equal(left, right)


def is_in(item: Any, container: Any) -> bool:
    """Return whether a text is a key of a map, or a scalar is in a list (`in`)."""
    kind = item.__class__
    if container.__class__ is dict:
        if kind is str:
            return item in container
        raise UncertainAnswerError
    if container.__class__ is not list or (kind not in ORDERED_TYPES and item is not None):
        raise UncertainAnswerError
    kinds = {each.__class__ for each in container}
    if kind in kinds and any(each.__class__ is kind and each == item for each in container):
        return True
    if kinds <= {kind} or (kind is str and kinds <= UNEQUAL_TO_TEXT | {str}):
        return False
    if item is None and kinds <= {str, bool}:
        return False
    raise UncertainAnswerError


def get_field(owner: Any, name: str) -> Any:
    """Return a field of a map.

    Raises EvaluationError for anything else, as celpy does.
    """
    if owner.__class__ is dict and name in owner:
        return owner[name]
    raise EvaluationError


def get_item(container: Any, key: Any) -> Any:
    """Return an item of a list by index, or of a map by key."""
    if container.__class__ is dict and key.__class__ is str:
        if key in container:
            return container[key]
        raise EvaluationError
    if container.__class__ is list and key.__class__ is int and key >= 0:
        if key < len(container):
            return container[key]
        raise EvaluationError
    raise UncertainAnswerError


def build_text_predicate(predicate: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    """Build a predicate on two texts."""

    def operation(text: Any, part: Any) -> bool:
        if text.__class__ is str and part.__class__ is str:
            return predicate(text, part)
        raise UncertainAnswerError

    return operation


def negate_boolean(value: Any) -> bool:
    """Negate a boolean."""
    if value.__class__ is bool:
        return not value
    raise UncertainAnswerError


def negate_number(value: Any) -> Any:
    """Negate a number."""
    if value.__class__ is int:
        return check_int64(-value)
    if value.__class__ is float:
        return -value
    raise UncertainAnswerError


def get_size(value: Any) -> int:
    """Count characters, items or keys; null has size 0, as in celpy."""
    if value.__class__ in (str, list, dict):
        return len(value)
    if value is None:
        return 0
    raise UncertainAnswerError


def to_string(value: Any) -> str:
    """Convert a value that has only one spelling (`string()`)."""
    if value.__class__ is str:
        return value
    if value.__class__ in (int, float):
        return str(value)
    raise UncertainAnswerError


def to_int(value: Any) -> int:
    """Convert a number, cut off towards zero, or decimal digits (`int()`)."""
    if value.__class__ is int:
        return value
    if value.__class__ is float and math.isfinite(value):
        return check_int64(math.trunc(value))
    if value.__class__ is str and len(value) <= MAX_NUMBER_LENGTH and value.isascii():
        digits = value.removeprefix("-")
        if digits.isdigit():
            return check_int64(int(value))
    raise UncertainAnswerError


def to_double(value: Any) -> float:
    """Convert a number (`double()`)."""
    if value.__class__ in (int, float):
        return float(value)
    raise UncertainAnswerError


BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": build_arithmetic(operator.sub),
    "*": build_arithmetic(operator.mul),
    "/": divide,
    "%": remainder,
    "<": build_comparison(operator.lt),
    "<=": build_comparison(operator.le),
    ">": build_comparison(operator.gt),
    ">=": build_comparison(operator.ge),
    "==": is_equal,
    "!=": is_unequal,
    "in": is_in,
    "field": get_field,
    "index": get_item,
    "contains": build_text_predicate(str.__contains__),
    "endsWith": build_text_predicate(str.endswith),
    "startsWith": build_text_predicate(str.startswith),
}
UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "!": negate_boolean,
    "double": to_double,
    "int": to_int,
    "negated": negate_number,
    "size": get_size,
    "string": to_string,
}
