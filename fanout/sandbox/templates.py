"""Jinja, in a child process: text that people read, such as titles of pull requests.

Jinja's own sandbox keeps templates from reaching into Python. It is a seat belt and no wall (it was
escaped from more than once), so the process has the same limits as one for expressions.
"""

from collections.abc import Iterable, Mapping, Sized
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fanout.sandbox.language import GLOBALS
from fanout.sandbox.projection import Reads
from fanout.sandbox.worker import LONGEST as LONGEST_VALUE
from fanout.sandbox.worker import RefusedError, serve

KEPT = 256  # compiled templates
LONGEST = 1 << 16  # characters
_HIGHEST_POWER = 64
FILTERS = (
    "capitalize",
    "default",
    "first",
    "indent",
    "int",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "replace",
    "sort",
    "string",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
    "wordwrap",
)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which operators make no texts or lists that are too long.

    Filters and methods can still make long texts: there the memory of the process is the limit.
    """

    intercepted_binops = frozenset({"*", "+", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The operator's value. Raises RefusedError."""
        if operator == "*":
            many = next((it for it in (left, right) if isinstance(it, Sized)), None)
            times = right if many is left else left
            if many is not None and isinstance(times, int):
                _refuse_longer(len(many) * times)
        elif operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            _refuse_longer(len(left) + len(right))
        elif operator == "**" and isinstance(right, int) and abs(right) > _HIGHEST_POWER:
            raise RefusedError("LimitExceeded", f"a power is higher than {_HIGHEST_POWER}")
        return super().call_binop(context, operator, left, right)


def _joined(pieces: Iterable[str]) -> str:
    """The text of these pieces, as long as it is not too long. Raises RefusedError."""
    found: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        _refuse_longer(size)
        found.append(piece)
    return "".join(found)


def _refuse_longer(size: int) -> None:
    if size > LONGEST_VALUE:
        raise RefusedError("LimitExceeded", f"its value is longer than {LONGEST_VALUE} characters")


class Templates:
    """The engine for Jinja."""

    def __init__(self) -> None:
        # No autoescape: the text is Markdown, a title or a commit message, never HTML.
        self._environment = _Environment(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for known, wanted in (
            (self._environment.filters, FILTERS),
            (self._environment.globals, GLOBALS),
        ):
            for name in set(known) - set(wanted):
                del known[name]
        self._template = lru_cache(KEPT)(self._compile)

    def reads(self, text: str) -> Reads:
        """The variables that the template names. Raises RefusedError."""
        return self._template(text)[1]

    def outline(self, text: str) -> None:
        """A template is never simple enough."""

    def evaluate(self, text: str, row: Mapping[str, Any]) -> str:
        """The template filled from a row of variables. Raises RefusedError."""
        template, _ = self._template(text)
        try:
            return _joined(template.generate(row))
        except (MemoryError, RefusedError):
            raise
        except SecurityError as error:
            raise RefusedError(
                "ExpressionError", f"the template reaches too far: {error}"
            ) from None
        except TemplateError as error:
            raise RefusedError(
                "ExpressionError", f"the template cannot be filled: {error}"
            ) from None
        except RecursionError:
            raise RefusedError("LimitExceeded", "the template is nested too deep") from None
        except Exception as error:  # noqa: BLE001 - a template can raise whatever Python raises
            problem = f"the template cannot be filled ({type(error).__name__})"
            raise RefusedError("ExpressionError", problem) from None

    def _compile(self, text: str) -> tuple[Template, Reads]:
        if len(text) > LONGEST:
            problem = f"the template has {len(text)} characters, {LONGEST} are allowed"
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
    serve(Templates)
