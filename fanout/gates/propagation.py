"""`propagateWhen`: may this variant be released, by what its stage, itself and its target are?

All entries must be true, and all are evaluated: a false one beside an error is false, and both are
told. Time is no part of what they see. (Design §6, "Expressions".)
"""

from collections.abc import Mapping
from typing import Any

from fanout.api.reasons import Reason
from fanout.gates.answer import Wanted
from fanout.gates.facts import Hold, VariantFacts
from fanout.gates.rules import UNKNOWN, StageRule
from fanout.selection.model import Broken

_AUTHOR = "the policy's author: propagateWhen; or what it reads"


class Propagation:
    """Asks the conditions of one stage, and keeps the questions that nobody has answered."""

    def __init__(self, rule: StageRule, candidate: str) -> None:
        self._rule = rule
        self._candidate = candidate
        self.unanswered: list[Wanted] = []
        self.guessed = False  # would the last answer be yes, if what nobody knows yet is yes?

    def ask(self, facts: VariantFacts, stage: Mapping[str, int]) -> tuple[Hold, ...]:
        """What is in the way of the variant's release, with the stage's numbers as they are."""
        if not self._rule.propagate_when:
            return ()
        row = self._row(facts, stage)
        falses: list[Hold] = []
        errors: list[Hold] = []
        for condition in self._rule.propagate_when:
            value = condition.ask(row)
            if value is UNKNOWN:
                self.unanswered.append(Wanted(condition.text, row))
                errors.append(_NOT_YET)
            elif value is False:
                falses.append(Hold(Reason.PROPAGATION_HELD, f"{condition.text} is false", _AUTHOR))
            elif value is not True:
                errors.append(_error(condition.text, value))
        self.guessed = bool(errors) and not falses and all(map(_is_unknown, errors))
        return (*falses, *errors)

    def _row(self, facts: VariantFacts, stage: Mapping[str, int]) -> Mapping[str, Any]:
        upstream = {**facts.variables.get("upstream", {}), "revision": self._candidate}
        return {**facts.variables, "stage": stage, "upstream": upstream}


_NOT_YET = Hold(
    Reason.PROPAGATION_HELD, "propagateWhen is not evaluated yet", "the sandbox, in this pass"
)


def _is_unknown(hold: Hold) -> bool:
    return hold is _NOT_YET


def _error(text: str, value: object) -> Hold:
    if isinstance(value, Broken):
        return Hold(value.reason, f"{text}: {value.problem}", _AUTHOR)
    sentence = f"{text} yields {value!r}, which is neither true nor false"
    return Hold(Reason.EXPRESSION_ERROR, sentence, _AUTHOR)
