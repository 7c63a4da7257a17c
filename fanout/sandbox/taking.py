"""What a closure takes from a row of variables, in the shape in which celpy would have it.

celpy converts all that an expression reads before it begins, needed or not. So what it could not
convert, or what is too large or odd to be judged quickly, leaves the whole expression to it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fanout.sandbox.operations import LARGEST, LONGEST, UnsureError, whole

DEEPEST = 20  # lists and maps in each other, where one is taken as a whole
ITEM = 16  # characters that an item of such a list or map counts as, however short it is
MISSING: Any = object()  # in place of a value: there is none at that path


def read(row: Mapping[str, Any], name: str, way: Sequence[str]) -> Any:
    """The value of a variable, or on a way of fields below it; `MISSING` where there is none.

    Raises UnsureError.
    """
    if name not in row:
        return MISSING
    value = row[name]
    for step in way:
        if value.__class__ is not dict:
            taken(value)
            return MISSING
        if step not in value:
            return MISSING
        value = value[step]
    if value.__class__ is str and len(value) <= LONGEST and value.isascii():
        return value  # nearly always
    return taken(value)


def taken(value: Any) -> Any:
    """The value itself; a fraction that is whole is a whole number: `3.0` in a file is 3.

    Raises UnsureError.
    """
    kind = value.__class__
    if kind is str:
        return _proper(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return whole(value)
    if kind is float:
        if not math.isfinite(value):
            raise UnsureError
        return int(value) if value.is_integer() and abs(value) < LARGEST else value
    if kind is dict or kind is list:
        _check(value)
        return value
    raise UnsureError


def _proper(text: str) -> str:
    """Text that is not too long, and can be written down."""
    if len(text) > LONGEST:
        raise UnsureError
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnsureError from None
    return text


def _check(container: Any) -> None:
    """A list or map may be taken as it is: no fractions, nothing odd, not too long or deep."""
    left = LONGEST
    level = [container]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            left -= _weight(each, below)
            if left < 0:
                raise UnsureError
        if not below:
            return
        level = below
    raise UnsureError


def _weight(container: Any, below: list[Any]) -> int:
    """Characters and items; what contains further ones is noted in `below`."""
    weight, items = ITEM * len(container), container
    if weight > LONGEST:
        raise UnsureError
    if container.__class__ is dict:
        for key in container:
            if key.__class__ is not str:
                raise UnsureError
            weight += len(_proper(key))
        items = container.values()
    for item in items:
        kind = item.__class__
        if kind is dict or kind is list:
            below.append(item)
        elif kind is float:  # it might have to be replaced
            raise UnsureError
        elif kind is str:
            weight += len(taken(item))
        else:
            taken(item)
    return weight
