"""Writing JSON files: what did not change keeps its bytes, and what is new looks like the rest.

Containers whose entries changed are put together again from their entries' own text and what stood
between them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fanout.package.edits import same
from fanout.package.elements import origins

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"[\[{][ \t]*\r?\n([ \t]+)\S")
_COLON: Final = re.compile(r'"([ \t]*:[ \t]*)')
_DECODER: Final = json.JSONDecoder()


class Entry(NamedTuple):
    """One entry of an object or array in the text."""

    name: str | int
    start: int  # of its key, if it has one
    at: int  # of its value
    end: int
    data: Any


def skip(text: str, at: int) -> int:
    """The position behind blanks."""
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def entries(text: str, at: int) -> Iterator[Entry]:
    """The entries of the object or array that begins here; none for what is neither."""
    if text[at] not in "[{":
        return
    named = text[at] == "{"
    number = 0
    at = skip(text, at + 1)
    while text[at] not in "]}":
        start, name = at, number
        if named:
            name, after = _DECODER.raw_decode(text, at)
            at = skip(text, skip(text, after) + 1)
        data, end = _DECODER.raw_decode(text, at)
        yield Entry(name, start, at, end, data)
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)
        number += 1


def rewritten(data: Any, before: str) -> str:
    """The text of a JSON file that holds this data, given the text that it had."""
    start = skip(before, 0)
    old, end = _DECODER.raw_decode(before, start)
    pad = "" if _INDENT.search(before) else None
    return f"{before[:start]}{_Writer(before).value(start, end, old, data, pad)}{before[end:]}"


class _Writer:
    def __init__(self, text: str) -> None:
        self.text = text
        indent, colon = _INDENT.search(text), _COLON.search(text)
        self.unit = indent[1] if indent else ""
        self.colon = colon[1] if colon else ": "
        self.comma = ", " if self.colon.endswith(" ") else ","
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def value(self, start: int, end: int, old: Any, new: Any, pad: str | None) -> str:
        """The text of a value; `pad` is the indentation of its line, None if others are on it."""
        if same(old, new):
            return self.text[start:end]
        if not old or not new or old.__class__ is not new.__class__ or isinstance(new, str):
            return self.dumped(new, pad)
        if isinstance(new, dict):
            return self.collection(start, end, new, self.by_name(start, new))
        if isinstance(new, list):
            return self.collection(start, end, new, dict(enumerate(origins(old, new))))
        return self.dumped(new, pad)

    def by_name(self, start: int, new: dict[str, Any]) -> dict[str, int | None]:
        """Where the entries come from: those that stay in their order, and then the others."""
        there = {str(it.name): number for number, it in enumerate(entries(self.text, start))}
        return {name: number for name, number in there.items() if name in new} | {
            name: None for name in new if name not in there
        }

    def collection(
        self,
        start: int,
        end: int,
        new: Any,
        sources: Mapping[Any, int | None],
    ) -> str:
        """An object or array, put together from the entries that stay and those that are new."""
        text, present = self.text, list(entries(self.text, start))
        opening = text[start : present[0].start]
        gaps = [text[one.end : other.start] for one, other in pairwise(present)]
        gap = gaps[0] if gaps else f",{opening[1:]}" if "\n" in opening else self.comma
        pad = gap.rpartition("\n")[2] if "\n" in gap else None
        out, last = opening, -1
        for number, (name, source) in enumerate(sources.items()):
            if number:
                follows = source is not None and source == last + 1 and last >= 0
                out += gaps[last] if follows else gap
            out += self.entry(present[source] if source is not None else None, name, new[name], pad)
            last = -1 if source is None else source
        return out + text[present[-1].end : end]

    def entry(self, there: Entry | None, name: str | int, new: Any, pad: str | None) -> str:
        """An entry with its key."""
        if there is None:
            key = f"{self.dumped(name, pad)}{self.colon}" if isinstance(name, str) else ""
            return key + self.dumped(new, pad)
        head = self.text[there.start : there.at]
        return head + self.value(there.at, there.end, there.data, new, pad)

    def dumped(self, value: Any, pad: str | None) -> str:
        """A value of which nothing was there."""
        text = json.dumps(
            value,
            indent=None if pad is None else self.unit,
            separators=(self.comma if pad is None else ",", self.colon),
            ensure_ascii=self.text.isascii(),
        )
        return text if pad is None else text.replace("\n", f"{self.newline}{pad}")
