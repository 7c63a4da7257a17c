"""Warnings about `object` checks of namespaces that the configuration does not open to checks."""

from collections.abc import Collection, Iterator

from fanout.api.stages import Check
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.plan import plan_wording


def find_closed_namespaces(
    declared: DeclaredObjects, readable_namespaces: Collection[str]
) -> Iterator[Finding]:
    """Yield a warning for each check whose object is in a namespace that it may not read."""
    for policy in declared.policies:
        own_namespace = policy.metadata.namespace
        for field, check in _list_checks(policy):
            namespace = check.object.namespace if check.object is not None else None
            if namespace and namespace not in (own_namespace, *readable_namespaces):
                yield Finding(
                    declared.where(policy, f"{field}.object.namespace"),
                    plan_wording.describe_unreadable_namespace(namespace, own_namespace),
                    "",
                    "warning",
                )


def _list_checks(policy: UpstreamPolicy) -> Iterator[tuple[str, Check]]:
    """Yield the checks of all stages with their fields."""
    for index, stage in enumerate(policy.spec.stages):
        for section, checks in (("requires", stage.requires), ("verification", stage.verification)):
            for number, check in enumerate(checks):
                yield f"spec.stages[{index}].{section}[{number}]", check
