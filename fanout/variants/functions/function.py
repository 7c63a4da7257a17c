"""What every in-process function is: a name, a version, and changes to one object at a time.

A function never edits anything itself. It is shown an object as it stands and yields what it wants
changed; the pipeline applies that to the text. So one function serves every layout of YAML, and
what it yields for an object can be kept for all targets that share its configuration.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
Change = tuple[Path, object]  # what is at the path from now on; missing maps on the way are made
Identity = tuple[str, str, str, str]  # group, kind, namespace, name
Object = Mapping[str, Any]

LOCAL_CONFIG = "config.kubernetes.io/local-config"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a function may know of the package around an object, as it stands before the function.

    `namespaced` is filled in only where some object of the package names its dependencies.
    """

    cluster_kinds: frozenset[tuple[str, str]] = frozenset()  # by the CRDs in the package
    namespaced: frozenset[Identity] = frozenset()


@dataclass(frozen=True, slots=True)
class InProcess:
    """One function of the catalog that runs inside fanout.

    `version` enters the digest: it grows whenever the function yields something else for the same
    package. `configure` reads the function's configuration object into a value that can be hashed;
    it raises InvalidInput. `changes` yields what is to change in an object.
    """

    name: str
    version: str
    configure: Callable[[Object], Hashable]
    changes: Callable[[Any, Object, Facts], Iterator[Change]]


def mapping(value: object) -> Mapping[Any, Any]:
    """The value if it is a map, else an empty one: what is not there is not looked into."""
    return value if isinstance(value, Mapping) else {}


def is_local(item: Object) -> bool:
    """Is the object for tools alone? The catalog's functions pass such objects by."""
    notes = mapping(mapping(item.get("metadata")).get("annotations"))
    return str(notes.get(LOCAL_CONFIG) or "false").lower() != "false"
