"""celpy's errors as one sentence for people.

Its own texts hold Python class names and whole values; values stay out of ours, because the
sentence ends in conditions and logs.
"""

import re

from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError
from lark import Tree

from fanout.sandbox.syntax import STRING
from fanout.sandbox.values import KINDS_BY_NAME

OPERATORS = {
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
OVERLOAD = re.compile(
    r"found no matching overload for (?:Token\('RULE', )?'?([^')\s]+)'?\)? applied"
)
CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")
MEANT = (
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
LONGEST = 120  # characters of a name or of the source that are repeated


def syntax_error(error: CELParseError, text: str) -> str:
    """Where the text stops being CEL."""
    if not text.strip():
        return "syntax error: the expression is empty"
    lines = text.splitlines()
    line, column = error.line or 1, error.column or 1
    token = getattr(error.__context__, "token", None)  # the parser's own error has it
    if token is not None and token.type == "$END":
        return "syntax error: the expression ends too early"
    found = lines[line - 1][column - 1 : column] if line <= len(lines) else ""
    place = f"column {column}" if len(lines) == 1 else f"line {line}, column {column}"
    if found in ("'", '"'):
        return f"syntax error at {place}: the text that begins there has no end"
    return f"syntax error at {place}: unexpected {found!r}"


def syntax_remedy(text: str) -> str:
    """What helps where another language was meant; "" where nothing is known to."""
    plain = STRING.sub("''", text)
    return next((remedy for sign, remedy in MEANT if sign.search(plain)), "")


def evaluation_error(error: CELEvalError, text: str) -> str:
    """What could not be computed, and from what."""
    place = f" (column {error.column})" if error.column else ""
    return f"{_problem(error, text)}{place}"


def _problem(error: CELEvalError, text: str) -> str:
    message = str(error.args[0]) if error.args else ""
    detail = error.args[2] if len(error.args) > 2 else None
    if message.startswith("undeclared reference"):
        name = _short(str(detail[0])) if detail else "a name"
        return f"there is no variable {name!r}"
    if message.startswith("no such member in mapping"):
        return f"{_owner(error, text)} has no field {_field(error)!r}"
    if message.endswith("does not support field selection"):
        kind = "".join(_kinds(message)[-1:]) or "no map"
        return f"{_owner(error, text)} is {kind}, it has no field {_field(error)!r}"
    if overload := OVERLOAD.match(message):
        if "CELEvalError" in message:  # celpy looks into what it could not compute
            return f"{_owner(error, text)} has no value"
        kinds = " and ".join(_kinds(message)) or "these values"
        sign = OPERATORS.get(overload[1], overload[1])
        return f"{sign!r} cannot be applied to {kinds}"
    if message == "no such key" and detail:
        return f"{_owner(error, text)} has no key {_short(str(detail[0]))!r}"
    if message == "no such overload":
        what = f"{error.token}()" if error.token else "a condition in all() or exists()"
        return f"{what} cannot be applied to such values"
    return {
        "invalid_argument": f"{_owner(error, text)} has no item with that index",
        "modulus or divide by zero": "division by zero",
        "return error for overflow": "a number is out of range or a value cannot be converted",
    }.get(message, "it cannot be evaluated")


def _kinds(message: str) -> list[str]:
    return [KINDS_BY_NAME.get(name, name) for name in CLASS.findall(message)]


def _owner(error: CELEvalError, text: str) -> str:
    """The source of what was asked for the field."""
    tree = error.tree
    above = tree.children[0] if tree is not None and tree.children else None
    if not isinstance(above, Tree) or above.meta.empty:
        return "the value"
    return _short(text[above.meta.start_pos : above.meta.end_pos])


def _field(error: CELEvalError) -> str:
    return _short(str(error.tree.children[1])) if error.tree is not None else ""


def _short(text: str) -> str:
    """With its end, in which the branches of one expression differ."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}…{text[-half:]}"
