"""Names in an expression: built-in names, and the free variables that it reads.

`FreeVariables` is a tree of field names; a leaf (an empty mapping) stands for the complete value.
Only this part is sent to a worker, and answers are kept by it: ten thousand targets have few
regions and stages, so rows that are equal to an expression are evaluated once.

The built-in names are listed here and not read from celpy and Jinja, whose own lists
contain operators and much that is not offered. The parent process reads them without
importing either library.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

# CEL
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
DATE_METHODS = (
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getMonth",
)
TIME_METHODS = ("getHours", "getMilliseconds", "getMinutes", "getSeconds")
TEXT_METHODS = ("contains", "endsWith", "matches", "startsWith")
CONVERSIONS = ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
# Methods and functions, with the numbers of arguments that they take.
METHODS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys((*DATE_METHODS, *TIME_METHODS), (0, 1)),
    **dict.fromkeys(TEXT_METHODS, (1,)),
    "size": (0,),
}
FUNCTIONS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys((*CONVERSIONS, "dyn", "has", "size", "type"), (1,)),
    "matches": (2,),
}

# Jinja
GLOBALS = frozenset({"dict", "namespace", "range"})


# A mapping of names to free variables.
FreeVariables = Mapping[str, Any]

MAX_PLAIN_KEY = 64  # characters of a key that is not worth hashing


def add_path(free_variables: dict[str, Any], path: tuple[str, ...]) -> None:
    """Add a path whose value is read completely; paths below it need no entry."""
    *parents, last_name = path
    for name in parents:
        if name in free_variables and not free_variables[name]:
            # The complete value contains the path. Descending would turn the leaf into a node,
            # and drop the rest.
            return
        free_variables = free_variables.setdefault(name, {})
    free_variables[last_name] = {}


def project_row(row: Mapping[str, Any], free_variables: FreeVariables) -> dict[str, Any]:
    """Return the part of a row that is read, with the labels and annotations of objects.

    A missing field stays missing and a value without fields stays as it is, so evaluating
    the part returns the value or the error that evaluating the row would.
    """
    return {
        name: _project_value(row[name], subfields, ())
        for name, subfields in free_variables.items()
        if name in row
    }


def _project_value(value: Any, free_variables: FreeVariables, path: tuple[str, ...]) -> Any:
    value = complete_value(value, path)
    if not free_variables or not isinstance(value, Mapping):
        return value
    return {
        name: _project_value(value[name], subfields, (*path, name))
        for name, subfields in free_variables.items()
        if name in value
    }


METADATA = ("metadata",)
METADATA_MAPS = ("labels", "annotations")


def complete_value(value: Any, path: Sequence[str]) -> Any:
    """Return a value of an object with the labels and annotations that the object lacks, empty.

    `path`: the fields from the object to the value. An author need not ask whether an object
    has any label before asking for one.
    """
    if len(path) > 1 or not isinstance(value, Mapping):
        return value
    if tuple(path) == METADATA:
        lacking: dict[str, Any] = {it: {} for it in METADATA_MAPS if value.get(it) is None}
        return {**value, **lacking} if lacking else value
    if path or "metadata" not in value:
        return value
    metadata = value["metadata"]
    completed = complete_value(metadata, METADATA)
    return value if completed is metadata else {**value, "metadata": completed}


def answer_key(text: str) -> str | bytes:
    """Return the key under which the answer for an encoded part is kept."""
    return text if len(text) <= MAX_PLAIN_KEY else blake2b(text.encode(), digest_size=24).digest()


def as_json_object(value: object) -> dict[str, Any]:
    """Return a mapping of any kind as a dict. Raises TypeError for other values."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is not plain data")


# Encodes a part for a worker. Raises ValueError or TypeError if it is not plain data.
encode_part = json.JSONEncoder(
    allow_nan=False, separators=(",", ":"), default=as_json_object
).encode
