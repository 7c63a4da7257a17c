"""Conditions of `propagateWhen`, which decide whether a variant may be released.

All entries must be true, and all are evaluated: a false one beside an error is false,
and both are reported. Time is not among the variables (docs/concepts/rollouts.md).
"""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import UNKNOWN, StageRule
from fanout.pending_inputs import ExpressionRequest
from fanout.selection.variant_spec import ExpressionFailure


class PropagationEvaluator:
    """Evaluates the conditions of one stage and collects those that are not evaluated yet."""

    def __init__(self, stage_rule: StageRule, candidate: str) -> None:
        self._stage_rule = stage_rule
        self._candidate = candidate
        self.unanswered: list[ExpressionRequest] = []
        # The last answer is yes only if all unknown conditions are true.
        self.is_provisional = False

    def evaluate(
        self, variant_facts: VariantFacts, aggregates: Mapping[str, int]
    ) -> tuple[Hold, ...]:
        """Return what blocks the variant's release, with the stage's counts as they are now."""
        if not self._stage_rule.propagate_when:
            return ()
        variables = variant_facts.variables
        upstream = {**variables.get("upstream", {}), "revision": self._candidate}
        row = {**variables, "stage": aggregates, "upstream": upstream}
        actor = "the policy's author (propagateWhen)"
        false_holds: list[Hold] = []
        error_holds: list[Hold] = []
        # No early exit at the first false one: all unknown conditions are asked in one round.
        for condition in self._stage_rule.propagate_when:
            value = condition.evaluate(row)
            if value is UNKNOWN:
                self.unanswered.append(ExpressionRequest(condition.text, row))
                error_holds.append(_PENDING_HOLD)
            elif value is False:
                sentence = f"propagateWhen is false: {condition.text}"
                false_holds.append(Hold(Reason.PROPAGATION_HELD, sentence, actor))
            elif isinstance(value, ExpressionFailure):
                sentence = f"propagateWhen {condition.text}: {value.problem}"
                error_holds.append(Hold(value.reason, sentence, actor))
            elif value is not True:
                sentence = (
                    f"propagateWhen {condition.text} yields {value!r}, expected true or false"
                )
                error_holds.append(Hold(Reason.EXPRESSION_ERROR, sentence, actor))
        self.is_provisional = (
            bool(error_holds) and not false_holds and all(it is _PENDING_HOLD for it in error_holds)
        )
        return (*false_holds, *error_holds)


_PENDING_HOLD = Hold(Reason.PROPAGATION_HELD, "propagateWhen is not evaluated yet", "this pass")
