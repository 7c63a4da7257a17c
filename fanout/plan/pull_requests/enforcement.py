"""Enforcement of fanout's status by the rules of a branch, as far as fanout's account reads them.

Without it people with the right to merge, or to push, publish past the gates. That stops nothing
by itself: it is reported by the condition NotEnforced.
"""

from fanout.api.promotion_policy import matches_name_pattern
from fanout.api.view_base import ConditionStatus
from fanout.plan import plan_wording
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
            plan_wording.describe_unprotected_branch(branch, context),
        )
    if not requires_status(rules.required_contexts, context):
        if any(_PATTERN_CHARACTERS & set(it) for it in rules.required_contexts):
            patterns = sorted(rules.required_contexts)
            return Enforcement(
                ConditionStatus.UNKNOWN,
                plan_wording.describe_required_patterns(branch, context, patterns),
            )
        return Enforcement(
            ConditionStatus.TRUE,
            plan_wording.describe_unrequired_status(branch, context),
        )
    if rules.may_push:
        # A push needs no status. Whether people may push too is hidden from a plain writer.
        return Enforcement(
            ConditionStatus.UNKNOWN,
            plan_wording.describe_allowed_push(branch, context),
        )
    return Enforcement(
        ConditionStatus.FALSE, plan_wording.describe_required_status(branch, context)
    )


def requires_status(contexts: frozenset[str], context: str) -> bool:
    """Return whether required contexts, of which some may be patterns, name a context."""
    return any(
        matches_name_pattern(it, context) for it in contexts if not _PATTERN_CHARACTERS & set(it)
    )
