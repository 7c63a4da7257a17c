"""PackageVariant: one upstream package at one downstream path, with its functions."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool

from fanout.api.field_errors import InvalidValue
from fanout.api.object_meta import (
    KRMObject,
    Model,
    ObjectStatus,
    ObservedStatus,
    kind_field,
    listed,
    optional,
)
from fanout.api.text_fields import (
    MAX_ENTRIES,
    MAX_VALUES,
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
    schema_keywords,
)

RESERVED_KEYS = ("name", "package-path")  # kpt writes these two itself


class PipelineSelector(Model):
    """Conditions on one object, all of which must hold."""

    api_version: Text | None = optional("apiVersion of the objects.")
    kind: Kind | None = optional("Kind of the objects.")
    name: Text | None = optional("Name of the object.")
    namespace: Text | None = optional("Namespace of the objects.")
    labels: Labels = optional("Labels that the objects must have.", default={})
    annotations: Annotations = optional("Annotations that the objects must have.", default={})

    def conditions(self) -> dict[str, object]:
        """Return the conditions that are set, under their field names in a Kptfile."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


def check_selector(selector: PipelineSelector) -> PipelineSelector:
    """Return the selector. Raises InvalidValue if it has no condition."""
    if not selector.conditions():
        raise InvalidValue("the selector is empty", "set at least one field, or remove it")
    return selector


NonEmptySelector = Annotated[
    PipelineSelector, AfterValidator(check_selector), schema_keywords(minProperties=1)
]


class Function(Model):
    """One function of the pipeline; exactly one of `image` and `exec`."""

    image: Text = optional(
        "Function: its name in the catalog, like `set-namespace`, or its image.", default=""
    )
    exec: Text | None = optional(
        "Executable to run in place of an image; must be listed in"
        " `functions.executables` of the FanoutConfiguration."
    )
    tag: Text | None = optional("Tag of the image; ignored for functions that run in process.")
    name: FunctionName | None = optional("Name of the entry, without dots; unique in its list.")
    config_map: FunctionConfig = optional(
        "Configuration of the function, as the data of a ConfigMap.", default={}
    )
    config_path: PackageFile | None = optional(
        "Path of the file in the package that configures the function."
    )
    selectors: tuple[NonEmptySelector, ...] = listed(
        "Objects that are passed to the function; default: all.", MAX_ENTRIES
    )
    exclude: tuple[NonEmptySelector, ...] = listed(
        "Objects that are not passed to the function; default: none.", MAX_ENTRIES
    )


class Pipeline(Model):
    """Functions that run on the variant before the package's own."""

    mutators: tuple[Function, ...] = listed(
        "Functions that change objects; run in the listed order.", MAX_ENTRIES
    )
    validators: tuple[Function, ...] = listed(
        "Functions that check objects without changing them; run after the mutators.", MAX_ENTRIES
    )


class PackageContext(Model):
    """Changes to the package's context ConfigMap (package-context.yaml)."""

    data: Data = optional("Keys to set; `name` and `package-path` are reserved.", default={})
    remove_keys: Distinct[Key] = listed(
        "Keys to remove, after those of `data` were set.", MAX_VALUES
    )


class InjectionPointFilter(Model):
    """Injection points that an injector is for; an absent field matches any."""

    group: Annotated[str, Field(max_length=253)] | None = optional(
        'API group of the injection points; `""` is the core group. Default: any.'
    )
    version: Annotated[str, Field(max_length=63)] | None = optional(
        "API version of the injection points; default: any."
    )
    kind: Kind | None = optional("Kind of the injection points; default: any.")


class Injector(InjectionPointFilter):
    """Injector: selects the cluster object for the injection points that it matches."""

    name: ObjectName = Field(description="Name of the cluster object to inject.")


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


MergeStrategyField = Annotated[
    UpdateStrategy,
    Field(
        description="Strategy, as in kpt, that merges a new upstream revision into the"
        " downstream package."
    ),
]
OnConflictField = Annotated[
    OnConflict,
    Field(
        description="How merge conflicts are handled, where upstream and local changed the"
        " same value. `Hold`: the draft waits for a person's decision; `UpstreamWins`,"
        " `LocalWins`: the values of that side are taken."
    ),
]


class RevisionRule(Model):
    """Revisions of the package that are wanted; exactly one of the fields."""

    tag: RevisionName | None = optional(
        "Exactly this revision: the part of the tag after the package path, like `v3`."
    )
    semver: Text | None = optional(
        'All revisions in this version range, like `">=1 <3"`, `"^1.4"` or `"1.x || 3.x"`.'
    )
    latest: Literal[True] | None = optional(
        "All revisions except prereleases.", json_schema_extra={"type": "boolean"}
    )
    commit: CommitId | None = optional("The package as of this commit; 40 hexadecimal digits.")


class Upstream(Model):
    """The upstream package."""

    repository: Name = Field(description="Name of the Repository object that has the package.")
    package: PackagePath = Field(
        description="Path of the package in the repository, relative to `spec.directory` of"
        " the Repository."
    )
    revision: RevisionRule = Field(
        description="Selection of the revisions; exactly one field must be set."
    )


class Downstream(Model):
    """Location of the variant."""

    repository: Name = Field(description="Name of a Repository object.")
    package: PackagePath = Field(
        description="Path of the package in the repository, relative to `spec.directory` of"
        " the Repository."
    )


class Dependency(Model):
    """Variant that must be ready first: that of a policy for a target, or one by name."""

    policy: Name | None = optional("Name of an UpstreamPolicy; requires `target`.")
    target: Text | None = optional("Key of a target of that policy.")
    variant: Name | None = optional("Name of a PackageVariant; excludes `policy` and `target`.")


class PolicyRef(Model):
    """Policy that made the variant."""

    name: Name = Field(description="Name of the UpstreamPolicy.")


class PackageVariantSpec(Model):
    """Upstream, downstream, and the changes made to the package on the way."""

    upstream: Upstream = Field(description="Upstream package and the selection of its revisions.")
    downstream: Downstream = Field(description="Repository and path of the variant.")
    package_context: PackageContext = optional(
        "Changes to the package's context ConfigMap, `package-context.yaml`.",
        default=PackageContext.model_construct(),
    )
    pipeline: Pipeline = optional(
        "Functions that run before those of the package's own pipeline.",
        default=Pipeline.model_construct(),
    )
    injectors: tuple[Injector, ...] = listed(
        "Cluster objects to inject into the package; for each injection point"
        " the first entry that matches is used.",
        MAX_ENTRIES,
    )
    labels: Labels = optional("Labels to set in the Kptfile.", default={})
    annotations: Annotations = optional("Annotations to set in the Kptfile.", default={})
    adoption_policy: AdoptionPolicy = optional(
        "Handling of a package that exists at the path already. `AdoptNone`: it"
        " is left alone and the variant is held; `AdoptExisting`: it becomes the variant.",
        default=AdoptionPolicy.ADOPT_NONE,
    )
    deletion_policy: DeletionPolicy = optional(
        "Handling of the package when the variant is removed. `Delete`: it is"
        " deleted; `Orphan`: it stays.",
        default=DeletionPolicy.DELETE,
    )
    update_strategy: MergeStrategyField = UpdateStrategy.RESOURCE_MERGE
    on_conflict: OnConflictField = OnConflict.HOLD
    depends_on: tuple[Dependency, ...] = listed(
        "Variants that must be ready before this one is published.", MAX_VALUES
    )
    suspend: StrictBool = optional(
        "Whether the variant is suspended: no draft is written, nothing is published.",
        default=False,
    )
    policy_ref: PolicyRef | None = optional(
        "UpstreamPolicy that created the variant; absent in a manually written object."
    )
    stage: Name | None = optional(
        "Name of the stage in that policy; absent in a manually written object."
    )


class PackageVariant(KRMObject):
    """One upstream package as it stands at one downstream path."""

    PLURAL: ClassVar[str] = "packagevariants"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("pvar",)
    # Those that people declare are listed, and not those of policies.
    SELECTABLE: ClassVar[str] = "spec.policyRef.name"

    kind: Literal["PackageVariant"] = kind_field("PackageVariant")
    spec: PackageVariantSpec = Field(
        description="Upstream package, downstream location, and the changes made in between."
    )
    status: ObservedStatus = ObjectStatus.model_construct()
