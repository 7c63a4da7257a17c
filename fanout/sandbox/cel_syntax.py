"""Syntax of CEL expressions: allowed forms, free variables, and the shortened tree.

celpy's tree has a node for every rule of the grammar, nine around a single name. Nodes
that do nothing but pass their child through are removed: evaluation is three times
faster, and no result changes.

A simple tree is serialized by a worker, which has celpy's parser, and read by the parent
(`expression_closures`), which must not import celpy: that takes longer than most
commands. A node is a list whose first item is its type:

    ["value", 3]  ["path", "target", "metadata", "name"]  ["+", node, node]  ["has", node]

Below a map, keys and values alternate. All but the first two contain nothing but nodes.

Not serialized, and so left to celpy, are macros, patterns, times, bytes, unsigned
numbers and types; and expressions that celpy evaluates in a way of its own, which is
not worth imitating.
"""

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from celpy.celtypes import DoubleType, IntType
from celpy.evaluation import celstr
from lark import Token
from lark import Tree as LarkTree

from fanout.api.field_errors import suggest_name
from fanout.sandbox.free_variables import CALLABLE_NAMES, FUNCTIONS, MACROS, METHODS, add_path
from fanout.sandbox.worker_protocol import RefusedError

MAX_EXPRESSION_LENGTH = 1024  # characters
MAX_BRACKET_DEPTH = 20  # brackets in brackets
MAX_MACRO_DEPTH = 2

PASS_THROUGH_RULES = frozenset(
    {
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
    }
)
Tree = LarkTree[Token]
STRING_PATTERN = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
PLAIN_STRING_PATTERN = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")


def check_text(text: str) -> None:
    """Refuse a text that would be expensive to parse. Raises RefusedError."""
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise RefusedError(
            "LimitExceeded", f"it has {len(text)} characters, {MAX_EXPRESSION_LENGTH} are allowed"
        )
    depth = 0
    # Brackets inside string literals do not nest anything.
    for sign in STRING_PATTERN.sub("", text):
        if sign in "([{":
            depth += 1
            if depth > MAX_BRACKET_DEPTH:
                raise RefusedError(
                    "LimitExceeded", f"its brackets are nested more than {MAX_BRACKET_DEPTH} deep"
                )
        elif sign in ")]}":
            depth -= 1


def shorten_tree(tree: Tree) -> Tree:
    """Return the tree without nodes that only pass on the value of their one child."""
    while len(tree.children) == 1 and isinstance(child := tree.children[0], LarkTree):
        if tree.data == "primary" and child.data == "paren_expr":
            tree = child_of(child, 0)
        elif tree.data in PASS_THROUGH_RULES:
            tree = child
        else:
            break
    tree.data = sys.intern(str(tree.data))  # lark's tokens compare slowly
    tree.children = [
        shorten_tree(child) if isinstance(child, LarkTree) else child for child in tree.children
    ]
    return tree


def check_tree(tree: Tree, macros: int = 0) -> None:
    """Refuse forms that celpy takes although they are not CEL, and macros nested too deep.

    Raises RefusedError.
    """
    if tree.data == "member_object":
        raise RefusedError(
            "ExpressionError", f"objects cannot be constructed{format_position(tree)}"
        )
    if tree.data == "dot_ident_arg":
        raise RefusedError(
            "ExpressionError", f"a function call must not start with a dot{format_position(tree)}"
        )
    arguments = list(arguments_of(tree))
    if tree.data == "ident_arg":
        _check_function(tree, token_of(tree, 0), arguments)
    if tree.data == "member_dot_arg":
        macros += _is_checked_macro(tree, token_of(tree, 1), arguments)
        if macros > MAX_MACRO_DEPTH:
            problem = f"macros are nested more than {MAX_MACRO_DEPTH} deep"
            raise RefusedError("LimitExceeded", f"{problem}{format_position(tree)}")
    for child in subtrees(tree):
        check_tree(child, macros)


def _check_function(tree: Tree, name: Token, arguments: list[Tree]) -> None:
    """Refuse unknown functions, and `has` of anything but a field. Raises RefusedError."""
    # celpy reports an unknown function only when it calls it; here the author learns it
    # at validation.
    if name not in CALLABLE_NAMES:
        raise _unknown_function_error(name, FUNCTIONS)
    if name == "has" and (len(arguments) != 1 or arguments[0].data != "member_dot"):
        remedy = "write has(target.spec.x), or 'x' in target.spec for keys that are not names"
        raise RefusedError(
            "ExpressionError", f"has() takes one field{format_position(tree)}", remedy
        )


def _unknown_function_error(name: Token, available: frozenset[str]) -> RefusedError:
    problem = f"there is no function {str(name)!r} (column {name.column})"
    usual = ", ".join(
        f"{function_name}()"
        for function_name in sorted(available)
        if not function_name.startswith("get")
    )
    remedy = suggest_name(name, sorted(available), f"use one of {usual}")
    return RefusedError("ExpressionError", problem, remedy)


def _is_checked_macro(tree: Tree, name: Token, arguments: list[Tree]) -> bool:
    """Return whether the call is a macro. Raises RefusedError for invalid and unknown ones."""
    if name not in CALLABLE_NAMES | MACROS:
        raise _unknown_function_error(name, METHODS | MACROS)
    if name not in MACROS:
        return False
    if len(arguments) != 2 or _bare_name(arguments[0]) is None:
        raise RefusedError(
            "ExpressionError", f"{name}() takes a name and an expression{format_position(tree)}"
        )
    return True


def find_tree_variables(tree: Tree) -> dict[str, Any]:
    """Return the variables and fields that the expression reads.

    A name that a macro binds is no variable in the macro's second argument.
    """
    free_variables: dict[str, Any] = {}
    _add_variables(tree, free_variables, frozenset())
    return free_variables


def _add_variables(tree: Tree, free_variables: dict[str, Any], bound: frozenset[str]) -> None:
    path = find_path(tree)
    if path:
        if path[0] not in bound:
            add_path(free_variables, path)
    elif tree.data == "member_dot_arg" and str(tree.children[1]) in MACROS:
        name, body = arguments_of(tree)
        _add_variables(child_of(tree, 0), free_variables, bound)
        _add_variables(body, free_variables, bound | {_bare_name(name) or ""})
    else:
        for child in subtrees(tree):
            _add_variables(child, free_variables, bound)


def find_path(tree: Tree) -> tuple[str, ...]:
    """Return the path from a variable through names and string literals. () for other trees."""
    if tree.data == "member_dot":
        parent_path = find_path(child_of(tree, 0))
        return (*parent_path, str(tree.children[1])) if parent_path else ()
    if tree.data == "member_index":
        key = _string_value(child_of(tree, 1))
        parent_path = find_path(child_of(tree, 0)) if key is not None else ()
        return (*parent_path, key) if parent_path and key is not None else ()
    name = _bare_name(tree)
    return (name,) if name else ()


def _bare_name(tree: Tree) -> str | None:
    """Return the name if the tree is a single name, else None."""
    if tree.data == "primary" and child_of(tree, 0).data in ("ident", "dot_ident"):
        return str(child_of(tree, 0).children[0])
    return None


def _string_value(tree: Tree) -> str | None:
    """Return the value if the tree is a string literal without escapes, else None."""
    if tree.data != "primary" or child_of(tree, 0).data != "literal":
        return None
    match = PLAIN_STRING_PATTERN.fullmatch(str(child_of(tree, 0).children[0]))
    return match and (match[1] or match[2] or "")


def subtrees(tree: Tree) -> Iterator[Tree]:
    """Yield the children that are trees."""
    return (child for child in tree.children if isinstance(child, LarkTree))


def child_of(tree: Tree, number: int) -> Tree:
    """Return a child that is a tree by the grammar."""
    child = tree.children[number]
    assert isinstance(child, LarkTree)
    return child


def token_of(tree: Tree, number: int) -> Token:
    """Return a child that is a token by the grammar."""
    child = tree.children[number]
    assert isinstance(child, Token)
    return child


def arguments_of(tree: Tree) -> Iterator[Tree]:
    """Yield the arguments of a call."""
    last = tree.children[-1] if tree.children else None
    if isinstance(last, LarkTree) and last.data == "exprlist":
        yield from subtrees(last)


def format_position(tree: Tree) -> str:
    """Format the position in the text, for messages."""
    return f" (column {tree.meta.column})" if not tree.meta.empty else ""


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
SIMPLE_FUNCTIONS = frozenset({"double", "has", "int", "size", "string"})
SIMPLE_METHODS = frozenset({"contains", "endsWith", "startsWith"})


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


def _build_serializer(node_type: str) -> Callable[[Tree, int], SerializedAst]:
    """Return the serializer of a node all of whose subtrees are operands."""

    def serialize(tree: Tree, depth: int) -> SerializedAst:
        return [node_type, *(_serialize_node(each, depth) for each in subtrees(tree))]

    return serialize


def _serialize_operation(tree: Tree, depth: int) -> SerializedAst:
    """Serialize a binary or unary operation. Celpy keeps the sign and left operand in one node."""
    sign, right = subtrees(tree)
    return [
        SIGNS[sign.data],
        *(_serialize_node(each, depth) for each in subtrees(sign)),
        _serialize_node(right, depth),
    ]


def _serialize_field(tree: Tree, depth: int) -> SerializedAst:
    return ["field", _serialize_node(child_of(tree, 0), depth), ["value", str(token_of(tree, 1))]]


def _serialize_method(tree: Tree, depth: int) -> SerializedAst:
    name, arguments = str(token_of(tree, 1)), list(arguments_of(tree))
    receiver = _serialize_node(child_of(tree, 0), depth)
    if name == "size" and not arguments:
        return ["size", receiver]
    if name not in SIMPLE_METHODS or len(arguments) != 1:
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
    if name not in SIMPLE_FUNCTIONS or len(arguments) != 1:
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
    "conditionaland": _build_serializer("&&"),
    "conditionalor": _build_serializer("||"),
    "expr": _build_serializer("?:"),
    "member_dot": _serialize_field,
    "member_dot_arg": _serialize_method,
    "member_index": _build_serializer("index"),
    "multiplication": _serialize_operation,
    "primary": _serialize_primary,
    "relation": _serialize_operation,
    "unary": _serialize_operation,
}
