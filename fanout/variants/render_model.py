"""Data types of a rendering: upstream package, limits, inputs and rendered files."""

from collections.abc import Mapping
from typing import ClassVar

from fanout.api.fanout_configuration import InjectionRules
from fanout.package.package_limits import SizeLimits
from fanout.package.revision import Revision
from fanout.package.tree_ids import TreeEntry
from fanout.selection.cluster_objects import ContentHashes
from fanout.values import KeyedValue, Value, field
from fanout.variants.function_requests import NO_PROGRAMS, AllowedPrograms
from fanout.variants.functions.function_interface import FunctionResult


class UpstreamPackage(Value):
    """An upstream package at one revision, as read from Git."""

    repository: str  # the URL, as it goes into the Kptfile
    directory: str  # path of the package in the repository
    revision: Revision
    tree: str  # id of the package's tree
    files: Mapping[str, tuple[TreeEntry, bytes]]  # by path inside the package
    author: str = ""  # of the revision's commit, as "name <email>"


class RenderLimits(SizeLimits):
    """Limits and permissions set by the administrator for packages and their rendering."""

    injectable: InjectionRules = InjectionRules.model_construct()
    programs: AllowedPrograms = NO_PROGRAMS  # external functions


class Injection(Value):
    """Content of one injection point, or the reason why there is none."""

    point: str  # "<Kind>.<name>", as in the condition type config.injection.<Kind>.<name>
    required: bool
    source: str = ""  # name of the cluster object; "" when none was found
    value: object = None  # content of `data` (ConfigMap) or `spec`
    problem: str = ""
    key: str = ""  # of the cluster object: "group/kind/namespace/name"


class RenderInputs(KeyedValue):
    """Inputs of a rendering besides the upstream package, and their digest."""

    UNCOMPARED: ClassVar = ("content_hashes",)

    digest: str
    injections: tuple[Injection, ...] = ()
    content_hashes: ContentHashes = field(default_factory=ContentHashes)

    @property
    def object_versions(self) -> Mapping[str, str]:
        """Return the version of every cluster object that the rendering reads, by its key."""
        objects = ((item.key, item.value) for item in self.injections if item.key)
        return {key: self.content_hashes.hash_of(key, value) for key, value in objects}

    @property
    def missing_injections(self) -> tuple[Injection, ...]:
        """Return the required injection points without a source; they hold the draft."""
        return tuple([item for item in self.injections if item.required and not item.source])


class RenderedPackage(Value):
    """Files of a rendered package: ids of all, bytes of those that differ from upstream."""

    tree: str  # git id of the package's tree
    entries: Mapping[str, TreeEntry]  # by path inside the package
    blobs: Mapping[str, bytes] = field(default_factory=dict)  # new content, by blob id
    results: tuple[FunctionResult, ...] = ()  # of the pipeline's functions
