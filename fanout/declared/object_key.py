"""Key of an object, and the location of its fields for messages."""

from typing import Any, NamedTuple, Protocol

from fanout.api.field_errors import FieldPath
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import KRMObject
from fanout.errors import ErrorLocation
from fanout.selection.cluster_objects import group_of
from fanout.selection.variant_spec import Object


class ObjectKey(NamedTuple):
    """Unique key of an object: group, kind, namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, data: Object) -> "ObjectKey":
        """Return the key of an object whose identifying fields have been checked."""
        meta = data["metadata"]
        return cls(group_of(data["apiVersion"]), data["kind"], meta["namespace"], meta["name"])

    @property
    def identity(self) -> str:
        """Return `Kind/name`, as messages name the object."""
        return f"{self.kind}/{self.name}"

    def may_be(self, kind: type[KRMObject]) -> bool:
        """Return whether an object meant for fanout is of this kind; a misspelled one may be."""
        return self.kind == kind.__name__ or self.kind not in KINDS


class ObjectPosition(Protocol):
    """Position of a declared object where its users write it: in a file, or in the API."""

    @property
    def value(self) -> Any:
        """The object's data as it was written."""

    def locate(self, identity: str, path: FieldPath) -> ErrorLocation:
        """Return the location of a field of the object, which messages call `identity`."""
