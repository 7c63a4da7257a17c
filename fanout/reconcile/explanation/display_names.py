"""Short names of variants for people: the target's own name where no other variant has it."""

from collections import Counter
from collections.abc import Collection, Mapping

from fanout.plan.rendered_variant import RenderedVariant

_MAX_NAMED = 3  # variants named in one line


def build_display_names(variants: Collection[RenderedVariant]) -> Mapping[str, str]:
    """Return the display name of each variant by its name.

    It is the name of the target object, else the path, whichever is unique in the policy, else the
    variant's own name. Commands accept each of them.
    """
    own_names = {it.spec.name for it in variants}
    by_hand = {it.spec.name for it in variants if not it.spec.policy}
    targets = {it.spec.name: _target_name(it) for it in variants}
    paths = {it.spec.name: it.spec.path for it in variants}
    counts = Counter([*targets.values(), *paths.values()])
    names = {}
    for own_name in own_names:
        # A target and a path of different variants may be equal, so both are counted together.
        unique = (
            it
            for it in (targets[own_name], paths[own_name])
            if it
            and it not in own_names
            and counts[it] == 1 + (targets[own_name] == paths[own_name])
        )
        # A variant written by hand has a name that a person chose.
        names[own_name] = own_name if own_name in by_hand else next(unique, own_name)
    return names


def _target_name(variant: RenderedVariant) -> str:
    """Return the name of the target object; the name of a package is no name of its variant."""
    kind, _, remainder = variant.spec.target.partition("/")
    return "" if kind == "Repository" else remainder.rpartition("/")[2]


def format_display_names(names: Collection[str], limit: int = _MAX_NAMED) -> str:
    """Format the first names and the number of the others."""
    shown = ", ".join(list(names)[:limit])
    further = len(names) - limit
    return f"{shown} and {further} more" if further > 0 else shown
