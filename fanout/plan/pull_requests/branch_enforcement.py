"""Enforcement of the status of fanout by the rules of a branch.

The answer goes as far as fanout's account can read the rules. A rule that is hidden is named, and
neither taken for there nor for missing.
"""

from collections.abc import Iterable

from fanout.api.promotion_policy import matches_name_pattern
from fanout.api.view_base import ConditionStatus
from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus, Unknown
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.values import Value

_PATTERN_CHARACTERS = frozenset("?[{\\")  # of required contexts, beside *


class Enforcement(Value):
    """Answer whether a branch can change without the status of fanout, with a sentence."""

    not_enforced: ConditionStatus
    message: str


def check_enforcement(
    branch: str, context: str, rules: BranchFacts, account: ForgeIdentity
) -> Enforcement:
    """Check whether the rules of a branch require a status of fanout's account.

    It stops nothing by itself: the condition `NotEnforced` reports it.
    """
    statuses = rules.required_statuses
    if rules.is_protected is None:
        return _unknown(f"whether the branch {branch} is protected", context)
    if not rules.is_protected:
        return Enforcement(
            ConditionStatus.TRUE,
            f"the branch {branch} is not protected: who may write to the repository can merge and"
            f" push without the status {context}",
        )
    if statuses is None:
        return _unknown(f"which statuses the branch {branch} requires", context)
    if not requires_status(statuses, context, account):
        return _check_others(branch, context, statuses)
    if rules.may_push is None:
        return Enforcement(
            ConditionStatus.UNKNOWN,
            f"the branch {branch} requires the status {context} for merging, but who may push to it"
            " is hidden from fanout's account; forbid pushes to it",
        )
    if rules.may_push:
        # A push needs no status. Whether people may push too is hidden from a plain writer.
        return Enforcement(
            ConditionStatus.UNKNOWN,
            f"the branch {branch} requires the status {context} for merging, but fanout's account,"
            " and perhaps others, may push to it; forbid pushes to it",
        )
    return Enforcement(ConditionStatus.FALSE, f"the branch {branch} requires the status {context}")


def _unknown(subject: str, context: str) -> Enforcement:
    return Enforcement(
        ConditionStatus.UNKNOWN,
        f"{subject} is hidden from fanout's account; let it read the rules of the branch, or see to"
        f" it that they require the status {context}",
    )


def _check_others(branch: str, context: str, statuses: frozenset[RequiredStatus]) -> Enforcement:
    """Return the answer about a branch that does not require the status of fanout's account."""
    apps = sorted({it.app for it in _matching(statuses, context)})
    if apps:
        return Enforcement(
            ConditionStatus.TRUE,
            f"the branch {branch} requires the status {context} of {', '.join(apps)}, which"
            " fanout's account is not: no status of fanout counts; require it of fanout's account",
        )
    if any(_PATTERN_CHARACTERS & set(it.context) for it in statuses):
        patterns = sorted(it.context for it in statuses)
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


def requires_status(
    statuses: frozenset[RequiredStatus] | Unknown, context: str, account: ForgeIdentity
) -> bool:
    """Return whether required statuses, of which some may be patterns, name one of an account.

    Unknown ones do not.
    """
    return any(not it.app or account.is_named(it.app) for it in _matching(statuses or (), context))


def _matching(statuses: Iterable[RequiredStatus], context: str) -> Iterable[RequiredStatus]:
    return (
        it
        for it in statuses
        if not _PATTERN_CHARACTERS & set(it.context) and matches_name_pattern(it.context, context)
    )
