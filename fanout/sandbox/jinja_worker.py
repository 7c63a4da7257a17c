"""Worker program for Jinja: texts that people read, such as titles of pull requests.

Jinja's own sandbox keeps templates from reaching into Python. It was escaped from more than once,
so it is no protection by itself, and the process has the same limits as one for expressions.
"""

from collections.abc import Mapping, Sized
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fanout.sandbox.free_variables import GLOBALS, FreeVariables
from fanout.sandbox.worker_protocol import MAX_ANSWER_LENGTH as LONGEST_VALUE
from fanout.sandbox.worker_protocol import RefusedError, serve_requests

MAX_TEMPLATES = 256  # compiled templates
MAX_TEMPLATE_LENGTH = 1 << 16  # characters
_MAX_EXPONENT = 64
FILTERS = frozenset(
    {
        "capitalize", "default", "first", "indent", "int", "join", "last", "length", "list",
        "lower", "replace", "sort", "string", "title", "trim", "truncate", "unique",
        "upper", "wordwrap",
    }
)  # fmt: skip


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, with operators that refuse to build long texts or lists.

    Filters and methods can still build long texts; the limit for these is the process's memory.
    """

    intercepted_binops = frozenset({"*", "+", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return the operator's value. Raises RefusedError."""
        if operator == "*":
            sized_operand = next((it for it in (left, right) if isinstance(it, Sized)), None)
            factor = right if sized_operand is left else left
            if sized_operand is not None and isinstance(factor, int):
                _check_length(len(sized_operand) * factor)
        elif operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            _check_length(len(left) + len(right))
        elif operator == "**" and isinstance(right, int) and abs(right) > _MAX_EXPONENT:
            raise RefusedError("LimitExceeded", f"a power is higher than {_MAX_EXPONENT}")
        return super().call_binop(context, operator, left, right)


def _check_length(size: int) -> None:
    if size > LONGEST_VALUE:
        raise RefusedError("LimitExceeded", f"its value is longer than {LONGEST_VALUE} characters")


class JinjaEngine:
    """Engine for Jinja."""

    steps = time_steps = 0  # Jinja compiles to Python, which counts none

    def __init__(self) -> None:
        # No autoescape: the text is Markdown, a title or a commit message, never HTML.
        self._environment = _Environment(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for name in self._environment.filters.keys() - FILTERS:
            del self._environment.filters[name]
        for name in self._environment.globals.keys() - GLOBALS:
            del self._environment.globals[name]
        self._template = lru_cache(MAX_TEMPLATES)(self._compile)

    def find_free_variables(self, text: str) -> FreeVariables:
        """Return the variables that the template names. Raises RefusedError."""
        return self._template(text)[1]

    def serialize_ast(self, text: str) -> None:
        """Return None: templates are never computed in process."""

    def evaluate(self, text: str, row: Mapping[str, Any]) -> str:
        """Return the template filled from a row of variables. Raises RefusedError."""
        template, _ = self._template(text)
        try:
            # Piece by piece and not `render`, so that an endless loop's text is refused before
            # it fills memory.
            pieces: list[str] = []
            size = 0
            for piece in template.generate(row):
                size += len(piece)
                _check_length(size)
                pieces.append(piece)
            return "".join(pieces)
        except (MemoryError, RefusedError):
            raise
        except SecurityError as error:
            problem = f"the template uses a forbidden attribute: {error}"
            raise RefusedError("ExpressionError", problem) from None
        except TemplateError as error:
            problem = f"the template cannot be filled: {error}"
            raise RefusedError("ExpressionError", problem) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "the template is nested too deep") from None
        except Exception as error:  # noqa: BLE001 - a template can raise whatever Python raises
            problem = f"the template cannot be filled ({type(error).__name__})"
            raise RefusedError("ExpressionError", problem) from None

    def _compile(self, text: str) -> tuple[Template, FreeVariables]:
        if len(text) > MAX_TEMPLATE_LENGTH:
            problem = f"the template has {len(text)} characters, {MAX_TEMPLATE_LENGTH} are allowed"
            raise RefusedError("LimitExceeded", problem)
        try:
            names = find_undeclared_variables(self._environment.parse(text))
            template = self._environment.from_string(text)
        except TemplateSyntaxError as error:
            problem = f"syntax error in the template's line {error.lineno}: {error.message}"
            raise RefusedError("ExpressionError", problem) from None
        except (RecursionError, SyntaxError):
            raise RefusedError("LimitExceeded", "the template is nested too deep") from None
        return template, {name: {} for name in sorted(names)}


if __name__ == "__main__":
    serve_requests(JinjaEngine)
