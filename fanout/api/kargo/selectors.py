"""Which Stages a selector of Kargo's chooses: by name, by a pattern of names, by labels."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from fanout.api.faults import BadValue
from fanout.api.kargo.objects import Item
from fanout.api.places import fields, items
from fanout.api.texts import NAME_PATTERN, shown
from fanout.values import frozen

_KNOWN = ("name", "matchLabels", "matchExpressions")
_BY_NAME = "name the Stages"


@frozen
class Selector:
    """A question to a Stage; `pattern` is the same for fanout, where there is one."""

    chooses: Callable[[Item], bool]
    pattern: str | None = None
    exact: str | None = None


def everything(_: Item) -> bool:
    """Chooses every Stage."""
    return True


def by_name(name: Any) -> Selector:
    """A name, or a pattern after `glob:` or `regex:`. Raises BadValue for what cannot be read."""
    if not isinstance(name, str) or not name:
        raise BadValue(f"{shown(name)} is no name of a Stage", _BY_NAME)
    how, colon, rest = name.partition(":")
    if not colon:
        return Selector(lambda stage: stage.name == name, exact=name)
    if how == "glob" and not re.search(r"[{}\\]", rest):
        pattern = rest if re.match(NAME_PATTERN, rest) else None
        return Selector(lambda stage: fnmatchcase(stage.name, rest), pattern)
    if how in ("regex", "regexp"):
        try:
            found = re.compile(rest)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadValue(f"{shown(name)} cannot be read: {error}", _BY_NAME) from error
        return Selector(lambda stage: found.search(stage.name) is not None)
    raise BadValue(f"{shown(name)} is no pattern that can be read here", _BY_NAME)


def selector(value: Any) -> Selector:
    """A `stageSelector`. Raises BadValue for what cannot be read, an empty one too."""
    said = fields(value)
    odd = [str(key) for key in said if key not in _KNOWN]
    if odd:
        raise BadValue(f"{odd[0]} is no field of a selector that is known", _BY_NAME)
    if not any(said.get(key) for key in _KNOWN):
        raise BadValue("the selector chooses by nothing", _BY_NAME)
    wanted = fields(said.get("matchLabels"))
    tests: list[Callable[[Mapping[str, Any]], bool]] = []
    if wanted:
        tests.append(lambda labels: all(labels.get(key) == wanted[key] for key in wanted))
    tests += [_requirement(fields(entry)) for entry in items(said.get("matchExpressions"))]
    named = by_name(said["name"]) if said.get("name") else Selector(everything)
    if not tests:
        return named
    return Selector(
        lambda stage: named.chooses(stage) and all(test(stage.labels) for test in tests)
    )


def _requirement(entry: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    key, operator, values = entry.get("key"), entry.get("operator"), items(entry.get("values"))
    if not isinstance(key, str):
        raise BadValue("an entry of matchExpressions has no key", _BY_NAME)
    match operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    raise BadValue(f"{shown(operator)} is no operator", _BY_NAME)
