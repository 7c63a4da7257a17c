"""Values are frozen, and equal if their fields are."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from fanout.values import KeyedValue, Value, as_data, field, replace

PACKAGE = Path(__file__).parent.parent / "fanout"


class Thing(Value):
    name: str
    size: int = 0
    found: dict[str, int] = field(default_factory=dict)


class Found(KeyedValue, kw_only=True):
    UNCOMPARED: ClassVar = ("seen",)

    seen: list[str] = field(default_factory=list)
    name: str
    size: int = 0


def test_a_field_cannot_be_assigned():
    with pytest.raises(AttributeError):
        Thing("a").size = 5
    with pytest.raises(AttributeError):
        Found(name="a").size = 5


def test_another_value_is_made_of_one():
    before = Thing("a", 3, {"n": 2})
    assert replace(before, size=7) == Thing("a", 7, {"n": 2})
    assert before == Thing("a", 3, {"n": 2})
    assert replace(Found(name="a", seen=["x"]), size=7).seen == ["x"]
    with pytest.raises(TypeError, match="colour"):
        replace(before, colour="red")


def test_values_of_two_classes_differ():
    class Wider(Thing):
        more: int = 0

    assert Wider("a") != Thing("a")
    assert Wider("a") == Wider("a")


def test_an_uncompared_field_does_not_count():
    one, other = Found(name="a", seen=["x"]), Found(name="a")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Found(name="b", seen=["x"])
    assert one != "a"
    assert "x" not in repr(one)


def test_a_value_as_data_has_the_values_in_it_as_data():
    class Event(Value):
        at: datetime
        length: timedelta
        thing: Thing
        things: tuple[Thing, ...] = ()

    at = datetime(2026, 1, 1, tzinfo=UTC)
    thing = {"name": "a", "size": 0, "found": {}}
    data = as_data(Event(at, timedelta(hours=1), Thing("a"), (Thing("a"),)))
    assert (data["at"], data["length"], data["thing"]) == (at, timedelta(hours=1), thing)
    assert list(data["things"]) == [thing]


def test_values_of_the_package_are_made_of_one_base():
    slow = "@dataclass(frozen=True, slots=True)\n"
    modules = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if slow in path.read_text(encoding="utf-8")
    ]
    assert modules == []
