"""Between plain data and celpy's types."""

import math
import re
from typing import Any

from celpy import celtypes
from celpy.evaluation import CELEvalError

from fanout.sandbox.worker import RefusedError

LARGEST = 2.0**63
DURATION = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d))+")
KINDS = {
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
KINDS_BY_NAME = {kind.__name__: name for kind, name in KINDS.items()}


def to_cel(value: Any) -> Any:
    """Decoded JSON as celpy wants it. `3.0` is the number 3: YAML's authors do not mean the dot."""
    match value:
        case str():
            return celtypes.StringType(value)
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            whole = value.is_integer() and abs(value) < LARGEST
            return celtypes.IntType(int(value)) if whole else celtypes.DoubleType(value)
        case dict():
            return celtypes.MapType(
                {celtypes.StringType(key): to_cel(item) for key, item in value.items()}
            )
        case list():
            return celtypes.ListType([to_cel(item) for item in value])
    return None


def to_plain(value: Any) -> Any:
    """celpy's value as plain data. RefusedError: it is a type that JSON does not have."""
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
            return _number(float(value))
        case str():  # concatenation gives Python's own
            return str(value)
        case list():
            return [to_plain(item) for item in value]
        case dict():
            return {_key(key): to_plain(item) for key, item in value.items()}
    raise RefusedError("ExpressionError", f"its value is {kind_of(type(value))}, not plain data")


def _number(value: float) -> int | float:
    if not math.isfinite(value):
        raise RefusedError("ExpressionError", "its value is not a finite number")
    return int(value) if value.is_integer() and abs(value) < LARGEST else value


def _key(key: Any) -> str:
    if isinstance(key, CELEvalError):
        raise key
    if not isinstance(key, str):
        raise RefusedError("ExpressionError", f"a map's key is {kind_of(type(key))}, not a string")
    return str(key)


def duration(value: Any) -> Any:
    """CEL's `duration()`. celpy's own pattern takes time that doubles with each letter."""
    if isinstance(value, str) and DURATION.fullmatch(value) is None:
        raise ValueError("no duration")
    return celtypes.DurationType(value)


def kind_of(kind: type) -> str:
    """A type of celpy's in words."""
    return KINDS.get(kind, "a type or a function")
