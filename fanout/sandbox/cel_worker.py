"""Worker program for CEL: celpy parses, and our evaluator evaluates; texts are parsed once.

Messages name what could not be computed but leave values out, because the sentence ends up
in conditions and logs.
"""

import logging
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import process_time
from typing import Any

import celpy
from celpy.celparser import CELParseError

from fanout.sandbox.cel_interpreter import StepCounter, build_evaluator
from fanout.sandbox.cel_operators import EvaluationError, check_int, describe_kind, from_key
from fanout.sandbox.cel_syntax import (
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
from fanout.sandbox.worker_protocol import STEPS_PER_SECOND, RefusedError, serve_requests

FLOAT_INT_LIMIT = 2.0**63


def to_cel(value: Any) -> Any:
    """Convert decoded JSON to values of CEL. `3.0` becomes the int 3, as YAML's authors mean it."""
    if (kind := value.__class__) is float:
        return int(value) if value.is_integer() and abs(value) < FLOAT_INT_LIMIT else value
    if kind is dict:
        return {key: to_cel(item) for key, item in value.items()}
    if kind is list:
        return [to_cel(item) for item in value]
    return check_int(value) if kind is int else value


def to_plain(value: Any) -> Any:
    """Convert a value of CEL to plain data. Raises RefusedError for types that JSON lacks."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise RefusedError("ExpressionError", "its value is not a finite number")
            return int(value) if value.is_integer() and abs(value) < FLOAT_INT_LIMIT else value
        case list():
            return [to_plain(item) for item in value]
        case dict():
            plain: dict[str, Any] = {}
            for key, item in value.items():
                if not isinstance(key, str):
                    problem = f"a map's key is {describe_kind(from_key(key))}, not a string"
                    raise RefusedError("ExpressionError", problem)
                plain[key] = to_plain(item)
            return plain
    raise RefusedError("ExpressionError", f"its value is {describe_kind(value)}, not plain data")


# Signs of other languages, and what to write instead.
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
    (re.compile(r",\s*[\]}]"), "leave out the last comma"),
    (
        re.compile(r"\b(and|or|not|if|then|else|is)\b"),
        "use &&, || and !, and condition ? one : other",
    ),
)


# celpy's grammar takes the backslash for an escape of the quote behind it.
RAW_STRING_PATTERN = re.compile(r"""\b[bB]?[rR](?:'[^']*\\'|"[^"]*\\")""")


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
    if RAW_STRING_PATTERN.search(text):
        return "write a raw string that ends with a backslash as a usual one, as in '\\\\'"
    plain = STRING_PATTERN.sub("''", text)
    return next((remedy for sign, remedy in _OTHER_LANGUAGES if sign.search(plain)), "")


MAX_PROGRAMS = 1024  # parsed texts


class CelEngine:
    """Engine for CEL."""

    def __init__(self) -> None:
        logging.getLogger("celpy").setLevel(logging.CRITICAL)
        self._environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
        self._steps = StepCounter()
        self._seconds = 0.0  # of processor time
        # Rows come in chunks of one text, and parsing takes far longer than evaluating.
        self._program = lru_cache(MAX_PROGRAMS)(self._compile)

    @property
    def steps(self) -> int:
        """Steps of the last evaluation."""
        return self._steps.taken

    @property
    def time_steps(self) -> int:
        """Steps that the processor time of the last evaluation counts as."""
        return int(self._seconds * STEPS_PER_SECOND)

    def find_free_variables(self, text: str) -> FreeVariables:
        """Return the fields and variables that the expression reads. Raises RefusedError."""
        return self._program(text)[1]

    def serialize_ast(self, text: str) -> SerializedAst | None:
        """Return the AST as plain data, None unless it is simple. Raises RefusedError."""
        return serialize_tree(self._program(text)[0])

    def evaluate(self, text: str, row: Mapping[str, Any]) -> Any:
        """Return the expression's value over a row, as plain data. Raises RefusedError."""
        return to_plain(self.compute(text, row))

    def compute(self, text: str, row: Mapping[str, Any]) -> Any:
        """Return the expression's value over a row. Raises RefusedError."""
        self._steps.taken, self._seconds = 0, 0.0
        _, _, evaluate = self._program(text)
        started = process_time()
        try:
            return evaluate({name: to_cel(row[name]) for name in row})
        except EvaluationError as error:
            position = f" (column {error.column})" if error.column else ""
            raise RefusedError("ExpressionError", f"{error.problem}{position}") from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None
        except UnicodeEncodeError:  # half of a surrogate pair, for which JSON has an escape
            raise RefusedError("ExpressionError", "it reads text that is not Unicode") from None
        finally:
            self._seconds = process_time() - started

    def _compile(self, text: str) -> tuple[Tree, FreeVariables, Callable[[dict[str, Any]], Any]]:
        check_text(text)
        try:
            tree = shorten_tree(self._environment.compile(text))
            check_tree(tree)
            return tree, find_tree_variables(tree), build_evaluator(tree, text, self._steps)
        except CELParseError as error:
            problem, remedy = describe_syntax_error(error, text), find_syntax_remedy(text)
            raise RefusedError("ExpressionError", problem, remedy) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None


if __name__ == "__main__":
    serve_requests(CelEngine)
