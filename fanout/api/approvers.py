"""Who may approve what: the groups that stages name, found in the PromotionPolicies over them."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.api.checks import ApprovalCheck
from fanout.api.faults import Fault, Path
from fanout.api.nearest import suggestion
from fanout.api.people import person
from fanout.api.promotion_policy import PromotionPolicy, matches
from fanout.api.texts import listed, plural_of
from fanout.api.upstream_policy import UpstreamPolicy


def governs(promotion: PromotionPolicy, policy: UpstreamPolicy) -> bool:
    """Does the PromotionPolicy name the policy? Only those of its own namespace can."""
    return promotion.metadata.namespace == policy.metadata.namespace and any(
        matches(pattern, policy.metadata.name) for pattern in promotion.spec.policies
    )


def approver_faults(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> Iterator[Fault]:
    """Groups that nobody has declared, and more approvals than their people can give.

    A number above the total means all where variants are counted (design §6); people are asked
    for by number because fewer are too few, so here it is a fault.
    """
    people: dict[str, set[str]] = {}
    for promotion in promotions:
        for approvers in promotion.spec.approvers if governs(promotion, policy) else ():
            people.setdefault(approvers.group, set()).update(map(person, approvers.subjects))
    for index, stage in enumerate(policy.spec.stages):
        for number, check in enumerate(stage.requires):
            if check.approval:
                at = ("spec", "stages", index, "requires", number, "approval")
                yield from _approval_faults(check.approval, at, people)


def _approval_faults(
    check: ApprovalCheck, at: Path, people: Mapping[str, set[str]]
) -> Iterator[Fault]:
    unknown = [(index, group) for index, group in enumerate(check.from_) if group not in people]
    for index, group in unknown:
        problem = f"no PromotionPolicy for this policy has approvers {group}"
        otherwise = "have an administrator add the group to spec.approvers"
        yield Fault((*at, "from", index), problem, suggestion(group, sorted(people), otherwise))
    count = len({who for group in check.from_ for who in people.get(group, ())})
    if not unknown and check.at_least > count:
        have = "has" if len(check.from_) == 1 else "have"
        known = f"{listed(check.from_, 'and')} {have} {plural_of(count, 'member')}"
        problem = f"{check.at_least} people can never approve: {known}"
        yield Fault((*at, "atLeast"), problem, "lower it, or have an administrator add people")
