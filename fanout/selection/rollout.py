"""What a stage's rollout knows of a variant beside its state: its group, and its variables.

Both come from the policy, the template's answers and the target, so they are known before Git is
looked at, and stay as long as the files do.
"""

from collections.abc import Mapping
from typing import Any

from fanout.api.stages import Stage
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.model import VariantSpec
from fanout.selection.selectors import matches
from fanout.selection.targets import Target

# What `propagateWhen` sees (design §6, "Expressions"); an empty set: whatever is there.
VARIABLES: Mapping[str, frozenset[str]] = {
    "stage": frozenset({"total", "updated", "ready", "inFlight", "failed"}),
    "target": frozenset(),
    "upstream": frozenset({"repository", "package", "revision"}),
    "variant": frozenset({"name", "labels", "stage", "priority", "target"}),
}


def group_of(stage: Stage, spec: VariantSpec, labels: Mapping[str, str]) -> int:
    """The first of the stage's groups that chooses the variant; after all of them if none does.

    `labels` are its target's; its own win over them.
    """
    groups = stage.rollout.groups if stage.rollout else ()
    both = {**labels, **spec.labels} if groups else {}
    places = (place for place, selector in enumerate(groups) if matches(selector, both))
    return next(places, len(groups))


def variables_of(policy: UpstreamPolicy, spec: VariantSpec, target: Target) -> Mapping[str, Any]:
    """What expressions see of the variant; how its stage stands and the revision come later."""
    upstream = policy.spec.upstream
    return {
        "target": target.object,
        "upstream": {"repository": upstream.repository, "package": upstream.package},
        "variant": {
            "name": spec.name,
            "labels": dict(spec.labels),
            "stage": spec.stage,
            "priority": spec.priority,
            "target": spec.target,
        },
    }
