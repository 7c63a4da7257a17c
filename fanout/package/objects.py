"""Reading cluster objects from files: thousands of small documents, no positions kept.

The same data and the same guards as `Manifest.parse`, duplicate keys included. Each document goes
to the first of three readers that knows all of it: by lines, by libyaml's events, and, for what is
rare (anchors, tags, a fault), the one with positions, which then reads the whole file.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from fanout.package.invalid import MAX_DEPTH, MAX_OBJECTS, InvalidManifest, decode, fault
from fanout.package.jsontext import is_json, read_json
from fanout.package.nodes import MERGE, Refused, events, read
from fanout.package.plainlines import NotPlain, Texts, read_plain
from fanout.package.scalars import resolve


def load_objects(data: bytes, file: str, texts: Texts | None = None) -> list[dict[str, Any]]:
    """All objects of a file, those inside a `List` included; empty documents are skipped.

    `texts` is for whoever reads many files: what it holds is not made anew. Raises InvalidManifest
    with every problem that was found, each with its line.
    """
    text, _ = decode(data, file, MAX_OBJECTS)
    if is_json(file):
        values = [read_json(text, file)]
    else:
        try:
            if BYTE_ORDER_MARK in text:
                raise _Rare  # read part by part, a mark behind a marker would begin a file
            known = Texts() if texts is None else texts
            values = [value for part in _documents(text) for value in _read(part, known, file)]
        except _Rare:
            reading = read(text, file)
            if reading.problems:
                raise InvalidManifest(reading.problems) from None
            values = [root.node.data for root in reading.roots]
    return [item for value in values if value is not None for item in _objects(value, file)]


def _objects(value: Any, file: str) -> list[dict[str, Any]]:
    items = [value]
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        kind = value.get("kind")
        if isinstance(kind, str) and kind.endswith("List"):
            items = value["items"]
    for item in items:
        if not isinstance(item, dict):
            problem = f"a {type(item).__name__} is no Kubernetes object"
            remedy = "each document must be a mapping with apiVersion, kind and metadata"
            raise InvalidManifest([fault(file, 0, problem, remedy)])
    return items


class _Rare(Exception):
    """The file has something that only the reader with positions can judge."""


_MARKER = "---\n"
BYTE_ORDER_MARK = "\ufeff"


def _documents(text: str) -> list[str]:
    """The documents, as far as a line that is nothing but a marker tells them apart.

    A marker at the beginning of a line ends whatever is open, wherever it stands; so a part that
    can be read by itself is what it would be in the whole.
    """
    *parts, last = text.removeprefix(_MARKER).split(f"\n{_MARKER}")
    return [*(f"{part}\n" for part in parts), last]


def _read(document: str, texts: Texts, file: str) -> Iterable[Any]:
    try:
        return (read_plain(document, texts),)
    except NotPlain:
        return _values(document, file)


_STARTS = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_ENDS = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))


def _values(text: str, file: str) -> Iterator[Any]:
    """The documents' data; raises _Rare."""
    stack: list[tuple[Any, str | None]] = []  # the open collections and the keys that wait in them
    here: Any = None
    key: str | None = None
    value: Any = None
    try:
        for event in events(text, file):
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                value = _scalar(event)
            elif kind in _STARTS:
                if event.anchor is not None or event.tag is not None or len(stack) >= MAX_DEPTH:
                    raise _Rare
                stack.append((here, key))
                here, key = {} if kind is yaml.MappingStartEvent else [], None
                continue
            elif kind in _ENDS:
                value, (here, key) = here, stack.pop()
            elif kind is yaml.DocumentEndEvent:
                yield value
                continue
            elif kind is yaml.AliasEvent:
                raise _Rare
            else:
                continue
            if key is not None:
                here[key] = value
                key = None
            elif here.__class__ is list:
                here.append(value)
            elif here is not None:
                key = _key(value, here)
    except (Refused, ValueError):
        raise _Rare from None


def _scalar(event: yaml.ScalarEvent) -> Any:
    if event.anchor is not None or event.tag is not None:
        raise _Rare
    text = event.value
    if event.implicit[0]:
        if text == MERGE:
            raise _Rare
        return resolve(text)
    return text


def _key(value: object, siblings: dict[str, Any]) -> str:
    if not isinstance(value, str) or value in siblings:
        raise _Rare  # what is text only as a key has its text there
    return value
