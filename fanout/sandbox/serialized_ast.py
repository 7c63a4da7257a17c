"""Serialized AST of an expression that is simple enough for a closure.

Written by a worker, which has celpy's parser, and read by the parent
(`expression_closures`), which must not import celpy: that takes longer than most
commands. A node is a list whose first item is its type:

    ["value", 3]  ["path", "target", "metadata", "name"]  ["+", node, node]  ["has", node]

Below a map, keys and values alternate. All but the first two contain nothing but nodes.

Not serialized, and so left to celpy, are macros, patterns, times, bytes, unsigned
numbers and types; and expressions that celpy evaluates in a way of its own, which is
not worth imitating.
"""

import math
from collections.abc import Callable
from typing import Any

from celpy.celtypes import DoubleType, IntType
from celpy.evaluation import celstr
from lark import Token

from fanout.sandbox.builtin_names import CALLABLE_NAMES
from fanout.sandbox.cel_syntax import Tree, arguments_of, child_of, find_path, subtrees, token_of

SerializedAst = list[Any]
MAX_AST_DEPTH = 64  # levels of nodes; each is a Python frame when the closure is called

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


class _NotSimpleError(Exception):
    """The expression is not within the bounded subset."""


def serialize_tree(tree: Tree) -> SerializedAst | None:
    """Serialize a shortened tree; None if celpy must evaluate it."""
    try:
        return _serialize_node(tree, 0)
    except _NotSimpleError:
        return None


def _serialize_node(tree: Tree, depth: int) -> SerializedAst:
    """Serialize one node. `depth` counts the nodes above it."""
    if depth > MAX_AST_DEPTH:
        raise _NotSimpleError
    if names := find_path(tree):
        return ["path", *_check_variable(names)]
    serialize = SERIALIZERS.get(tree.data)
    if serialize is None:
        raise _NotSimpleError
    return serialize(tree, depth + 1)


def _check_variable(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a variable with the name of a function or type, which may mean either."""
    if names[0] in CALLABLE_NAMES:
        raise _NotSimpleError
    return names


def _serialize_conditional(tree: Tree, depth: int) -> SerializedAst:
    return ["?:", *(_serialize_node(each, depth) for each in subtrees(tree))]


def _build_logic_serializer(sign: str) -> Callable[[Tree, int], SerializedAst]:
    def serialize(tree: Tree, depth: int) -> SerializedAst:
        return [sign, *(_serialize_node(each, depth) for each in subtrees(tree))]

    return serialize


def _serialize_operation(tree: Tree, depth: int) -> SerializedAst:
    """Serialize a binary or unary operation.

    Celpy keeps the sign and left operand in one node.
    """
    sign, right = subtrees(tree)
    return [
        SIGNS[sign.data],
        *(_serialize_node(each, depth) for each in subtrees(sign)),
        _serialize_node(right, depth),
    ]


def _serialize_field(tree: Tree, depth: int) -> SerializedAst:
    return ["field", _serialize_node(child_of(tree, 0), depth), ["value", str(token_of(tree, 1))]]


def _serialize_index(tree: Tree, depth: int) -> SerializedAst:
    return ["index", *(_serialize_node(each, depth) for each in subtrees(tree))]


def _serialize_method(tree: Tree, depth: int) -> SerializedAst:
    name, arguments = str(token_of(tree, 1)), list(arguments_of(tree))
    receiver = _serialize_node(child_of(tree, 0), depth)
    if name == "size" and not arguments:
        return ["size", receiver]
    if name not in METHODS or len(arguments) != 1:
        raise _NotSimpleError
    if name == "contains" and receiver[0] not in ("path", "value"):
        # celpy has the method for texts of a row, not for concatenated ones
        raise _NotSimpleError
    return [name, receiver, _serialize_node(arguments[0], depth)]


def _serialize_primary(tree: Tree, depth: int) -> SerializedAst:
    inner = child_of(tree, 0)
    serialize = PRIMARY_SERIALIZERS.get(inner.data)
    if serialize is None:
        raise _NotSimpleError
    return serialize(inner, depth)


def _serialize_call(tree: Tree, depth: int) -> SerializedAst:
    name, arguments = str(token_of(tree, 0)), list(arguments_of(tree))
    if name not in FUNCTIONS or len(arguments) != 1:
        raise _NotSimpleError
    return [name, _serialize_node(arguments[0], depth)]


def _serialize_list(tree: Tree, depth: int) -> SerializedAst:
    return ["list", *(_serialize_node(each, depth) for each in arguments_of(tree))]


def _serialize_map(tree: Tree, depth: int) -> SerializedAst:
    """Serialize a map whose keys are distinct string literals."""
    inits = next(subtrees(tree), None)
    nodes = [_serialize_node(each, depth) for each in subtrees(inits)] if inits is not None else []
    keys = nodes[0::2]
    texts = {key[1] for key in keys if key[0] == "value" and isinstance(key[1], str)}
    if len(texts) < len(keys):
        raise _NotSimpleError
    return ["map", *nodes]


def _serialize_literal(tree: Tree, _: int) -> SerializedAst:
    value = token_of(tree, 0)
    read = LITERAL_READERS.get(value.type)
    if read is None:
        raise _NotSimpleError
    try:
        return ["value", read(value)]
    except (ValueError, OverflowError):  # out of range, or a lone surrogate
        raise _NotSimpleError from None


def _read_text(value: Token) -> str:
    text = str(celstr(value))
    text.encode()
    return text


def _read_double(value: Token) -> float:
    fraction = float(DoubleType(value.value))
    if not math.isfinite(fraction):
        raise _NotSimpleError
    return fraction


def _read_int(value: Token) -> int:
    return int(IntType(value.value))


LITERAL_READERS: dict[str, Callable[[Token], Any]] = {
    "BOOL_LIT": lambda value: value.value == "true",
    "FLOAT_LIT": _read_double,
    "INT_LIT": _read_int,
    "MLSTRING_LIT": _read_text,
    "NULL_LIT": lambda _: None,
    "STRING_LIT": _read_text,
}
PRIMARY_SERIALIZERS: dict[str, Callable[[Tree, int], SerializedAst]] = {
    "ident_arg": _serialize_call,
    "list_lit": _serialize_list,
    "literal": _serialize_literal,
    "map_lit": _serialize_map,
}
SERIALIZERS: dict[str, Callable[[Tree, int], SerializedAst]] = {
    "addition": _serialize_operation,
    "conditionaland": _build_logic_serializer("&&"),
    "conditionalor": _build_logic_serializer("||"),
    "expr": _serialize_conditional,
    "member_dot": _serialize_field,
    "member_dot_arg": _serialize_method,
    "member_index": _serialize_index,
    "multiplication": _serialize_operation,
    "primary": _serialize_primary,
    "relation": _serialize_operation,
    "unary": _serialize_operation,
}
