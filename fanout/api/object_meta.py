"""Base model, metadata, conditions, label selectors and label keys of all kinds."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt
from pydantic.alias_generators import to_camel

from fanout.api.text_fields import (
    MAX_ENTRIES,
    MAX_VALUES,
    Annotations,
    Distinct,
    FreeForm,
    LabelKey,
    Labels,
    LabelValue,
    Name,
    RecordName,
    SelectorLabels,
    list_map,
)

GROUP = "fanout.dev"
VERSION = "v1alpha1"
API_VERSION: Literal["fanout.dev/v1alpha1"] = "fanout.dev/v1alpha1"
DEFAULT_NAMESPACE = "default"

# names that the general rule does not spell right, or that Python keeps for itself
_IRREGULAR_NAMES: Mapping[str, str] = {
    "from_": "from",
    "memory_mib": "memoryMiB",
    "output_mib": "outputMiB",
    "fields_": "fields",
    "bytes_": "bytes",
    "class_": "class",
}


def is_secret(group: str, kind: str) -> bool:
    """Return whether an object of this API group and kind is a Secret, which no package may read.

    Its content would end up in Git.
    """
    return (group, kind) == ("", "Secret")


def yaml_name(attribute: str) -> str:
    """Return the YAML name of a model's attribute."""
    return _IRREGULAR_NAMES.get(attribute) or to_camel(attribute)


class Model(BaseModel):
    """Frozen model: snake_case attributes, camelCase in YAML; unknown fields are refused."""

    model_config = ConfigDict(
        alias_generator=yaml_name,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        defer_build=True,  # of 90 models a command needs a few; so defaults use `model_construct`
    )


def optional(description: str, default: object = None, **keywords: Any) -> Any:
    """Return a field of a model that nobody has to write, with what it is then."""
    return Field(default=default, description=description, **keywords)


def listed(description: str, max_length: int | None = None, **keywords: Any) -> Any:
    """Return a field of a model that is an empty list where nobody wrote one."""
    return optional(description, default=(), max_length=max_length, **keywords)


def kind_field(kind: str) -> Any:
    """Return the field of a model that names its kind."""
    return optional(f"Kind of the object; always `{kind}`.", default=kind)


_IGNORED = "Set by Kubernetes; fanout accepts and ignores it."


class ObjectMeta(Model):
    """Metadata as in Kubernetes; fields that its API server adds are accepted."""

    name: Name = Field(description="Name of the object; unique within its kind and namespace.")
    namespace: Name = optional("Namespace of the object.", default=DEFAULT_NAMESPACE)
    labels: Labels = optional("Labels, which selectors can match.", default={})
    annotations: Annotations = optional("Annotations; fanout does not interpret them.", default={})
    generate_name: str | None = optional(_IGNORED)
    uid: str | None = optional(_IGNORED)
    resource_version: str | None = optional(_IGNORED)
    generation: StrictInt | None = optional(_IGNORED)
    creation_timestamp: datetime | None = optional(_IGNORED)
    deletion_timestamp: datetime | None = optional(
        "Set by Kubernetes when the object is deleted. An UpstreamPolicy with it has"
        " no targets, and its variants are removed; so is a PackageVariant."
    )
    deletion_grace_period_seconds: StrictInt | None = optional(_IGNORED)
    finalizers: tuple[str, ...] = listed(_IGNORED)
    owner_references: tuple[FreeForm, ...] = listed(_IGNORED)
    managed_fields: tuple[FreeForm, ...] = listed(_IGNORED)
    self_link: str | None = optional(_IGNORED)


class RecordMeta(ObjectMeta):
    """Metadata of a record; the name may be given when the record is stored."""

    name: RecordName = optional(
        "Name of the record; assigned when it is stored if absent.", default=""
    )


class StatusCondition(Model):
    """One condition, in the form of Kubernetes."""

    type: LabelValue = Field(
        description="Type of the condition: `Ready`, `Reconciling`, `Stalled` or another"
        " one of fanout."
    )
    status: Literal["True", "False", "Unknown"] = Field(
        description="Whether the condition holds: `True`, `False` or `Unknown`."
    )
    reason: str = Field(
        description="Reason as one CamelCase word; the index of reasons lists all values."
    )
    message: str = optional("Explanation of the reason as one sentence.", default="")
    last_transition_time: str | None = optional(
        "Time since which the reason is on record, in RFC 3339; null if no record or commit has it."
    )
    observed_generation: StrictInt | None = optional(
        "Generation of the object that the condition is about; absent for"
        " objects that no API server stored."
    )


class ObjectStatus(Model):
    """Status that fanout writes about an object; it is not read from files."""

    # The API server may hold a status written by a newer version; refusing its fields would make
    # every object unreadable after a downgrade.
    model_config = ConfigDict(extra="allow")

    observed_generation: StrictInt = optional(
        "Generation of the spec that the status is about.", default=0
    )
    conditions: tuple[StatusCondition, ...] = listed(
        "Conditions of the object; `Ready` is always present, `Reconciling` and"
        " `Stalled` only while they are true.",
        json_schema_extra=list_map("type"),
    )


ObservedStatus = Annotated[
    ObjectStatus, Field(description="State of the object as fanout last observed it.")
]


class KRMObject(Model):
    """An object of group fanout.dev; the kinds are its subclasses."""

    PLURAL: ClassVar[str] = ""
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ()
    # path of the field by which the controller selects objects of the kind; "": it lists all
    SELECTABLE: ClassVar[str] = ""

    api_version: Literal["fanout.dev/v1alpha1"] = optional(
        "Version of the API; always `fanout.dev/v1alpha1`.", default="fanout.dev/v1alpha1"
    )
    kind: str = Field(description="Kind of the object.")
    metadata: ObjectMeta = Field(
        description="Name, namespace, labels and annotations of the object."
    )

    @property
    def identity(self) -> str:
        """Kind and name for messages: `UpstreamPolicy/monitoring`."""
        return f"{self.kind}/{self.metadata.name}"

    @property
    def is_being_deleted(self) -> bool:
        """True if somebody deleted the object, and a finalizer keeps it."""
        return self.metadata.deletion_timestamp is not None


class LabelOperator(StrEnum):
    """Comparison of a label with the values of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(Model):
    """One entry of `matchExpressions`."""

    key: LabelKey = Field(description="Key of the label.")
    operator: LabelOperator = Field(description="Comparison of the label with `values`.")
    values: Distinct[LabelValue] = listed(
        "Values of the label for `In` and `NotIn`; empty for `Exists` and `DoesNotExist`.",
        MAX_VALUES,
    )


class LabelSelector(Model):
    """Labels and expressions, all of which must hold; an empty selector chooses everything."""

    match_labels: SelectorLabels = optional(
        "Labels that an object must have with exactly these values.", default={}
    )
    match_expressions: tuple[Requirement, ...] = listed(
        "Further requirements; all must be met.", MAX_ENTRIES
    )


class Label(StrEnum):
    """Keys of the labels and annotations that fanout writes or reads. A closed list, sorted."""

    BY = "fanout.dev/by"
    GROUPS = "fanout.dev/groups"
    INSTALL = "fanout.dev/install"
    POLICY = "fanout.dev/policy"
    REPOSITORY = "fanout.dev/repository"
    STAGE = "fanout.dev/stage"
    CONFIG_INJECTION = "kpt.dev/config-injection"
    INJECTED_RESOURCE = "kpt.dev/injected-resource"
    REQUESTED_AT = "reconcile.fanout.dev/requestedAt"
