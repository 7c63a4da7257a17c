"""Where a variant comes from, and what happens to what was there before."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from fanout.api.meta import Model
from fanout.api.paths import PackagePath
from fanout.api.texts import CommitId, Name, RevisionName, Text


class UpdateStrategy(StrEnum):
    """How a new upstream revision meets what is downstream, as in kpt."""

    RESOURCE_MERGE = "resource-merge"
    FAST_FORWARD = "fast-forward"
    FORCE_DELETE_REPLACE = "force-delete-replace"
    COPY_MERGE = "copy-merge"


class OnConflict(StrEnum):
    """What becomes of a draft in which upstream and local changed the same."""

    HOLD = "Hold"
    UPSTREAM_WINS = "UpstreamWins"
    LOCAL_WINS = "LocalWins"


class AdoptionPolicy(StrEnum):
    """What happens when there is a package at a variant's path already."""

    ADOPT_NONE = "AdoptNone"
    ADOPT_EXISTING = "AdoptExisting"


class DeletionPolicy(StrEnum):
    """What happens to a package when its variant goes."""

    DELETE = "Delete"
    ORPHAN = "Orphan"


class RevisionRule(Model):
    """Which revisions of the package are wanted; exactly one of its fields."""

    tag: RevisionName | None = Field(
        default=None, description="This one: the part of the tag after the path, like v3."
    )
    semver: Text | None = Field(
        default=None, description='All in this range, like ">=1 <3", "^1.4" or "1.x || 3.x".'
    )
    latest: Literal[True] | None = Field(
        default=None,
        description="All that are no prereleases.",
        json_schema_extra={"type": "boolean"},
    )
    commit: CommitId | None = Field(
        default=None, description="The state of the package at this commit, by its 40 digits."
    )


class Upstream(Model):
    """The upstream package."""

    repository: Name = Field(description="The name of the Repository that the package is in.")
    package: PackagePath = Field(description="The package's path in the repository.")
    revision: RevisionRule = Field(description="Which revisions; exactly one of its fields.")
