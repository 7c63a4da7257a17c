"""Finds the answers that renderings ask for, and keeps those that may be asked for again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.cluster.kubernetes_schemas import read_schemas
from fanout.ports import Workshop
from fanout.variants.questions import (
    Answer,
    Answers,
    Question,
    Ran,
    Run,
    SchemasOf,
    Script,
    Unanswered,
)

Value = TypeVar("Value")
KEPT = 64 << 20  # bytes of what programs were given and have answered


@dataclass(slots=True)
class Answering:
    """Asks each question once; one per process."""

    workshop: Workshop
    _known: dict[Question, Answer] = field(default_factory=dict)
    _size: int = 0

    @property
    def known(self) -> Answers:
        """What was answered."""
        return self._known

    def ask(self, questions: Iterable[Question]) -> None:
        """Find the answers to those that are new; programs run beside each other."""
        new = [one for one in dict.fromkeys(questions) if one not in self._known]
        runs = [one for one in new if isinstance(one, Run)]
        for question, answer in zip(runs, self.workshop.run(runs) if runs else (), strict=True):
            self._known[question] = answer
            self._size += len(question.stdin) + (
                len(answer.stdout) if isinstance(answer, Ran) else 0
            )
        scripts = [one for one in new if isinstance(one, Script)]
        listed = self.workshop.run_scripts(scripts) if scripts else ()
        for script, items in zip(scripts, listed, strict=True):
            self._known[script] = items
            self._size += 2 * len(script.resource_list)  # the answer is about as long
        for one in new:
            if isinstance(one, SchemasOf):
                self._known[one] = read_schemas(one)

    def through(self, work: Callable[[Answers], Value]) -> Value:
        """Do it as often as it asks something, to its end. Raises what it raises."""
        while True:
            try:
                return work(self._known)
            except Unanswered as stop:
                self.ask([stop.question])

    def trim(self) -> None:
        """Forget what programs have answered once it has become too much to keep."""
        if self._size > KEPT:
            self._known = {one: it for one, it in self._known.items() if isinstance(one, SchemasOf)}
            self._size = 0
