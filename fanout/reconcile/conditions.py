"""`propagateWhen`: conditions that the gates ask as plain callables, though some need the sandbox.

A condition of the bounded subset is a closure. Any other one is answered from what the sandbox said
before of a row that looks alike to it; what is not known yet the gates hand back as a question, and
they are asked again once it is answered. (Design §6, "Expressions"; §12.)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanout.gates.answer import PolicyDecision, Wanted
from fanout.gates.evaluate import evaluate
from fanout.gates.facts import PolicyFacts
from fanout.gates.rules import UNKNOWN, Condition, Variables
from fanout.ports import Sandbox
from fanout.variants.canonical import canonical

ROUNDS = 64  # of questions in one pass; what is unanswered then is held until the next one
KEPT = 100_000  # answers; all are forgotten at once where there are more


@dataclass(slots=True)
class Conditions:
    """The conditions of all policies, and what is known of them; one per process."""

    sandbox: Sandbox
    _asked: dict[str, Callable[[Variables], object]] = field(default_factory=dict)  # by text
    _reads: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of those for the sandbox
    _answers: dict[tuple[str, str], object] = field(default_factory=dict)  # text, what it reads

    def prepare(self, texts: Iterable[str]) -> None:
        """Find out which of them can be answered in process; for many at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._asked]
        if not new:
            return
        named, _ = self.sandbox.names(new, [])
        for text, names, closure in zip(new, named, self.sandbox.closures(new), strict=True):
            self._reads[text] = tuple(sorted(names))
            self._asked[text] = closure if closure is not None else self._known(text)

    def condition(self, text: str) -> Condition:
        """The condition that the gates are given."""
        self.prepare([text])
        return Condition(text, self._asked[text])

    def decide(self, facts: PolicyFacts) -> PolicyDecision:
        """The gates' answer. Each round of questions answers at least one that was open.

        After so many rounds what is still open is held: nothing passes that nobody has asked.
        """
        if len(self._answers) > KEPT:
            self._answers.clear()
        decision = evaluate(facts)
        for _ in range(ROUNDS):
            if not decision.unanswered:
                break
            self._answer(decision.unanswered)
            decision = evaluate(facts)
        return decision

    def _known(self, text: str) -> Callable[[Variables], object]:
        return lambda row: self._answers.get((text, self._part(text, row)), UNKNOWN)

    def _part(self, text: str, row: Variables) -> str:
        """What the condition reads of a row; equal texts, equal answers."""
        return canonical({name: row[name] for name in self._reads[text] if name in row})

    def _answer(self, wanted: Sequence[Wanted]) -> None:
        """Ask the sandbox, one batch for each condition."""
        rows: dict[str, dict[str, Mapping[str, Any]]] = {}
        for one in wanted:
            part = self._part(one.text, one.variables)
            rows.setdefault(one.text, {})[part] = one.variables
        for text, parts in rows.items():
            [answers] = self.sandbox.evaluate([text], list(parts.values()))
            found = zip(parts, answers, strict=True)
            self._answers |= {(text, part): answer for part, answer in found}
