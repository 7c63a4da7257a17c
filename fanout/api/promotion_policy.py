"""PromotionPolicy: an administrator's rules for automation, times and approver groups."""

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.durations import Duration
from fanout.api.object_meta import (
    KRMObject,
    Model,
    ObjectStatus,
    ObservedStatus,
    kind_field,
    listed,
    optional,
)
from fanout.api.text_fields import (
    MAX_VALUES,
    Distinct,
    JinjaText,
    Name,
    NamePattern,
    NonEmptyDistinct,
    Text,
    list_map,
)
from fanout.api.upstream_policy import UpstreamPolicy


def matches_name_pattern(pattern: str, name: str) -> bool:
    """Return whether the name matches a pattern in which * stands for any text."""
    # Not fnmatch, in which brackets and question marks have a meaning as well, and no regular
    # expression, which can backtrack for hours.
    first, *middle = pattern.split("*")
    if not middle:
        return name == pattern
    last = middle.pop()
    end = len(name) - len(last)
    position = len(first)
    if not name.startswith(first) or not name.endswith(last):
        return False
    for part in middle:
        if (position := name.find(part, position, end)) < 0:
            return False
        position += len(part)
    return position <= end


def matches_any_name(pattern: str, names: Collection[str]) -> bool:
    """Return whether any of the names matches the pattern."""
    # Most patterns are plain names, and a set answers those without a regular expression per name.
    if "*" not in pattern:
        return pattern in names
    return any(matches_name_pattern(pattern, name) for name in names)


class AutoPromotion(Model):
    """Stages that are promoted without a person as soon as their gates are open."""

    stages: NonEmptyDistinct[NamePattern] = Field(
        max_length=MAX_VALUES,
        description="Names of the stages that are promoted automatically; `*` matches any text.",
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

    schedule: Text = Field(description="Start of the period, as a cron expression of five fields.")
    duration: Duration = optional("Length of the period, in elapsed time.")
    until: Text | None = optional("End of the period, as a cron expression of five fields.")
    time_zone: Text | None = optional(
        "IANA name of the time zone; default: that of the PromotionPolicy."
    )


class Window(Model):
    """Period in which publication is allowed or denied; exactly one of the two."""

    allow: Period | None = optional("Period in which publication is allowed.")
    deny: Period | None = optional("Period in which publication is denied.")


class ApproverGroup(Model):
    """People whose approval counts."""

    group: Name = Field(description="Name of the group, as `from` of an approval check has it.")
    subjects: NonEmptyDistinct[Text] = Field(
        max_length=MAX_VALUES,
        description="Members, each with all of the person's names: `Name <address>`,"
        " `<host>/<login>`, or both.",
    )


class PullRequest(Model):
    """Title, body, labels and reviewers of pull requests, and how they are opened and merged."""

    title_template: JinjaText | None = optional(
        "Jinja template of the title; the variable `title` is the built-in one."
    )
    body_template: JinjaText | None = optional(
        "Jinja template of the description, in Markdown; the variable `text` is the built-in one."
    )
    labels: Distinct[Text] = listed("Labels to set on the pull request.", MAX_VALUES)
    reviewers: Distinct[Text] = listed("Logins to request reviews from.", MAX_VALUES)
    draft: StrictBool = optional(
        "Whether the pull request is opened as a draft, and marked ready when the gates are open.",
        default=True,
    )
    merge_style: MergeStyle = optional(
        "Form of the commits on the branch after the merge.", default=MergeStyle.MERGE
    )


class PromotionPolicySpec(Model):
    """Automation, schedule, windows and approvers for the policies that it names."""

    policies: Distinct[NamePattern] = listed(
        "Names of UpstreamPolicies in this namespace that it applies to; `*` matches any text.",
        MAX_VALUES,
    )
    variants: Distinct[Name] = listed(
        "Names of manually written PackageVariants that it applies to.", MAX_VALUES
    )
    auto_promotion: AutoPromotion | None = optional(
        "Automatic promotion; absent: this object enables none."
    )
    merge: MergeMethod = optional(
        "Method of merging drafts in repositories on a forge.", default=MergeMethod.DIRECT
    )
    schedule: Text | None = optional(
        "Start times of sweeps, as a cron expression of five fields or a macro like `@daily`."
    )
    time_zone: Text | None = optional(
        "IANA name of the time zone of the schedule and the windows; default: UTC."
    )
    starting_deadline_seconds: Annotated[StrictInt, Field(ge=1)] | None = optional(
        "Maximum delay after which a missed sweep is still started, in seconds."
    )
    jitter: Duration = optional(
        "Maximum delay of the start of a sweep; each sweep has its own fixed delay."
    )
    windows: tuple[Window, ...] = listed(
        "Periods in which publication is allowed or denied; `deny` takes precedence.", MAX_VALUES
    )
    at_close: AtClose = optional(
        "Handling of a rollout in progress when its window closes. `Hold`: it"
        " stops until the next window; `Finish`: it is completed.",
        default=AtClose.HOLD,
    )
    approvers: tuple[ApproverGroup, ...] = listed(
        "Groups whose members can give approvals.", MAX_VALUES, json_schema_extra=list_map("group")
    )
    requires_separation: StrictBool = optional(
        "Whether approvals by authors of the approved changes are ignored.", default=False
    )
    pull_request: PullRequest | None = optional("Contents and form of pull requests.")
    commit_template: JinjaText | None = optional(
        "Jinja template of the commit message of publications."
    )


class PromotionPolicy(KRMObject):
    """An administrator's rules for automation, times and approvers of some policies."""

    PLURAL: ClassVar[str] = "promotionpolicies"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ppol",)

    kind: Literal["PromotionPolicy"] = kind_field("PromotionPolicy")
    spec: PromotionPolicySpec = Field(
        description="Automatic promotion, schedule, publication windows, and approvers."
    )
    status: ObservedStatus = ObjectStatus.model_construct()


_ADDRESS = re.compile(r"[^\s<>@]+@[^\s<>@]+")

USER_PREFIX = "user:"  # of the name of a user of a cluster


def normalize_person(author: str) -> str:
    """Return the identity of an author: the address if there is one, lowercase.

    By address, so that a person who changes their name does not count twice. Names of users of a
    cluster stay as they are, because the API server tells `Ann` from `ann`.
    """
    name, bracket, address_part = author.partition("<")
    identity = (address_part.partition(">")[0] if bracket else name).strip()
    return identity if identity.startswith(USER_PREFIX) else identity.lower()


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
