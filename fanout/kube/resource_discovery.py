"""Discovery: which kinds an API server serves, at which paths, and in which scope."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from fanout.api.object_meta import GROUP
from fanout.errors import Denied, InvalidInput
from fanout.kube.api_connection import DEFINITIONS_REMEDY, ApiConnection, NotServed
from fanout.values import Value

# Definitions are large, and often their names suffice.
METADATA_ACCEPT = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
# One document for all groups, since Kubernetes 1.30 in this version.
_ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ResourceType(Value):
    """A kind in one version, as an API server serves it."""

    group: str
    version: str
    kind: str
    plural: str  # last part of its path
    is_namespaced: bool

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "") -> str:
        """Return the path of the list of its objects in one namespace, or in all."""
        prefix = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{prefix}/{self.version}{inside}/{self.plural}"


DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ServedKinds:
    """Kinds that an API server can list."""

    def __init__(
        self,
        resource_types: Iterable[ResourceType],
        definition_times: Mapping[tuple[str, str], datetime] | None = None,
    ) -> None:
        """Index the types; of each kind the version that the server prefers comes first."""
        self.definition_times = definition_times or {}
        self._versions: dict[tuple[str, str], dict[str, ResourceType]] = {}
        for item in resource_types:
            self._versions.setdefault((item.group, item.kind), {}).setdefault(item.version, item)

    def find(self, group: str, kind: str, version: str = "") -> ResourceType | None:
        """Return the type of a kind in this version; default: the preferred version."""
        versions = self._versions.get((group, kind), {})
        return versions.get(version) if version else next(iter(versions.values()), None)

    def require_own(self, kind: str) -> ResourceType:
        """Return the type of one of fanout's kinds. Raises InvalidInput if it is not installed."""
        if (resource_type := self.find(GROUP, kind)) is None:
            raise InvalidInput(
                describe_unserved_kind(kind, GROUP),
                reason="ClusterUnavailable",
                remedy=DEFINITIONS_REMEDY,
            )
        return resource_type

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """Return the versions of a kind, the one that the server prefers first."""
        return tuple(self._versions.get((group, kind), ()))

    def with_kinds(
        self,
        types_by_kind: Mapping[tuple[str, str], Sequence[ResourceType]],
        definition_times: Mapping[tuple[str, str], datetime],
    ) -> "ServedKinds":
        """Return these kinds with others in place of some; a kind without types is not served."""
        others = (
            item
            for kind, versions in self._versions.items()
            if kind not in types_by_kind
            for item in versions.values()
        )
        custom_types = (it for types in types_by_kind.values() for it in types)
        return ServedKinds((*others, *custom_types), definition_times)

    def with_later(self, later: "ServedKinds") -> "ServedKinds":
        """Return the kinds of a later discovery, and those of this one that it lacks.

        The same value if the later one has nothing else. A group of which the server is down is
        missing in a discovery, and lists of its kinds fail by themselves.
        """
        previous, present = self.types_by_kind(), later.types_by_kind()
        if all(previous.get(kind) == types for kind, types in present.items()):
            return self
        return self.with_kinds(present, {**self.definition_times, **later.definition_times})

    def types_by_kind(self) -> dict[tuple[str, str], tuple[ResourceType, ...]]:
        """Return the types of each kind, that of the preferred version first."""
        return {kind: tuple(versions.values()) for kind, versions in self._versions.items()}

    def groups(self, kind: str) -> tuple[str, ...]:
        """Return the API groups that have a kind of this name."""
        return tuple(group for group, name in self._versions if name == kind)

    def scopes(self) -> Mapping[tuple[str, str], bool]:
        """Return whether objects are in namespaces, by (group, kind)."""
        return {kind: types[0].is_namespaced for kind, types in self.types_by_kind().items()}


def describe_unserved_kind(kind: str, group: str) -> str:
    """Say that the API server has no resource of a kind."""
    return f"the API server does not serve kind {kind}" + (f" of group {group}" if group else "")


def discover_kinds(connection: ApiConnection) -> ServedKinds:
    """Ask the API server for all kinds that it can list. Raises Denied and Unavailable."""
    resource_types = [
        ResourceType(
            group=group["metadata"].get("name", ""),
            version=version["version"],
            kind=resource["responseKind"]["kind"],
            plural=resource["resource"],
            is_namespaced=resource["scope"] == "Namespaced",
        )
        for path in ("/api", "/apis")
        for group in connection.get(path, accept=_ACCEPT).get("items", ())
        for version in group.get("versions", ())
        for resource in version.get("resources", ())
        if "list" in resource.get("verbs", ())
    ]
    try:
        document = connection.get(DEFINITIONS_PATH, METADATA_ACCEPT)
    except (Denied, NotServed):  # definitions must not be listed
        return ServedKinds(resource_types)
    created = {
        item["metadata"]["name"]: datetime.fromisoformat(item["metadata"]["creationTimestamp"])
        for item in document.get("items") or ()
    }
    names = {(it.group, it.kind): f"{it.plural}.{it.group}" for it in resource_types}
    times = {kind: created[name] for kind, name in names.items() if name in created}
    return ServedKinds(resource_types, times)


def version_rank(version: str) -> tuple[int, int, int]:
    """Return a key by which Kubernetes prefers versions: v2, v1, v2beta1, v2alpha1, others."""
    if (match := _VERSION.fullmatch(version)) is None:
        return (-1, 0, 0)
    major, stability, minor = match.groups()
    return (("alpha", "beta", None).index(stability), int(major), int(minor or 0))
