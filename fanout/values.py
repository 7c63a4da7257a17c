"""Values: classes that stay as they were made, and whose methods are written when first used.

The standard library compiles six methods of every frozen dataclass while its module is loaded: a
quarter of the time in which a sweep started. And each field of a new object is set past a guard,
at four times the cost of an assignment. Here mypy is the guard (`frozen_default`): code that
assigns to a field of a value is refused before anything runs (decision 0043).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from dataclasses import replace as exact_replace
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")
Value = TypeVar("Value")

# What is written → the word that asks the standard library for it.
_METHODS = {"__init__": "init", "__repr__": "repr", "__eq__": "eq", "__hash__": "unsafe_hash"}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Class]) -> type[Class]:
    """A dataclass with slots that is made, compared, hashed and shown by its fields.

    In all else it is as `dataclass(frozen=True, slots=True)` makes it, `fields` and `replace`
    included; a method that the class has itself is kept.
    """
    made = dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    for name in _METHODS.keys() - made.__dict__.keys():
        setattr(made, name, _at_first_use(made, name))
    return made


def replace(value: Value, /, **changes: Any) -> Value:
    """A copy with other values in some fields, as `dataclasses.replace` makes it, but quicker.

    All fields are read and handed on at once, and those that change are set afterwards. Raises
    TypeError for what is no field.
    """
    cls = value.__class__
    if cls not in _READ:
        _READ[cls] = _read_all(cls)
    read = _READ[cls]
    if read is None:
        return exact_replace(value, **changes)  # type: ignore[type-var]
    made = cls(*read(value))
    try:
        for name, changed in changes.items():
            setattr(made, name, changed)
    except AttributeError:
        raise TypeError(f"a {cls.__name__} has no field {name}") from None
    return made


_READ: dict[type, Callable[[Any], Sequence[Any]] | None] = {}


def _read_all(cls: Any) -> Callable[[Any], Sequence[Any]] | None:
    """Reads the fields in the order in which they are given; None: it takes the exact way."""
    asked = [it.name for it in fields(cls) if it.init and not it.kw_only]
    guarded = cls.__dataclass_params__.frozen or hasattr(cls, "__post_init__")
    if guarded or len(asked) < len(fields(cls)) or len(asked) < 2:
        return None
    return attrgetter(*asked)


def _at_first_use(cls: type, name: str) -> Callable[..., Any]:
    """Stands in for a method until somebody calls it, and then makes room for it."""

    def stand_in(self: object, *args: Any, **named: Any) -> Any:
        method = _written(cls, name)
        setattr(cls, name, method)
        return method(self, *args, **named)

    return stand_in


def _written(cls: Any, name: str) -> Callable[..., Any]:
    """The method as the standard library writes it for a class with these fields."""
    asked: Any = {word: word == _METHODS[name] for word in _METHODS.values()}
    own = {"__doc__": "where there is none, one is made of the signature: half of the time"}
    if hasattr(cls, "__post_init__"):
        own["__post_init__"] = cls.__post_init__
    rows = [(it.name, it.type, it) for it in fields(cls)]
    twin = make_dataclass(cls.__name__, rows, namespace=own, slots=True, **asked)
    method: Callable[..., Any] = twin.__dict__[name]
    return method
