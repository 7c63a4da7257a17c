"""The view that `fanout explain` prints with `-o json` or `-o yaml`."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import Model
from fanout.api.view_base import RequestView, View


class ExplanationSpec(Model):
    """The subject of an explanation: a policy, a stage or a variant."""

    policy: str = Field(
        description="Name of the UpstreamPolicy; empty for a manually written PackageVariant."
    )
    stage: str = Field(
        default="",
        description="Name of the stage; empty if the explanation is about a whole policy.",
    )
    variant: str = Field(
        default="",
        description="Name of the variant; empty if the explanation is about a whole stage"
        " or policy.",
    )


class BlockerView(Model):
    """One distinct reason why the subject does not go on."""

    reason: str = Field(
        description="Reason as one CamelCase word; the index of reasons lists all values."
    )
    message: str = Field(description="Explanation of the reason as one sentence.")
    stage: str = Field(
        default="", description="Name of the blocked stage; empty if the whole policy is blocked."
    )
    variants: tuple[str, ...] = Field(
        default=(),
        description="Names of the blocked variants, or of targets that have no variant yet;"
        " empty if everything that is explained is blocked.",
    )
    revision: str = Field(default="", description="Name of the blocked revision.")
    needs_person: bool = Field(
        default=False, description="Whether it ends only by a person's decision or repair."
    )
    who: str = Field(default="", description="Person or group that can end it.")
    commands: tuple[str, ...] = Field(
        default=(), description="Commands that can end it; one of them may be enough."
    )
    since: str | None = Field(default=None, description="Time since which it applies, in RFC 3339.")
    until: str | None = Field(
        default=None,
        description="Time when it ends without action, in RFC 3339; null if it needs action.",
    )


class ExplainedConflict(Model):
    """One merge conflict of a draft."""

    variant: str = Field(description="Name of the variant whose draft has the conflict.")
    key: str = Field(
        description="Key of the conflict, as `fanout resolve --take KEY=SIDE` takes it."
    )
    message: str = Field(
        description="Field of the conflict, the values of both sides, and the value that"
        " the draft has."
    )
    decided: bool = Field(description="Whether a person or the policy has decided the conflict.")
    since: str | None = Field(
        default=None, description="Time of the decision, in RFC 3339; null while it is undecided."
    )


class ExplanationNoteView(Model):
    """Something to know about the subject that blocks nothing by itself."""

    reason: str = Field(description="Subject of the note as one CamelCase word.")
    message: str = Field(description="Note as one sentence.")
    who: str = Field(default="", description="Person or group that can change it.")
    command: str = Field(default="", description="Command that changes it.")
    since: str | None = Field(default=None, description="Time since which it applies, in RFC 3339.")
    until: str | None = Field(default=None, description="Time until which it applies, in RFC 3339.")


class ExplanationStatus(Model):
    """State of the subject, what blocks it, and what unblocks it."""

    state: str = Field(description="State of the policy, stage or variant as one CamelCase word.")
    candidate: str = Field(
        default="",
        description="Name of the revision that a stage or variant is to take next, or has"
        " taken; for a policy the newest one of its stages.",
    )
    published: str = Field(
        default="",
        description="Name of the revision that the variant has published; empty for a stage"
        " or policy.",
    )
    variants: int = Field(default=0, description="Number of variants of the policy or stage.")
    ready: int = Field(
        default=0, description="Number of these variants that are ready at their candidate."
    )
    blockers: tuple[BlockerView, ...] = Field(
        default=(), description="Reasons why it is blocked, the most urgent first."
    )
    requests: tuple[RequestView, ...] = Field(
        default=(), description="Pull requests with drafts of its variants."
    )
    conflicts: tuple[ExplainedConflict, ...] = Field(
        default=(),
        description="Merge conflicts of its drafts; for a policy or stage only the undecided ones.",
    )
    notes: tuple[ExplanationNoteView, ...] = Field(
        default=(),
        description="Facts that affect it without blocking it, such as a pinned revision.",
    )
    moving: tuple[str, ...] = Field(
        default=(), description="Names of the variants that the next sweep releases or publishes."
    )
    opens_at: str | None = Field(
        default=None,
        description="Time when all blockers have ended without action, in RFC 3339; null if"
        " one of them needs action.",
    )
    next: str | None = Field(
        default=None,
        description="Next time when the state can change without action, in RFC 3339; null"
        " if there is none.",
    )


class ExplanationView(View):
    """Explanation of a policy, a stage or a variant, with the commands that unblock it."""

    kind: Literal["ExplanationView"] = Field(
        default="ExplanationView", description="Kind of the object; always `ExplanationView`."
    )
    spec: ExplanationSpec = Field(description="Policy, stage and variant that are explained.")
    status: ExplanationStatus = Field(
        description="State, blockers, and the commands that end them."
    )
