"""View of one merge conflict, as `fanout get conflicts` prints it."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import Model
from fanout.api.view_base import View


class ConflictViewSpec(Model):
    """The value that a ConflictView is about."""

    policy: str = Field(
        description="Name of the UpstreamPolicy; empty for a manually written PackageVariant."
    )
    stage: str = Field(description="Name of the stage that the variant is assigned to.")
    target: str = Field(description="Key of the target that the variant was created for.")
    target_name: str = Field(
        description="Shortest name of the target that is unique in the policy; commands"
        " accept it in place of the variant's name."
    )
    variant: str = Field(description="Name of the variant whose package has the conflict.")
    repository: str = Field(description="Name of the downstream Repository object.")
    path: str = Field(description="Path of the package, relative to the root of the repository.")
    key: str = Field(
        description="Key of the conflict, as `fanout resolve --take KEY=SIDE` takes it. The"
        " same field with the same three values has the same key in every revision."
    )
    file: str = Field(default="", description="Path of the file, relative to the package.")
    object: str = Field(
        default="",
        description="Kind and name of the object in the file; empty if the conflict is"
        " about the whole file.",
    )
    field: str = Field(
        default="",
        description="Path of the field in the object; empty if the conflict is about the"
        " whole object or file.",
    )


class ConflictViewStatus(Model):
    """Observed state of a merge conflict. Values of a Secret are not shown."""

    place: Literal["Draft", "Published"] = Field(
        description="Where the conflict is: `Draft` in an open draft, `Published` in the"
        " published package."
    )
    revision: str = Field(description="Name of the upstream revision that was merged.")
    in_force: Literal["Upstream", "Local", "Edited"] = Field(
        description="Side whose value the package has: `Upstream`, `Local`, or `Edited` for"
        " the value of a commit on the draft."
    )
    decided: bool = Field(
        description="Whether the conflict is decided, by a person, by a commit on the draft"
        " or by `onConflict`."
    )
    base: str | None = Field(
        default=None, description="Value before either side changed it; null if not on record."
    )
    upstream: str | None = Field(
        default=None, description="Value that upstream changed it to; null if not on record."
    )
    local: str | None = Field(
        default=None, description="Value that it has downstream; null if not on record."
    )
    since: str | None = Field(
        default=None,
        description="Time of the draft's commit, or of the publication, in RFC 3339.",
    )
    message: str = Field(description="Summary of the conflict as one sentence.")


class ConflictView(View):
    """One merge conflict of a draft, or of what is published."""

    kind: Literal["ConflictView"] = Field(
        default="ConflictView", description="Kind of the object; always `ConflictView`."
    )
    spec: ConflictViewSpec = Field(
        description="Place of the conflict: policy, variant, package, file and field."
    )
    status: ConflictViewStatus = Field(
        description="Observed state of the conflict, with its values."
    )
