"""Typed reading of the JSON that a host answers with."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


class MalformedAnswer(Exception):
    """An answer has not the documented form; the text says where."""


class AnswerObject:
    """Object in an answer. Every method raises MalformedAnswer for a field of another type."""

    def __init__(self, data: object, name: str = "the answer") -> None:
        """Wrap parsed JSON; `name` is what messages call it."""
        if not isinstance(data, Mapping):
            raise MalformedAnswer(f"{name} is no object")
        self._data: Mapping[str, Any] = data

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; `default` for one that is missing or null."""
        value = self._data.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise MalformedAnswer(f"{name} is no string")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        """Return an integer; `default` for one that is missing or null."""
        value = self._data.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise MalformedAnswer(f"{name} is no integer")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False for one that is missing."""
        value = self._data.get(name, False)
        if not isinstance(value, bool):
            raise MalformedAnswer(f"{name} is no boolean")
        return value

    def instant(self, name: str) -> datetime:
        """Return a time in UTC and whole seconds."""
        try:
            value = datetime.fromisoformat(self.text(name))
            return value.astimezone(UTC).replace(microsecond=0)
        except (ValueError, OverflowError):
            raise MalformedAnswer(f"{name} is no time") from None

    def optional_instant(self, name: str) -> datetime | None:
        """Return a time, or None for one that is missing or null."""
        return None if self._data.get(name) is None else self.instant(name)

    def child(self, name: str) -> "AnswerObject | None":
        """Return an object, or None for one that is missing or null."""
        value = self._data.get(name)
        return None if value is None else AnswerObject(value, name)

    def children(self, name: str) -> "list[AnswerObject]":
        """Return a list of objects; empty for one that is missing or null."""
        return answer_objects(self._data.get(name) or [], name)

    def texts(self, name: str) -> frozenset[str]:
        """Return a list of strings as a set; empty for one that is missing or null."""
        values = self._data.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise MalformedAnswer(f"{name} is no list of strings")
        return frozenset(values)


def answer_objects(data: object, name: str = "the answer") -> list[AnswerObject]:
    """Return the objects of a JSON list. Raises MalformedAnswer."""
    if not isinstance(data, list):
        raise MalformedAnswer(f"{name} is no list")
    return [AnswerObject(item, name) for item in data]
