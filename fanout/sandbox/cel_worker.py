"""Worker program for CEL, evaluated by celpy's interpreter; texts are parsed once.

Only the interpreter: celpy's other runner, which compiles to Python, returns wrong
results for some expressions, and the two cannot be used in one process.

celpy compares numbers of one type only. A measured rate of 0.0 is the int 0 here, since
JSON and YAML do not tell the two apart: it must be less than 0.05 all the same, as CEL
specifies (https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Numeric
Values").

celpy's own messages contain Python class names and complete values; values are left out
here, because the sentence ends up in conditions and logs.
"""

import logging
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import celpy
import celpy.celtypes
import celpy.evaluation
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator, base_functions
from lark import Tree as LarkTree

from fanout.sandbox.cel_syntax import (
    SIGNS,
    STRING_PATTERN,
    SerializedAst,
    Tree,
    check_text,
    check_tree,
    find_tree_variables,
    serialize_tree,
    shorten_tree,
)
from fanout.sandbox.free_variables import FreeVariables
from fanout.sandbox.worker_protocol import RefusedError, serve_requests

FLOAT_INT_LIMIT = 2.0**63
DURATION_PATTERN = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h|d))+")
TYPE_NAMES = {
    celtypes.BoolType: "a boolean",
    celtypes.BytesType: "bytes",
    celtypes.DoubleType: "a fraction",
    celtypes.DurationType: "a duration",
    celtypes.IntType: "a number",
    celtypes.ListType: "a list",
    celtypes.MapType: "a map",
    celtypes.StringType: "a string",
    celtypes.TimestampType: "a timestamp",
    celtypes.UintType: "an unsigned number",
    type(None): "null",
}
TYPE_NAMES_BY_CLASS = {kind.__name__: name for kind, name in TYPE_NAMES.items()}


def to_cel(value: Any) -> Any:
    """Convert decoded JSON for celpy. `3.0` becomes the int 3, as YAML's authors mean it."""
    match value:
        case str():
            return celtypes.StringType(value)
        # Before int, of which bool is a subclass.
        case bool():
            return celtypes.BoolType(value)
        case int():
            return celtypes.IntType(value)
        case float():
            is_whole = value.is_integer() and abs(value) < FLOAT_INT_LIMIT
            return celtypes.IntType(int(value)) if is_whole else celtypes.DoubleType(value)
        case dict():
            return celtypes.MapType(
                {celtypes.StringType(key): to_cel(item) for key, item in value.items()}
            )
        case list():
            return celtypes.ListType([to_cel(item) for item in value])
    return None


def to_plain(value: Any) -> Any:
    """Convert celpy's value to plain data. Raises RefusedError for types that JSON lacks."""
    match value:
        case CELEvalError():
            raise value
        case None:
            return None
        case bool() | celtypes.BoolType():
            return bool(value)
        case int():
            return int(value)
        case float():
            return _plain_number(float(value))
        case str():  # concatenation returns a Python str
            return str(value)
        case list():
            return [to_plain(item) for item in value]
        case dict():
            return {_plain_key(key): to_plain(item) for key, item in value.items()}
    raise RefusedError(
        "ExpressionError", f"its value is {describe_type(type(value))}, not plain data"
    )


def _plain_number(value: float) -> int | float:
    if not math.isfinite(value):
        raise RefusedError("ExpressionError", "its value is not a finite number")
    return int(value) if value.is_integer() and abs(value) < FLOAT_INT_LIMIT else value


def _plain_key(key: Any) -> str:
    if isinstance(key, CELEvalError):
        raise key
    if not isinstance(key, str):
        raise RefusedError(
            "ExpressionError", f"a map's key is {describe_type(type(key))}, not a string"
        )
    return str(key)


def parse_duration(value: Any) -> Any:
    """Implement CEL's `duration()`, as celpy's own pattern can take exponential time."""
    if isinstance(value, str) and DURATION_PATTERN.fullmatch(value) is None:
        raise ValueError("no duration")
    return celtypes.DurationType(value)


def describe_type(value_type: type) -> str:
    """Return a celpy type in words."""
    return TYPE_NAMES.get(value_type, "a type or a function")


_INTEGER_TYPES = (celtypes.IntType, celtypes.UintType)
_COMPARISON_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
    "_==_": operator.eq,
    "_!=_": operator.ne,
}


def _is_mixed(left: Any, right: Any) -> bool:
    """Return whether one number is an int and the other a double.

    celpy's doubles are Python floats, and sums of them nothing more than that.
    """
    if isinstance(left, _INTEGER_TYPES):
        return isinstance(right, float)
    return isinstance(left, float) and isinstance(right, _INTEGER_TYPES)


def _python_number(number: Any) -> int | float:
    """Convert to a Python number: Python compares an int with a float exactly."""
    return int(number) if isinstance(number, _INTEGER_TYPES) else float(number)


def _build_mixed_comparison(
    name: str, compare: Callable[[Any, Any], bool]
) -> Callable[[Any, Any], Any]:
    compare_same_type = base_functions[name]

    def operation(left: Any, right: Any) -> Any:
        if _is_mixed(left, right):
            return celtypes.BoolType(compare(_python_number(left), _python_number(right)))
        return compare_same_type(left, right)

    return operation


COMPARISONS = {
    name: _build_mixed_comparison(name, compare) for name, compare in _COMPARISON_OPERATORS.items()
}


_OPERATOR_SIGNS = {
    **SIGNS,
    "unary_neg": "-",
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
        (
            "CEL is not a template language: join strings with +, as in 'sites/' +"
            " target.metadata.name"
        ),
    ),
    (re.compile(r"\?\."), "use has(target.spec.x); the operator ?. is not supported"),
    (re.compile(r"[^|]\|[^|]"), "CEL has no filters: use a function, as in name.startsWith('eu')"),
    (
        re.compile(r"\b(and|or|not|if|then|else|is)\b"),
        "use &&, || and !, and condition ? one : other",
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
        return f"syntax error at {position}: the string is not closed"
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
        kind = "".join(_named_types(message)[-1:]) or "not a map"
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
    if not isinstance(owner_tree, LarkTree) or owner_tree.meta.empty:
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


MAX_PROGRAMS = 1024  # parsed texts
CEL_FUNCTIONS: dict[str, Callable[..., Any]] = {"duration": parse_duration, **COMPARISONS}


class CelEngine:
    """Engine for CEL."""

    def __init__(self) -> None:
        logging.getLogger("celpy").setLevel(logging.CRITICAL)
        # At every operator celpy builds a type from these aliases, only to tell the type checker;
        # hashing the unions behind them is a third of an evaluation.
        setattr(celpy.evaluation, "Result", Any)  # noqa: B010 - an alias is no variable to mypy
        setattr(celpy.celtypes, "Value", Any)  # noqa: B010
        self._environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
        # Annotations of protobuf types, which are not used here, are copied for each evaluation.
        self._environment.annotations.clear()
        runner = self._environment.program(Tree("expr", []), CEL_FUNCTIONS)
        assert isinstance(runner, celpy.InterpretedRunner)
        self._activation = runner.new_activation()
        # Rows come in chunks of one text, and parsing takes far longer than evaluating.
        self._program = lru_cache(MAX_PROGRAMS)(self._compile)

    def find_free_variables(self, text: str) -> FreeVariables:
        """Return the fields and variables that the expression reads. Raises RefusedError."""
        return self._program(text)[1]

    def serialize_ast(self, text: str) -> SerializedAst | None:
        """Return the AST as plain data, None unless it is simple. Raises RefusedError."""
        return serialize_tree(self._program(text)[0])

    def evaluate(self, text: str, row: Mapping[str, Any]) -> Any:
        """Return the expression's value over a row, as plain data. Raises RefusedError."""
        tree, _ = self._program(text)
        try:
            # As celpy's runner does, without building an empty activation each time.
            evaluator = Evaluator(tree, self._activation)
            return to_plain(evaluator.evaluate({name: to_cel(row[name]) for name in row}))
        except (RefusedError, MemoryError):
            raise
        except CELEvalError as error:
            raise RefusedError("ExpressionError", describe_evaluation_error(error, text)) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None
        except Exception as error:  # noqa: BLE001 - celpy passes on any Python error
            raise RefusedError("ExpressionError", _describe_unexpected(error)) from None

    def _compile(self, text: str) -> tuple[Tree, FreeVariables]:
        check_text(text)
        try:
            tree = shorten_tree(self._environment.compile(text))
            check_tree(tree)
            free_variables = find_tree_variables(tree)
        except CELParseError as error:
            problem, remedy = describe_syntax_error(error, text), find_syntax_remedy(text)
            raise RefusedError("ExpressionError", problem, remedy) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None
        return tree, free_variables


def _describe_unexpected(error: Exception) -> str:
    if isinstance(error, ValueError | OverflowError):
        return "a number is out of range or a value cannot be converted"
    if isinstance(error, TypeError) and "not iterable" in str(error):
        return "a macro needs a list or a map"
    return f"it cannot be evaluated ({type(error).__name__})"


if __name__ == "__main__":
    serve_requests(CelEngine)
