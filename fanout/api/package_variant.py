"""PackageVariant: one upstream package at one downstream path, with its functions."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool

from fanout.api.field_errors import InvalidValue
from fanout.api.object_meta import KRMObject, Model, ObjectStatus
from fanout.api.text_fields import (
    Annotations,
    CommitId,
    Data,
    Distinct,
    FunctionConfig,
    FunctionName,
    Key,
    Kind,
    Labels,
    Name,
    ObjectName,
    PackageFile,
    PackagePath,
    RevisionName,
    Text,
)

RESERVED_KEYS = ("name", "package-path")  # kpt writes these two itself


class PipelineSelector(Model):
    """Conditions on one object, all of which must hold."""

    api_version: Text | None = Field(default=None, description="The object's apiVersion.")
    kind: Kind | None = Field(default=None, description="The object's kind.")
    name: Text | None = Field(default=None, description="The object's name.")
    namespace: Text | None = Field(default=None, description="The object's namespace.")
    labels: Labels = Field(default={}, description="Labels that the object has.")
    annotations: Annotations = Field(default={}, description="Annotations that the object has.")

    def conditions(self) -> dict[str, object]:
        """Return the conditions that are set, under their field names in a Kptfile."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


def _check_not_empty(selector: PipelineSelector) -> PipelineSelector:
    if not selector.conditions():
        raise InvalidValue("selects nothing in particular", "say what to select, or remove it")
    return selector


NonEmptySelector = Annotated[PipelineSelector, AfterValidator(_check_not_empty)]


class Function(Model):
    """One function of the pipeline; exactly one of `image` and `exec`."""

    image: Text = Field(
        default="",
        description="The function: its name in the catalog, like set-namespace, or its image.",
    )
    exec: Text | None = Field(
        default=None,
        description="An executable, instead of an image; an administrator must allow it.",
    )
    tag: Text | None = Field(
        default=None,
        description="The image's version. Functions that run in process have fanout's own.",
    )
    name: FunctionName | None = Field(
        default=None, description="A name for the entry, without dots; unique in its list."
    )
    config_map: FunctionConfig = Field(default={}, description="The function's configuration.")
    config_path: PackageFile | None = Field(
        default=None, description="A file of the package that configures the function."
    )
    selectors: tuple[NonEmptySelector, ...] = Field(
        default=(), description="The objects that the function sees; none: all."
    )
    exclude: tuple[NonEmptySelector, ...] = Field(
        default=(), description="Objects that the function does not see."
    )


class Pipeline(Model):
    """Functions that run on the variant before the package's own."""

    mutators: tuple[Function, ...] = Field(
        default=(), description="Functions that change objects, in order."
    )
    validators: tuple[Function, ...] = Field(
        default=(), description="Functions that only judge, after the mutators."
    )


class PackageContext(Model):
    """Changes to the package's context ConfigMap (package-context.yaml)."""

    data: Data = Field(default={}, description="Keys to set; name and package-path are reserved.")
    remove_keys: Distinct[Key] = Field(
        default=(), description="Keys to remove, after the others were set."
    )


class InjectionPointFilter(Model):
    """Injection points that an injector is for; an absent field matches any."""

    group: str | None = Field(default=None, description='The API group; "" is the core group.')
    version: str | None = Field(default=None, description="The version of the API.")
    kind: Kind | None = Field(default=None, description="The kind.")


class Injector(InjectionPointFilter):
    """Injector: selects the cluster object for the injection points that it matches."""

    name: ObjectName = Field(description="The name of the cluster object.")


class UpdateStrategy(StrEnum):
    """Merge of a new upstream revision into the downstream package, named as in kpt."""

    RESOURCE_MERGE = "resource-merge"
    FAST_FORWARD = "fast-forward"
    FORCE_DELETE_REPLACE = "force-delete-replace"
    COPY_MERGE = "copy-merge"


class OnConflict(StrEnum):
    """Handling of a draft in which upstream and local changed the same value."""

    HOLD = "Hold"
    UPSTREAM_WINS = "UpstreamWins"
    LOCAL_WINS = "LocalWins"


class AdoptionPolicy(StrEnum):
    """Handling of a package that exists at a variant's path already."""

    ADOPT_NONE = "AdoptNone"
    ADOPT_EXISTING = "AdoptExisting"


class DeletionPolicy(StrEnum):
    """Handling of the package of a removed variant."""

    DELETE = "Delete"
    ORPHAN = "Orphan"


class RevisionRule(Model):
    """Revisions of the package that are wanted; exactly one of the fields."""

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


class Downstream(Model):
    """Location of the variant."""

    repository: Name = Field(description="The name of a Repository.")
    package: PackagePath = Field(description="The package's path in the repository.")


class Dependency(Model):
    """Variant that must be ready first: that of a policy for a target, or one by name."""

    policy: Name | None = Field(default=None, description="The name of an UpstreamPolicy.")
    target: Text | None = Field(default=None, description="The target's key.")
    variant: Name | None = Field(default=None, description="The name of a PackageVariant.")


class PolicyRef(Model):
    """Policy that made the variant."""

    name: Name = Field(description="The name of the UpstreamPolicy.")


class PackageVariantSpec(Model):
    """Upstream, downstream, and the changes made to the package on the way."""

    upstream: Upstream = Field(description="The upstream package and its wanted revisions.")
    downstream: Downstream = Field(description="Where the variant is.")
    package_context: PackageContext = Field(
        default=PackageContext(), description="What goes into package-context.yaml."
    )
    pipeline: Pipeline = Field(
        default=Pipeline(), description="Functions that run before the package's own."
    )
    injectors: tuple[Injector, ...] = Field(
        default=(), description="Which cluster objects fill the injection points; first hit wins."
    )
    labels: Labels = Field(default={}, description="Labels for the Kptfile.")
    annotations: Annotations = Field(default={}, description="Annotations for the Kptfile.")
    adoption_policy: AdoptionPolicy = Field(
        default=AdoptionPolicy.ADOPT_NONE,
        description="What happens when there is a package at the path already.",
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.DELETE, description="What happens to the package in the end."
    )
    update_strategy: UpdateStrategy = Field(
        default=UpdateStrategy.RESOURCE_MERGE,
        description="How a new upstream revision meets what is downstream.",
    )
    on_conflict: OnConflict = Field(
        default=OnConflict.HOLD,
        description="What becomes of a draft in which upstream and local changed the same: it is"
        " held until a person decides, or one side's values win.",
    )
    depends_on: tuple[Dependency, ...] = Field(
        default=(), description="Variants that must be ready at their revision first."
    )
    suspend: StrictBool = Field(
        default=False,
        description="The variant stays as it is: no draft is written, nothing is published.",
    )
    policy_ref: PolicyRef | None = Field(
        default=None, description="The policy that made it; none for one written by hand."
    )
    stage: Name | None = Field(default=None, description="The stage of that policy it is in.")


class PackageVariant(KRMObject):
    """One upstream package as it stands at one downstream path."""

    PLURAL: ClassVar[str] = "packagevariants"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("pvar",)

    kind: Literal["PackageVariant"] = Field(default="PackageVariant", description="PackageVariant.")
    spec: PackageVariantSpec = Field(
        description="What comes from where, and what is changed on the way."
    )
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")
