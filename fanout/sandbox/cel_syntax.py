"""Syntax of CEL expressions: allowed forms, literals, free variables, and the shortened tree.

celpy's tree has a node for every rule of the grammar, nine around a single name. Nodes
that do nothing but pass their child through are removed. What its grammar takes although
it is not CEL is refused here, and so are calls that have no meaning whatever the values.

A simple tree is serialized by a worker, which has celpy's parser, and read by the parent
(`expression_closures`), which must not import celpy: that takes longer than most
commands. A node is a list whose first item is its type:

    ["value", 3]  ["path", "target", "metadata", "name"]  ["+", node, node]  ["has", node]

Below a map, keys and values alternate. All but the first two contain nothing but nodes.

Not serialized, and so left to a worker, are macros, patterns, times, bytes, unsigned
numbers and types.
"""

import math
import re
import sys
from collections.abc import Container, Iterable, Iterator
from typing import Any

from lark import Token
from lark import Tree as LarkTree

from fanout.api.field_errors import suggest_name
from fanout.sandbox.cel_operators import INT_LIMIT, TYPES_BY_NAME, UINT_LIMIT, CelType, Uint
from fanout.sandbox.free_variables import FUNCTIONS, MACROS, METHODS, add_path
from fanout.sandbox.worker_protocol import RefusedError

MAX_EXPRESSION_LENGTH = 1024  # characters
MAX_BRACKET_DEPTH = 20  # brackets in brackets
MAX_MACRO_DEPTH = 2

PASS_THROUGH_RULES = frozenset(
    {"expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication"}
    | {"unary", "member"}
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
    """Refuse what is not CEL, or never has a value, and macros nested too deep.

    Raises RefusedError.
    """
    if tree.data in REFUSED:
        raise _refusal(REFUSED[tree.data], tree)
    match str(tree.data):
        case "ident" | "dot_ident" if token_of(tree, 0) in RESERVED_WORDS | KEYWORDS:
            problem = f"{str(token_of(tree, 0))!r} is reserved in CEL, and no name of a variable"
            raise _refusal(problem, tree)
        case "member_dot" if (name := token_of(tree, 1)) in KEYWORDS:
            problem = f"{str(name)!r} has a meaning in CEL, and cannot follow a dot"
            raise _refusal(problem, tree, f"write ['{name}'] for a field of that name")
        case "literal":
            try:
                read_literal(token_of(tree, 0))
            except ValueError as error:
                raise _refusal(str(error), tree) from None
        case "ident_arg":
            _check_function(tree)
        case "member_dot_arg":
            _check_method(tree)
            macros += str(token_of(tree, 1)) in MACROS
            if macros > MAX_MACRO_DEPTH:
                problem = f"macros are nested more than {MAX_MACRO_DEPTH} deep"
                raise RefusedError("LimitExceeded", f"{problem}{format_position(tree)}")
    for child in subtrees(tree):
        check_tree(child, macros)


def _check_function(tree: Tree) -> None:
    """Refuse unknown functions, wrong numbers of arguments, and `has` of anything but a field."""
    # Here the author learns it at validation.
    name, arguments = token_of(tree, 0), list(arguments_of(tree))
    if name in METHODS and name not in FUNCTIONS:
        remedy = f"write the value in front, as in target.metadata.name.{name}(...)"
        raise _refusal(f"{name}() is a method", tree, remedy)
    if name not in FUNCTIONS:
        raise _unknown_function_error(name, FUNCTIONS)
    if name == "has" and (len(arguments) != 1 or arguments[0].data != "member_dot"):
        remedy = "write has(target.spec.x), or 'x' in target.spec for keys that are not names"
        raise _refusal("has() takes one field", tree, remedy)
    _check_count(tree, name, FUNCTIONS[name], len(arguments))


def _check_count(tree: Tree, name: str, allowed: tuple[int, ...], count: int) -> None:
    if count not in allowed:
        numbers = " or ".join(map(str, allowed))
        raise _refusal(f"{name}() needs {numbers}, not {count} arguments", tree)


def _unknown_function_error(name: Token, available: Iterable[str]) -> RefusedError:
    problem = f"there is no function {str(name)!r} (column {name.column})"
    usual = ", ".join(f"{it}()" for it in sorted(available) if not it.startswith("get"))
    remedy = suggest_name(name, sorted(available), f"use one of {usual}")
    return RefusedError("ExpressionError", problem, remedy)


def _check_method(tree: Tree) -> None:
    """Refuse invalid macros, unknown methods, and wrong numbers of arguments."""
    name, arguments = token_of(tree, 1), list(arguments_of(tree))
    if name in MACROS:
        if len(arguments) != 2 or not bare_name(arguments[0]) or is_rooted(arguments[0]):
            raise _refusal(f"{name}() takes a name and an expression", tree)
    elif name in METHODS:
        _check_count(tree, name, METHODS[name], len(arguments))
    elif name in FUNCTIONS:
        raise _refusal(f"{name}() is a function", tree, f"write {name}(...) around the value")
    else:
        raise _unknown_function_error(name, METHODS.keys() | MACROS)


def _refusal(problem: str, tree: Tree, remedy: str = "") -> RefusedError:
    return RefusedError("ExpressionError", f"{problem}{format_position(tree)}", remedy)


REFUSED = {
    "dot_ident_arg": "a function call must not start with a dot",
    "member_object": "objects cannot be constructed",
}
KEYWORDS = frozenset({"false", "in", "null", "true"})
RESERVED_WORDS = frozenset(
    {
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
        "loop", "namespace", "package", "return", "var", "void", "while",
    }
)  # fmt: skip


def read_literal(token: Token) -> Any:
    """Return the value of a literal. Raises ValueError, with the problem, if it has none."""
    text = str(token)
    match str(token.type):
        case "NULL_LIT":
            return None
        case "BOOL_LIT":
            return text == "true"
        case "INT_LIT":
            value = int(text, 16) if "x" in text else int(text)
            if not -INT_LIMIT <= value < INT_LIMIT:
                raise ValueError(f"the number {text} is out of range")
            return value
        case "UINT_LIT":
            value = int(text[:-1], 16) if "x" in text else int(text[:-1])
            if not 0 <= value < UINT_LIMIT or text.startswith("-"):
                raise ValueError(f"the unsigned number {text} is out of range")
            return Uint(value)
        case "FLOAT_LIT":
            if DOUBLE_PATTERN.fullmatch(text) is None:
                raise ValueError(f"{text} needs digits behind its dot")
            if math.isinf(float(text)):
                raise ValueError(f"the number {text} is out of range")
            return float(text)
        case "BYTES_LIT":
            return _read_bytes(text)
    is_raw, body = _split_quotes(text)
    return body if is_raw else ESCAPE_PATTERN.sub(_read_escape, body)


def _read_bytes(text: str) -> bytes:
    is_raw, body = _split_quotes(text[1:])
    if is_raw:
        return body.encode()
    end, result = 0, b""
    for match in ESCAPE_PATTERN.finditer(body):
        if match[1] and match[1][0] in "uU":
            raise ValueError(f"bytes have no escape {match[0]}")
        character = _read_escape(match)
        is_byte = match[1] and match[1][0] in "xX0123"
        result += body[end : match.start()].encode()
        result += bytes([ord(character)]) if is_byte else character.encode()
        end = match.end()
    return result + body[end:].encode()


def _split_quotes(text: str) -> tuple[bool, str]:
    """Return whether the text between the quotes is raw, and this text."""
    is_raw = text[0] in "rR"
    text = text[is_raw:]
    length = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    body = text[length:-length]
    if is_raw and text[:length] in body:
        # celpy's grammar goes on behind a backslash and a quote.
        raise ValueError("a raw string ends at its first quote")
    return is_raw, body


def _read_escape(match: re.Match[str]) -> str:
    if not (escape := match[1]):
        raise ValueError(f"there is no escape {match[0]} in strings")
    if escape in SIMPLE_ESCAPES:
        return SIMPLE_ESCAPES[escape]
    number = int(escape, 8) if escape[0].isdigit() else int(escape[1:], 16)
    if number in range(0xD800, 0xE000) or number > sys.maxunicode:
        raise ValueError(f"{match[0]} is no character")
    return chr(number)


DOUBLE_PATTERN = re.compile(r"-?(?:[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
ESCAPE_PATTERN = re.compile(
    r"""\\(?:([abfnrtv?"'`\\]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})|.?)""",
    re.DOTALL,
)
SIMPLE_ESCAPES = {
    **{sign: sign for sign in "?\"'`\\"},
    **dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)),
}


def find_tree_variables(tree: Tree) -> dict[str, Any]:
    """Return the variables and fields that the expression reads.

    A name that a macro binds is no variable in the macro's second argument.
    """
    free_variables: dict[str, Any] = {}

    def visit(tree: Tree, bound: frozenset[str]) -> None:
        if path := find_path(tree):
            if find_type(path, bound) is None and (path[0] not in bound or is_rooted(tree)):
                add_path(free_variables, path)
        elif tree.data == "member_dot_arg" and str(tree.children[1]) in MACROS:
            name, body = arguments_of(tree)
            visit(child_of(tree, 0), bound)
            visit(body, bound | {bare_name(name) or ""})
        else:
            for child in subtrees(tree):
                visit(child, bound)

    visit(tree, frozenset())
    return free_variables


def find_path(tree: Tree) -> tuple[str, ...]:
    """Return the path from a variable through names and string literals. () for other trees."""
    if tree.data == "member_dot":
        parent_path = find_path(child_of(tree, 0))
        return (*parent_path, str(tree.children[1])) if parent_path else ()
    if tree.data == "member_index":
        inner = child_of(tree, 1)
        literal = child_of(inner, 0) if inner.data == "primary" else inner
        if literal.data != "literal":
            return ()
        match = PLAIN_STRING_PATTERN.fullmatch(str(literal.children[0]))
        parent_path = find_path(child_of(tree, 0)) if match else ()
        return (*parent_path, match[1] or match[2] or "") if parent_path and match else ()
    name = bare_name(tree)
    return (name,) if name else ()


def find_type(path: tuple[str, ...], bound: Container[str]) -> CelType | None:
    """Return the type that a path names, None for variables and bound names."""
    return None if path[0] in bound else TYPES_BY_NAME.get(".".join(path))


def is_rooted(tree: Tree) -> bool:
    """Return whether a path starts with a dot, and so with a variable, never a bound name."""
    while tree.data != "primary":
        tree = child_of(tree, 0)
    return child_of(tree, 0).data == "dot_ident"


def bare_name(tree: Tree) -> str | None:
    """Return the name if the tree is a single name, else None."""
    if tree.data == "primary" and child_of(tree, 0).data in ("ident", "dot_ident"):
        return str(child_of(tree, 0).children[0])
    return None


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
# Rules all of whose subtrees are operands.
NODE_TYPES = {"conditionaland": "&&", "conditionalor": "||", "expr": "?:", "member_index": "index"}
SIMPLE_FUNCTIONS = frozenset({"double", "has", "int", "size", "string"})
SIMPLE_METHODS = frozenset({"contains", "endsWith", "startsWith"})


class _NotSimpleError(Exception):
    """The expression is not within the bounded subset."""


def serialize_tree(tree: Tree) -> SerializedAst | None:
    """Serialize a shortened tree; None if a worker must evaluate it."""
    try:
        return _serialize_node(tree, 0)
    except _NotSimpleError:
        return None


def _serialize_node(tree: Tree, depth: int) -> SerializedAst:
    """Serialize one node. `depth` counts the nodes above it."""
    if depth > MAX_AST_DEPTH:
        raise _NotSimpleError
    if names := find_path(tree):
        if find_type(names, ()) is not None:
            raise _NotSimpleError
        return ["path", *names]
    match str(tree.data):
        case "primary":
            return _serialize_primary(child_of(tree, 0), depth + 1)
        case "addition" | "multiplication" | "relation" | "unary":
            # celpy keeps the sign and the left operand in one node.
            sign, right = subtrees(tree)
            return [SIGNS[sign.data], *_serialize_all([*subtrees(sign), right], depth + 1)]
        case "member_dot":
            owner = _serialize_node(child_of(tree, 0), depth + 1)
            return ["field", owner, ["value", str(token_of(tree, 1))]]
        case "member_dot_arg":
            name, arguments = str(token_of(tree, 1)), list(arguments_of(tree))
            is_simple = name in SIMPLE_METHODS and len(arguments) == 1
            if is_simple or (name == "size" and not arguments):
                return [name, *_serialize_all([child_of(tree, 0), *arguments], depth + 1)]
        case rule if rule in NODE_TYPES:
            return [NODE_TYPES[rule], *_serialize_all(subtrees(tree), depth + 1)]
    raise _NotSimpleError


def _serialize_all(trees: Iterable[Tree], depth: int) -> list[SerializedAst]:
    return [_serialize_node(each, depth) for each in trees]


def _serialize_primary(tree: Tree, depth: int) -> SerializedAst:
    match str(tree.data):
        case "literal":
            value = read_literal(token_of(tree, 0))
            if value.__class__ not in (Uint, bytes):
                return ["value", value]
        case "ident_arg":
            name, arguments = str(token_of(tree, 0)), list(arguments_of(tree))
            if name in SIMPLE_FUNCTIONS and len(arguments) == 1:
                return [name, _serialize_node(arguments[0], depth)]
        case "list_lit":
            return ["list", *_serialize_all(arguments_of(tree), depth)]
        case "map_lit":
            inits = next(subtrees(tree), None)
            nodes = _serialize_all(subtrees(inits), depth) if inits is not None else []
            keys = nodes[0::2]
            texts = {key[1] for key in keys if key[0] == "value" and isinstance(key[1], str)}
            if len(texts) == len(keys):  # distinct string literals
                return ["map", *nodes]
    raise _NotSimpleError
