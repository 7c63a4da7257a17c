"""What a policy may say and hardly can mean: warnings, which keep nothing from being used."""

from collections.abc import Iterator

from fanout.api.faults import Fault, Path
from fanout.api.functions import program_doubts
from fanout.api.stages import Stage
from fanout.api.upstream_policy import UpstreamPolicy


def doubts(policy: UpstreamPolicy) -> Iterator[Fault]:
    """The warnings about one policy."""
    for index, stage in enumerate(policy.spec.stages):
        at: Path = ("spec", "stages", index)
        if not stage.verification and not stage.control_flow:
            problem = f"stage {stage.name} verifies nothing: a variant is ready when published"
            yield Fault(
                (*at, "verification"), problem, "add a check if something can be asked", "warning"
            )
        yield from _zero_expiry(stage, at)
        yield from _amounts(stage, at)
    for index, entry in enumerate(policy.spec.targets):
        if entry.template.stage is None and entry.template.stage_expr is None:
            at = ("spec", "targets", index, "template", "stage")
            problem = "the targets of this entry are in no stage: their drafts are never published"
            yield Fault(at, problem, "add stage or stageExpr", "warning")
        within: Path = ("spec", "targets", index, "template", "pipeline")
        yield from program_doubts(entry.template.pipeline, within)


def _zero_expiry(stage: Stage, at: Path) -> Iterator[Fault]:
    """Zero is as if absent (design §6), which is the opposite of what a reader may expect."""
    for index, check in enumerate(stage.requires):
        approval = check.approval
        if approval and approval.expires is None and "expires" in approval.model_fields_set:
            path = (*at, "requires", index, "approval", "expires")
            problem = "zero is as if absent: an approval counts for ever"
            yield Fault(path, problem, "remove it, or say how long, like 72h", "warning")


def _amounts(stage: Stage, at: Path) -> Iterator[Fault]:
    """Numbers that mean less, or more, than they seem to. (Design §6, "What counts".)"""
    rollout, after = stage.rollout, stage.after
    if rollout and rollout.max_in_flight is not None and rollout.max_in_flight == 0:
        problem = f"with a budget of 0 nothing is released in stage {stage.name}"
        path = (*at, "rollout", "maxInFlight")
        yield Fault(path, problem, "raise it when something is to go", "warning")
    if after and isinstance(after.at_least, int) and after.at_least > len(after.stages):
        problem = f"{after.at_least} of {len(after.stages)} listed stages means all of them"
        path = (*at, "after", "atLeast")
        yield Fault(path, problem, "lower it, or list more stages", "warning")
