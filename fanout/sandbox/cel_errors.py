"""Translation of celpy's errors into one sentence for people.

celpy's own messages contain Python class names and complete values; values are left out
here, because the sentence ends up in conditions and logs.
"""

import re

from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError
from lark import Tree

from fanout.sandbox.cel_syntax import STRING_PATTERN
from fanout.sandbox.cel_values import TYPE_NAMES_BY_CLASS

_OPERATOR_SIGNS = {
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
    "unary_neg": "-",
    "unary_not": "!",
    "_&&_": "&&",
    "_?_:_": "?:",
    "_[_]": "[]",
    "_||_": "||",
}
_OVERLOAD_PATTERN = re.compile(
    r"found no matching overload for (?:Token\('RULE', )?'?([^')\s]+)'?\)? applied"
)
_CLASS_PATTERN = re.compile(r"<class '[\w.]*?(\w+)'>")
_OTHER_LANGUAGES = (
    (
        re.compile(r"{{|\${|{%"),
        "CEL is no template: join texts with +, as in 'sites/' + target.metadata.name",
    ),
    (re.compile(r"\?\."), "ask with has(target.spec.x), there is no ?. in CEL here"),
    (re.compile(r"[^|]\|[^|]"), "CEL has no filters: write a call, as in name.startsWith('eu')"),
    (
        re.compile(r"\b(and|or|not|if|then|else|is)\b"),
        "CEL writes &&, || and !, and condition ? one : other",
    ),
)
_MAX_SOURCE_LENGTH = 120  # characters of a name or of the source that are repeated


def describe_syntax_error(error: CELParseError, text: str) -> str:
    """Describe where the text stops being CEL."""
    if not text.strip():
        return "syntax error: the expression is empty"
    lines = text.splitlines()
    line, column = error.line or 1, error.column or 1
    token = getattr(error.__context__, "token", None)  # the parser's own error has it
    if token is not None and token.type == "$END":
        return "syntax error: the expression ends too early"
    character = lines[line - 1][column - 1 : column] if line <= len(lines) else ""
    position = f"column {column}" if len(lines) == 1 else f"line {line}, column {column}"
    if character in ("'", '"'):
        return f"syntax error at {position}: the text that begins there has no end"
    return f"syntax error at {position}: unexpected {character!r}"


def find_syntax_remedy(text: str) -> str:
    """Return a remedy for syntax of another language; "" if none is recognized."""
    plain = STRING_PATTERN.sub("''", text)
    return next((remedy for sign, remedy in _OTHER_LANGUAGES if sign.search(plain)), "")


def describe_evaluation_error(error: CELEvalError, text: str) -> str:
    """Describe what could not be computed, and from what."""
    position = f" (column {error.column})" if error.column else ""
    return f"{_describe_problem(error, text)}{position}"


def _describe_problem(error: CELEvalError, text: str) -> str:
    message = str(error.args[0]) if error.args else ""
    detail = error.args[2] if len(error.args) > 2 else None
    if message.startswith("undeclared reference"):
        name = _shorten_source(str(detail[0])) if detail else "a name"
        return f"there is no variable {name!r}"
    if message.startswith("no such member in mapping"):
        return f"{_owner_source(error, text)} has no field {_field_name(error)!r}"
    if message.endswith("does not support field selection"):
        kind = "".join(_named_types(message)[-1:]) or "no map"
        return f"{_owner_source(error, text)} is {kind}, it has no field {_field_name(error)!r}"
    if overload := _OVERLOAD_PATTERN.match(message):
        if "CELEvalError" in message:  # the operand is itself an error
            return f"{_owner_source(error, text)} has no value"
        kinds = " and ".join(_named_types(message)) or "these values"
        sign = _OPERATOR_SIGNS.get(overload[1], overload[1])
        return f"{sign!r} cannot be applied to {kinds}"
    if message == "no such key" and detail:
        return f"{_owner_source(error, text)} has no key {_shorten_source(str(detail[0]))!r}"
    if message == "no such overload":
        call = f"{error.token}()" if error.token else "a condition in all() or exists()"
        return f"{call} cannot be applied to such values"
    return {
        "invalid_argument": f"{_owner_source(error, text)} has no item with that index",
        "modulus or divide by zero": "division by zero",
        "return error for overflow": "a number is out of range or a value cannot be converted",
    }.get(message, "it cannot be evaluated")


def _named_types(message: str) -> list[str]:
    return [TYPE_NAMES_BY_CLASS.get(name, name) for name in _CLASS_PATTERN.findall(message)]


def _owner_source(error: CELEvalError, text: str) -> str:
    """Return the source of the value whose field was read."""
    tree = error.tree
    owner_tree = tree.children[0] if tree is not None and tree.children else None
    if not isinstance(owner_tree, Tree) or owner_tree.meta.empty:
        return "the value"
    return _shorten_source(text[owner_tree.meta.start_pos : owner_tree.meta.end_pos])


def _field_name(error: CELEvalError) -> str:
    return _shorten_source(str(error.tree.children[1])) if error.tree is not None else ""


def _shorten_source(text: str) -> str:
    """Shorten a source in its middle: branches of one expression differ at the end."""
    if len(text) <= _MAX_SOURCE_LENGTH:
        return text
    half = _MAX_SOURCE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"
