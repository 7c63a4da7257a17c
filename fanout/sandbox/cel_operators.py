"""Values, operators and conversions of CEL as its specification defines them.

https://github.com/google/cel-spec/blob/master/doc/langdef.md

The parent reads this module, so it imports no parser. A value of CEL is a Python value:
None, bool, int, `Uint`, float, str, bytes, list, dict, `Timestamp`, `Duration`, `CelType`.
A bool is never taken for a number: `__class__` is compared and not isinstance. Booleans
among the keys of a dict are tuples, since `True == 1` to Python.

What the specification calls an error is an `EvaluationError`; nothing is converted by itself.
"""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from fanout.values import Value

INT_LIMIT = 2**63
UINT_LIMIT = 2**64


class EvaluationError(Exception):
    """An expression, or a part of one, has no value."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.column: int | None = None  # where in the text, from 1


class Uint(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time within 64 bits."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant of the years 1 to 9999, since 1970 in UTC."""

    nanoseconds: int

    FIRST = -62_135_596_800 * 10**9
    LAST = 253_402_300_800 * 10**9 - 1

    @classmethod
    def within_range(cls, nanoseconds: int) -> Self:
        """Return the instant. Raises EvaluationError outside of the years 1 to 9999."""
        if cls.FIRST <= nanoseconds <= cls.LAST:
            return cls(nanoseconds)
        raise EvaluationError("a timestamp is out of range")


class CelType(Value):
    """A type as a value."""

    name: str


TYPES: dict[type, tuple[str, str]] = {
    CelType: ("type", "a type"),
    Duration: ("google.protobuf.Duration", "a duration"),
    Timestamp: ("google.protobuf.Timestamp", "a timestamp"),
    Uint: ("uint", "an unsigned number"),
    bool: ("bool", "a boolean"),
    bytes: ("bytes", "bytes"),
    dict: ("map", "a map"),
    float: ("double", "a fraction"),
    int: ("int", "a number"),
    list: ("list", "a list"),
    str: ("string", "a string"),
    type(None): ("null_type", "null"),
}
TYPES_BY_NAME = {name: CelType(name) for name, _ in TYPES.values()}
NUMBER_TYPES = frozenset({Uint, float, int})  # compared with each other, exactly
ORDERED_TYPES = frozenset({Duration, Timestamp, bool, bytes, str}) | NUMBER_TYPES


def type_of(value: Any) -> CelType:
    """Return the type of a value (`type()`)."""
    return TYPES_BY_NAME[TYPES[value.__class__][0]]


def describe_kind(value: Any) -> str:
    """Return the type of a value in words."""
    return TYPES[value.__class__][1]


def no_overload(sign: str, *values: Any) -> EvaluationError:
    """Return the error of an operator or a function that has no meaning for these values."""
    kinds = " and ".join(describe_kind(value) for value in values)
    return EvaluationError(f"{sign!r} cannot be applied to {kinds}")


def out_of_range() -> EvaluationError:
    """Return the error of a number that its type cannot hold."""
    return EvaluationError("a number is out of range")


def not_convertible(value: Any, function: str) -> EvaluationError:
    """Return the error of a value that a conversion does not accept."""
    return EvaluationError(f"{describe_kind(value)} cannot be converted by {function}()")


def check_int(value: int) -> int:
    """Return the number if it fits 64 bits. Raises EvaluationError."""
    if -INT_LIMIT <= value < INT_LIMIT:
        return value
    raise out_of_range()


def check_uint(value: int) -> Uint:
    """Return the number without a sign. Raises EvaluationError if it needs one or is too large."""
    if 0 <= value < UINT_LIMIT:
        return Uint(value)
    raise out_of_range()


def to_key(value: Any) -> Any:
    """Return the key of a dict for a key of a map."""
    return (value,) if value.__class__ is bool else value


def from_key(key: Any) -> Any:
    """Return the key of a map for a key of a dict."""
    return key[0] if key.__class__ is tuple else key


# Number types, each with what keeps the result of an operator within it.
_FITTING: dict[type, Callable[[Any], Any]] = {Uint: check_uint, float: float, int: check_int}


def add(left: Any, right: Any) -> Any:
    """Add numbers of one type, or times, or concatenate (`+`)."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is str or kind is list or kind is bytes:
            return left + right
        if kind in _FITTING:
            return _FITTING[kind](left + right)
        if kind is Duration:
            return Duration(check_int(left.nanoseconds + right.nanoseconds))
    if (kind is Timestamp and other is Duration) or (kind is Duration and other is Timestamp):
        return Timestamp.within_range(left.nanoseconds + right.nanoseconds)
    raise no_overload("+", left, right)


def subtract(left: Any, right: Any) -> Any:
    """Subtract numbers of one type, or times (`-`)."""
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind in _FITTING:
            return _FITTING[kind](left - right)
        if kind is Duration or kind is Timestamp:
            return Duration(check_int(left.nanoseconds - right.nanoseconds))
    if kind is Timestamp and other is Duration:
        return Timestamp.within_range(left.nanoseconds - right.nanoseconds)
    raise no_overload("-", left, right)


def multiply(left: Any, right: Any) -> Any:
    """Multiply numbers of one type (`*`)."""
    if (kind := left.__class__) is right.__class__ and kind in _FITTING:
        return _FITTING[kind](left * right)
    raise no_overload("*", left, right)


def divide(left: Any, right: Any) -> Any:
    """Divide numbers of one type (`/`); whole numbers towards zero."""
    if (kind := left.__class__) is right.__class__:
        if kind is float:
            if right:
                return left / right
            # As in IEEE 754; Python raises an exception.
            if left == 0 or math.isnan(left):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        if kind is int or kind is Uint:
            if not right:
                raise EvaluationError("division by zero")
            quotient = abs(left) // abs(right)
            if kind is Uint:
                return Uint(quotient)
            return check_int(quotient if (left < 0) == (right < 0) else -quotient)
    raise no_overload("/", left, right)


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder of two whole numbers (`%`), with the sign of the dividend."""
    if (kind := left.__class__) is right.__class__ and (kind is int or kind is Uint):
        if not right:
            raise EvaluationError("division by zero")
        check_int(left // right) if kind is int else None  # as the quotient, it may not fit
        rest = abs(left) % abs(right)
        return Uint(rest) if kind is Uint else -rest if left < 0 else rest
    raise no_overload("%", left, right)


def build_comparison(sign: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Build a comparison such as `<` for values of one ordered type, and any two numbers."""

    def operation(left: Any, right: Any) -> bool:
        kind, other = left.__class__, right.__class__
        if (kind is other and kind in ORDERED_TYPES) or (
            kind in NUMBER_TYPES and other in NUMBER_TYPES
        ):
            return compare(left, right)
        raise no_overload(sign, left, right)

    return operation


def is_equal(left: Any, right: Any) -> bool:
    """Compare any two values (`==`); those of different types are unequal, but for numbers."""
    kind, other = left.__class__, right.__class__
    if kind is list and other is list:
        return len(left) == len(right) and all(map(is_equal, left, right))
    if kind is dict and other is dict:
        return len(left) == len(right) and all(
            key in right and is_equal(value, right[key]) for key, value in left.items()
        )
    if kind is other or (kind in NUMBER_TYPES and other in NUMBER_TYPES):
        return bool(left == right)
    return False


def is_in(item: Any, container: Any) -> bool:
    """Return whether a value is a key of a map, or in a list (`in`)."""
    if container.__class__ is dict:
        return _is_key(item) and to_key(item) in container
    if container.__class__ is list:
        return any(is_equal(item, each) for each in container)
    raise no_overload("in", item, container)


def _is_key(value: Any) -> bool:
    """Return whether a map may have a key that is equal to the value."""
    return value.__class__ in NUMBER_TYPES or value.__class__ in (bool, str)


def get_field(owner: Any, name: str) -> Any:
    """Return a field of a map."""
    if owner.__class__ is dict and name in owner:
        return owner[name]
    if owner.__class__ is dict:
        raise EvaluationError(f"the map has no field {name!r}")
    raise EvaluationError(f"{describe_kind(owner)} has no field {name!r}")


def has_field(owner: Any, name: str) -> bool:
    """Return whether a map has a field (`has()`); only a map can be asked."""
    if owner.__class__ is dict:
        return name in owner
    raise EvaluationError(f"{describe_kind(owner)} has no fields")


def get_item(container: Any, key: Any) -> Any:
    """Return an item of a list by index, or of a map by key (`[]`)."""
    kind = key.__class__
    if container.__class__ is dict and _is_key(key):
        if (key := to_key(key)) in container:
            return container[key]
        raise EvaluationError("the map has no such key")
    if container.__class__ is list and kind in NUMBER_TYPES:
        if kind is float and not key.is_integer():
            raise EvaluationError("an index is a whole number")
        if 0 <= key < len(container):
            return container[int(key)]
        raise EvaluationError("the list has no item with that index")
    raise no_overload("[]", container, key)


def build_map(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    """Return a map of keys that differ and are strings, booleans or whole numbers."""
    result: dict[Any, Any] = {}
    for key, value in zip(keys, values, strict=True):
        if not _is_key(key) or key.__class__ is float:
            raise EvaluationError(f"{describe_kind(key)} cannot be the key of a map")
        if to_key(key) in result:
            raise EvaluationError("a key is twice in the map")
        result[to_key(key)] = value
    return result


def list_items(collection: Any) -> list[Any]:
    """Return what a macro goes through: the items of a list, or the keys of a map."""
    if collection.__class__ is list:
        return collection
    if collection.__class__ is dict:
        return [from_key(key) for key in collection]
    raise EvaluationError(f"a macro needs a list or a map, not {describe_kind(collection)}")


def build_text_predicate(
    name: str, predicate: Callable[[str, str], bool]
) -> Callable[[Any, Any], bool]:
    """Build a method of a text that takes a text."""

    def operation(text: Any, part: Any) -> bool:
        if text.__class__ is str and part.__class__ is str:
            return predicate(text, part)
        raise no_overload(name, text, part)

    return operation


def negate_boolean(value: Any) -> bool:
    """Negate a boolean (`!`)."""
    if value.__class__ is bool:
        return not value
    raise no_overload("!", value)


def negate_number(value: Any) -> Any:
    """Negate a number (`-`)."""
    if value.__class__ is int:
        return check_int(-value)
    if value.__class__ is float:
        return -value
    raise no_overload("-", value)


def get_size(value: Any) -> int:
    """Count characters, bytes, items or keys (`size()`)."""
    if value.__class__ in (str, list, dict, bytes):
        return len(value)
    raise no_overload("size", value)


INTEGER_PATTERN = re.compile(r"[-+]?[0-9]+")
UINT_PATTERN = re.compile(r"[0-9]+")
DOUBLE_PATTERN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
NOT_FINITE_PATTERN = re.compile(r"[-+]?inf(?:inity)?|nan", re.IGNORECASE)
TRUE_TEXTS = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE_TEXTS = frozenset({"0", "f", "F", "false", "FALSE", "False"})
MAX_NUMBER_LENGTH = 1024  # characters of a text that is read as a number


def to_bool(value: Any) -> bool:
    """Convert a text (`bool()`)."""
    if value.__class__ is bool:
        return bool(value)
    if value.__class__ is str and value in TRUE_TEXTS | FALSE_TEXTS:
        return value in TRUE_TEXTS
    raise not_convertible(value, "bool")


def to_int(value: Any) -> int:
    """Convert a number, cut off towards zero, decimal digits, or a time in seconds (`int()`)."""
    if (kind := value.__class__) is int:
        return int(value)
    if kind is Uint:
        return check_int(int(value))
    if kind is float:
        # Both limits are left out, as fractions next to them are not exact.
        if -INT_LIMIT < value < INT_LIMIT:
            return int(value)  # towards zero
        raise out_of_range()
    if kind is str:
        return check_int(_read_digits(value, INTEGER_PATTERN, "int"))
    if kind is Timestamp:
        return int(value.nanoseconds // 10**9)
    raise not_convertible(value, "int")


def to_uint(value: Any) -> Uint:
    """Convert a number, cut off towards zero, or decimal digits (`uint()`)."""
    if (kind := value.__class__) is Uint or kind is int:
        return check_uint(value)
    if kind is float:
        if 0 <= value < UINT_LIMIT:
            return Uint(value)
        raise out_of_range()
    if kind is str:
        return check_uint(_read_digits(value, UINT_PATTERN, "uint"))
    raise not_convertible(value, "uint")


def _read_digits(text: str, pattern: re.Pattern[str], function: str) -> int:
    # Reading digits takes quadratic time.
    if len(text) > MAX_NUMBER_LENGTH or pattern.fullmatch(text) is None:
        raise not_convertible(text, function)
    return int(text)


def to_double(value: Any) -> float:
    """Convert a number or a text (`double()`)."""
    if (kind := value.__class__) in NUMBER_TYPES:
        return float(value)
    if kind is str and len(value) <= MAX_NUMBER_LENGTH:
        if DOUBLE_PATTERN.fullmatch(value) is not None:
            number = float(value)
            if math.isinf(number):
                raise out_of_range()
            return number
        if NOT_FINITE_PATTERN.fullmatch(value) is not None:
            return float(value)
    raise not_convertible(value, "double")


def to_bytes(value: Any) -> bytes:
    """Encode a text as UTF-8 (`bytes()`)."""
    if value.__class__ is bytes:
        return bytes(value)
    if value.__class__ is str:
        return value.encode()
    raise not_convertible(value, "bytes")


def to_string(value: Any) -> str:
    """Convert a scalar (`string()`)."""
    if (kind := value.__class__) is str:
        return str(value)
    if kind is int or kind is Uint:
        return int.__str__(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return format_double(value)
    if kind is bytes:
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            raise EvaluationError("the bytes are not text in UTF-8") from None
    raise not_convertible(value, "string")


def format_double(value: float) -> str:
    """Format a fraction with the fewest digits that have its value, as other evaluators do.

    Without an exponent from 0.0001 to less than a million.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    formats = (f"{value:.{digits}e}" for digits in range(17))
    shortest = next(text for text in formats if float(text) == value)
    if -4 <= int(shortest.partition("e")[2]) < 6:
        return repr(value).removesuffix(".0")
    return shortest


BINARY_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "<": build_comparison("<", operator.lt),
    "<=": build_comparison("<=", operator.le),
    ">": build_comparison(">", operator.gt),
    ">=": build_comparison(">=", operator.ge),
    "==": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "in": is_in,
    "index": get_item,
    "contains": build_text_predicate("contains", str.__contains__),
    "endsWith": build_text_predicate("endsWith", str.endswith),
    "startsWith": build_text_predicate("startsWith", str.startswith),
}
UNARY_OPERATORS: dict[str, Callable[[Any], Any]] = {
    "!": negate_boolean,
    "double": to_double,
    "int": to_int,
    "negated": negate_number,
    "size": get_size,
    "string": to_string,
}
