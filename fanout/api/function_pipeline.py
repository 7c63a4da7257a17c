"""Functions, package context and injectors of PackageVariants and target templates."""

from typing import Annotated

from pydantic import AfterValidator, Field

from fanout.api.field_errors import InvalidValue
from fanout.api.object_meta import Model
from fanout.api.path_fields import PackageFile
from fanout.api.text_fields import (
    Annotations,
    Data,
    Distinct,
    FunctionConfig,
    FunctionName,
    Key,
    Kind,
    Labels,
    ObjectName,
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
