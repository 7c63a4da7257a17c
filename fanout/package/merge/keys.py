"""Which lists are sets of elements with keys, and which maps have free keys.

Three sources: the built-in kinds' OpenAPI (`keys_table`), the schemas of CustomResourceDefinitions
found on any side, and the Kptfile's own format (porch.md §8.1). What none of them knows is merged
without keys.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import Any, Final, Protocol

from fanout.package.merge.keys_table import KINDS, TYPES
from fanout.values import frozen

SET: Final = ("=",)  # an element is its own key
FUNCTION: Final = ("function",)  # a Kptfile's pipeline: see `functions`
OBJECT: Final = ("object",)  # the items of a List, which are objects of their own
# The only keys that Kubernetes fills in where they are left out.
DEFAULTS: Final[Mapping[str, object]] = {"protocol": "TCP"}
# Maps whose entries are independent of each other wherever they stand.
FREE_MAPS: Final = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"}
    | {"limits", "requests", "configMap"}
)
_FIELD: Final = re.compile(r"([^>\[{]+)(\[[^\]]*\]|\{\})?(?:>(.*))?\Z")


class Shape(Protocol):
    """What is known of a value: merge keys if it is a list, and its parts."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The merge keys of a list, SET, FUNCTION, OBJECT, or () when it has none."""

    @property
    def free(self) -> bool:
        """Is it a map whose entries come and go one by one?"""

    def child(self, name: str) -> "Shape":
        """A field of the map."""

    def element(self) -> "Shape":
        """An element of the list."""


@frozen
class Described:
    """A shape in terms of other shapes; the empty one knows nothing."""

    fields: Mapping[str, Shape] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    free: bool = False
    below: Shape | None = None

    def child(self, name: str) -> Shape:
        """A field of the map."""
        return self.fields.get(name) or self.below or unknown(name)

    def element(self) -> Shape:
        """An element of the list."""
        return self.below or Described(self.fields)


@cache
def unknown(name: str) -> Shape:
    """A field that no schema describes."""
    return Described(free=name in FREE_MAPS)


@frozen
class BuiltIn:
    """A shape of the table."""

    type: str
    keys: tuple[str, ...] = ()
    free: bool = False

    def child(self, name: str) -> Shape:
        """A field of the map."""
        if self.free:
            return BuiltIn(self.type) if self.type else unknown("")
        return _fields(self.type).get(name) or unknown(name)

    def element(self) -> Shape:
        """An element of the list."""
        return BuiltIn(self.type)


@cache
def _fields(type_: str) -> Mapping[str, Shape]:
    found: dict[str, Shape] = {}
    for text in TYPES.get(type_, "").split():
        match = _FIELD.match(text)
        assert match is not None
        name, kind, target = match[1], match[2] or "", match[3] or ""
        keys = tuple(kind[1:-1].split(",")) if kind.startswith("[") else ()
        found[name] = BuiltIn(target, keys, kind == "{}")
    return found


@frozen
class Custom:
    """A shape that an OpenAPI schema in a CustomResourceDefinition describes."""

    schema: Mapping[str, Any]

    @property
    def keys(self) -> tuple[str, ...]:
        """Merge keys, by `x-kubernetes-list-type`."""
        kind = self.schema.get("x-kubernetes-list-type")
        keys = self.schema.get("x-kubernetes-list-map-keys")
        if kind == "map" and isinstance(keys, list) and all(isinstance(k, str) for k in keys):
            return tuple(keys)
        return SET if kind == "set" else ()

    @property
    def free(self) -> bool:
        """Maps with additionalProperties."""
        return bool(self.schema.get("additionalProperties"))

    def child(self, name: str) -> Shape:
        """A field of the map."""
        found = _mapping(self.schema.get("properties")).get(name)
        found = found or self.schema.get("additionalProperties")
        return Custom(found) if isinstance(found, dict) else unknown(name)

    def element(self) -> Shape:
        """An element of the list."""
        return Custom(_mapping(self.schema.get("items")))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_METADATA: Final = BuiltIn("meta.v1.ObjectMeta")
_FUNCTION: Final = Described({"configMap": Described(free=True)})
KPTFILE: Final = Described(
    {
        "metadata": _METADATA,
        "info": Described(
            {
                "readinessGates": Described(keys=("conditionType",)),
                "emails": Described(keys=SET),
                "keywords": Described(keys=SET),
            }
        ),
        "pipeline": Described(
            {
                "mutators": Described(keys=FUNCTION, below=_FUNCTION),
                "validators": Described(keys=FUNCTION, below=_FUNCTION),
            }
        ),
        "inventory": Described(
            {"labels": Described(free=True), "annotations": Described(free=True)}
        ),
        "status": Described({"conditions": Described(keys=("type",))}),
    }
)
LIST: Final = Described({"items": Described(keys=OBJECT)})
PLAIN: Final = Described({"metadata": _METADATA})

Schemas = Mapping[tuple[str, str], Shape]  # by group and kind


def schemas_of(objects: Iterable[object]) -> Schemas:
    """The shapes of custom resources, from the CustomResourceDefinitions among the objects.

    Of several versions the stored one counts; a later definition replaces an earlier one.
    """
    found: dict[tuple[str, str], Shape] = {}
    for value in objects:
        if not isinstance(value, dict) or value.get("kind") != "CustomResourceDefinition":
            continue
        spec = _mapping(value.get("spec"))
        group, kind = spec.get("group"), _mapping(spec.get("names")).get("kind")
        versions = spec.get("versions")
        if isinstance(group, str) and isinstance(kind, str) and isinstance(versions, list):
            shape = _custom(versions)
            found |= {(group, kind): shape} if shape else {}
    return found


def _custom(versions: list[Any]) -> Shape | None:
    stored = sorted(map(_mapping, versions), key=lambda version: not version.get("storage"))
    schema = _mapping(stored[0].get("schema")) if stored else {}
    properties = _mapping(_mapping(schema.get("openAPIV3Schema")).get("properties"))
    fields: dict[str, Shape] = {name: Custom(_mapping(s)) for name, s in properties.items()}
    return Described({**fields, "metadata": _METADATA}) if fields else None


def shape_of(group: str, kind: str, schemas: Schemas) -> Shape:
    """The shape of an object."""
    name = f"{kind}.{group}" if group else kind
    if name in KINDS:
        return BuiltIn(KINDS[name])
    return schemas.get((group, kind)) or PLAIN


def element_keys(elements: list[Any], keys: tuple[str, ...]) -> list[tuple[object, ...]] | None:
    """The key of each element, made unique by a number; None when one lacks it.

    A repeated key is told apart by its occurrence, so that of two entries of one name each keeps
    its own value.
    """
    found: list[tuple[object, ...]] = []
    for element in elements:
        key = _key(element, keys)
        if key is None:
            return None
        found.append(key)
    seen: dict[tuple[object, ...], int] = {}
    unique: list[tuple[object, ...]] = []
    for key in found:
        number = seen[key] = seen.get(key, -1) + 1
        unique.append((*key, number))
    return unique


def _key(element: Any, keys: tuple[str, ...]) -> tuple[object, ...] | None:
    if keys == SET:
        return None if isinstance(element, dict | list) else (type(element).__name__, element)
    if not isinstance(element, dict):
        return None
    values = [element.get(name, DEFAULTS.get(name)) for name in keys]
    if any(value is None or isinstance(value, dict | list) for value in values):
        return None
    return tuple(str(value) for value in values)
