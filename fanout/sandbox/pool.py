"""The sandbox: expressions and templates of strangers, evaluated in limited child processes.

Policies may be written by many (design §9), and neither celpy nor Jinja bounds what a text costs:
328 characters of CEL took 5 GiB. So they run in children with limits of memory, processor time and
wall time. The parent learns what a text reads, sends only that, each distinct part once, and keeps
the answers by what was read (design §12).
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

from fanout.errors import Bug
from fanout.sandbox.crew import CHUNK, Crew, Task
from fanout.sandbox.language import CALLED, GLOBALS
from fanout.sandbox.limits import Limits
from fanout.sandbox.projection import Reads, as_json, key_of, names_in, project, text_at
from fanout.selection.model import Broken
from fanout.telemetry.counters import Counters

KEPT_ANSWERS = 200_000
KEPT_TEXTS = 4096


class _Seen(NamedTuple):
    """An answer that could be read off a row."""

    text: str


_Key = str | bytes | _Seen | Broken  # of a row: where its answer is, or what it is


class ProcessSandbox:
    """Implements `fanout.ports.Sandbox`; a context manager that ends its children."""

    def __init__(self, limits: Limits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self._lock = Lock()
        self._closed = False
        self._expressions = _Desk(Crew("fanout.sandbox.expressions", limits), counters, names_in)
        self._templates = _Desk(Crew("fanout.sandbox.templates", limits), counters, _no_names)

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

    def compile(self, expressions: Sequence[str], templates: Sequence[str]) -> Mapping[str, Broken]:
        """Those that are no expressions or templates, by their text."""
        with self._lock:
            return {
                **self._open(self._expressions).refuse(expressions),
                **self._open(self._templates).refuse(templates),
            }

    def names(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """The variables that each of them names; none where it does not compile."""
        with self._lock:
            return (
                self._open(self._expressions).names(expressions, CALLED),
                self._open(self._templates).names(templates, GLOBALS),
            )

    def _open(self, desk: "_Desk") -> "_Desk":
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


class _Desk:
    """One kind of text: what each reads, and the answers that are known."""

    def __init__(
        self, crew: Crew, counters: Counters, names: Callable[[str], tuple[str, ...]]
    ) -> None:
        self.crew = crew
        self._names = names  # of the field that a text is nothing but the name of
        self._counters = counters
        self._reads: dict[str, Reads | Broken] = {}
        self._known: dict[str, dict[str | bytes, Any]] = {}  # least recently asked text first

    def answer(self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        columns: dict[str, list[_Key] | Broken] = {}
        tasks: list[Task] = []
        try:
            for text in dict.fromkeys(texts):
                reads = self._reads_of(text) if rows else {}
                if isinstance(reads, Broken):
                    columns[text] = reads
                    continue
                columns[text], unknown = self._keys(text, reads, rows)
                tasks += _chunks(text, unknown)
            lost = self.crew.work(tasks, self._keep)
        finally:
            self.crew.batch_done()
        answers = {
            text: self._column(text, lost.get(text, keys), len(rows))
            for text, keys in columns.items()
        }
        self._forget()
        return [answers[text] for text in texts]

    def refuse(self, texts: Sequence[str]) -> dict[str, Broken]:
        """The texts that do not compile."""
        try:
            found = {text: self._reads_of(text) for text in dict.fromkeys(texts)}
        finally:
            self.crew.batch_done()
        return {text: answer for text, answer in found.items() if isinstance(answer, Broken)}

    def names(self, texts: Sequence[str], own: frozenset[str]) -> list[frozenset[str]]:
        """The variables that each text names; `own` are the names of the language itself."""
        try:
            found = [self._reads_of(text) for text in texts]
        finally:
            self.crew.batch_done()
        return [
            frozenset() if isinstance(reads, Broken) else frozenset(reads) - own for reads in found
        ]

    def _reads_of(self, text: str) -> Reads | Broken:
        reads = self._reads.get(text)
        if reads is None:
            reads = self.crew.reads(text)
            if not (isinstance(reads, Broken) and reads.reason == "LimitExceeded"):
                self._reads[text] = reads  # a limit may have been the machine's fault
        return reads

    def _keys(
        self, text: str, reads: Reads, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[list[_Key], list[str]]:
        """The key of each row's part, and the parts that have no answer yet."""
        known = self._known[text] = self._known.pop(text, {})
        keys: list[_Key] = []
        unknown: dict[str | bytes, str] = {}
        names = self._names(text)
        for row in rows:
            seen = text_at(row, names) if names else None
            if seen is not None:
                keys.append(_Seen(seen))
                continue
            try:
                part = as_json(project(row, reads))
            except (TypeError, ValueError, RecursionError) as error:
                keys.append(Broken("ExpressionError", f"it reads what is no plain data: {error}"))
                continue
            key = key_of(part)
            keys.append(key)
            if key not in known:
                unknown[key] = part
        return keys, list(unknown.values())

    def _keep(self, task: Task, answers: list[Any]) -> None:
        known = self._known[task.text]
        for part, answer in zip(task.rows, answers, strict=True):
            known[key_of(part)] = answer[0] if len(answer) == 1 else Broken(*answer)
        self._counters.add("evaluations", len(answers))

    def _column(self, text: str, keys: list[_Key] | Broken, length: int) -> list[Any]:
        if isinstance(keys, Broken):
            return [keys] * length
        known = self._known[text]
        return [known[key] if isinstance(key, str | bytes) else _said(key) for key in keys]

    def _forget(self) -> None:
        """Drop the texts that were not asked for longest, as long as too much is kept."""
        kept = sum(map(len, self._known.values()))
        while kept > KEPT_ANSWERS or len(self._known) > KEPT_TEXTS:
            oldest = next(iter(self._known))
            kept -= len(self._known.pop(oldest))
        while len(self._reads) > KEPT_TEXTS:
            del self._reads[next(iter(self._reads))]


def _no_names(_text: str) -> tuple[str, ...]:
    """A template is text, whatever it looks like."""
    return ()


def _said(key: _Seen | Broken) -> str | Broken:
    return key.text if isinstance(key, _Seen) else key


def _chunks(text: str, rows: Sequence[str]) -> list[Task]:
    return [Task(text, rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]
