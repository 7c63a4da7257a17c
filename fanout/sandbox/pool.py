"""The sandbox: expressions and templates of strangers, evaluated in limited child processes.

Policies may be written by many (design §9), and neither celpy nor Jinja bounds what a text costs:
328 characters of CEL took 5 GiB. So they run in children with limits of memory, processor time and
wall time. The parent learns what a text reads, sends only that, each distinct part once, and keeps
the answers by what was read. Expressions of bounded cost by their shape it computes by itself, from
the outline that a child made of them (design §9, §12).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from fanout.errors import Bug
from fanout.sandbox.closures import ASK
from fanout.sandbox.crew import Crew
from fanout.sandbox.desk import Desk, Text
from fanout.sandbox.kept import KeptOutlines
from fanout.sandbox.language import CALLED, GLOBALS
from fanout.sandbox.limits import Limits
from fanout.selection.closure import Closure
from fanout.selection.model import Broken
from fanout.telemetry.counters import Counters


class ProcessSandbox:
    """Implements `fanout.ports.Sandbox`; a context manager that ends its children."""

    def __init__(self, limits: Limits, counters: Counters, kept: Path | None = None) -> None:
        """`kept` is a file for what is learnt of expressions; None: each process learns anew."""
        self._limits = limits
        self._counters = counters
        self._lock = Lock()
        self._closed = False
        self._expressions = Desk(
            Crew("fanout.sandbox.expressions", limits), counters, KeptOutlines(kept)
        )
        self._templates = Desk(
            Crew("fanout.sandbox.templates", limits), counters, KeptOutlines(None)
        )

    def evaluate(
        self, expressions: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """`answer[expression][row]`: plain data, not to be changed, or Broken."""
        with self._lock:
            return self._open(self._expressions).answer(expressions, rows)

    def fill(self, templates: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """`answer[template][row]`: text, or Broken."""
        with self._lock:
            return self._open(self._templates).answer(templates, rows)

    def closures(self, expressions: Sequence[str]) -> list[Closure | None]:
        """Each as a function of one row; None: it has to be asked with `evaluate`.

        What a closure cannot tell by itself it asks the sandbox for, which must be open then.
        """
        with self._lock:
            learnt = self._open(self._expressions).compiled(expressions)
        return [self._closure(text, learnt[text]) for text in expressions]

    def _closure(self, text: str, learnt: Text | Broken) -> Closure | None:
        if isinstance(learnt, Broken) or learnt.compute is None:
            return None
        return Closure(text, learnt.reads, self._or_asked(text, learnt.compute))

    def _or_asked(
        self, text: str, compute: Callable[[Mapping[str, Any]], Any]
    ) -> Callable[[Mapping[str, Any]], Any]:
        def answer(row: Mapping[str, Any]) -> Any:
            found = compute(row)
            return self.evaluate([text], [row])[0][0] if found is ASK else found

        return answer

    def compile(self, expressions: Sequence[str], templates: Sequence[str]) -> Mapping[str, Broken]:
        """Those that are no expressions or templates, by their text."""
        with self._lock:
            learnt = [
                *self._open(self._expressions).compiled(expressions).items(),
                *self._open(self._templates).compiled(templates).items(),
            ]
        return {text: answer for text, answer in learnt if isinstance(answer, Broken)}

    def names(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """The variables that each of them names; none where it does not compile."""
        with self._lock:
            return (
                _names(self._open(self._expressions), expressions, CALLED),
                _names(self._open(self._templates), templates, GLOBALS),
            )

    def _open(self, desk: Desk) -> Desk:
        if self._closed:
            raise Bug("the sandbox was closed before it was asked")
        return desk

    def close(self) -> None:
        """End all children; may be called again."""
        with self._lock:
            self._closed = True
            self._expressions.crew.close()
            self._templates.crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _names(desk: Desk, texts: Sequence[str], own: frozenset[str]) -> list[frozenset[str]]:
    """The variables that each text names; `own` are the names of the language itself."""
    learnt = desk.compiled(texts)
    return [_named(learnt[text]) - own for text in texts]


def _named(learnt: Text | Broken) -> frozenset[str]:
    return frozenset() if isinstance(learnt, Broken) else frozenset(learnt.reads)
