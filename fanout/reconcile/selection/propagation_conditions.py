"""Conditions of `propagateWhen` as plain callables, although some need the sandbox.

A condition of the bounded subset is a closure. Any other, and one that a closure leaves to the
sandbox, is answered from memoized sandbox answers for a row with equal values. The gates return
requests for missing answers, and are evaluated again once these are there
(docs/concepts/rollouts.md).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import UNKNOWN, PropagationCondition, Variables
from fanout.package.field_edits import canonical_text
from fanout.pending_inputs import ExpressionRequest, InputPending, complete
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.ports import Sandbox
from fanout.selection.variant_spec import ASK, ExpressionFailure, InProcessExpression

MAX_ROUNDS = 64  # of questions in one pass; what is unanswered then is held until the next one
_TOO_MANY_ROUNDS = ExpressionFailure(
    Reason.LIMIT_EXCEEDED,
    "the conditions need too many rounds of evaluation in one pass",
    "move conditions that do not read `stage` into entries of their own",
)
MAX_ANSWERS = 100_000  # answers; all are forgotten at once where there are more


@dataclass(slots=True)
class PropagationConditions:
    """Conditions of all policies, and their memoized answers; one per process."""

    sandbox: Sandbox
    # by text
    _callable_by_text: dict[str, Callable[[Variables], object]] = field(default_factory=dict)
    # of those for the sandbox
    _variables_by_text: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _answers: dict[tuple[str, str], object] = field(default_factory=dict)  # text, what it reads

    _over_limit: set[tuple[str, str]] = field(default_factory=set)  # keys of such answers
    _budget: EvaluationBudget | None = None  # of the policy that was asked last
    _default_answer: object = UNKNOWN  # the answer to what nobody has asked

    def prepare(self, texts: Iterable[str]) -> None:
        """Determine which conditions can be answered in process, in one batch."""
        new_texts = [text for text in dict.fromkeys(texts) if text not in self._callable_by_text]
        if not new_texts:
            return
        names_by_text, _ = self.sandbox.free_variables(new_texts, [])
        closures = self.sandbox.closures(new_texts)
        for text, names, closure in zip(new_texts, names_by_text, closures, strict=True):

            def find_answer(
                row: Variables, text: str = text, closure: InProcessExpression | None = closure
            ) -> object:
                # What is not computed is asked for together, within the budget of the policy.
                value = ASK if closure is None else closure(row)
                if value is not ASK:
                    return value
                return self._answers.get((text, self._row_key(text, row)), self._default_answer)

            self._variables_by_text[text] = tuple(sorted(names))
            self._callable_by_text[text] = find_answer

    def begin_pass(self) -> None:
        """Begin a pass: drop answers over a limit, and all if there are too many."""
        # Dropped between passes only: the rounds of one pass rely on the answers before them.
        if len(self._answers) > MAX_ANSWERS:
            self._answers.clear()
        self._drop_over_limit()

    def _drop_over_limit(self) -> None:
        """Drop answers over a limit: a budget decides when the text is tried again."""
        for key in self._over_limit:
            self._answers.pop(key, None)
        self._over_limit.clear()

    def get_condition(self, text: str) -> PropagationCondition:
        """Return the condition for the gates."""
        self.prepare([text])
        return PropagationCondition(text, self._callable_by_text[text])

    def decide(
        self, facts: PolicyFacts, budget: EvaluationBudget | None = None
    ) -> PolicyEvaluation:
        """Return the decision of the gates with all their questions answered.

        `budget`: what the conditions of the policy may cost; None: each is limited by itself.
        Gates continue with a guess where an answer is missing, so an answer may raise further
        questions. After `MAX_ROUNDS` rounds the remaining questions have no answer in this
        pass, and hold.
        """
        # What another policy's budget refused, this one's may allow.
        if budget is not self._budget:
            self._drop_over_limit()
            self._budget = budget

        def evaluate() -> PolicyEvaluation:
            decision = evaluate_gates(facts)
            if decision.unanswered:
                raise InputPending(decision.unanswered)
            return decision

        def obtain(requests: Sequence[ExpressionRequest]) -> None:
            # In the sandbox, one batch per condition. Each request is evaluated with the guessed
            # numbers of its stage and with the certain ones, which the first request has. So one
            # round answers all variants before the next released one, however many.
            rows_by_text: dict[str, dict[str, Variables]] = {}
            certain_counts: dict[tuple[str, str], object] = {}
            for request in requests:
                row = request.variables
                stage = row.get("variant", {}).get("stage", "")
                stage_counts = certain_counts.setdefault((request.text, stage), row.get("stage"))
                for variables in (row, {**row, "stage": stage_counts}):
                    rows_by_text.setdefault(request.text, {})[
                        self._row_key(request.text, variables)
                    ] = variables
            for text, row_by_key in rows_by_text.items():
                [answers] = self.sandbox.evaluate([text], list(row_by_key.values()), self._budget)
                for part, answer in zip(row_by_key, answers, strict=True):
                    self._answers[text, part] = answer
                    if (
                        isinstance(answer, ExpressionFailure)
                        and answer.reason == Reason.LIMIT_EXCEEDED
                    ):
                        self._over_limit.add((text, part))

        try:
            return complete([evaluate], obtain, MAX_ROUNDS)[0]
        except InputPending:
            self._default_answer = _TOO_MANY_ROUNDS
            try:
                return evaluate_gates(facts)
            # The object is shared by all policies of the pass.
            finally:  # other policies are asked next
                self._default_answer = UNKNOWN

    def _row_key(self, text: str, row: Variables) -> str:
        """Return the canonical text of the values that the condition reads from a row."""
        return canonical_text(
            {name: row[name] for name in self._variables_by_text[text] if name in row}
        )
