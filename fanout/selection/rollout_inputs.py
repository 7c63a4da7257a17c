"""Inputs of a rollout from policy and target: groups and expression variables.

They are known before Git is observed and change only with the files.
"""

from collections.abc import Mapping
from typing import Any

from fanout.api.stages import Stage
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.label_selector import matches
from fanout.selection.target_selection import VariantTarget
from fanout.selection.variant_spec import VariantSpec

# Fields that `propagateWhen` may read, by variable (design §6, "Expressions"); empty: all.
VARIABLES: Mapping[str, frozenset[str]] = {
    "stage": frozenset({"total", "updated", "ready", "inFlight", "failed"}),
    "target": frozenset(),
    "upstream": frozenset({"repository", "package", "revision"}),
    "variant": frozenset({"name", "labels", "stage", "priority", "target"}),
}


def find_rollout_group(stage: Stage, spec: VariantSpec, labels: Mapping[str, str]) -> int:
    """Return the index of the first group that selects the variant.

    After all of them if none does. `labels` are its target's; the variant's own take
    precedence.
    """
    groups = stage.rollout.groups if stage.rollout else ()
    merged_labels = {**labels, **spec.labels} if groups else {}
    indexes = (index for index, selector in enumerate(groups) if matches(selector, merged_labels))
    return next(indexes, len(groups))


def build_rollout_variables(
    policy: UpstreamPolicy, spec: VariantSpec, target: VariantTarget
) -> Mapping[str, Any]:
    """Return the variables of the variant.

    The counts of its stage and the revision are added later.
    """
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
