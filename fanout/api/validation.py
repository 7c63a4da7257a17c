"""All faults of an object at once, each with its field and what to do about it (design §2)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from fanout.api.embedded import choice_faults, embedded
from fanout.api.faults import Fault, Path, in_order
from fanout.api.kinds import KINDS
from fanout.api.meta import API_VERSION, GROUP, KRMObject
from fanout.api.nearest import suggestion
from fanout.api.references import cross_check
from fanout.api.rules import rule_faults
from fanout.api.texts import shown
from fanout.api.unsupported import unsupported
from fanout.api.wording import fault_of

_WORD = re.compile(r"\w+")
__all__ = ["Fault", "cross_check", "is_ours", "validate"]


def is_ours(data: Mapping[str, Any]) -> bool:
    """Is this an object of fanout's own group, whatever the version and kind?"""
    version = data.get("apiVersion")
    return isinstance(version, str) and version.startswith(f"{GROUP}/")


def validate(data: Mapping[str, Any]) -> tuple[KRMObject | None, tuple[Fault, ...]]:
    """The object that the data says, or everything that is wrong with it; never both.

    Only errors are told here; what is merely doubtful is a warning of `cross_check`. `status` is
    not read: it is fanout's own to write.
    """
    if not isinstance(data, Mapping):
        return None, (Fault((), "is no object", "write apiVersion, kind, metadata and spec"),)
    if faults := tuple(_identity(data)):
        return None, faults
    model = KINDS[data["kind"]]
    odd: list[Fault] = []
    written = _with_text_keys({key: data[key] for key in data if key != "status"}, (), odd)
    refused = [*odd, *_empty(written, ()), *_whole(data["kind"], written, unsupported)]
    answer, misshapen = _parse(model, written)
    ruled = [*_whole(data["kind"], written, rule_faults), *choice_faults(data["kind"], written)]
    # That a list stands where an object belongs is told; not what the object would lack.
    placed = (fault for fault in ruled if not _is_in_list(written, fault.path))
    others = _without_follow_ons([*misshapen, *placed])
    covered = {fault.path for fault in refused}
    faults = in_order([*refused, *(fault for fault in others if not _under(fault.path, covered))])
    return (None, faults) if faults else (answer, ())


def _is_in_list(data: Any, path: Path) -> bool:
    """Whether the path names a field of a list."""
    for part in path:
        if isinstance(data, list) and isinstance(part, str):
            return True
        inside = part in data if isinstance(data, Mapping) else isinstance(data, list)
        data = data[part] if inside else None
    return False


def _whole(
    kind: str,
    data: Mapping[str, Any],
    ask: Callable[[str, Mapping[str, Any]], Iterator[Fault]],
) -> Iterator[Fault]:
    """What is said about an object, and about the parts of it that are specs of other kinds."""
    yield from ask(kind, data)
    for part in embedded(kind, data):
        yield from map(part.here, ask(part.kind, part.data))


def _identity(data: Mapping[str, Any]) -> Iterator[Fault]:
    version, kind = data.get("apiVersion"), data.get("kind")
    if version is None:
        yield Fault(("apiVersion",), "is missing", f"write {API_VERSION}")
    elif version != API_VERSION:
        yield Fault(("apiVersion",), f"{shown(version)} is not known here", f"write {API_VERSION}")
    if kind is None:
        yield Fault(("kind",), "is missing", f"use one of {', '.join(KINDS)}")
    elif not isinstance(kind, str) or kind not in KINDS:
        remedy = suggestion(str(kind), tuple(KINDS), f"use one of {', '.join(KINDS)}")
        yield Fault(("kind",), f"there is no kind {shown(kind)}", remedy)


def _parse(
    model: type[KRMObject], data: Mapping[str, Any]
) -> tuple[KRMObject | None, tuple[Fault, ...]]:
    try:
        return model.model_validate(data, by_alias=True, by_name=False), ()
    except ValidationError as error:
        # a list whose entries are all wrong counts as empty, which says nothing new
        details = [
            detail
            for detail in error.errors(include_url=False)
            if not (detail["type"] == "too_short" and detail["input"])
        ]
        return None, tuple(_once(fault_of(model, detail, data) for detail in details))


def _once(faults: Iterable[Fault]) -> Iterator[Fault]:
    """The first fault of each field: a value that fits no alternative has one for each of them."""
    told: set[Path] = set()
    for fault in faults:
        if fault.path not in told:
            yield fault
        told.add(fault.path)


def _without_follow_ons(faults: Sequence[Fault]) -> Iterator[Fault]:
    """Without those for fields that are there under a misspelt name."""
    meant: set[Path] = {(*fault.path[:-1], fault.meant) for fault in faults if fault.meant}
    for fault in faults:
        lacking = {fault.path, *((*fault.path, word) for word in _WORD.findall(fault.problem))}
        if not (fault.problem.endswith("is missing") and lacking & meant):
            yield fault


def _with_text_keys(data: Any, path: Path, odd: list[Fault]) -> Any:
    """The data with every key as text. YAML takes `on`, `1` and `null` for other things: `odd`."""
    if isinstance(data, Mapping):
        result = {}
        for key, value in data.items():
            name = key if isinstance(key, str) else shown(key)
            if not isinstance(key, str):
                problem = f"the key {name} is no text to YAML"
                odd.append(Fault((*path, name), problem, "put it in quotes"))
            result[name] = _with_text_keys(value, (*path, name), odd)
        return result
    if isinstance(data, (list, tuple)):
        return [_with_text_keys(item, (*path, index), odd) for index, item in enumerate(data)]
    return data


def _empty(data: object, path: Path) -> Iterator[Fault]:
    """A key without a value: an `after:` with nothing below it must not mean "no gate"."""
    if data is None:
        yield Fault(path, "has no value", "give it one, or remove the key")
    elif isinstance(data, Mapping) and path != ("metadata",):
        for key, value in data.items():
            yield from _empty(value, (*path, key))
    elif isinstance(data, (list, tuple)):
        for index, value in enumerate(data):
            yield from _empty(value, (*path, index))


def _under(path: Path, covered: set[Path]) -> bool:
    """Is there a fault at the path itself or above it? Then one is enough."""
    return any(path[:length] in covered for length in range(len(path) + 1))
