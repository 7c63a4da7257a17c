"""The outline of an expression: its tree as plain data, where it is simple enough for a closure.

Written in the child, which has celpy's parser, and read by the parent (`closures.py`), which must
not import it: that takes longer than most commands. A node is a list, its first item a word:

    ["value", 3]  ["path", "target", "metadata", "name"]  ["+", node, node]  ["has", node]

A map has keys and values in turn below it. All but the first two have nothing but nodes.

Left out, and so left to celpy, are macros, patterns, times, bytes, unsigned numbers and types; and
what celpy answers in a way of its own, which is simpler to ask than to imitate.
"""

import math
from collections.abc import Callable
from typing import Any

from celpy.celtypes import DoubleType, IntType
from celpy.evaluation import celstr
from lark import Token

from fanout.sandbox.language import CALLED
from fanout.sandbox.syntax import Tree, arguments_of, child_of, path_of, subtrees, token_of

Outline = list[Any]
DEEPEST = 64  # nodes above each other: a frame of Python each, when the closure is called

SIGNS = {
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_div": "/",
    "multiplication_mod": "%",
    "multiplication_mul": "*",
    "relation_eq": "==",
    "relation_ge": ">=",
    "relation_gt": ">",
    "relation_in": "in",
    "relation_le": "<=",
    "relation_lt": "<",
    "relation_ne": "!=",
    "unary_neg": "negated",
    "unary_not": "!",
}
FUNCTIONS = frozenset({"double", "has", "int", "size", "string"})
METHODS = frozenset({"contains", "endsWith", "startsWith"})


class _OutsideError(Exception):
    """The expression is not within the bounded subset."""


def outline(tree: Tree) -> Outline | None:
    """The outline of a shortened tree; None: celpy has to be asked."""
    try:
        return _node(tree, 0)
    except _OutsideError:
        return None


def _node(tree: Tree, depth: int) -> Outline:
    """One node. `depth` counts those above it."""
    if depth > DEEPEST:
        raise _OutsideError
    if names := path_of(tree):
        return ["path", *_variable(names)]
    form = FORMS.get(tree.data)
    if form is None:
        raise _OutsideError
    return form(tree, depth + 1)


def _variable(names: tuple[str, ...]) -> tuple[str, ...]:
    """A name that is a function's or a type's too may mean either."""
    if names[0] in CALLED:
        raise _OutsideError
    return names


def _choice(tree: Tree, depth: int) -> Outline:
    return ["?:", *(_node(each, depth) for each in subtrees(tree))]


def _logic(sign: str) -> Callable[[Tree, int], Outline]:
    def form(tree: Tree, depth: int) -> Outline:
        return [sign, *(_node(each, depth) for each in subtrees(tree))]

    return form


def _operation(tree: Tree, depth: int) -> Outline:
    """celpy has the sign and what is left of it in one node."""
    sign, right = subtrees(tree)
    return [SIGNS[sign.data], *(_node(each, depth) for each in subtrees(sign)), _node(right, depth)]


def _field(tree: Tree, depth: int) -> Outline:
    return ["field", _node(child_of(tree, 0), depth), ["value", str(token_of(tree, 1))]]


def _index(tree: Tree, depth: int) -> Outline:
    return ["index", *(_node(each, depth) for each in subtrees(tree))]


def _method(tree: Tree, depth: int) -> Outline:
    name, given = str(token_of(tree, 1)), list(arguments_of(tree))
    of = _node(child_of(tree, 0), depth)
    if name == "size" and not given:
        return ["size", of]
    if name not in METHODS or len(given) != 1:
        raise _OutsideError
    if name == "contains" and of[0] not in ("path", "value"):
        raise _OutsideError  # celpy knows it for texts as they came, not for those it put together
    return [name, of, _node(given[0], depth)]


def _primary(tree: Tree, depth: int) -> Outline:
    inner = child_of(tree, 0)
    form = PRIMARIES.get(inner.data)
    if form is None:
        raise _OutsideError
    return form(inner, depth)


def _call(tree: Tree, depth: int) -> Outline:
    name, given = str(token_of(tree, 0)), list(arguments_of(tree))
    if name not in FUNCTIONS or len(given) != 1:
        raise _OutsideError
    return [name, _node(given[0], depth)]


def _list(tree: Tree, depth: int) -> Outline:
    return ["list", *(_node(each, depth) for each in arguments_of(tree))]


def _map(tree: Tree, depth: int) -> Outline:
    """Its keys have to be texts as they stand, each another."""
    inits = next(subtrees(tree), None)
    nodes = [_node(each, depth) for each in subtrees(inits)] if inits is not None else []
    keys = nodes[0::2]
    texts = {key[1] for key in keys if key[0] == "value" and isinstance(key[1], str)}
    if len(texts) < len(keys):
        raise _OutsideError
    return ["map", *nodes]


def _literal(tree: Tree, _: int) -> Outline:
    value = token_of(tree, 0)
    read = LITERALS.get(value.type)
    if read is None:
        raise _OutsideError
    try:
        return ["value", read(value)]
    except (ValueError, OverflowError):  # out of range, or half a character
        raise _OutsideError from None


def _text(value: Token) -> str:
    text = str(celstr(value))
    text.encode()
    return text


def _fraction(value: Token) -> float:
    fraction = float(DoubleType(value.value))
    if not math.isfinite(fraction):
        raise _OutsideError
    return fraction


def _number(value: Token) -> int:
    return int(IntType(value.value))


LITERALS: dict[str, Callable[[Token], Any]] = {
    "BOOL_LIT": lambda value: value.value == "true",
    "FLOAT_LIT": _fraction,
    "INT_LIT": _number,
    "MLSTRING_LIT": _text,
    "NULL_LIT": lambda _: None,
    "STRING_LIT": _text,
}
PRIMARIES: dict[str, Callable[[Tree, int], Outline]] = {
    "ident_arg": _call,
    "list_lit": _list,
    "literal": _literal,
    "map_lit": _map,
}
FORMS: dict[str, Callable[[Tree, int], Outline]] = {
    "addition": _operation,
    "conditionaland": _logic("&&"),
    "conditionalor": _logic("||"),
    "expr": _choice,
    "member_dot": _field,
    "member_dot_arg": _method,
    "member_index": _index,
    "multiplication": _operation,
    "primary": _primary,
    "relation": _operation,
    "unary": _operation,
}
