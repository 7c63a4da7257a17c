"""The views that `fanout explain` and `fanout status` print with `-o json` or `-o yaml`."""

from typing import Annotated

from fanout.api.results import Hold
from fanout.api.view_base import (
    INTERNAL,
    Candidate,
    NextChange,
    PartMeta,
    PolicyName,
    RequestView,
    View,
    ViewModel,
)
from fanout.values import Instant, doc


class ExplanationSpec(ViewModel):
    """The subject of an explanation: a policy, a stage or a variant."""

    policy: PolicyName
    stage: Annotated[
        str, doc("Name of the stage; empty if the explanation is about a whole policy.")
    ] = ""
    variant: Annotated[
        str, doc("Name of the variant; empty if the explanation is about a whole stage or policy.")
    ] = ""


class Blocker(Hold, kw_only=True):
    """One distinct reason why the subject does not go on; `who` can end it."""

    stage: Annotated[
        str, doc("Name of the blocked stage; empty if the whole policy is blocked.")
    ] = ""
    variants: Annotated[
        tuple[str, ...],
        doc(
            "Names of the blocked variants, or of targets that have no variant yet;"
            " empty if everything that is explained is blocked."
        ),
    ] = ()
    revision: Annotated[str, doc("Name of the blocked revision.")] = ""
    needs_person: Annotated[bool, doc("Whether it ends only by a person's decision or repair.")] = (
        False
    )
    commands: Annotated[
        tuple[str, ...], doc("Commands that can end it; one of them may be enough.")
    ] = ()
    failed: Annotated[bool, INTERNAL] = False
    # Of `variants`: a target or a repository has no variant.
    noun: Annotated[str, INTERNAL] = "variant"


class ExplainedConflict(ViewModel):
    """One merge conflict of a draft."""

    variant: Annotated[str, doc("Name of the variant whose draft has the conflict.")]
    key: Annotated[str, doc("Key of the conflict, as `fanout resolve --take KEY=SIDE` takes it.")]
    message: Annotated[
        str,
        doc("Field of the conflict, the values of both sides, and the value that the draft has."),
    ]
    decided: Annotated[bool, doc("Whether a person or the policy has decided the conflict.")]
    since: Annotated[
        Instant | None, doc("Time of the decision, in RFC 3339; null while it is undecided.")
    ] = None


class ExplanationNote(Hold, kw_only=True):
    """Something to know about the subject that blocks nothing by itself; `who` can change it."""

    command: Annotated[str, doc("Command that changes it.")] = ""


class ExplanationStatus(ViewModel):
    """State of the subject, what blocks it, and what unblocks it."""

    state: Annotated[str, doc("State of the policy, stage or variant as one CamelCase word.")]
    candidate: Annotated[
        str,
        doc(
            "Name of the revision that a stage or variant is to take next, or has"
            " taken; for a policy the newest one of its stages."
        ),
    ] = ""
    published: Annotated[
        str,
        doc("Name of the revision that the variant has published; empty for a stage or policy."),
    ] = ""
    variants: Annotated[int, doc("Number of variants of the policy or stage.")] = 0
    ready: Annotated[int, doc("Number of these variants that are ready at their candidate.")] = 0
    blockers: Annotated[
        tuple[Blocker, ...], doc("Reasons why it is blocked, the most urgent first.")
    ] = ()
    requests: Annotated[
        tuple[RequestView, ...], doc("Pull requests with drafts of its variants.")
    ] = ()
    conflicts: Annotated[
        tuple[ExplainedConflict, ...],
        doc("Merge conflicts of its drafts; for a policy or stage only the undecided ones."),
    ] = ()
    notes: Annotated[
        tuple[ExplanationNote, ...],
        doc("Facts that affect it without blocking it, such as a pinned revision."),
    ] = ()
    moving: Annotated[
        tuple[str, ...], doc("Names of the variants that the next sweep releases or publishes.")
    ] = ()
    opens_at: Annotated[
        Instant | None,
        doc(
            "Time when all blockers have ended without action, in RFC 3339; null if"
            " one of them needs action."
        ),
    ] = None
    next: NextChange = None


class ExplanationView(View):
    """Explanation of a policy, a stage or a variant, with the commands that unblock it."""

    metadata: PartMeta
    spec: Annotated[ExplanationSpec, doc("Policy, stage and variant that are explained.")]
    status: Annotated[ExplanationStatus, doc("State, blockers, and the commands that end them.")]


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
    candidate: Candidate = ""
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
    next: NextChange = None

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
    next: NextChange = None


class FleetStatusView(View):
    """State of the whole fleet."""

    metadata: PartMeta
    spec: Annotated[FleetStatusSpec, doc("Namespaces that the status covers.")]
    status: Annotated[FleetStatusStatus, doc("Observed state.")]
