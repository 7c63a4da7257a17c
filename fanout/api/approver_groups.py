"""Approver groups of PromotionPolicies, and people in Git's form `Name <address>`."""

import re
from collections.abc import Iterable, Iterator, Mapping

from fanout.api.check_spec import ApprovalCheck
from fanout.api.field_errors import FieldError, FieldPath
from fanout.api.name_suggestions import suggest_name
from fanout.api.promotion_policy import PromotionPolicy, matches_name_pattern
from fanout.api.text_fields import join_words, pluralize
from fanout.api.upstream_policy import UpstreamPolicy

_ADDRESS = re.compile(r"[^\s<>@]+@[^\s<>@]+")


def normalize_person(author: str) -> str:
    """Return the identity of an author: the address if there is one, lowercase.

    By address, so that a person who changes their name does not count twice.
    """
    name, bracket, address_part = author.partition("<")
    return (address_part.partition(">")[0] if bracket else name).strip().lower()


def is_person(text: str) -> bool:
    """Return whether the text has an address, so that it can be the author of a record."""
    _, bracket, address_part = text.partition("<")
    is_bracketed = not bracket or (address_part.endswith(">") and address_part.count(">") == 1)
    return is_bracketed and _ADDRESS.fullmatch(normalize_person(text)) is not None


def governs_policy(promotion: PromotionPolicy, policy: UpstreamPolicy) -> bool:
    """Return whether the PromotionPolicy names the policy and is in the same namespace."""
    return promotion.metadata.namespace == policy.metadata.namespace and any(
        matches_name_pattern(pattern, policy.metadata.name) for pattern in promotion.spec.policies
    )


def check_approvers(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> Iterator[FieldError]:
    """Yield errors for undeclared groups and for groups with too few members.

    Where variants are counted, a number above the total means all of them (design §6).
    People are required by number because fewer are too few, so here it is an error.
    """
    members_by_group: dict[str, set[str]] = {}
    for promotion in promotions:
        for approvers in promotion.spec.approvers if governs_policy(promotion, policy) else ():
            # Several PromotionPolicies may declare the same group; their members add up.
            members_by_group.setdefault(approvers.group, set()).update(
                map(normalize_person, approvers.subjects)
            )
    for index, stage in enumerate(policy.spec.stages):
        for number, check in enumerate(stage.requires):
            if check.approval:
                approval_path = ("spec", "stages", index, "requires", number, "approval")
                yield from _check_approval(check.approval, approval_path, members_by_group)


def _check_approval(
    check: ApprovalCheck, approval_path: FieldPath, members_by_group: Mapping[str, set[str]]
) -> Iterator[FieldError]:
    unknown = [
        (index, group) for index, group in enumerate(check.from_) if group not in members_by_group
    ]
    for index, group in unknown:
        problem = f"no PromotionPolicy for this policy has approvers {group}"
        otherwise = "have an administrator add the group to spec.approvers"
        yield FieldError(
            (*approval_path, "from", index),
            problem,
            suggest_name(group, sorted(members_by_group), otherwise),
        )
    # A set, because a person who is in two groups approves once.
    count = len({who for group in check.from_ for who in members_by_group.get(group, ())})
    if not unknown and check.at_least > count:
        verb = "has" if len(check.from_) == 1 else "have"
        group_sizes = f"{join_words(check.from_, 'and')} {verb} {pluralize(count, 'member')}"
        problem = f"{check.at_least} people can never approve: {group_sizes}"
        yield FieldError(
            (*approval_path, "atLeast"), problem, "lower it, or have an administrator add people"
        )
