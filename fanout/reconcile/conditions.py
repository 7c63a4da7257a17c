"""`propagateWhen`: conditions that the gates ask as plain callables, though some need the sandbox.

A condition of the bounded subset is a closure. Any other one is answered from what the sandbox said
before of a row that looks alike to it; what is not known yet the gates hand back as a question, and
they are asked again once it is answered. (Design §6, "Expressions"; §12.)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.gates.answer import PolicyDecision, Wanted
from fanout.gates.evaluate import evaluate
from fanout.gates.facts import PolicyFacts
from fanout.gates.rules import UNKNOWN, Condition, Variables
from fanout.ports import Sandbox
from fanout.selection.model import Broken
from fanout.variants.canonical import canonical

ROUNDS = 64  # of questions in one pass; what is unanswered then is held until the next one
_TOO_MANY = Broken(
    Reason.LIMIT_EXCEEDED,
    "its answers brought up too many further questions in one pass",
    "write what does not depend on `stage` as an entry of its own",
)
_LIMIT = Reason.LIMIT_EXCEEDED
KEPT = 100_000  # answers; all are forgotten at once where there are more


@dataclass(slots=True)
class Conditions:
    """The conditions of all policies, and what is known of them; one per process."""

    sandbox: Sandbox
    _asked: dict[str, Callable[[Variables], object]] = field(default_factory=dict)  # by text
    _reads: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of those for the sandbox
    _answers: dict[tuple[str, str], object] = field(default_factory=dict)  # text, what it reads

    _otherwise: object = UNKNOWN  # the answer to what nobody has asked

    def prepare(self, texts: Iterable[str]) -> None:
        """Find out which of them can be answered in process; for many at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._asked]
        if not new:
            return
        named, _ = self.sandbox.names(new, [])
        for text, names, closure in zip(new, named, self.sandbox.closures(new), strict=True):
            self._reads[text] = tuple(sorted(names))
            self._asked[text] = closure if closure is not None else self._known(text)

    def begin(self) -> None:
        """Between passes: what exceeded a limit is asked again, it may have been the machine's
        fault; and where too much is kept, nothing is.
        """
        if len(self._answers) > KEPT:
            self._answers.clear()
        found = self._answers.items()
        limited = [key for key, it in found if isinstance(it, Broken) and it.reason == _LIMIT]
        for key in limited:
            del self._answers[key]

    def condition(self, text: str) -> Condition:
        """The condition that the gates are given."""
        self.prepare([text])
        return Condition(text, self._asked[text])

    def decide(self, facts: PolicyFacts) -> PolicyDecision:
        """The gates' answer, when all that they ask is answered.

        They go on with a guess where they do not know, so an answer may bring up other questions.
        After so many rounds what is still open has no answer in this pass, and holds.
        """
        decision = evaluate(facts)
        for _ in range(ROUNDS):
            if not decision.unanswered:
                break
            self._answer(decision.unanswered)
            decision = evaluate(facts)
        if decision.unanswered:
            self._otherwise = _TOO_MANY
            try:
                decision = evaluate(facts)
            finally:  # other policies are asked next
                self._otherwise = UNKNOWN
        return decision

    def _known(self, text: str) -> Callable[[Variables], object]:
        return lambda row: self._answers.get((text, self._part(text, row)), self._otherwise)

    def _part(self, text: str, row: Variables) -> str:
        """What the condition reads of a row; equal texts, equal answers."""
        return canonical({name: row[name] for name in self._reads[text] if name in row})

    def _answer(self, wanted: Sequence[Wanted]) -> None:
        """Ask the sandbox, one batch for each condition.

        Beside the numbers that a stage has by guess, each is asked with those that are certain,
        which the first question has: so one round is enough for all who come before the next that
        is released, however many they are.
        """
        rows: dict[str, dict[str, Variables]] = {}
        certain: dict[tuple[str, str], object] = {}
        for one in wanted:
            row, stage = one.variables, one.variables.get("variant", {}).get("stage", "")
            numbers = certain.setdefault((one.text, stage), row.get("stage"))
            for each in (row, {**row, "stage": numbers}):
                rows.setdefault(one.text, {})[self._part(one.text, each)] = each
        for text, parts in rows.items():
            [answers] = self.sandbox.evaluate([text], list(parts.values()))
            found = zip(parts, answers, strict=True)
            self._answers |= {(text, part): answer for part, answer in found}
