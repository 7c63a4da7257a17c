"""Inputs of the evaluation of one policy: what records, repositories and declarations show."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.results import Hold
from fanout.errors import FanoutError
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.records.policy_records import PolicyRecords
from fanout.reconcile.ownership.path_ownership import PathOwnership
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import KeyedValue


class PolicyInputs(KeyedValue, kw_only=True):
    """Inputs of the evaluation of one policy."""

    UNCOMPARED: ClassVar = ("budget",)

    resolved_policy: ResolvedPolicy
    policy_state: PolicyRecords
    path_ownership: PathOwnership
    listings: Mapping[str, RefListing | FanoutError]
    promotions: Sequence[PromotionPolicy]
    is_sweep: bool
    budget: EvaluationBudget | None = None  # of its texts
    # Of dependencies of a hand-written variant that are not ready.
    dependency_holds: tuple[Hold, ...] = ()
    all_promotions_read: bool = True  # False: a PromotionPolicy of the namespace may be missing
    removal_doubt: Hold | None = None  # why a missing target may still exist
