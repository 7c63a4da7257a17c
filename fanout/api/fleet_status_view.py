"""The view that `fanout status` prints with `-o json` or `-o yaml`."""

from typing import Literal

from pydantic import Field

from fanout.api.explanation_view import BlockerView, ExplainedConflict
from fanout.api.object_meta import Model
from fanout.api.view_base import RequestView, View


class FleetStatusSpec(Model):
    """The policies that a FleetStatusView covers."""

    namespace: str = Field(
        default="", description="Namespace of the policies; empty for all namespaces."
    )


class PolicyBlockerView(BlockerView):
    """One distinct reason why a policy does not go on."""

    policy: str = Field(
        description="Name of the blocked UpstreamPolicy, or of a manually written PackageVariant."
    )
    namespace: str = Field(description="Namespace of the policy.")


class FleetStageView(Model):
    """One stage of a policy; for a variant written by hand, the variant."""

    policy: str = Field(
        description="Name of the UpstreamPolicy, or of a manually written PackageVariant."
    )
    namespace: str = Field(description="Namespace of the policy.")
    stage: str = Field(
        default="", description="Name of the stage; empty for a manually written PackageVariant."
    )
    candidate: str = Field(
        default="", description="Name of the revision that the stage is to take next, or has taken."
    )
    state: str = Field(
        description="State of the stage, as in a StageView; without a stage, that of the policy."
    )
    variants: int = Field(default=0, description="Number of variants of the stage.")
    ready: int = Field(
        default=0, description="Number of these variants that are ready at the candidate."
    )
    failed: int = Field(default=0, description="Number of these variants that have failed.")
    waits_for: tuple[str, ...] = Field(
        default=(),
        description="Reasons why the stage is blocked, in CamelCase, the most urgent first.",
    )
    requests: tuple[RequestView, ...] = Field(
        default=(), description="Pull requests with drafts of the stage."
    )
    next: str | None = Field(
        default=None,
        description="Next time when the state can change without action, in RFC 3339; null"
        " if there is none.",
    )


class FleetStatusStatus(Model):
    """Observed state of the fleet."""

    policies: int = Field(description="Number of policies and of manually written PackageVariants.")
    variants: int = Field(description="Number of variants.")
    ready: int = Field(description="Number of these variants that are ready at their candidate.")
    failed: int = Field(description="Number of these variants that have failed.")
    needs_person: tuple[PolicyBlockerView, ...] = Field(
        default=(), description="Blockers that only a person can end, the most urgent first."
    )
    stages: tuple[FleetStageView, ...] = Field(
        default=(), description="Stages of all policies, in the order of each policy."
    )
    conflicts: tuple[ExplainedConflict, ...] = Field(
        default=(), description="Undecided merge conflicts of all open drafts."
    )
    next: str | None = Field(
        default=None,
        description="Next time when the state can change without action, in RFC 3339; null"
        " if there is none.",
    )


class FleetStatusView(View):
    """State of the whole fleet."""

    kind: Literal["FleetStatusView"] = Field(
        default="FleetStatusView", description="Kind of the object; always `FleetStatusView`."
    )
    spec: FleetStatusSpec = Field(description="Namespaces that the status covers.")
    status: FleetStatusStatus = Field(description="Observed state.")
