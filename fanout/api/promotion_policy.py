"""PromotionPolicy: an administrator's rules for automation, times and approver groups."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.durations import Duration
from fanout.api.object_meta import KRMObject, Model, ObjectStatus
from fanout.api.text_fields import (
    Distinct,
    JinjaText,
    Name,
    NamePattern,
    NonEmptyDistinct,
    Text,
)
from fanout.api.upstream_policy import UpstreamPolicy


def matches_name_pattern(pattern: str, name: str) -> bool:
    """Return whether the name matches a pattern in which * stands for any text."""
    # Not fnmatch, in which brackets and question marks have a meaning as well.
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), name) is not None


def matches_any_name(pattern: str, names: Collection[str]) -> bool:
    """Return whether any of the names matches the pattern."""
    # Most patterns are plain names, and a set answers those without a regular expression per name.
    if "*" not in pattern:
        return pattern in names
    return any(matches_name_pattern(pattern, name) for name in names)


class AutoPromotion(Model):
    """Stages that are promoted without a person as soon as their gates are open."""

    stages: NonEmptyDistinct[NamePattern] = Field(
        description="Names of stages that are promoted without a person; * stands for any text."
    )


class MergeMethod(StrEnum):
    """Method of merging a proposed draft on a forge."""

    DIRECT = "Direct"
    AUTO_MERGE = "AutoMerge"
    QUEUE = "Queue"
    MANUAL = "Manual"


class MergeStyle(StrEnum):
    """Form of the commits by which a forge merges a pull request."""

    MERGE = "Merge"
    SQUASH = "Squash"
    REBASE = "Rebase"


class AtClose(StrEnum):
    """Effect of a closing window on a rollout in progress."""

    HOLD = "Hold"
    FINISH = "Finish"


class Period(Model):
    """Recurring period; exactly one of `duration` and `until`."""

    schedule: Text = Field(description="When it begins, as a cron line of five fields.")
    duration: Duration = Field(default=None, description="How long it lasts, in elapsed time.")
    until: Text | None = Field(default=None, description="When it ends, as a cron line.")
    time_zone: Text | None = Field(
        default=None, description="The IANA time zone; absent: the policy's."
    )


class Window(Model):
    """Period in which publication is allowed or denied; exactly one of the two."""

    allow: Period | None = Field(default=None, description="Publication only in this time.")
    deny: Period | None = Field(default=None, description="No publication in this time.")


class ApproverGroup(Model):
    """People whose approval counts."""

    group: Name = Field(description="The group's name, as stages ask for it.")
    subjects: NonEmptyDistinct[Text] = Field(
        description="The people, each with all names: `Name <address>`, `<host>/<login>`, or both."
    )


class PullRequest(Model):
    """Title, body, labels and reviewers of pull requests, and how they are opened and merged."""

    title_template: JinjaText | None = Field(
        default=None,
        description="Jinja for the title; `title` is the built-in one.",
    )
    body_template: JinjaText | None = Field(
        default=None,
        description="Jinja for the text, in Markdown; `text` is the built-in one.",
    )
    labels: Distinct[Text] = Field(default=(), description="Labels to set.")
    reviewers: Distinct[Text] = Field(default=(), description="Whom to ask for a review.")
    draft: StrictBool = Field(
        default=True, description="Whether it is opened as a draft, and ready when gates allow."
    )
    merge_style: MergeStyle = Field(
        default=MergeStyle.MERGE, description="The form of the commits by which it is merged."
    )


class PromotionPolicySpec(Model):
    """Automation, schedule, windows and approvers for the policies that it names."""

    policies: Distinct[NamePattern] = Field(
        default=(),
        description="Names of UpstreamPolicies of this namespace; * stands for any text.",
    )
    variants: Distinct[Name] = Field(
        default=(), description="Names of PackageVariants that were written by hand."
    )
    auto_promotion: AutoPromotion | None = Field(
        default=None,
        description="What is promoted without a person; absent: this object does not say.",
    )
    merge: MergeMethod = Field(
        default=MergeMethod.DIRECT, description="How a draft gets merged where there is a forge."
    )
    schedule: Text | None = Field(
        default=None,
        description="When sweeps start, as a cron line of five fields or a macro like @daily.",
    )
    time_zone: Text | None = Field(
        default=None, description="The IANA time zone of the schedule and the windows; absent: UTC."
    )
    starting_deadline_seconds: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="How late a missed sweep may still be made up."
    )
    jitter: Duration = Field(default=None, description="By how much a sweep may start late.")
    windows: tuple[Window, ...] = Field(
        default=(), description="When publication is allowed or denied; deny wins."
    )
    at_close: AtClose = Field(
        default=AtClose.HOLD, description="What happens to a rollout when its window closes."
    )
    approvers: tuple[ApproverGroup, ...] = Field(
        default=(),
        description="The groups whose approvals count.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["group"],
        },
    )
    requires_separation: StrictBool = Field(
        default=False, description="Nobody approves what they have changed themselves."
    )
    pull_request: PullRequest | None = Field(
        default=None, description="What pull requests look like."
    )
    commit_template: JinjaText | None = Field(
        default=None, description="Jinja for the message of a publication's commit."
    )


class PromotionPolicy(KRMObject):
    """An administrator's rules for automation, times and approvers of some policies."""

    PLURAL: ClassVar[str] = "promotionpolicies"

    kind: Literal["PromotionPolicy"] = Field(
        default="PromotionPolicy", description="PromotionPolicy."
    )
    spec: PromotionPolicySpec = Field(
        description="Who switches automation on, when anything may run, who may approve."
    )
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")


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
