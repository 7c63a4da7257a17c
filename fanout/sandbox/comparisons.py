"""Whole numbers and fractions compared with each other, as the specification of CEL has it.

celpy compares numbers of one kind alone. A measured rate of 0.0 is the whole number 0 here, since
JSON and YAML do not tell the two apart: it has to be less than 0.05 all the same.
(https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Numeric Values".)
"""

import operator
from collections.abc import Callable
from typing import Any

from celpy import celtypes
from celpy.evaluation import base_functions

_WHOLE = (celtypes.IntType, celtypes.UintType)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_==_": operator.eq,
    "_!=_": operator.ne,
}


def _mixed(left: Any, right: Any) -> bool:
    """celpy's fractions are Python's, and its sums of fractions nothing more than that."""
    if isinstance(left, _WHOLE):
        return isinstance(right, float)
    return isinstance(left, float) and isinstance(right, _WHOLE)


def _plain(number: Any) -> int | float:
    """Python compares an int with a float exactly."""
    return int(number) if isinstance(number, _WHOLE) else float(number)


def _comparison(name: str, compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    same_kind = base_functions[name]

    def operation(left: Any, right: Any) -> Any:
        if _mixed(left, right):
            return celtypes.BoolType(compare(_plain(left), _plain(right)))
        return same_kind(left, right)

    return operation


COMPARISONS = {name: _comparison(name, compare) for name, compare in _OPERATORS.items()}
