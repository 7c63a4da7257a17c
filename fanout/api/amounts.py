"""A number or a share, ``2`` or ``"60%"``, and a factor of growth: kept exactly.

Percent is a whole number (design §6, "What counts"); who uses an amount says which way it rounds.
"""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from fanout.api.faults import BadValue
from fanout.api.texts import shown

_HIGHEST = 1_000_000  # nothing grows faster than at once

_SCHEMA = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,3}%$"}],
    "x-kubernetes-int-or-string": True,
}


def parse_amount(value: object) -> int | Fraction:
    """A number of 0 or more, or a share from ``0%`` to ``100%``. Raises BadValue."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise BadValue(f"{value} is negative", "write 0 or more")
        return value
    if isinstance(value, Fraction):
        return value
    if isinstance(value, str) and (found := re.fullmatch(r"([0-9]{1,3})%", value, re.ASCII)):
        percent = int(found[1])
        if percent > 100:
            raise BadValue(f"{value} is more than all", "write at most 100%")
        return Fraction(percent, 100)
    raise BadValue(f"{value!r} is no number and no whole percentage", 'write 3 or "25%"')


def _read(value: Any) -> int | Fraction | None:
    return None if value is None else parse_amount(value)


def _write(value: int | Fraction | None) -> int | str | None:
    return f"{int(value * 100)}%" if isinstance(value, Fraction) else value


def _read_quorum(value: Any) -> int | Fraction | None:
    below = isinstance(value, int) and not isinstance(value, bool) and value <= 0
    amount = None if below else _read(value)
    if below or amount == 0:
        raise BadValue("nothing would be enough", "write 1 or more, or 1% or more")
    return amount


Amount = Annotated[
    int | Fraction | None,
    PlainValidator(_read),
    PlainSerializer(_write),
    WithJsonSchema(_SCHEMA),
]
Quorum = Annotated[
    int | Fraction | None,
    PlainValidator(_read_quorum),
    PlainSerializer(_write),
    WithJsonSchema(_SCHEMA),
]


def parse_factor(value: object) -> Fraction:
    """A number above 1, exactly as it is written: 1.1 is eleven tenths. Raises BadValue."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadValue(f"{shown(value)} is no number", "write one above 1, like 1.5")
    if not 1 < value <= _HIGHEST:
        raise BadValue(f"a growth of {value} is none", f"write more than 1, at most {_HIGHEST}")
    return Fraction(Decimal(repr(value)))


def _write_factor(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


Factor = Annotated[
    Fraction,
    PlainValidator(parse_factor),
    PlainSerializer(_write_factor),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 1, "maximum": _HIGHEST}),
]
