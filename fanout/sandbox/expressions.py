"""CEL, in a child process: parse once per text, evaluate by celpy's interpreter.

The interpreter only: celpy's other runner, which compiles to Python, gives wrong answers to some
expressions, and the two cannot be used in one process.
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

from fanout.sandbox.comparisons import COMPARISONS
from fanout.sandbox.faults import evaluation_error, syntax_error, syntax_remedy
from fanout.sandbox.outline import Outline, outline
from fanout.sandbox.projection import Reads
from fanout.sandbox.syntax import Tree, check_text, check_tree, reads_of, shorten
from fanout.sandbox.values import duration, to_cel, to_plain
from fanout.sandbox.worker import RefusedError, serve

KEPT = 1024  # parsed texts
FUNCTIONS: dict[str, Callable[..., Any]] = {"duration": duration, **COMPARISONS}


class Expressions:
    """The engine for CEL."""

    def __init__(self) -> None:
        logging.getLogger("celpy").setLevel(logging.CRITICAL)
        # At every operator celpy builds a type from these aliases, only to tell the type checker;
        # hashing the unions behind them is a third of an evaluation.
        setattr(celpy.evaluation, "Result", Any)  # noqa: B010 - an alias is no variable to mypy
        setattr(celpy.celtypes, "Value", Any)  # noqa: B010
        self._environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
        # They name protobuf types, which there are none of, and are copied for each evaluation.
        self._environment.annotations.clear()
        runner = self._environment.program(Tree("expr", []), FUNCTIONS)
        assert isinstance(runner, celpy.InterpretedRunner)
        self._activation = runner.new_activation()
        self._program = lru_cache(KEPT)(self._compile)

    def reads(self, text: str) -> Reads:
        """Which fields of which variables the expression reads. Raises RefusedError."""
        return self._program(text)[1]

    def outline(self, text: str) -> Outline | None:
        """The expression as plain data, where it is simple enough. Raises RefusedError."""
        return outline(self._program(text)[0])

    def evaluate(self, text: str, row: Mapping[str, Any]) -> Any:
        """The expression's value over a row of variables, as plain data. Raises RefusedError."""
        tree, _ = self._program(text)
        try:
            # What the runner does, but for the empty activation that it makes anew each time.
            evaluator = Evaluator(tree, self._activation)
            return to_plain(evaluator.evaluate({name: to_cel(row[name]) for name in row}))
        except (RefusedError, MemoryError):
            raise
        except CELEvalError as error:
            raise RefusedError("ExpressionError", evaluation_error(error, text)) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None
        except Exception as error:  # noqa: BLE001 - celpy lets through whatever Python raises
            raise RefusedError("ExpressionError", _unexpected(error)) from None

    def _compile(self, text: str) -> tuple[Tree, Reads]:
        check_text(text)
        try:
            tree = shorten(self._environment.compile(text))
            check_tree(tree)
            reads = reads_of(tree)
        except CELParseError as error:
            problem, remedy = syntax_error(error, text), syntax_remedy(text)
            raise RefusedError("ExpressionError", problem, remedy) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "it is nested too deep") from None
        return tree, reads


def _unexpected(error: Exception) -> str:
    if isinstance(error, ValueError | OverflowError):
        return "a number is out of range or a value cannot be converted"
    if isinstance(error, TypeError) and "not iterable" in str(error):
        return "a macro needs a list or a map"
    return f"it cannot be evaluated ({type(error).__name__})"


if __name__ == "__main__":
    serve(Expressions)
