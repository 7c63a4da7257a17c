"""Which objects of the input are translated at all, and what is said about the others."""

from collections.abc import Sequence
from typing import Any

from fanout.api.foreign.pieces import Remark
from fanout.api.foreign.rows import Origin
from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.api.places import fields
from fanout.api.texts import listed, shown
from fanout.api.validation import is_ours

Key = tuple[str, str, str]


def kind_of(item: Any) -> Any:
    """The kind that an object says it is of, whatever that is."""
    return fields(item).get("kind")


def key_of(item: Any) -> Key:
    """Kind, namespace and name."""
    meta = fields(fields(item).get("metadata"))
    namespace = meta.get("namespace") or DEFAULT_NAMESPACE
    return str(kind_of(item)), str(namespace), str(meta.get("name"))


def origin_of(item: Any, origins: Sequence[Origin], group: str) -> Origin | None:
    """Which of the kinds that can be translated it is of."""
    version, kind = fields(item).get("apiVersion"), kind_of(item)
    for origin in origins:
        if (version, kind) == (f"{group}/{origin.version}", origin.kind):
            return origin
    return None


def repeated() -> Remark:
    """What is said about the second object of a kind, namespace and name."""
    problem = "is in the input already; the first one is taken"
    return Remark(("metadata", "name"), problem, "remove one")


def stranger(item: Any, origins: Sequence[Origin], group: str) -> Remark:
    """What is said about an object of a kind that is not translated."""
    known = listed([f"{origin.kind} {group}/{origin.version}" for origin in origins], "and")
    version, kind = fields(item).get("apiVersion"), kind_of(item)
    if is_ours(fields(item)):
        return Remark(("apiVersion",), "is an object of fanout's already", "keep it as it is")
    if not kind:
        problem = "is no object: it needs an apiVersion and a kind"
        return Remark((), problem, "complete it, or take it out")
    what = " ".join(shown(part) for part in (kind, version) if part)
    problem = f"{what} is not translated; there are {known}"
    remedy = "declare it beside the result if variants are made for it or filled from it"
    return Remark(("kind",), problem, remedy)
