"""Merge keys of lists, and maps with free keys.

Three sources: the OpenAPI of the built-in kinds (`keys_table`), the schemas of
CustomResourceDefinitions on any side, and the Kptfile's own format.
Fields that no source describes are merged without keys.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol

from fanout.package.merge.keys_table import KINDS, TYPES
from fanout.values import Value, field

SET_KEYS: Final = ("=",)  # an element is its own key
FUNCTION_KEYS: Final = ("function",)  # a Kptfile's pipeline: see `match_functions`
# Defaults that the API server sets for merge keys of built-in kinds. Defaults of keys in a
# CustomResourceDefinition are not read.
KEY_DEFAULTS: Final[Mapping[str, object]] = {"protocol": "TCP"}
# Maps whose entries are independent of each other wherever they stand.
FREE_MAPS: Final = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"}
    | {"limits", "requests", "configMap"}
)
_TYPES_BY_KIND: Final = {
    (group, kind): f"{package}.{kind}"
    for place, kinds in KINDS.items()
    for package, group in [place.split(" ")]
    for kind in kinds.split()
}
_FIELD: Final = re.compile(r"([^>\[{]+)(\[[^\]]*\]|\{\})?(?:>(.*))?\Z")


class FieldShape(Protocol):
    """Schema of a value as far as a merge needs it: merge keys of a list, and its parts."""

    @property
    def merge_keys(self) -> tuple[str, ...]:
        """Merge keys of a list: SET_KEYS, FUNCTION_KEYS, field names, or ()."""

    @property
    def is_free_map(self) -> bool:
        """True for a map whose entries are independent of each other."""

    def child(self, name: str) -> "FieldShape":
        """Return the shape of a field of the map."""

    def element(self) -> "FieldShape":
        """Return the shape of the list's elements."""


class DescribedShape(Value):
    """Shape in terms of other shapes; without arguments, of an unknown value."""

    fields: Mapping[str, FieldShape] = field(default_factory=dict)
    merge_keys: tuple[str, ...] = ()
    is_free_map: bool = False
    element_shape: FieldShape | None = None

    def child(self, name: str) -> FieldShape:
        return self.fields.get(name) or self.element_shape or unknown_shape(name)

    def element(self) -> FieldShape:
        return self.element_shape or DescribedShape(self.fields)


def unknown_shape(name: str) -> FieldShape:
    """Return the shape of a field that no schema describes."""
    return _FREE_MAP if name in FREE_MAPS else _UNKNOWN


_FREE_MAP, _UNKNOWN = DescribedShape(is_free_map=True), DescribedShape()


class BuiltInShape(Value):
    """Shape of a built-in kind, from `keys_table`."""

    type: str
    merge_keys: tuple[str, ...] = ()
    is_free_map: bool = False

    def child(self, name: str) -> FieldShape:
        if self.is_free_map:
            return BuiltInShape(self.type) if self.type else unknown_shape("")
        return _fields_of_type(self.type).get(name) or unknown_shape(name)

    def element(self) -> FieldShape:
        return BuiltInShape(self.type)


@cache
def _fields_of_type(type_: str) -> Mapping[str, FieldShape]:
    shapes: dict[str, FieldShape] = {"metadata": _METADATA} if type_ else {}
    for text in TYPES.get(type_, "").split():
        match = _FIELD.match(text)
        assert match is not None
        name, kind, target = match[1], match[2] or "", match[3] or ""
        keys = tuple(kind[1:-1].split(",")) if kind.startswith("[") else ()
        shapes[name] = BuiltInShape(target, keys, kind == "{}")
    return shapes


class SchemaShape(Value):
    """Shape described by an OpenAPI schema of a CustomResourceDefinition."""

    schema: Mapping[str, Any]

    @property
    def merge_keys(self) -> tuple[str, ...]:
        """Merge keys by `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`."""
        list_type = self.schema.get("x-kubernetes-list-type")
        map_keys = self.schema.get("x-kubernetes-list-map-keys")
        if (
            list_type == "map"
            and isinstance(map_keys, list)
            and all(isinstance(k, str) for k in map_keys)
        ):
            return tuple(map_keys)
        return SET_KEYS if list_type == "set" else ()

    @property
    def is_free_map(self) -> bool:
        """True for maps with additionalProperties."""
        return bool(self.schema.get("additionalProperties"))

    def child(self, name: str) -> FieldShape:
        schema = _as_mapping(self.schema.get("properties")).get(name)
        schema = schema or self.schema.get("additionalProperties")
        return SchemaShape(schema) if isinstance(schema, dict) else unknown_shape(name)

    def element(self) -> FieldShape:
        return SchemaShape(_as_mapping(self.schema.get("items")))


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_METADATA: Final = BuiltInShape("meta.v1.ObjectMeta")
_FUNCTION: Final = DescribedShape({"configMap": DescribedShape(is_free_map=True)})
KPTFILE_SHAPE: Final = DescribedShape(
    {
        "metadata": _METADATA,
        "info": DescribedShape(
            {
                "readinessGates": DescribedShape(merge_keys=("conditionType",)),
                "emails": DescribedShape(merge_keys=SET_KEYS),
                "keywords": DescribedShape(merge_keys=SET_KEYS),
            }
        ),
        "pipeline": DescribedShape(
            {
                "mutators": DescribedShape(merge_keys=FUNCTION_KEYS, element_shape=_FUNCTION),
                "validators": DescribedShape(merge_keys=FUNCTION_KEYS, element_shape=_FUNCTION),
            }
        ),
        "inventory": DescribedShape(
            {
                "labels": DescribedShape(is_free_map=True),
                "annotations": DescribedShape(is_free_map=True),
            }
        ),
        "status": DescribedShape({"conditions": DescribedShape(merge_keys=("type",))}),
    }
)
DEFAULT_SHAPE: Final = DescribedShape({"metadata": _METADATA})

Schemas = Mapping[tuple[str, str], FieldShape]  # by group and kind


def read_schemas(objects: Iterable[object]) -> Schemas:
    """Return the shapes of custom resources that CRDs among the objects define.

    The stored version counts; a later definition replaces an earlier one.
    """
    shapes: dict[tuple[str, str], FieldShape] = {}
    for value in objects:
        if not isinstance(value, dict) or value.get("kind") != "CustomResourceDefinition":
            continue
        spec = _as_mapping(value.get("spec"))
        group, kind = spec.get("group"), _as_mapping(spec.get("names")).get("kind")
        versions = spec.get("versions")
        if isinstance(group, str) and isinstance(kind, str) and isinstance(versions, list):
            stored = sorted(map(_as_mapping, versions), key=lambda it: not it.get("storage"))
            schema = _as_mapping(stored[0].get("schema")) if stored else {}
            properties = _as_mapping(_as_mapping(schema.get("openAPIV3Schema")).get("properties"))
            fields: dict[str, FieldShape] = {
                name: SchemaShape(_as_mapping(it)) for name, it in properties.items()
            }
            if fields:
                shapes[group, kind] = DescribedShape({**fields, "metadata": _METADATA})
    return shapes


def find_shape(group: str, kind: str, schemas: Schemas) -> FieldShape:
    """Return the shape of the objects of a group and kind."""
    if (group, kind) in _TYPES_BY_KIND:
        return BuiltInShape(_TYPES_BY_KIND[group, kind])
    return schemas.get((group, kind)) or DEFAULT_SHAPE


def element_keys(elements: list[Any], keys: tuple[str, ...]) -> list[tuple[object, ...]] | None:
    """Return the key of each element, made unique by a number.

    None if an element lacks it. A repeated key is numbered by occurrence, so that
    each of two entries of one name keeps its own value.
    """
    occurrences: dict[tuple[object, ...], int] = {}
    unique: list[tuple[object, ...]] = []
    for element in elements:
        if keys == SET_KEYS:
            if isinstance(element, dict | list):
                return None
            key: tuple[object, ...] = (type(element).__name__, element)
        else:
            if not isinstance(element, dict):
                return None
            # The API server sets TCP: two ports with and without `protocol` are one port.
            values = [element.get(name, KEY_DEFAULTS.get(name)) for name in keys]
            if any(value is None or isinstance(value, dict | list) for value in values):
                return None
            key = tuple(map(str, values))
        number = occurrences[key] = occurrences.get(key, -1) + 1
        unique.append((*key, number))
    return unique


# ---- functions of a pipeline -------------------------------------------------------------------

_Function = Mapping[str, Any]
_MatchedFunction = dict[int, int]  # one function: by side, its place there
_ORIGIN, _UPSTREAM, _LOCAL = range(3)


def match_functions(sides: Sequence[Sequence[Any]]) -> list[list[tuple[int]]] | None:
    """Return a key for each entry of each side's list; None if an entry is not a mapping.

    A pipeline's function need not have a name, and one image may be run several times, so only the
    three lists together tell which entries are one function. Entries with equal content on two
    sides have one key. The rest is matched by name; then, between the origin and the others, by all
    but the name, and last, without a name, by image and order. Additions of both sides stay two
    functions, as order alone never matches them.
    """
    if not all(isinstance(entry, dict) for side in sides for entry in side):
        return None
    groups: list[_MatchedFunction] = [
        {side: n} for side, part in enumerate(sides) for n in range(len(part))
    ]
    for match_key, match_additions in _MATCH_ROUNDS:
        # Groups with the same match key are joined, the first with the first.
        groups_by_key: dict[Hashable, list[_MatchedFunction]] = {}
        for matched in groups:
            side, index = next(iter(matched.items()))
            groups_by_key.setdefault(match_key(sides[side][index]), []).append(matched)
        groups = groups_by_key.pop(None, [])
        for same_key in groups_by_key.values():
            groups += _join_group(same_key, match_additions)
    keys = [dict[int, tuple[int]]() for _ in sides]
    for number, group in enumerate(groups):
        for side, index in group.items():
            keys[side][index] = (number,)
    return [[keys_by_index[n] for n in range(len(keys_by_index))] for keys_by_index in keys]


def _function_content(function: _Function) -> str:
    return json.dumps(function, sort_keys=True)


def _function_name(function: _Function) -> str | None:
    name = function.get("name")
    return name if isinstance(name, str) and name else None


def _function_program(function: _Function) -> tuple[str, str] | None:
    """Return the image without its tag, or the executable, of a function without a name."""
    if _function_name(function) is not None:
        return None
    if isinstance(image := function.get("image"), str):
        path, slash, last = image.split("@")[0].rpartition("/")
        return "image", path + slash + last.split(":")[0]
    program = function.get("exec")
    return ("exec", program) if isinstance(program, str) else None


# Each round: the key by which entries are matched, and whether additions of both sides are matched
# too. From certain to plausible: entries that a stricter round matched are not available to later
# ones.
_MATCH_ROUNDS: Final[Sequence[tuple[Callable[[_Function], Hashable], bool]]] = (
    (_function_content, True),
    (_function_name, True),
    (lambda it: _function_content({key: it[key] for key in it if key != "name"}), False),
    (_function_program, False),
)


def _join_group(group: Sequence[_MatchedFunction], match_additions: bool) -> list[_MatchedFunction]:
    joined: set[int] = set()
    for other_sides in ({_UPSTREAM, _LOCAL}, {_UPSTREAM}, {_LOCAL}):
        unmatched = [same for same in group if _ORIGIN in same and not other_sides & same.keys()]
        joined |= _join_pairs(unmatched, [same for same in group if same.keys() == other_sides])
    if match_additions:
        remaining = [same for same in group if id(same) not in joined]
        upstream_only, local_only = (
            [same for same in remaining if same.keys() == {n}] for n in (1, 2)
        )
        joined |= _join_pairs(upstream_only, local_only)
    return [same for same in group if id(same) not in joined]


def _join_pairs(first: Sequence[_MatchedFunction], second: Sequence[_MatchedFunction]) -> set[int]:
    """Join pairs of groups. Return the ids of the second ones, which went into the first ones."""
    pairs = list(zip(first, second, strict=False))
    for target, source in pairs:
        target.update(source)
    return {id(source) for _, source in pairs}
