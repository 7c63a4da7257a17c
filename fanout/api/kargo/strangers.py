"""Kargo's other kinds: why they have no counterpart, and what to do instead."""

from collections.abc import Mapping
from typing import Any

from fanout.api.foreign.admission import kind_of
from fanout.api.foreign.pieces import Remark
from fanout.api.places import fields

_NO_STEPS = "there are no promotion steps, nor tasks of them"
_FUNCTIONS = "write what they do as functions in the template.pipeline of targets"
_OTHERS: Mapping[str, tuple[str, str]] = {
    "Freight": (
        "there is no freight: a revision is a tag of the package",
        "tag what is to go on, and repeat approvals with `fanout approve`",
    ),
    "Promotion": ("a promotion is over once it is done", "promote by `fanout promote`"),
    "PromotionRequest": ("promotions are not objects", "promote by `fanout promote`"),
    "PromotionTask": (_NO_STEPS, _FUNCTIONS),
    "ClusterPromotionTask": (_NO_STEPS, _FUNCTIONS),
    "ClusterConfig": (
        "nothing binds all namespaces",
        "write its windows into a PromotionPolicy of each namespace",
    ),
    "Target": (
        "Kargo's Targets are not read",
        "write spec.targets of the policy with an objectSelector",
    ),
}


def remark_on(item: Any, group: str) -> Remark | None:
    """What is said about an object of a kind of Kargo's that is known; of others nothing."""
    version, kind = fields(item).get("apiVersion"), kind_of(item)
    if version != f"{group}/v1alpha1" or not isinstance(kind, str):
        return None
    if kind == "Project":
        if fields(item.get("spec")).get("promotionPolicies"):
            problem = "promotion policies are read from a ProjectConfig"
            return Remark(("spec", "promotionPolicies"), problem, "move them there first")
        return Remark(("kind",), "a Project is a namespace here, and no object", lost=False)
    if kind not in _OTHERS:
        return None
    problem, remedy = _OTHERS[kind]
    approved = fields(fields(item.get("status")).get("approvedFor"))
    if kind == "Freight" and approved:
        stages = ", ".join(map(str, approved))
        return Remark(("status", "approvedFor"), f"approved for {stages}; {problem}", remedy)
    return Remark(("kind",), problem, remedy)
