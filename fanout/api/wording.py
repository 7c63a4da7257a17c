"""pydantic's errors as sentences for people: what is wrong, what to do."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from fanout.api.faults import BadValue, Fault, Path, field_name
from fanout.api.kinds import homes_of, known_fields
from fanout.api.nearest import VERY_NEAR, nearest
from fanout.api.texts import SENTENCES, listed, plural_of, shown
from fanout.api.unsupported import is_refused

Words = tuple[str, str]
_FEW = 3  # places that a field may belong in and still be told of


def fault_of(model: type[BaseModel], error: ErrorDetails, data: object) -> Fault:
    """One error of pydantic about an object of this model; `data` is the object as written."""
    path = _path_in(data, error)
    value, details = error["input"], error.get("ctx", {})
    if error["type"] == "extra_forbidden":
        return _unknown(model, path)
    if error["type"] == "missing":
        return Fault(path, "is missing", "add it")
    if error["type"] in ("enum", "literal_error"):
        return _unknown_value(model, path, value, str(details["expected"]))
    word = _WORDS.get(error["type"])
    problem, remedy = word(value, details) if word else (error["msg"], "correct it")
    if error["type"].startswith("model_") and (there := _served_fields(model, path)):
        remedy = f"write {listed(there, 'or')} below it"
    return Fault(path, problem, remedy)


def _path_in(data: object, error: ErrorDetails) -> Path:
    """The path of an error in the object as written.

    pydantic adds the names of alternatives and validators (`constrained-str`, `literal['']`) and
    marks keys (`[key]`); what is not in the object is left out, but for a field that is missing.
    """
    path: list[str | int] = []
    for number, part in enumerate(error["loc"]):
        is_last = number == len(error["loc"]) - 1
        if isinstance(data, Mapping) and part in data:
            path.append(part)
            data = data[part]
        elif isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int):
            path.append(part)
            data = data[part] if part < len(data) else None
        elif is_last and error["type"] == "missing":
            path.append(part)
    return tuple(path)


def _unknown(model: type[BaseModel], path: Path) -> Fault:
    """It is misspelt, or stands in the wrong place; what is refused anyhow is not suggested."""
    above, name = path[:-1], str(path[-1])
    kind = model.__name__
    known = _served_fields(model, above)
    meant = nearest(name, known, VERY_NEAR)
    homes = [home for home in homes_of(model, name) if _is_served(kind, (*home, name))]
    if not meant and 0 < len(homes) <= _FEW:
        places = listed([field_name(home).replace("[0]", "[]") for home in homes], "or")
        return Fault(path, "is no field of this object", f"it belongs in {places}")
    meant = meant or nearest(name, known)
    otherwise = f"remove it; there are {', '.join(known)}" if known else "remove it"
    remedy = f"did you mean {meant}?" if meant else otherwise
    return Fault(path, "is no known field", remedy, meant=meant)


def _served_fields(model: type[BaseModel], path: Path) -> list[str]:
    return [
        one for one in known_fields(model, path) if not is_refused(model.__name__, (*path, one))
    ]


def _is_served(kind: str, path: Path) -> bool:
    return not any(is_refused(kind, path[:length]) for length in range(1, len(path) + 1))


def _own(_: Any, details: Mapping[str, Any]) -> Words:
    error = details["error"]
    assert isinstance(error, BadValue), f"a validator raised {error!r}"
    return error.problem, error.remedy


def _pattern(value: Any, details: Mapping[str, Any]) -> Words:
    problem, remedy = SENTENCES[details["pattern"]]
    return f"{shown(value)} {problem}", remedy


def _unknown_value(model: type[BaseModel], path: Path, value: Any, expected: str) -> Fault:
    """`expected` is a list as pydantic writes it: ``'All', 'Any' or 'Majority'``."""
    known = re.findall(r"'([^']*)'", expected) or [expected.lower()]
    usable = [item for item in known if not is_refused(model.__name__, path, item)]
    remedy = f"use {listed([item or repr(item) for item in usable], 'or')}"
    return Fault(path, f"{shown(value)} is not known", remedy)


def _text(value: Any, _: Mapping[str, Any]) -> Words:
    if isinstance(value, (bool, int, float)):
        return f"must be text, and {shown(value)} is none to YAML", "put it in quotes"
    return f"must be text and is {shown(value)}", "write text"


def _must_be(what: str) -> Callable[[Any, Mapping[str, Any]], Words]:
    def words(value: Any, _: Mapping[str, Any]) -> Words:
        said = f"{shown(value)!r}" if isinstance(value, str) else shown(value)
        return f"must be {what} and is {said}", f"write {what}"

    return words


def _bound(word: str) -> Callable[[Any, Mapping[str, Any]], Words]:
    def words(value: Any, details: Mapping[str, Any]) -> Words:
        limit = next(iter(details.values()))
        return f"is {shown(value)}", f"write {word} {limit}"

    return words


def _too_short(_: Any, __: Mapping[str, Any]) -> Words:
    return "is empty", "write something"


def _too_few(_: Any, __: Mapping[str, Any]) -> Words:
    return "names nothing", "name at least one"


def _long(_: Any, details: Mapping[str, Any]) -> Words:
    limit = plural_of(details["max_length"], "character")
    return f"is longer than {limit}", "make it shorter"


_WORDS: Mapping[str, Callable[[Any, Mapping[str, Any]], Words]] = {
    "value_error": _own,
    "string_pattern_mismatch": _pattern,
    "string_type": _text,
    "string_too_short": _too_short,
    "string_too_long": _long,
    "too_short": _too_few,
    "tuple_type": _must_be("a list"),
    "mapping_type": _must_be("an object"),
    "dict_type": _must_be("an object"),
    "model_type": _must_be("an object"),
    "model_attributes_type": _must_be("an object"),
    "bool_type": _must_be("true or false"),
    "int_type": _must_be("a whole number"),
    "float_type": _must_be("a number"),
    "greater_than_equal": _bound("at least"),
    "less_than_equal": _bound("at most"),
    "greater_than": _bound("more than"),
}
