"""What a CEL expression is allowed to look like, what it reads, and its tree without detours.

celpy's tree keeps a node for every rule of the grammar, nine around a single name. Those that do
nothing but hand their child on are left out: evaluation is three times faster, no answer changes.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark import Tree as LarkTree

from fanout.api.nearest import suggestion
from fanout.sandbox.language import CALLED, FUNCTIONS, MACROS, METHODS
from fanout.sandbox.projection import add_path
from fanout.sandbox.worker import RefusedError

LONGEST = 1024  # characters
DEEPEST = 20  # brackets in brackets
MACRO_DEPTH = 2

HANDED_ON = frozenset(
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
STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
PLAIN_STRING = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")


def check_text(text: str) -> None:
    """Refuse what would be expensive to parse already."""
    if len(text) > LONGEST:
        raise RefusedError("LimitExceeded", f"it has {len(text)} characters, {LONGEST} are allowed")
    depth = 0
    for sign in STRING.sub("", text):
        if sign in "([{":
            depth += 1
            if depth > DEEPEST:
                raise RefusedError(
                    "LimitExceeded", f"its brackets are nested more than {DEEPEST} deep"
                )
        elif sign in ")]}":
            depth -= 1


def shorten(tree: Tree) -> Tree:
    """The same expression without nodes that only hand on the value of their one child."""
    while len(tree.children) == 1 and isinstance(child := tree.children[0], LarkTree):
        if tree.data == "primary" and child.data == "paren_expr":
            tree = child_of(child, 0)
        elif tree.data in HANDED_ON:
            tree = child
        else:
            break
    tree.data = sys.intern(str(tree.data))  # lark's tokens compare slowly, and it is compared often
    tree.children = [
        shorten(child) if isinstance(child, LarkTree) else child for child in tree.children
    ]
    return tree


def check_tree(tree: Tree, macros: int = 0) -> None:
    """Refuse what celpy takes although it is not CEL, and macros nested too deep."""
    if tree.data == "member_object":
        raise RefusedError("ExpressionError", f"objects cannot be constructed{place(tree)}")
    if tree.data == "dot_ident_arg":
        raise RefusedError("ExpressionError", f"a function has no dot in front{place(tree)}")
    arguments = list(arguments_of(tree))
    if tree.data == "ident_arg":
        _check_function(tree, token_of(tree, 0), arguments)
    if tree.data == "member_dot_arg":
        macros += _check_macro(tree, token_of(tree, 1), arguments)
        if macros > MACRO_DEPTH:
            problem = f"macros are nested more than {MACRO_DEPTH} deep"
            raise RefusedError("LimitExceeded", f"{problem}{place(tree)}")
    for child in subtrees(tree):
        check_tree(child, macros)


def _check_function(tree: Tree, name: Token, arguments: list[Tree]) -> None:
    """Refuse a function that there is not, and `has` of anything but a field."""
    if name not in CALLED:
        raise _no_function(name, FUNCTIONS)
    if name == "has" and (len(arguments) != 1 or arguments[0].data != "member_dot"):
        remedy = "write has(target.spec.x), or 'x' in target.spec for keys that are no names"
        raise RefusedError("ExpressionError", f"has() takes one field{place(tree)}", remedy)


def _no_function(name: Token, known: frozenset[str]) -> RefusedError:
    problem = f"there is no function {str(name)!r} (column {name.column})"
    usual = ", ".join(f"{one}()" for one in sorted(known) if not one.startswith("get"))
    remedy = suggestion(name, sorted(known), f"there are {usual}")
    return RefusedError("ExpressionError", problem, remedy)


def _check_macro(tree: Tree, name: Token, arguments: list[Tree]) -> bool:
    """Whether the call is one of a macro; a wrong one is refused, as is what is no method."""
    if name not in CALLED | MACROS:
        raise _no_function(name, METHODS | MACROS)
    if name not in MACROS:
        return False
    if len(arguments) != 2 or _name(arguments[0]) is None:
        raise RefusedError(
            "ExpressionError", f"{name}() takes a name and an expression{place(tree)}"
        )
    return True


def reads_of(tree: Tree) -> dict[str, Any]:
    """Which fields of which variables the expression reads.

    A name that a macro binds is no variable in its second argument.
    """
    reads: dict[str, Any] = {}
    _note(tree, reads, frozenset())
    return reads


def _note(tree: Tree, reads: dict[str, Any], bound: frozenset[str]) -> None:
    path = path_of(tree)
    if path:
        if path[0] not in bound:
            add_path(reads, path)
    elif tree.data == "member_dot_arg" and str(tree.children[1]) in MACROS:
        name, body = arguments_of(tree)
        _note(child_of(tree, 0), reads, bound)
        _note(body, reads, bound | {_name(name) or ""})
    else:
        for child in subtrees(tree):
            _note(child, reads, bound)


def path_of(tree: Tree) -> tuple[str, ...]:
    """From a variable to what is read, if that is names and string literals all the way; or ()."""
    if tree.data == "member_dot":
        above = path_of(child_of(tree, 0))
        return (*above, str(tree.children[1])) if above else ()
    if tree.data == "member_index":
        key = _string(child_of(tree, 1))
        above = path_of(child_of(tree, 0)) if key is not None else ()
        return (*above, key) if above and key is not None else ()
    name = _name(tree)
    return (name,) if name else ()


def _name(tree: Tree) -> str | None:
    """The name, when the tree is a bare one."""
    if tree.data == "primary" and child_of(tree, 0).data in ("ident", "dot_ident"):
        return str(child_of(tree, 0).children[0])
    return None


def _string(tree: Tree) -> str | None:
    """The value, when the tree is a string literal without escapes."""
    if tree.data != "primary" or child_of(tree, 0).data != "literal":
        return None
    match = PLAIN_STRING.fullmatch(str(child_of(tree, 0).children[0]))
    return match and (match[1] or match[2] or "")


def subtrees(tree: Tree) -> Iterator[Tree]:
    return (child for child in tree.children if isinstance(child, LarkTree))


def child_of(tree: Tree, number: int) -> Tree:
    """A child that the grammar says is no token."""
    child = tree.children[number]
    assert isinstance(child, LarkTree)
    return child


def token_of(tree: Tree, number: int) -> Token:
    """A child that the grammar says is a name."""
    child = tree.children[number]
    assert isinstance(child, Token)
    return child


def arguments_of(tree: Tree) -> Iterator[Tree]:
    """The arguments of a call."""
    last = tree.children[-1] if tree.children else None
    if isinstance(last, LarkTree) and last.data == "exprlist":
        yield from subtrees(last)


def place(tree: Tree) -> str:
    """Where in the text it stands, for people."""
    return f" (column {tree.meta.column})" if not tree.meta.empty else ""
