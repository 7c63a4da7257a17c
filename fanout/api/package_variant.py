"""PackageVariant: one upstream package as it stands at one downstream path."""

from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from fanout.api.meta import KRMObject, Model, Status
from fanout.api.paths import PackagePath
from fanout.api.pipeline import Injector, PackageContext, Pipeline
from fanout.api.texts import Annotations, Labels, Name, Text
from fanout.api.upstream import (
    AdoptionPolicy,
    DeletionPolicy,
    OnConflict,
    UpdateStrategy,
    Upstream,
)


class Downstream(Model):
    """Where the variant is."""

    repository: Name = Field(description="The name of a Repository.")
    package: PackagePath = Field(description="The package's path in the repository.")


class Dependency(Model):
    """A variant that must be ready first: of a policy for a target, or by its name."""

    policy: Name | None = Field(default=None, description="The name of an UpstreamPolicy.")
    target: Text | None = Field(default=None, description="The target's key.")
    variant: Name | None = Field(default=None, description="The name of a PackageVariant.")


class PolicyRef(Model):
    """The policy that made the variant."""

    name: Name = Field(description="The name of the UpstreamPolicy.")


class PackageVariantSpec(Model):
    """What comes from where, and what is changed on the way."""

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
    status: Status = Field(default=Status(), description="What fanout says about it.")
