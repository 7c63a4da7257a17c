"""The view that `fanout status` prints with `-o json` or `-o yaml`."""

from typing import Annotated, Literal

from fanout.api.explanation_view import Blocker, ExplainedConflict
from fanout.api.view_base import RequestView, View, ViewModel
from fanout.values import Instant, doc


class FleetStatusSpec(ViewModel):
    """The policies that a FleetStatusView covers."""

    namespace: Annotated[str, doc("Namespace of the policies; empty for all namespaces.")] = ""


class PolicyBlocker(Blocker, kw_only=True):
    """One distinct reason why a policy does not go on."""

    policy: Annotated[
        str, doc("Name of the blocked UpstreamPolicy, or of a manually written PackageVariant.")
    ]
    namespace: Annotated[str, doc("Namespace of the policy.")]


class FleetStageView(ViewModel, kw_only=True):
    """One stage of a policy; for a variant written by hand, the variant."""

    policy: Annotated[
        str, doc("Name of the UpstreamPolicy, or of a manually written PackageVariant.")
    ]
    namespace: Annotated[str, doc("Namespace of the policy.")]
    stage: Annotated[
        str, doc("Name of the stage; empty for a manually written PackageVariant.")
    ] = ""
    candidate: Annotated[
        str, doc("Name of the revision that the stage is to take next, or has taken.")
    ] = ""
    state: Annotated[
        str, doc("State of the stage, as in a StageView; without a stage, that of the policy.")
    ]
    variants: Annotated[int, doc("Number of variants of the stage.")] = 0
    ready: Annotated[int, doc("Number of these variants that are ready at the candidate.")] = 0
    failed: Annotated[int, doc("Number of these variants that have failed.")] = 0
    waits_for: Annotated[
        tuple[str, ...],
        doc("Reasons why the stage is blocked, in CamelCase, the most urgent first."),
    ] = ()
    requests: Annotated[
        tuple[RequestView, ...], doc("Pull requests with drafts of the stage.")
    ] = ()
    next: Annotated[
        Instant | None,
        doc(
            "Next time when the state can change without action, in RFC 3339; null"
            " if there is none."
        ),
    ] = None

    @property
    def is_done(self) -> bool:
        """Return whether all variants are ready and nothing waits."""
        return self.ready == self.variants and not self.waits_for


class FleetStatusStatus(ViewModel):
    """Observed state of the fleet."""

    policies: Annotated[int, doc("Number of policies and of manually written PackageVariants.")]
    variants: Annotated[int, doc("Number of variants.")]
    ready: Annotated[int, doc("Number of these variants that are ready at their candidate.")]
    failed: Annotated[int, doc("Number of these variants that have failed.")]
    needs_person: Annotated[
        tuple[PolicyBlocker, ...],
        doc("Blockers that only a person can end, the most urgent first."),
    ] = ()
    stages: Annotated[
        tuple[FleetStageView, ...], doc("Stages of all policies, in the order of each policy.")
    ] = ()
    conflicts: Annotated[
        tuple[ExplainedConflict, ...], doc("Undecided merge conflicts of all open drafts.")
    ] = ()
    next: Annotated[
        Instant | None,
        doc(
            "Next time when the state can change without action, in RFC 3339; null"
            " if there is none."
        ),
    ] = None


class FleetStatusView(View, kw_only=True):
    """State of the whole fleet."""

    kind: Annotated[
        Literal["FleetStatusView"], doc("Kind of the object; always `FleetStatusView`.")
    ] = "FleetStatusView"
    spec: Annotated[FleetStatusSpec, doc("Namespaces that the status covers.")]
    status: Annotated[FleetStatusStatus, doc("Observed state.")]
