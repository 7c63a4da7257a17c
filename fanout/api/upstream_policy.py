"""UpstreamPolicy: one upstream package, its targets, and the stages of their rollout.

Every templated field has a twin that ends in `Expr` and holds CEL. Expressions see
`target`, `repository`, `upstream`, `repoDefault` and `packageDefault` (design §2).
"""

from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.object_meta import KRMObject, LabelSelector, Model, ObjectStatus
from fanout.api.package_variant import (
    AdoptionPolicy,
    DeletionPolicy,
    Function,
    InjectionPointFilter,
    OnConflict,
    PackageContext,
    UpdateStrategy,
    Upstream,
)
from fanout.api.stages import LIST_MAP_BY_NAME, Amount, Stage
from fanout.api.text_fields import (
    Annotations,
    ApiVersion,
    Distinct,
    Expression,
    Kind,
    Labels,
    Name,
    ObjectName,
    PackagePath,
)


class MapExpression(Model):
    """One entry of a map: key and value, each as text or as an expression."""

    key: str | None = Field(default=None, description="The key.")
    key_expr: Expression | None = Field(default=None, description="CEL that yields the key.")
    value: str | None = Field(default=None, description="The value.")
    value_expr: Expression | None = Field(default=None, description="CEL that yields the value.")


class DownstreamTemplate(Model):
    """Location of the variants.

    By default the target's repository and the upstream's path.
    """

    repository: Name | None = Field(default=None, description="The name of a Repository.")
    repository_expr: Expression | None = Field(
        default=None, description="CEL that yields the name of a Repository."
    )
    package: PackagePath | None = Field(
        default=None, description="The package's path in the repository."
    )
    package_expr: Expression | None = Field(
        default=None, description="CEL that yields the package's path."
    )


class InjectorTemplate(InjectionPointFilter):
    """Injector: selects the cluster object for the injection points that it matches."""

    name: ObjectName | None = Field(default=None, description="The name of the cluster object.")
    name_expr: Expression | None = Field(
        default=None, description="CEL that yields the name of the cluster object."
    )


class PackageContextTemplate(PackageContext):
    """Changes to the package's context ConfigMap (package-context.yaml)."""

    data_exprs: tuple[MapExpression, ...] = Field(
        default=(), description="Further keys; they win over `data`."
    )
    remove_key_exprs: tuple[Expression, ...] = Field(
        default=(), description="CEL, each yields one further key to remove."
    )


class FunctionTemplate(Function):
    """One function of the pipeline; exactly one of `image` and `exec`."""

    config_map_exprs: tuple[MapExpression, ...] = Field(
        default=(), description="Further configuration; it wins over `configMap`."
    )


class PipelineTemplate(Model):
    """Functions that run on the variant before the package's own functions."""

    mutators: tuple[FunctionTemplate, ...] = Field(
        default=(), description="Functions that change objects, in order."
    )
    validators: tuple[FunctionTemplate, ...] = Field(
        default=(), description="Functions that only judge, after the mutators."
    )


class VariantTemplate(Model):
    """Template of the variants of a target entry."""

    stage: Name | None = Field(default=None, description="The stage that the variants are in.")
    stage_expr: Expression | None = Field(
        default=None, description="CEL that yields the stage; one that is unknown holds the target."
    )
    priority: StrictInt = Field(default=0, description="Within its stage a higher one goes first.")
    priority_expr: Expression | None = Field(
        default=None, description="CEL that yields the priority, a whole number."
    )
    downstream: DownstreamTemplate = Field(
        default=DownstreamTemplate(), description="Where the variants go."
    )
    injectors: tuple[InjectorTemplate, ...] = Field(
        default=(), description="Which cluster objects fill the injection points; first hit wins."
    )
    package_context: PackageContextTemplate = Field(
        default=PackageContextTemplate(), description="What goes into package-context.yaml."
    )
    pipeline: PipelineTemplate = Field(
        default=PipelineTemplate(), description="Functions that run before the package's own."
    )
    labels: Labels = Field(default={}, description="Labels for Kptfile and PackageVariant.")
    label_exprs: tuple[MapExpression, ...] = Field(
        default=(), description="Further labels; they win over `labels`."
    )
    annotations: Annotations = Field(
        default={}, description="Annotations for Kptfile and PackageVariant."
    )
    annotation_exprs: tuple[MapExpression, ...] = Field(
        default=(), description="Further annotations; they win over `annotations`."
    )


class RepositoryTarget(Model):
    """One repository, and the packages to make in it."""

    name: Name = Field(description="The name of a Repository.")
    package_names: Distinct[PackagePath] = Field(
        default=(), description="A variant for each of these paths; none: the upstream's path."
    )


class ObjectSelector(LabelSelector):
    """Cluster objects of one kind, by name and label; each becomes a target."""

    api_version: ApiVersion = Field(description="The apiVersion of the objects.")
    kind: Kind = Field(description="Their kind: Cluster, ConfigMap, any.")
    name: ObjectName | None = Field(default=None, description="Only the object of this name.")
    namespace: Name | None = Field(
        default=None, description="Where they are; without it, in the policy's namespace."
    )


class TargetEntry(Model):
    """One entry of `targets`; exactly one of `repositories` and the two selectors."""

    repositories: tuple[RepositoryTarget, ...] | None = Field(
        default=None, min_length=1, description="These repositories, times their package names."
    )
    repository_selector: LabelSelector | None = Field(
        default=None, description="The Repositories with these labels."
    )
    object_selector: ObjectSelector | None = Field(
        default=None, description="The cluster objects of one kind with these labels."
    )
    offline_when: Expression | None = Field(
        default=None, description="CEL that says whether the target is offline now."
    )
    template: VariantTemplate = Field(
        default=VariantTemplate(), description="What the variants look like."
    )


REMOVAL_LIMIT = Fraction(1, 5)


class DraftPer(StrEnum):
    """Number of variants that share a draft."""

    AUTO = "Auto"
    VARIANT = "Variant"
    STAGE = "Stage"


class InFlight(StrEnum):
    """Effect of a newer revision on one that is in flight."""

    SUPERSEDE = "Supersede"
    SERIALIZE = "Serialize"


class UpstreamPolicySpec(Model):
    """Upstream package, targets, and the order of their rollout."""

    upstream: Upstream = Field(description="The upstream package and its wanted revisions.")
    targets: tuple[TargetEntry, ...] = Field(
        min_length=1, description="For what variants are made, entry by entry."
    )
    stages: tuple[Stage, ...] = Field(
        min_length=1,
        description="The stages that the variants go through.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    suspend: StrictBool = Field(
        default=False,
        description="All of the policy stays as it is: no draft is written, nothing published.",
    )
    draft_per: DraftPer = Field(
        default=DraftPer.AUTO,
        description="Whether each variant has its own draft, or a stage in a repository one.",
    )
    in_flight: InFlight = Field(
        default=InFlight.SUPERSEDE, description="What a newer revision does to one under way."
    )
    removal_limit: Amount = Field(
        default=REMOVAL_LIMIT,
        description='A pass that would remove more variants than this, 5 or "20%", holds until a'
        " person confirms it. A share of more than nothing is 3 at least.",
        json_schema_extra={"default": "20%"},
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
    adoption_policy: AdoptionPolicy = Field(
        default=AdoptionPolicy.ADOPT_NONE,
        description="What happens when there is a package at a variant's path already.",
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.DELETE, description="What happens to packages that are not wanted."
    )
    history: StrictInt = Field(
        default=10, ge=1, description="How many revisions are remembered in the status."
    )


class UpstreamPolicy(KRMObject):
    """One upstream package, cloned into a variant per target and promoted stage by stage."""

    PLURAL: ClassVar[str] = "upstreampolicies"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("upol",)

    kind: Literal["UpstreamPolicy"] = Field(default="UpstreamPolicy", description="UpstreamPolicy.")
    spec: UpstreamPolicySpec = Field(
        description="What comes from where, for whom, and in which order."
    )
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")
