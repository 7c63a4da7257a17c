"""Frozen values: made, compared, hashed and shown by their fields."""

from datetime import datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, ClassVar, dataclass_transform

from msgspec import Meta, Struct, convert, field, to_builtins
from msgspec.json import decode as read_json_as
from msgspec.json import encode as write_json
from msgspec.json import schema_components
from msgspec.structs import asdict, astuple, replace
from msgspec.structs import fields as list_fields

__all__ = [
    "Instant",
    "KeyedValue",
    "Value",
    "as_data",
    "asdict",
    "astuple",
    "build_schema",
    "convert",
    "doc",
    "field",
    "list_fields",
    "read_json_as",
    "replace",
    "write_json",
]

Instant = Annotated[datetime, Meta(tz=True)]
"""A point in time as it is recorded: RFC 3339, with its offset."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True):
    """Base of all value classes.

    A field that is assigned raises AttributeError. `replace` returns a copy with some fields
    changed.
    """


def doc(
    description: str | None = None,
    *,
    pattern: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
    **keywords: Any,
) -> Meta:
    """Return what a schema says of a field beside its type; `keywords` are taken as they are."""
    return Meta(
        description=description,
        pattern=pattern,
        min_length=min_length,
        max_length=max_length,
        extra_json_schema=keywords or None,
    )


class KeyedValue(Value):
    """Base of values that are compared, hashed and shown without their fields in `UNCOMPARED`."""

    UNCOMPARED: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar["attrgetter[Any]"]

    def __init_subclass__(cls) -> None:
        """Prepare the reader of the compared fields."""
        left_out = {"UNCOMPARED", *cls.UNCOMPARED}
        cls._compared = attrgetter(*(it for it in cls.__annotations__ if it not in left_out))

    def __eq__(self, other: object) -> bool:
        """Return whether the other value has the same class and equal compared fields."""
        return self is other or (
            self.__class__ is other.__class__
            and bool(self._compared(self) == self._compared(other))
        )

    def __hash__(self) -> int:
        """Return the hash of the compared fields."""
        return hash(self._compared(self))

    def __repr__(self) -> str:
        """Return class and compared fields."""
        return f"{self.__class__.__name__}({self._compared(self)!r})"


def build_schema(value: type[Value]) -> dict[str, Any]:
    """Return the JSON Schema of a class; classes of its fields are in `$defs`."""
    _, definitions = schema_components([value])
    return {**definitions.pop(value.__name__), "$defs": definitions}


def as_data(value: Value) -> dict[str, Any]:
    """Return the fields by name, inner values as dicts too; instants and durations stay."""
    data: dict[str, Any] = to_builtins(value, builtin_types=(datetime, timedelta))
    return data
