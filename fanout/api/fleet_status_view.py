"""The view that `fanout status` prints with `-o json` or `-o yaml`."""

from typing import Literal

from pydantic import Field

from fanout.api.explanation_view import BlockerView, ExplainedConflict
from fanout.api.object_meta import Model
from fanout.api.view_base import View


class FleetStatusSpec(Model):
    """The policies that a FleetStatusView covers."""

    namespace: str = Field(default="", description="Their namespace; empty: all namespaces.")


class PolicyBlockerView(BlockerView):
    """One distinct reason why a policy does not go on."""

    policy: str = Field(description="The blocked UpstreamPolicy, or variant written by hand.")
    namespace: str = Field(description="The namespace of the policy.")


class FleetStageView(Model):
    """One stage of a policy; for a variant written by hand, the variant."""

    policy: str = Field(description="The UpstreamPolicy, or variant written by hand.")
    namespace: str = Field(description="The namespace of the policy.")
    stage: str = Field(default="", description="The stage; empty for a variant written by hand.")
    candidate: str = Field(default="", description="The revision to take next, or taken.")
    state: str = Field(
        description="The verdict of the candidate; Halted; or Stopped for a policy as a whole."
    )
    variants: int = Field(default=0, description="Number of its variants.")
    ready: int = Field(default=0, description="How many of them are ready at the candidate.")
    failed: int = Field(default=0, description="How many of them have failed.")
    waits_for: tuple[str, ...] = Field(
        default=(), description="Reasons of its blockers, the most urgent first."
    )
    next: str | None = Field(
        default=None, description="When time alone can next change something; RFC 3339."
    )


class FleetStatusStatus(Model):
    """Observed state of the fleet."""

    policies: int = Field(description="Number of policies and of variants written by hand.")
    variants: int = Field(description="Number of variants.")
    ready: int = Field(description="How many of them are ready at their candidate.")
    failed: int = Field(description="How many of them have failed.")
    needs_person: tuple[PolicyBlockerView, ...] = Field(
        default=(), description="Blockers that only a person can end, the most urgent first."
    )
    stages: tuple[FleetStageView, ...] = Field(
        default=(), description="The stages of all policies, in the order of each policy."
    )
    conflicts: tuple[ExplainedConflict, ...] = Field(
        default=(), description="Undecided merge conflicts."
    )
    next: str | None = Field(
        default=None, description="When time alone can next change something; RFC 3339."
    )


class FleetStatusView(View):
    """State of the whole fleet."""

    kind: Literal["FleetStatusView"] = Field(
        default="FleetStatusView", description="FleetStatusView."
    )
    spec: FleetStatusSpec = Field(description="Which policies it covers.")
    status: FleetStatusStatus = Field(description="What was observed.")
