"""The children of one kind, and the work of a batch shared out among them."""

import json
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fanout.sandbox.child import Child, EndedError
from fanout.sandbox.limits import Limits
from fanout.sandbox.projection import Reads
from fanout.selection.model import Broken
from fanout.values import frozen

CHUNK = 100  # rows in one question: the limits are for so many
PARSED = 20  # texts in one question
WORTH_ANOTHER = 4000  # rows; a second child takes as long to start as these to evaluate
BATCHES = 200  # after so many a child is replaced: what it caches and leaks goes with it
TRIES = 2  # of a question whose child died of something that no limit explains


@frozen
class Learnt:
    """What a text reads of a row, and its outline where it is simple enough for a closure."""

    reads: Reads
    outline: list[Any] | None


@frozen
class Task:
    """One question: a text over some rows, each as JSON."""

    text: str
    rows: Sequence[str]

    def question(self) -> str:
        """As the child reads it."""
        return f'{{"text":{json.dumps(self.text)},"rows":[{",".join(self.rows)}]}}'


class Crew:
    """Up to `limits.processes` children that run `module`; each is started when it has work."""

    def __init__(self, module: str, limits: Limits) -> None:
        self._module = module
        self._limits = limits
        self._children: dict[int, Child] = {}
        self._asked = False  # anything, in this batch

    def learn(self, texts: Sequence[str]) -> dict[str, Learnt | Broken]:
        """What there is to know of each text before it has a row."""
        found: dict[str, Learnt | Broken] = {}
        for start in range(0, len(texts), PARSED):
            found |= self._learn(texts[start : start + PARSED])
        return found

    def _learn(self, texts: Sequence[str]) -> dict[str, Learnt | Broken]:
        try:
            answers = self._ask(0, json.dumps({"texts": texts}))["texts"]
        except EndedError as end:
            if len(texts) == 1:
                return {texts[0]: Broken("LimitExceeded", str(end))}
            alone = [self._learn([text]) for text in texts]  # one of them was too much, or all
            return {text: learnt for each in alone for text, learnt in each.items()}
        return dict(zip(texts, map(_learnt, answers), strict=True))

    def work(
        self, tasks: Sequence[Task], done: Callable[[Task, list[Any]], None]
    ) -> dict[str, Broken]:
        """Do all tasks, hand each's answers to `done`; returns the texts that exceeded a limit."""
        lost: dict[str, Broken] = {}
        waiting = deque(tasks)
        rows = sum(len(task.rows) for task in tasks)
        hands = min(self._limits.processes, 1 + rows // WORTH_ANOTHER, len(tasks))
        if hands <= 1:
            self._drain(0, waiting, done, lost)
            return lost
        with ThreadPoolExecutor(hands) as threads:
            futures = [
                threads.submit(self._drain, slot, waiting, done, lost) for slot in range(hands)
            ]
        for future in futures:
            future.result()
        return lost

    def _drain(
        self,
        slot: int,
        waiting: deque[Task],
        done: Callable[[Task, list[Any]], None],
        lost: dict[str, Broken],
    ) -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            if task.text in lost:
                continue
            try:
                done(task, self._ask(slot, task.question())["answers"])
            except EndedError as end:
                lost[task.text] = Broken("LimitExceeded", str(end))

    def _ask(self, slot: int, question: str) -> dict[str, Any]:
        """Ask the slot's child; a new one where there is none or it died while idle."""
        self._asked = True
        for attempt in range(TRIES):
            child = self._children.get(slot)
            if child is None or not child.alive:
                self._dismiss(slot)
                child = self._children[slot] = Child(self._module, self._limits)
            try:
                return child.ask(question)
            except EndedError as end:
                self._dismiss(slot)
                if not end.unexplained or attempt == TRIES - 1:
                    raise
        raise AssertionError(TRIES)

    def batch_done(self) -> None:
        """Count a batch that had a question; children that have served enough leave."""
        if not self._asked:
            return
        self._asked = False
        for slot, child in list(self._children.items()):
            child.batches += 1
            if child.batches >= BATCHES:
                self._children.pop(slot).leave()

    def _dismiss(self, slot: int) -> None:
        child = self._children.pop(slot, None)
        if child is not None:
            child.end()

    def close(self) -> None:
        """End all children."""
        while self._children:
            self._children.popitem()[1].leave()

    @property
    def pids(self) -> list[int]:
        """The process ids of the children that were started."""
        return [child.pid for child in self._children.values()]


def _learnt(answer: dict[str, Any]) -> Learnt | Broken:
    if "broken" in answer:
        return Broken(*answer["broken"])
    return Learnt(answer["reads"], answer["outline"])
