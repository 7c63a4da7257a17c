"""UpstreamPolicy: one upstream package, its targets, and the stages of their rollout.

Every templated field has a twin that ends in `Expr` and holds CEL. Expressions see
`target`, `repository`, `upstream`, `repoDefault` and `packageDefault` (docs/concepts/selection.md).
"""

from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.object_meta import (
    KRMObject,
    LabelSelector,
    Model,
    ObjectStatus,
    ObservedStatus,
    kind_field,
    listed,
    optional,
)
from fanout.api.package_variant import (
    AdoptionPolicy,
    DeletionPolicy,
    Function,
    InjectionPointFilter,
    MergeStrategyField,
    OnConflict,
    OnConflictField,
    PackageContext,
    UpdateStrategy,
    Upstream,
)
from fanout.api.stages import LIST_MAP_BY_NAME, Amount, Stage
from fanout.api.text_fields import (
    MAX_ENTRIES,
    MAX_TARGETS,
    MAX_VALUES,
    ApiVersion,
    Distinct,
    Expression,
    Kind,
    LongText,
    Name,
    ObjectName,
    PackagePath,
    TemplateAnnotations,
    TemplateLabels,
    Text,
)


class MapExpression(Model):
    """One entry of a map: key and value, each as text or as an expression."""

    key: Text | None = optional("Key of the entry.")
    key_expr: Expression | None = optional("CEL expression that returns the key.")
    value: LongText | None = optional("Value of the entry.")
    value_expr: Expression | None = optional("CEL expression that returns the value.")


class DownstreamTemplate(Model):
    """Location of the variants.

    By default the target's repository and the upstream's path.
    """

    repository: Name | None = optional(
        "Name of a Repository object; default: the repository of the target."
    )
    repository_expr: Expression | None = optional(
        "CEL expression that returns the name of a Repository object."
    )
    package: PackagePath | None = optional(
        "Path of the package in the repository; default: the path of the upstream package."
    )
    package_expr: Expression | None = optional(
        "CEL expression that returns the path of the package."
    )


class InjectorTemplate(InjectionPointFilter):
    """Injector: selects the cluster object for the injection points that it matches."""

    name: ObjectName | None = optional("Name of the cluster object to inject.")
    name_expr: Expression | None = optional(
        "CEL expression that returns the name of the cluster object."
    )


class PackageContextTemplate(PackageContext):
    """Changes to the package's context ConfigMap (package-context.yaml)."""

    data_exprs: tuple[MapExpression, ...] = listed(
        "Further keys, with expressions; they take precedence over `data`.", MAX_ENTRIES
    )
    remove_key_exprs: tuple[Expression, ...] = listed(
        "CEL expressions that each return one further key to remove.", MAX_ENTRIES
    )


class FunctionTemplate(Function):
    """One function of the pipeline; exactly one of `image` and `exec`."""

    config_map_exprs: tuple[MapExpression, ...] = listed(
        "Further configuration, with expressions; it takes precedence over `configMap`.",
        MAX_ENTRIES,
    )


class PipelineTemplate(Model):
    """Functions that run on the variant before the package's own functions."""

    mutators: tuple[FunctionTemplate, ...] = listed(
        "Functions that change objects; run in the listed order.", MAX_ENTRIES
    )
    validators: tuple[FunctionTemplate, ...] = listed(
        "Functions that check objects without changing them; run after the mutators.", MAX_ENTRIES
    )


class VariantTemplate(Model):
    """Template of the variants of a target entry."""

    stage: Name | None = optional("Name of the stage that the variants are assigned to.")
    stage_expr: Expression | None = optional(
        "CEL expression that returns the name of the stage; the target is held"
        " if there is no such stage."
    )
    priority: StrictInt = optional(
        "Priority within the stage; variants with a higher one are released first.", default=0
    )
    priority_expr: Expression | None = optional(
        "CEL expression that returns the priority, an integer."
    )
    downstream: DownstreamTemplate = optional(
        "Repository and path of the variants.", default=DownstreamTemplate.model_construct()
    )
    injectors: tuple[InjectorTemplate, ...] = listed(
        "Cluster objects to inject into the package; for each injection point"
        " the first entry that matches is used.",
        MAX_ENTRIES,
    )
    package_context: PackageContextTemplate = optional(
        "Changes to the package's context ConfigMap, `package-context.yaml`.",
        default=PackageContextTemplate.model_construct(),
    )
    pipeline: PipelineTemplate = optional(
        "Functions that run before those of the package's own pipeline.",
        default=PipelineTemplate.model_construct(),
    )
    labels: TemplateLabels = optional(
        "Labels to set in the Kptfile and the PackageVariant.", default={}
    )
    label_exprs: tuple[MapExpression, ...] = listed(
        "Further labels, with expressions; they take precedence over `labels`.", MAX_ENTRIES
    )
    annotations: TemplateAnnotations = optional(
        "Annotations to set in the Kptfile and the PackageVariant.", default={}
    )
    annotation_exprs: tuple[MapExpression, ...] = listed(
        "Further annotations, with expressions; they take precedence over `annotations`.",
        MAX_ENTRIES,
    )


class RepositoryTarget(Model):
    """One repository, and the packages to make in it."""

    name: Name = Field(description="Name of a Repository object.")
    package_names: Distinct[PackagePath] = listed(
        "Paths of the packages, one variant for each; default: the path of the upstream package.",
        MAX_VALUES,
    )


class ObjectSelector(LabelSelector):
    """Cluster objects of one kind, by name and label; each becomes a target."""

    api_version: ApiVersion = Field(description="apiVersion of the objects.")
    kind: Kind = Field(description="Kind of the objects, like `Cluster` or `ConfigMap`.")
    name: ObjectName | None = optional("Name of the object; default: any.")
    namespace: Name | None = optional("Namespace of the objects; default: the policy's namespace.")


class TargetEntry(Model):
    """One entry of `targets`; exactly one of `repositories` and the two selectors."""

    repositories: tuple[RepositoryTarget, ...] | None = optional(
        "Repositories by name; each one with each of its package names is a target.",
        max_length=MAX_VALUES,
        min_length=1,
    )
    repository_selector: LabelSelector | None = optional(
        "Label selector of Repository objects; each one is a target."
    )
    object_selector: ObjectSelector | None = optional(
        "Selector of cluster objects of one kind; each one is a target."
    )
    offline_when: Expression | None = optional(
        "CEL expression that returns whether the target is offline."
    )
    template: VariantTemplate = optional(
        "Template of the variants for these targets.", default=VariantTemplate.model_construct()
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

    upstream: Upstream = Field(description="Upstream package and the selection of its revisions.")
    targets: tuple[TargetEntry, ...] = Field(
        max_length=MAX_TARGETS, min_length=1, description="Targets, each of which gets a variant."
    )
    stages: tuple[Stage, ...] = Field(
        max_length=MAX_ENTRIES,
        min_length=1,
        description="Stages that a revision is promoted through.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    suspend: StrictBool = optional(
        "Whether the whole policy is suspended: no draft is written, nothing is published.",
        default=False,
    )
    draft_per: DraftPer = optional(
        "Scope of a draft. `Variant`: one for each variant; `Stage`: one for"
        " all released variants of a stage in a repository; `Auto`: `Stage` in repositories"
        " with a forge, otherwise `Variant`.",
        default=DraftPer.AUTO,
    )
    in_flight: InFlight = optional(
        "Effect of a newer revision on one that is being rolled out."
        " `Supersede`: it replaces the older one; `Serialize`: it is queued.",
        default=InFlight.SUPERSEDE,
    )
    removal_limit: Amount = optional(
        'Number or percentage of variants, like `5` or `"20%"`; a pass that'
        " would remove more is held until a person confirms it. A percentage above 0 allows at"
        " least 3.",
        default=REMOVAL_LIMIT,
        json_schema_extra={"default": "20%"},
    )
    update_strategy: MergeStrategyField = UpdateStrategy.RESOURCE_MERGE
    on_conflict: OnConflictField = OnConflict.HOLD
    adoption_policy: AdoptionPolicy = optional(
        "Handling of a package that exists at a variant's path already. `AdoptNone`: it"
        " is left alone and the variant is held; `AdoptExisting`: it becomes the variant.",
        default=AdoptionPolicy.ADOPT_NONE,
    )
    deletion_policy: DeletionPolicy = optional(
        "Handling of the package of a removed variant. `Delete`: it is deleted;"
        " `Orphan`: it stays.",
        default=DeletionPolicy.DELETE,
    )
    history: StrictInt = optional("Number of revisions kept in the status.", default=10, ge=1)


class UpstreamPolicy(KRMObject):
    """One upstream package, cloned into a variant per target and promoted stage by stage."""

    PLURAL: ClassVar[str] = "upstreampolicies"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("upol",)

    kind: Literal["UpstreamPolicy"] = kind_field("UpstreamPolicy")
    spec: UpstreamPolicySpec = Field(
        description="Upstream package, targets, and the stages of the rollout."
    )
    status: ObservedStatus = ObjectStatus.model_construct()
