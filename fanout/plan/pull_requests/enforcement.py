"""Enforcement of fanout's status by the rules of a branch, as far as fanout's account reads them.

Without it people with the right to merge, or to push, publish past the gates. That stops nothing
by itself: it is reported by the condition NotEnforced.
"""

from fanout.api.promotion_policy import matches_name_pattern
from fanout.api.view_base import ConditionStatus
from fanout.plan.observation.observed_request import BranchFacts
from fanout.values import Value

_PATTERN_CHARACTERS = frozenset("?[{\\")  # of required contexts, beside *


class Enforcement(Value):
    """Answer whether a branch can change without the status of fanout, with a sentence."""

    not_enforced: ConditionStatus
    message: str


def check_enforcement(branch: str, context: str, rules: BranchFacts) -> Enforcement:
    """Check whether the rules of a branch require a status."""
    if not rules.is_protected:
        return Enforcement(
            ConditionStatus.TRUE,
            f"the branch {branch} is not protected: who may write to the repository can merge and"
            f" push without the status {context}",
        )
    if not requires_status(rules.required_contexts, context):
        if any(_PATTERN_CHARACTERS & set(it) for it in rules.required_contexts):
            patterns = sorted(rules.required_contexts)
            return Enforcement(
                ConditionStatus.UNKNOWN,
                f"the branch {branch} requires statuses by patterns ({', '.join(patterns)}); add"
                f" the status {context} by its name",
            )
        return Enforcement(
            ConditionStatus.TRUE,
            f"the branch {branch} does not require the status {context}; add it to the statuses"
            " that its protection requires",
        )
    if rules.may_push:
        # A push needs no status. Whether people may push too is hidden from a plain writer.
        return Enforcement(
            ConditionStatus.UNKNOWN,
            f"the branch {branch} requires the status {context} for merging, but fanout's account,"
            " and perhaps others, may push to it; forbid pushes to it",
        )
    return Enforcement(ConditionStatus.FALSE, f"the branch {branch} requires the status {context}")


def requires_status(contexts: frozenset[str], context: str) -> bool:
    """Return whether required contexts, of which some may be patterns, name a context."""
    return any(
        matches_name_pattern(it, context) for it in contexts if not _PATTERN_CHARACTERS & set(it)
    )
