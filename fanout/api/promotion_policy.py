"""PromotionPolicy: an administrator's rules for automation, times and approvers."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.durations import Duration
from fanout.api.object_meta import KRMObject, Model, ObjectStatus
from fanout.api.text_fields import Distinct, JinjaText, Name, NamePattern, NonEmptyDistinct, Text


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
        description="The people: in file mode as Git knows them, `Name <address>` or the address."
    )


class PullRequest(Model):
    """Title, body, labels and reviewers of pull requests."""

    title_template: JinjaText | None = Field(default=None, description="Jinja for the title.")
    body_template: JinjaText | None = Field(default=None, description="Jinja for the text.")
    labels: Distinct[Text] = Field(default=(), description="Labels to set.")
    reviewers: Distinct[Text] = Field(default=(), description="Whom to ask for a review.")


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
