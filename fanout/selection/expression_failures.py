"""Expressions of templates whose result cannot be used, for messages."""

from typing import Any

from fanout.selection.variant_spec import ExpressionFailure

_KINDS = {
    bool: "a boolean",
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
}


def describe_unusable(expression: str | None, value: Any, requirement: str) -> str:
    """Say why the result of an expression cannot be used: its error, or its type.

    `requirement` is the type that is needed, and how to get it.
    """
    if isinstance(value, ExpressionFailure):
        remedy = value.remedy or "correct the expression, or the target"
        return f"{expression}: {value.problem}; {remedy}"
    kind = "nothing" if value is None else _KINDS.get(type(value), "another type")
    return f"{expression}: yields {kind} where {requirement}"
