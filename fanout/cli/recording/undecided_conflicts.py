"""Variants that a promotion or approval leaves out for undecided merge conflicts."""

from collections.abc import Sequence

from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.errors import Stopped
from fanout.gates.gate_wording import format_names
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value


class VariantSelection(Value):
    """Variants that a promotion or an approval covers, of those that were requested."""

    variants: tuple[RenderedVariant, ...]
    has_conflicts: bool = False  # drafts with undecided merge conflicts are among them
    note: str = ""  # the variants left out, the reason, and the remedy


def select_decided(
    item: PolicyResult, variants: Sequence[RenderedVariant], verb: str, *, accept: bool
) -> VariantSelection:
    """Select the variants whose drafts have no undecided merge conflicts.

    With `accept` all variants are selected. `verb` is the action that the others miss:
    "approved" or "published". Raises Stopped if no variant remains.
    """
    undecided = item.undecided_conflicts
    with_conflicts = [variant for variant in variants if undecided.get(variant.spec.name, 0)]
    if accept or not with_conflicts:
        return VariantSelection(tuple(variants), bool(with_conflicts))
    names = [variant.spec.name for variant in with_conflicts]
    have, are = ("has", "is") if len(with_conflicts) == 1 else ("have", "are")
    # An error and not a note: with all variants left out, nothing that was asked for happens.
    if len(with_conflicts) == len(variants):
        raise Stopped(
            f"not {verb}: {pluralize(len(with_conflicts), 'variant')} {have} undecided"
            f" merge conflicts: {format_names(names)}",
            reason=Reason.MERGE_CONFLICT,
            remedy=_format_remedy(item, names[0]),
        )
    note = (
        f"{len(with_conflicts)} of {pluralize(len(variants), 'variant')} {have} undecided merge"
        f" conflicts and {are} not {verb}: {format_names(names)}. {_format_remedy(item, names[0])}"
    )
    without_conflicts = tuple(variant for variant in variants if variant.spec.name not in names)
    return VariantSelection(without_conflicts, note=note)


def _format_remedy(item: PolicyResult, name: str) -> str:
    option = f" --variant {name}" if item.resolved_policy.upstream_policy is not None else ""
    return (
        f"Run `fanout diff {name}`; then commit to the draft, run `fanout resolve"
        f" {item.resolved_policy.name}{option} --reason WHY`, or add{option} --accept-conflicts to"
        " a promotion"
    )
