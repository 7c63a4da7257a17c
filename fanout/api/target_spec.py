"""Target entries of an UpstreamPolicy and the template of their variants.

Every templated field has a twin that ends in `Expr` and holds CEL. Expressions see
`target`, `repository`, `upstream`, `repoDefault` and `packageDefault` (design §2).
"""

from pydantic import Field, StrictInt

from fanout.api.function_pipeline import Function, InjectionPointFilter, PackageContext
from fanout.api.object_meta import LabelSelector, Model
from fanout.api.path_fields import PackagePath
from fanout.api.text_fields import (
    Annotations,
    ApiVersion,
    Distinct,
    Expression,
    Kind,
    Labels,
    Name,
    ObjectName,
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
