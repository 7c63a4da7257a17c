"""`fanout retry`: let failed variants try again, by a recorded Decision."""

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.api.text_fields import pluralize
from fanout.cli.command_errors import nothing_to_do
from fanout.cli.recording.skip_retry import ChosenVariants, build_command
from fanout.gates.gate_wording import format_names, label_stage
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult

_TO_RETRY = (VariantState.FAILED, VariantState.SKIPPED)


def _choose_failed(
    item: PolicyResult,
    stage: str,
    names: tuple[str, ...],
    variants: list[RenderedVariant],
    revision: str,
) -> ChosenVariants:
    """Return the variants that failed at the revision.

    Named variants that were skipped for it are returned too. Raises InvalidInput if there
    is none.
    """
    assert item.decision is not None, "a policy that is judged is decided"
    decisions = item.decision.variants
    states = _TO_RETRY if names else (VariantState.FAILED,)
    stopped = [
        variant
        for variant in variants
        if decisions[variant.spec.name].candidate == revision
        and decisions[variant.spec.name].state in states
    ]
    retried = [variant for variant in stopped if variant.render_failure is None]
    not_rendered = [variant for variant in stopped if variant.render_failure is not None]
    notes = []
    if not_rendered:
        notes.append(
            f"{pluralize(len(not_rendered), 'variant')} cannot be rendered"
            f" ({format_names(variant.spec.name for variant in not_rendered)}) and are retried"
            " by every sweep"
        )
    if not retried:
        subject = format_names(names) if names else label_stage(stage)
        detail = f": {notes[0]}" if notes else ""
        problem = f"no variant of {subject} has failed at {revision}{detail}"
        raise nothing_to_do(problem, "run `fanout explain`")
    return retried, notes


command = build_command(
    Action.RETRY,
    "Retry failed variants. Earlier failures no longer count, and deadlines and "
    "timeouts start again. Without --variant, retries all failed variants of the "
    "stage. A skipped variant that --variant names is included in the rollout "
    "again.",
    _choose_failed,
)
