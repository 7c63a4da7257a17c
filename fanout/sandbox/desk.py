"""One kind of text: what is known of each, and its answers over rows.

Simple expressions are computed here, in process. For all others, and where a closure does not know,
the children are asked: each distinct part of a row once, and the answers are kept by what was read
(design §12).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanout.sandbox.closures import ASK, closure_of
from fanout.sandbox.crew import CHUNK, Crew, Learnt, Task
from fanout.sandbox.kept import KeptOutlines
from fanout.sandbox.projection import Reads, as_json, key_of, project
from fanout.selection.model import Broken
from fanout.telemetry.counters import Counters
from fanout.values import frozen

KEPT_ANSWERS = 200_000
KEPT_TEXTS = 4096
_BLOCK = 128  # rows

_Key = str | bytes  # of a row's part: what its answer is kept under


@frozen
class Text:
    """What is known of a text: what it reads, and how to compute it where that is simple."""

    reads: Reads
    compute: Callable[[Mapping[str, Any]], Any] | None


@dataclass(slots=True)
class _Column:
    """A text's answers, and the key of each one that is still to come."""

    answers: list[Any]
    awaited: dict[int, _Key]


class Desk:
    """Answers texts of one kind."""

    def __init__(self, crew: Crew, counters: Counters, kept: KeptOutlines) -> None:
        self.crew = crew
        self._counters = counters
        self._kept = kept
        self._texts: dict[str, Text | Broken] = {}
        self._known: dict[str, dict[_Key, Any]] = {}  # least recently asked text first

    def answer(self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """`answer[text][row]`: plain data, or Broken."""
        if not rows:
            return [[] for _ in texts]
        columns: dict[str, _Column] = {}
        tasks: list[Task] = []
        try:
            known = self.learn(texts)
            computed = _computed(known, rows)
            for text, learnt in known.items():
                if isinstance(learnt, Broken):
                    columns[text] = _Column([learnt] * len(rows), {})
                else:
                    answers = computed.get(text) or [ASK] * len(rows)
                    columns[text], unknown = self._column(text, learnt.reads, answers, rows)
                    tasks += _chunks(text, unknown)
            lost = self.crew.work(tasks, self._keep) if tasks else {}
        finally:
            self.crew.batch_done()
        for text, column in columns.items():
            self._fill(text, column, lost.get(text))
        self._forget()
        return [columns[text].answers for text in texts]

    def learn(self, texts: Sequence[str]) -> dict[str, Text | Broken]:
        """What is known of each; what is new is asked for together."""
        distinct = list(dict.fromkeys(texts))
        new = [text for text in distinct if text not in self._texts]
        found = {text: self._texts[text] for text in distinct if text in self._texts}
        for text, learnt in self._learnt(new).items():
            found[text] = _ready(learnt)
            if not (isinstance(learnt, Broken) and learnt.reason == "LimitExceeded"):
                self._texts[text] = found[text]  # a limit may have been the machine's fault
        return {text: found[text] for text in distinct}

    def _learnt(self, texts: Sequence[str]) -> dict[str, Learnt | Broken]:
        """What was learnt of new texts, by an earlier command or by a child."""
        if not texts:
            return {}
        kept = self._kept.find(texts)
        unknown = [text for text in texts if text not in kept]
        asked = self.crew.learn(unknown) if unknown else {}
        self._kept.keep(
            {
                text: learnt
                for text, learnt in asked.items()
                if isinstance(learnt, Learnt) and learnt.outline is not None
            }
        )
        return {**kept, **asked}

    def compiled(self, texts: Sequence[str]) -> dict[str, Text | Broken]:
        """The same, as a batch of its own."""
        try:
            return self.learn(texts)
        finally:
            self.crew.batch_done()
            self._forget()

    def _column(
        self, text: str, reads: Reads, answers: list[Any], rows: Sequence[Mapping[str, Any]]
    ) -> tuple[_Column, list[str]]:
        """With what was answered at once, and the parts of rows that a child is to be asked for."""
        column = _Column(answers, {})
        unknown: dict[_Key, str] = {}
        known = self._known[text] = self._known.pop(text, {})
        for number, answer in enumerate(answers):
            if answer is not ASK:
                continue
            try:
                part = as_json(project(rows[number], reads))
            except (TypeError, ValueError, RecursionError) as error:
                problem = f"it reads what is no plain data: {error}"
                answers[number] = Broken("ExpressionError", problem)
                continue
            key = column.awaited[number] = key_of(part)
            if key not in known:
                unknown[key] = part
        return column, list(unknown.values())

    def _keep(self, task: Task, answers: list[Any]) -> None:
        known = self._known[task.text]
        for part, answer in zip(task.rows, answers, strict=True):
            known[key_of(part)] = answer[0] if len(answer) == 1 else Broken(*answer)
        self._counters.add("evaluations", len(answers))

    def _fill(self, text: str, column: _Column, lost: Broken | None) -> None:
        if lost is not None:  # what exceeded a limit is Broken for all rows
            column.answers = [lost] * len(column.answers)
            return
        known = self._known.get(text, {})
        for number, key in column.awaited.items():
            column.answers[number] = known[key]

    def _forget(self) -> None:
        """Drop the texts that were not asked for longest, as long as too much is kept."""
        kept = sum(map(len, self._known.values()))
        while kept > KEPT_ANSWERS or len(self._known) > KEPT_TEXTS:
            oldest = next(iter(self._known))
            kept -= len(self._known.pop(oldest))
        while len(self._texts) > KEPT_TEXTS:
            del self._texts[next(iter(self._texts))]


def _ready(learnt: Learnt | Broken) -> Text | Broken:
    if isinstance(learnt, Broken):
        return learnt
    outline = learnt.outline
    return Text(learnt.reads, None if outline is None else closure_of(outline, learnt.reads))


def _chunks(text: str, rows: Sequence[str]) -> list[Task]:
    return [Task(text, rows[start : start + CHUNK]) for start in range(0, len(rows), CHUNK)]


def _computed(
    texts: Mapping[str, Text | Broken], rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """The answers of those that are computed here.

    Block by block: what one text has read of a row is at hand when the next one reads it.
    """
    ways = {
        text: learnt.compute
        for text, learnt in texts.items()
        if isinstance(learnt, Text) and learnt.compute is not None
    }
    answers: dict[str, list[Any]] = {text: [] for text in ways}
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for text, compute in ways.items():
            answers[text] += [compute(row) for row in block]
    return answers
