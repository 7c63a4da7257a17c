"""PromotionPolicies of a pass: which name a policy, and whether all of them could be read."""

from collections.abc import Sequence

from fanout.api.promotion_policy import PromotionPolicy
from fanout.cluster.declared import Declared
from fanout.plan.rules import administrators
from fanout.reconcile.names import Named


def promotions_of(
    named: Named, promotions: Sequence[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """The PromotionPolicies that name the policy, or the hand-written variant."""
    if named.policy is not None:
        return administrators(named.policy, promotions)
    return tuple(
        promotion
        for promotion in promotions
        if promotion.metadata.namespace == named.namespace and named.name in promotion.spec.variants
    )


def all_promotions_read(declared: Declared, namespace: str) -> bool:
    """Is every PromotionPolicy of the namespace usable, as far as one can tell?"""
    return not declared.unread and not any(
        key.kind == "PromotionPolicy" and key.namespace == namespace for key in declared.left_out
    )


def switched_off(named: Sequence[Named], declared: Declared) -> tuple[str, ...]:
    """Why automation is off although somebody may have switched it on."""
    namespaces = {item.namespace for item in named}
    lost = [
        f"{key.kind} {key.namespace}/{key.name}"
        for key in declared.left_out
        if key.kind == "PromotionPolicy" and key.namespace in namespaces
    ]
    return tuple(
        f"nothing is promoted automatically while {what} cannot be read: a PromotionPolicy may"
        " restrict what others allow; correct it"
        for what in (*declared.unread, *dict.fromkeys(lost))
    )
