"""PromotionPolicy: an administrator's word on automation, times and approvers."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.durations import Duration
from fanout.api.meta import KRMObject, Model, Status
from fanout.api.texts import Distinct, DistinctSome, JinjaText, Name, NamePattern, Text


def matches(pattern: str, name: str) -> bool:
    """Does a name fit a pattern in which * stands for any text?"""
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), name) is not None


def fits_any(pattern: str, names: Collection[str]) -> bool:
    """Does one of the names fit the pattern? Most patterns are names, and those are looked up."""
    if "*" not in pattern:
        return pattern in names
    return any(matches(pattern, name) for name in names)


class AutoPromotion(Model):
    """Where a gate that is open is enough."""

    stages: DistinctSome[NamePattern] = Field(
        description="Names of stages that are promoted without a person; * stands for any text."
    )


class MergeMethod(StrEnum):
    """How a proposed draft gets merged where there is a forge."""

    DIRECT = "Direct"
    AUTO_MERGE = "AutoMerge"
    QUEUE = "Queue"
    MANUAL = "Manual"


class AtClose(StrEnum):
    """What happens to a rollout under way when its window closes."""

    HOLD = "Hold"
    FINISH = "Finish"


class Period(Model):
    """A recurring time; exactly one of `duration` and `until`."""

    schedule: Text = Field(description="When it begins, as a cron line of five fields.")
    duration: Duration = Field(default=None, description="How long it lasts, in elapsed time.")
    until: Text | None = Field(default=None, description="When it ends, as a cron line.")
    time_zone: Text | None = Field(
        default=None, description="The IANA time zone; absent: the policy's."
    )


class Window(Model):
    """A time in which publication is allowed or denied; exactly one of the two."""

    allow: Period | None = Field(default=None, description="Publication only in this time.")
    deny: Period | None = Field(default=None, description="No publication in this time.")


class ApproverGroup(Model):
    """People whose approval counts."""

    group: Name = Field(description="The group's name, as stages ask for it.")
    subjects: DistinctSome[Text] = Field(
        description="The people: in file mode as Git knows them, `Name <address>` or the address."
    )


class PullRequest(Model):
    """What pull requests look like."""

    title_template: JinjaText | None = Field(default=None, description="Jinja for the title.")
    body_template: JinjaText | None = Field(default=None, description="Jinja for the text.")
    labels: Distinct[Text] = Field(default=(), description="Labels to set.")
    reviewers: Distinct[Text] = Field(default=(), description="Whom to ask for a review.")


class PromotionPolicySpec(Model):
    """Who switches automation on, when anything may run, who may approve."""

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
    """An administrator's word on automation, times and approvers for some policies."""

    PLURAL: ClassVar[str] = "promotionpolicies"

    kind: Literal["PromotionPolicy"] = Field(
        default="PromotionPolicy", description="PromotionPolicy."
    )
    spec: PromotionPolicySpec = Field(
        description="Who switches automation on, when anything may run, who may approve."
    )
    status: Status = Field(default=Status(), description="What fanout says about it.")
