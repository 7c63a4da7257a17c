"""Values are as frozen dataclasses with slots are, but quicker to load and to make."""

import copy
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, dataclass, field, fields, replace
from inspect import signature
from itertools import product
from pathlib import Path

import pytest

from fanout.values import frozen
from fanout.values import replace as replace_quickly

PACKAGE = Path(__file__).parent.parent / "fanout"


class Plain:
    """What both decorators are given."""

    name: str
    size: int = 0
    tags: tuple[str, ...] = ()
    found: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def long(self) -> bool:
        return self.size > 9


def decorated(by):
    return by(type("Thing", (), {**vars(Plain), "__dict__": None, "__weakref__": None}))


def fresh():
    return decorated(frozen), decorated(dataclass(frozen=True, slots=True))


ARGUMENTS = [((name,), {"size": size}) for name, size in product(("a", "b"), (0, 10))]


@pytest.mark.parametrize(
    ("sentence", "ask"),
    [
        ("it is shown alike", repr),
        ("it has the same fields", lambda it: [one.name for one in fields(it)]),
        ("it becomes the same map", asdict),
        ("one that differs is another", lambda it: repr(replace(it, size=7))),
        ("it equals its copy", lambda it: (it == copy.copy(it), it != copy.deepcopy(it))),
        ("it does not equal something else", lambda it: (it == "a", it == ("a", 0, ()))),
        ("its hash is that of its fields", hash),
        ("a default that is made is its own", lambda it: it.found is not type(it)("a").found),
        ("its properties are there", lambda it: it.long),
        ("it can be matched", lambda it: type(it).__match_args__),
        ("it has room for its fields alone", lambda it: hasattr(it, "__dict__")),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_value_is_as_the_standard_library_makes_it(sentence, ask):
    ours, theirs = fresh()
    for places, names in ARGUMENTS:
        assert ask(ours(*places, **names)) == ask(theirs(*places, **names)), sentence


def test_what_is_not_compared_does_not_count():
    ours, _ = fresh()
    assert ours("a", found={"x": 1}) == ours("a", found={})
    assert hash(ours("a", found={"x": 1})) == hash(ours("a"))


def test_a_missing_argument_is_told_by_the_name_of_the_class():
    ours, _ = fresh()
    with pytest.raises(TypeError, match=r"Thing\.__init__\(\) missing 1 required .*: 'name'"):
        ours()


def test_a_method_that_the_class_has_itself_is_kept():
    @frozen
    class Named:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert repr(Named("a")) == "<a>"


def test_a_value_can_complete_itself():
    @frozen
    class Square:
        side: int
        area: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.side**2)

    assert Square(3).area == 9


def test_a_method_is_bound_to_a_class_as_the_standard_library_asks_from_python_3_13_on():
    ours, _ = fresh()
    method = vars(ours)["__init__"].__get__(ours, type)
    assert list(signature(method).parameters) == ["name", "size", "tags", "found"]


def test_a_value_may_be_made_of_another_kind_of_value():
    @frozen
    class Base:
        name: str

    @frozen
    class Wider(Base):
        size: int = 1

    assert Wider("a") == Wider("a", 1)
    assert Base("a") != Wider("a")
    assert repr(Base("a")).endswith("Base(name='a')")


def test_nothing_guards_a_field_while_the_program_runs():
    """mypy does (decision 0043); a guard would cost each field of each object."""
    ours, theirs = fresh()
    one = ours("a")
    one.size = 5
    assert one.size == 5
    with pytest.raises(FrozenInstanceError):
        theirs("a").size = 5


def test_new_values_take_the_quick_spelling():
    slow = "@dataclass(frozen=True, slots=True)\n"
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if slow in path.read_text(encoding="utf-8")
    ]
    assert found == []


class Checked:
    """Made with a look at its fields."""

    name: str
    size: int = 0

    def __post_init__(self) -> None:
        assert self.size < 100


class Derived:
    """One of its fields is not given."""

    name: str
    size: int = 0
    double: int = field(init=False, default=0)


CHANGES = [{}, {"size": 7}, {"name": "z", "tags": ("t",)}, {"found": {"a": 1}}]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
@pytest.mark.parametrize("kind", [0, 1], ids=["ours", "one that is guarded"])
def test_another_value_is_as_the_standard_library_makes_it(kind, changes):
    ours = fresh()[kind]
    before = ours("a", 3, ("x",), {"n": 2})
    made, exact = replace_quickly(before, **changes), replace(before, **changes)
    assert (made, made.found, type(made)) == (exact, exact.found, type(exact))
    assert before == ours("a", 3, ("x",)), "the value itself stays as it was"


def test_what_is_looked_at_when_it_is_made_is_looked_at_again():
    checked = frozen(type("Checked", (), dict(vars(Checked))))
    with pytest.raises(AssertionError):
        replace_quickly(checked("a"), size=100)


def test_a_field_that_is_not_given_is_as_it_was_made():
    derived = frozen(type("Derived", (), dict(vars(Derived))))
    assert replace_quickly(derived("a"), size=2).double == 0


def test_what_is_no_field_is_refused():
    ours, _ = fresh()
    with pytest.raises(TypeError, match="no field colour"):
        replace_quickly(ours("a"), colour="red")


def test_replace_copies_keyword_only_fields():
    @frozen
    class Keyed:
        first: int
        _: KW_ONLY
        second: int
        third: int = 3

    value = Keyed(1, second=2)
    assert replace_quickly(value, third=4) == Keyed(1, second=2, third=4)
    assert replace_quickly(value, first=0) == Keyed(0, second=2)
    with pytest.raises(TypeError, match="a Keyed has no field fourth"):
        replace_quickly(value, fourth=4)
    with pytest.raises(TypeError):
        Keyed(1, 2)
