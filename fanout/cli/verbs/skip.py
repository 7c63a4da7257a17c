"""`fanout skip`: take variants out of the rollout of one revision."""

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.cli.command_errors import not_found, nothing_to_do
from fanout.cli.recording.skip_retry import ChosenVariants, build_command
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.gate_wording import format_names, label_stage
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult


def _choose_unskipped(
    item: PolicyResult,
    stage: str,
    selected_names: tuple[str, ...],
    variants: list[RenderedVariant],
    revision: str,
) -> ChosenVariants:
    """Return the named variants that are neither ready nor skipped at the revision.

    Raises InvalidInput if no variant is named, or none of them can be skipped.
    """
    if not selected_names:
        raise not_found(
            f"the variants to skip in {label_stage(stage)} are missing",
            "use --variant; run `fanout get variants` for the names",
        )
    assert item.decision is not None, "a policy that is judged is decided"
    assert item.facts is not None, "and its facts are known"
    decisions = ActiveDecisions(item.facts.records.decisions, item.facts.now)
    excluded: dict[str, list[str]] = {}
    skippable = []
    for variant in variants:
        variant_decision = item.decision.variants[variant.spec.name]
        if decisions.skipped(stage, variant.spec.name, revision) is not None:
            excluded.setdefault(f"already skipped for {revision}", []).append(variant.spec.name)
        elif (
            variant_decision.candidate == revision and variant_decision.state is VariantState.READY
        ):
            excluded.setdefault(f"ready at {revision}", []).append(variant.spec.name)
        else:
            skippable.append(variant)
    notes = [
        f"{format_names(names)} {'is' if len(names) == 1 else 'are'} {why}"
        for why, names in excluded.items()
    ]
    if not skippable:
        raise nothing_to_do(f"nothing to skip: {'; '.join(notes)}", "run `fanout get variants`")
    return skippable, [f"{note} and not included" for note in notes]


command = build_command(
    Action.SKIP,
    "Skip one revision for variants. Name each variant with --variant. A skipped "
    "variant counts neither as ready nor as failed, and blocks nothing. The "
    "rollout of the next revision includes the variant again. `fanout retry` ends "
    "a skip.",
    _choose_unskipped,
)
