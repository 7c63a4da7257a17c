"""How the gates speak of stages, numbers and durations, so that all sentences sound alike."""

from collections.abc import Iterable
from datetime import timedelta

from fanout.gates.rules import ApprovalRule

_SHOWN = 3


def stage_named(name: str) -> str:
    """A variant written by hand is in no stage; its gate is its own."""
    return f"stage {name}" if name else "the variant"


def counted(number: int, noun: str) -> str:
    """`1 variant`, `2 variants`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Iterable[str]) -> str:
    """The first few of them by name, and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:_SHOWN])
    rest = len(ordered) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def lasting(duration: timedelta) -> str:
    """A duration as policies write it: `1h30m`."""
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def members(rule: ApprovalRule) -> str:
    """Who may approve, as the policy says it."""
    if not rule.subjects:
        return f"an administrator: PromotionPolicy.approvers ({', '.join(rule.groups) or 'none'})"
    if rule.groups:
        return f"a member of {' or '.join(rule.groups)}"
    return listed(rule.subjects)


def reporter(check: str, stage: str) -> str:
    """Who can answer a `report` check."""
    return f"whoever reports check {check} of {stage_named(stage)}"
