"""Conversion between plain data and celpy's types, and int-double comparisons.

celpy compares numbers of one type only. A measured rate of 0.0 is the int 0 here, since
JSON and YAML do not tell the two apart: it must be less than 0.05 all the same, as CEL
specifies (https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Numeric
Values").
"""

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from celpy import celtypes
from celpy.evaluation import CELEvalError, base_functions

from fanout.sandbox.worker_main import RefusedError

FLOAT_INT_LIMIT = 2.0**63
DURATION_PATTERN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d))+")
TYPE_NAMES = {
    celtypes.BoolType: "a boolean",
    celtypes.BytesType: "bytes",
    celtypes.DoubleType: "a fraction",
    celtypes.DurationType: "a duration",
    celtypes.IntType: "a number",
    celtypes.ListType: "a list",
    celtypes.MapType: "a map",
    celtypes.StringType: "a string",
    celtypes.TimestampType: "a timestamp",
    celtypes.UintType: "an unsigned number",
    type(None): "null",
}
TYPE_NAMES_BY_CLASS = {kind.__name__: name for kind, name in TYPE_NAMES.items()}


def to_cel(value: Any) -> Any:
    """Convert decoded JSON for celpy. `3.0` becomes the int 3, as YAML's authors mean it."""
    match value:
        case str():
            return celtypes.StringType(value)
        # Before int, of which bool is a subclass.
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            is_whole = value.is_integer() and abs(value) < FLOAT_INT_LIMIT
            return celtypes.IntType(int(value)) if is_whole else celtypes.DoubleType(value)
        case dict():
            return celtypes.MapType(
                {celtypes.StringType(key): to_cel(item) for key, item in value.items()}
            )
        case list():
            return celtypes.ListType([to_cel(item) for item in value])
    return None


def to_plain(value: Any) -> Any:
    """Convert celpy's value to plain data.

    Raises RefusedError for types that JSON does not have.
    """
    match value:
        case CELEvalError():
            raise value
        case None:
            return None
        case bool() | celtypes.BoolType():
            return bool(value)
        case int():
            return int(value)
        case float():
            return _plain_number(float(value))
        case str():  # concatenation returns a Python str
            return str(value)
        case list():
            return [to_plain(item) for item in value]
        case dict():
            return {_plain_key(key): to_plain(item) for key, item in value.items()}
    raise RefusedError(
        "ExpressionError", f"its value is {describe_type(type(value))}, not plain data"
    )


def _plain_number(value: float) -> int | float:
    if not math.isfinite(value):
        raise RefusedError("ExpressionError", "its value is not a finite number")
    return int(value) if value.is_integer() and abs(value) < FLOAT_INT_LIMIT else value


def _plain_key(key: Any) -> str:
    if isinstance(key, CELEvalError):
        raise key
    if not isinstance(key, str):
        raise RefusedError(
            "ExpressionError", f"a map's key is {describe_type(type(key))}, not a string"
        )
    return str(key)


def parse_duration(value: Any) -> Any:
    """Implement CEL's `duration()`, as celpy's own pattern can take exponential time."""
    if isinstance(value, str) and DURATION_PATTERN.fullmatch(value) is None:
        raise ValueError("no duration")
    return celtypes.DurationType(value)


def describe_type(value_type: type) -> str:
    """Return a celpy type in words."""
    return TYPE_NAMES.get(value_type, "a type or a function")


_INTEGER_TYPES = (celtypes.IntType, celtypes.UintType)
_COMPARISON_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_==_": operator.eq,
    "_!=_": operator.ne,
}


def _is_mixed(left: Any, right: Any) -> bool:
    """Return whether one number is an int and the other a double.

    celpy's doubles are Python floats, and sums of them nothing more than that.
    """
    if isinstance(left, _INTEGER_TYPES):
        return isinstance(right, float)
    return isinstance(left, float) and isinstance(right, _INTEGER_TYPES)


def _python_number(number: Any) -> int | float:
    """Convert to a Python number: Python compares an int with a float exactly."""
    return int(number) if isinstance(number, _INTEGER_TYPES) else float(number)


def _build_mixed_comparison(
    name: str, compare: Callable[[Any, Any], bool]
) -> Callable[[Any, Any], Any]:
    compare_same_type = base_functions[name]

    def operation(left: Any, right: Any) -> Any:
        if _is_mixed(left, right):
            return celtypes.BoolType(compare(_python_number(left), _python_number(right)))
        return compare_same_type(left, right)

    return operation


COMPARISONS = {
    name: _build_mixed_comparison(name, compare) for name, compare in _COMPARISON_OPERATORS.items()
}
