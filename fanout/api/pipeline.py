"""Functions, package context and injectors: what a PackageVariant and a template have alike."""

from pydantic import Field

from fanout.api.meta import Model
from fanout.api.texts import (
    Data,
    Distinct,
    FreeForm,
    FunctionConfig,
    FunctionName,
    Key,
    Kind,
    ObjectName,
    Text,
)

RESERVED_KEYS = ("name", "package-path")  # kpt writes these two itself


class Function(Model):
    """One function of the pipeline; exactly one of `image` and `exec`."""

    image: Text = Field(
        default="",
        description="The function: its name in the catalog, like set-namespace, or its image.",
    )
    exec: Text | None = Field(default=None, description="An executable, instead of an image.")
    tag: Text | None = Field(default=None, description="The image's version, or a range.")
    name: FunctionName | None = Field(
        default=None, description="A name for the entry, without dots; unique in its list."
    )
    config_map: FunctionConfig = Field(default={}, description="The function's configuration.")
    config_path: Text | None = Field(
        default=None, description="A file of the package that configures the function."
    )
    selectors: tuple[FreeForm, ...] = Field(
        default=(), description="The objects that the function sees; none: all."
    )
    exclude: tuple[FreeForm, ...] = Field(
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
    """What goes into the package's context ConfigMap (package-context.yaml)."""

    data: Data = Field(default={}, description="Keys to set; name and package-path are reserved.")
    remove_keys: Distinct[Key] = Field(
        default=(), description="Keys to remove, after the others were set."
    )


class InjectorKind(Model):
    """For which injection points an injector is; what is not given fits any."""

    group: str | None = Field(default=None, description='The API group; "" is the core group.')
    version: str | None = Field(default=None, description="The version of the API.")
    kind: Kind | None = Field(default=None, description="The kind.")


class Injector(InjectorKind):
    """Chooses the cluster object for the injection points that it fits."""

    name: ObjectName = Field(description="The name of the cluster object.")
