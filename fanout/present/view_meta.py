"""Metadata of views: names and labels of policies, stages, targets and drafts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.object_meta import Label
from fanout.api.view_base import ViewMeta
from fanout.present.policy_entry import VariantEntry
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.selection.label_selector import FlagSelector, matches
from fanout.values import replace

Plain = dict[str, Any]


def policy_name(policy_result: PolicyResult) -> str:
    """Return the name of the UpstreamPolicy; "" for a variant written by hand."""
    policy = policy_result.resolved_policy
    return policy.name if policy.upstream_policy is not None else ""


def build_meta(policy_result: PolicyResult, name: str, labels: Mapping[str, str]) -> ViewMeta:
    """Return the metadata of a view of a part of this policy."""
    return ViewMeta(name, policy_result.resolved_policy.namespace, dict(labels))


def without_none(fields: Plain) -> Plain:
    """Return the fields that are known."""
    return {name: value for name, value in fields.items() if value is not None}


def policy_labels(policy_result: PolicyResult) -> Mapping[str, str]:
    """Return the labels of the policy's own object."""
    policy = policy_result.resolved_policy
    declaration = policy.upstream_policy or policy.package_variant
    return declaration.metadata.labels if declaration else {}


def select_policies(pass_plan: PassPlan, selector: FlagSelector) -> PassPlan:
    """Return the pass with the policies that have these labels, their own or fanout's."""
    selected = tuple(
        it
        for it in pass_plan.policies
        if matches(selector, {**policy_labels(it), **fanout_labels(it)})
    )
    return replace(pass_plan, policies=selected)


def variant_labels(entry: VariantEntry) -> dict[str, str]:
    """Return the labels of a variant: its own, those of its rendering, and fanout's."""
    package_variant, spec = entry.policy.resolved_policy.package_variant, entry.variant.spec
    return {
        **(package_variant.metadata.labels if package_variant else {}),
        **spec.labels,
        **fanout_labels(entry.policy, spec.stage, spec.repository),
    }


def variant_names(entry: VariantEntry) -> dict[str, str]:
    """Return the names of a variant and of where it is, as the specs of views have them."""
    spec = entry.variant.spec
    return {
        "policy": policy_name(entry.policy),
        "target": spec.target,
        "target_name": entry.target_name,
        "variant": spec.name,
        "stage": spec.stage,
        "repository": spec.repository,
        "path": spec.path,
    }


def fanout_labels(
    policy_result: PolicyResult, stage: str = "", repository: str = ""
) -> dict[str, str]:
    """Return the labels that fanout adds to a policy's objects, for `-l`."""
    texts = (policy_name(policy_result), stage, repository)
    return {key: text for key, text in zip(_LABEL_KEYS, texts, strict=True) if text}


_LABEL_KEYS = (Label.POLICY.value, Label.STAGE.value, Label.REPOSITORY.value)


def format_time(moment: datetime | None) -> str | None:
    """Return an instant as views show it, or None if there is none."""
    return format_instant(moment) if moment else None
