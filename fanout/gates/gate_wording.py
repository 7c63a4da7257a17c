"""Wording of stages, lists of names and people in messages."""

from collections.abc import Iterable

from fanout.gates.gate_rules import ApprovalRule

_SHOWN = 3


def label_stage(stage: str) -> str:
    """Label a stage. The unnamed stage of a hand-written variant is labeled as the variant."""
    return f"stage {stage}" if stage else "the variant"


def format_names(names: Iterable[str]) -> str:
    """Format the first few names in order, and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:_SHOWN])
    rest = len(ordered) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def format_approvers(approval_rule: ApprovalRule) -> str:
    """Format who may approve, as the policy says it."""
    if not approval_rule.subjects:
        return (
            "an administrator: PromotionPolicy.approvers"
            f" ({', '.join(approval_rule.groups) or 'none'})"
        )
    if approval_rule.groups:
        return f"a member of {' or '.join(approval_rule.groups)}"
    return format_names(approval_rule.subjects)


def format_reporter(check: str, stage: str) -> str:
    """Format who can answer a `report` check."""
    return f"whoever reports check {check} of {label_stage(stage)}"
