"""Short names of variants for people: those of their targets."""

from collections.abc import Collection, Mapping

from fanout.present.policy_entry import PolicyEntry

_MAX_NAMED = 3  # variants named in one line


def build_display_names(policy: PolicyEntry) -> Mapping[str, str]:
    """Return the short name of each variant by its name, and of failed targets by their keys.

    Commands accept it. A variant written by hand has a name that a person chose.
    """
    by_hand = policy.result.resolved_policy.upstream_policy is None
    names = dict(policy.target_names)
    for entry in policy.variants:
        name = entry.variant.spec.name
        names[name] = name if by_hand else entry.target_name
    return names


def format_display_names(names: Collection[str], limit: int = _MAX_NAMED) -> str:
    """Format the first names and the number of the others."""
    shown = ", ".join(list(names)[:limit])
    further = len(names) - limit
    return f"{shown} and {further} more" if further > 0 else shown
