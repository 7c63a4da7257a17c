"""Notifications: addresses that get an event when something needs a person, or a rollout ends."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from fanout.api.field_errors import InvalidValue
from fanout.api.git_repository import SecretRef
from fanout.api.object_meta import Model
from fanout.api.reasons import ExplainedValue
from fanout.api.text_fields import Distinct, NonEmptyDistinct, ObjectName
from fanout.api.urls import HttpUrl

_POLICY = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"
PolicyTitle = Annotated[str, StringConstraints(pattern=_POLICY)]


class NotificationEvent(ExplainedValue):
    """Event that addresses are notified of; `meaning` explains it in a line."""

    APPROVAL_AWAITED = "ApprovalAwaited", "drafts wait for approvals alone"
    MERGE_CONFLICT = "MergeConflict", "drafts have undecided merge conflicts"
    POLICY_STOPPED = "PolicyStopped", "an error stops a whole policy"
    ROLLOUT_DONE = "RolloutDone", "all stages of a policy have passed the same revision"
    STAGE_HALTED = "StageHalted", "more variants of a stage have failed than it tolerates"
    STAGE_PASSED = "StagePassed", "a stage has passed its candidate"
    VARIANT_FAILED = "VariantFailed", "variants have failed at their candidate"


class NotificationTarget(Model):
    """Address that is notified of transitions, and the secret that signs what it gets."""

    name: ObjectName = Field(description="Name of the webhook in messages and metrics.")
    url: HttpUrl = Field(description="URL that events are posted to.")
    secret_ref: SecretRef = Field(description="Secret that requests are signed with.")
    events: NonEmptyDistinct[NotificationEvent] = Field(
        default=tuple(NotificationEvent), description="Events to send; default: all."
    )
    policies: Distinct[PolicyTitle] = Field(
        default=(),
        description="Policies whose events are sent, as `NAME` or `NAMESPACE/NAME`;"
        " default: all policies and all manually written PackageVariants.",
    )

    def covers(self, event: NotificationEvent, namespace: str, policy: str) -> bool:
        """Return whether the address gets an event of a policy."""
        titles = {policy, f"{namespace}/{policy}"}
        return event in self.events and (not self.policies or not titles.isdisjoint(self.policies))


def check_names(targets: tuple[NotificationTarget, ...]) -> tuple[NotificationTarget, ...]:
    """Return the targets. Raises InvalidValue if two have one name."""
    names = [it.name for it in targets]
    if duplicates := sorted({it for it in names if names.count(it) > 1}):
        raise InvalidValue(f"duplicate name {duplicates[0]}", "rename one webhook")
    return targets


NotificationTargets = Annotated[tuple[NotificationTarget, ...], AfterValidator(check_names)]
