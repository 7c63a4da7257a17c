"""The view that `fanout explain` prints with `-o json` or `-o yaml`."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import Model
from fanout.api.view_base import View


class ExplanationSpec(Model):
    """The subject of an explanation: a policy, a stage or a variant."""

    policy: str = Field(description="The UpstreamPolicy; empty for a variant written by hand.")
    stage: str = Field(default="", description="The stage; empty: the whole policy.")
    variant: str = Field(default="", description="The variant; empty: all of the stage or policy.")


class BlockerView(Model):
    """One distinct reason why the subject does not go on."""

    reason: str = Field(description="Why, in one CamelCase word of a closed list.")
    message: str = Field(description="Why, in a sentence.")
    stage: str = Field(default="", description="The blocked stage; empty: the whole policy.")
    variants: tuple[str, ...] = Field(
        default=(),
        description="The blocked variants, or targets without a variant; empty: all of the"
        " subject.",
    )
    revision: str = Field(default="", description="The revision that waits.")
    needs_person: bool = Field(
        default=False, description="Whether only a decision or repair by a person ends it."
    )
    who: str = Field(default="", description="Who can end it.")
    commands: tuple[str, ...] = Field(
        default=(), description="Commands that end it; any one of them may be enough."
    )
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="When it ends by itself; RFC 3339.")


class ExplainedConflict(Model):
    """One merge conflict of a draft."""

    variant: str = Field(description="The variant.")
    key: str = Field(description="The key by which `fanout resolve --take KEY=SIDE` decides it.")
    message: str = Field(description="Place, values, and the value that the draft has.")
    decided: bool = Field(description="Whether a person or the policy has decided it.")
    since: str | None = Field(default=None, description="When it was decided; RFC 3339.")


class ExplanationNoteView(Model):
    """Something to know about the subject that blocks nothing by itself."""

    reason: str = Field(description="What it is, in one CamelCase word.")
    message: str = Field(description="What it is, in a sentence.")
    who: str = Field(default="", description="Who can change it.")
    command: str = Field(default="", description="The command that changes it.")
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="Until when; RFC 3339.")


class ExplanationStatus(Model):
    """State of the subject, what blocks it, and what unblocks it."""

    state: str = Field(
        description="The state of a policy or variant, or the verdict of a stage, in CamelCase."
    )
    candidate: str = Field(
        default="",
        description="The revision that it is to take next, or has; of a policy the"
        " newest of its stages.",
    )
    published: str = Field(default="", description="The published revision of a variant.")
    variants: int = Field(default=0, description="Number of variants of a policy or stage.")
    ready: int = Field(default=0, description="How many of them are ready at their candidate.")
    blockers: tuple[BlockerView, ...] = Field(
        default=(), description="What blocks it, the most urgent first."
    )
    conflicts: tuple[ExplainedConflict, ...] = Field(
        default=(),
        description="Merge conflicts of its drafts; of a policy or stage, undecided ones only.",
    )
    notes: tuple[ExplanationNoteView, ...] = Field(
        default=(), description="What blocks nothing by itself, such as a pin."
    )
    moving: tuple[str, ...] = Field(
        default=(), description="Variants that the next sweep releases or publishes."
    )
    opens_at: str | None = Field(
        default=None,
        description="When time alone has ended every blocker; RFC 3339. Empty: never by itself.",
    )
    next: str | None = Field(
        default=None, description="When time alone can next change something; RFC 3339."
    )


class ExplanationView(View):
    """Explanation of a policy, a stage or a variant, with the commands that unblock it."""

    kind: Literal["ExplanationView"] = Field(
        default="ExplanationView", description="ExplanationView."
    )
    spec: ExplanationSpec = Field(description="Policy, stage and variant.")
    status: ExplanationStatus = Field(description="State, blockers and commands.")
