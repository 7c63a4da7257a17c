"""Frozen value classes whose generated methods are compiled on first use.

The standard library compiles six methods of every frozen dataclass while its module is
imported: a quarter of the start-up time of a sweep. Each field of a new object is also
set past a guard, at four times the cost of an assignment. Here mypy is the guard
(`frozen_default`): code that assigns to a field of a value is refused before anything
runs (decision 0043).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from dataclasses import replace as exact_replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

ValueClass = TypeVar("ValueClass")
Value = TypeVar("Value")

# Generated methods, and the argument of `dataclass` that requests each.
_GENERATED_METHODS = {
    "__init__": "init",
    "__repr__": "repr",
    "__eq__": "eq",
    "__hash__": "unsafe_hash",
}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[ValueClass]) -> type[ValueClass]:
    """Make a dataclass with slots: constructed, compared, hashed and shown by its fields.

    Everything else is as `dataclass(frozen=True, slots=True)` makes it, `fields` and
    `replace` included. Methods that the class defines itself are kept. Assignment to a
    field is refused by mypy, not at run time.
    """
    value_class = dataclass(slots=True, init=False, repr=False, eq=False)(cls)
    for name in _GENERATED_METHODS.keys() - value_class.__dict__.keys():
        setattr(value_class, name, _PLACEHOLDERS[name])
    return value_class


def replace(value: Value, /, **changes: Any) -> Value:
    """Return a copy with some fields changed, like `dataclasses.replace` but faster.

    All fields are read and passed on at once; those that change are set afterwards. Raises
    TypeError for a name that is not a field.
    """
    cls = value.__class__
    if cls not in _FIELD_READERS:
        _FIELD_READERS[cls] = _field_reader(cls)
    field_reader = _FIELD_READERS[cls]
    if field_reader is None:
        return exact_replace(value, **changes)  # type: ignore[type-var]
    # One C call reads all fields; building a dict of them, as dataclasses does, is most of the
    # cost.
    read_fields, names = field_reader
    if names:
        copy = cls.__new__(cls)
        for name, present_value in zip(names, read_fields(value), strict=True):
            setattr(copy, name, present_value)
    else:
        copy = cls(*read_fields(value))
    try:
        for name, new_value in changes.items():
            setattr(copy, name, new_value)
    except AttributeError:
        raise TypeError(f"a {cls.__name__} has no field {name}") from None
    return copy


_FieldReader = tuple[Callable[[Any], Sequence[Any]], Sequence[str]]
_FIELD_READERS: dict[type, _FieldReader | None] = {}


def _field_reader(cls: Any) -> _FieldReader | None:
    """Return a reader of all fields, or None if it cannot be used.

    With it, the names of the fields if they must be set one by one because the constructor
    takes some by keyword only.
    """
    names = [it.name for it in fields(cls) if it.init]
    guarded = cls.__dataclass_params__.frozen or hasattr(cls, "__post_init__")
    # Values set by attribute after construction would bypass a frozen guard or __post_init__, and
    # attrgetter of a single name returns the bare value instead of a tuple.
    if guarded or len(names) < len(fields(cls)) or len(names) < 2:
        return None
    return attrgetter(*names), names if any(it.kw_only for it in fields(cls)) else ()


class _GeneratedMethod:
    """Placeholder of a method in all classes, replaced in each of them at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        # A subclass inherits the method of the class that is decorated. From Python 3.13 on,
        # `inspect.signature` asks with the class as the instance, and its metaclass as the owner.
        classes = (*owner.__mro__, *getattr(instance, "__mro__", ()))
        cls = next(it for it in classes if it.__dict__.get(self._name) is self)
        method = _generate_method(cls, self._name)
        setattr(cls, self._name, method)
        return method if instance is None else partial(method, instance)


# One placeholder per method: a closure for each method of each class takes half a megabyte.
_PLACEHOLDERS = {name: _GeneratedMethod(name) for name in _GENERATED_METHODS}


def _generate_method(cls: Any, name: str) -> Callable[..., Any]:
    """Return the method that the standard library generates for the fields of the class."""
    dataclass_options: Any = {
        word: word == _GENERATED_METHODS[name] for word in _GENERATED_METHODS.values()
    }
    namespace = {"__doc__": "where there is none, one is made of the signature: half of the time"}
    if hasattr(cls, "__post_init__"):
        namespace["__post_init__"] = cls.__post_init__
    field_specifications = [(it.name, it.type, it) for it in fields(cls)]
    generated_class = make_dataclass(
        cls.__name__, field_specifications, namespace=namespace, slots=True, **dataclass_options
    )
    method: Callable[..., Any] = generated_class.__dict__[name]
    return method
