"""View of one merge conflict, as `fanout get conflicts` prints it."""

from typing import Literal

from pydantic import Field

from fanout.api.object_meta import Model
from fanout.api.view_base import View


class ConflictViewSpec(Model):
    """The value that a ConflictView is about."""

    policy: str = Field(description="The UpstreamPolicy; empty for a variant written by hand.")
    stage: str = Field(description="The stage the variant is in.")
    target: str = Field(description="The key of the variant's target.")
    target_name: str = Field(
        description="The target's name, as short as is unique in the policy; accepted wherever a"
        " variant is named."
    )
    variant: str = Field(description="The variant whose package has the conflict.")
    repository: str = Field(description="The name of the downstream Repository.")
    path: str = Field(description="The package's path from the repository's root.")
    key: str = Field(
        description="Names the conflict; `fanout resolve --take KEY=SIDE` decides it. The same"
        " place with the same three values has the same key in every revision."
    )
    file: str = Field(default="", description="The file in the package.")
    object: str = Field(default="", description="Kind and name of the object in the file.")
    field: str = Field(default="", description="The field's path; empty: the whole object or file.")


class ConflictViewStatus(Model):
    """Observed state of a merge conflict. Values of a Secret are not shown."""

    place: Literal["Draft", "Published"] = Field(
        description="Whether it is in an open draft or published."
    )
    revision: str = Field(description="The upstream revision that was merged.")
    in_force: Literal["Upstream", "Local", "Edited"] = Field(
        description="Whose value the package has; Edited: that of a commit on the draft."
    )
    decided: bool = Field(description="Whether a person, a commit or `onConflict` decided it.")
    base: str | None = Field(
        default=None, description="The value before both changed it; left out where not on record."
    )
    upstream: str | None = Field(default=None, description="The value of upstream, likewise.")
    local: str | None = Field(default=None, description="The value downstream, likewise.")
    since: str | None = Field(
        default=None,
        description="The time of the draft's commit, or of the publication; RFC 3339.",
    )
    message: str = Field(description="The same in a sentence.")


class ConflictView(View):
    """One merge conflict of a draft, or of what is published."""

    kind: Literal["ConflictView"] = Field(default="ConflictView", description="ConflictView.")
    spec: ConflictViewSpec = Field(description="Which value it is about.")
    status: ConflictViewStatus = Field(description="What was observed.")
