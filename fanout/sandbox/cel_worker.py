"""Worker program for CEL, evaluated by celpy's interpreter; texts are parsed once.

Only the interpreter: celpy's other runner, which compiles to Python, returns wrong
results for some expressions, and the two cannot be used in one process.
"""

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import celpy
import celpy.celtypes
import celpy.evaluation
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, Evaluator

from fanout.sandbox.cel_errors import (
    describe_evaluation_error,
    describe_syntax_error,
    find_syntax_remedy,
)
from fanout.sandbox.cel_syntax import (
    Tree,
    check_text,
    check_tree,
    find_tree_variables,
    shorten_tree,
)
from fanout.sandbox.cel_values import COMPARISONS, parse_duration, to_cel, to_plain
from fanout.sandbox.free_variables import FreeVariables
from fanout.sandbox.serialized_ast import SerializedAst, serialize_tree
from fanout.sandbox.worker_main import RefusedError, serve_requests

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
        """Return the expression as plain data, None unless it is simple enough.

        Raises RefusedError.
        """
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
