"""JSON manifests: guarded reading, line lookup, and edits that keep the layout.

Unchanged values keep their bytes. A container whose entries changed is rebuilt from the text of its
entries and of the gaps between them; new entries take over the file's style.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fanout.package.field_edits import same_json
from fanout.package.package_limits import ValueCounter
from fanout.package.sequence_alignment import equal_blocks
from fanout.package.yaml_nodes import (
    MAX_DEPTH,
    InvalidManifest,
    manifest_problem,
    parse_yaml,
    single_problem,
)


def match_elements(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return the earlier index of each element of the later list, None for new ones.

    Elements are matched by `name` if every one has a unique name; else by content, and the
    rest between equal neighbors in their order.
    """
    names_before, names_after = _unique_names(before), _unique_names(after)
    if names_before and names_after:
        return [names_before.get(name) for name in names_after]
    first, second = ([json.dumps(it, sort_keys=True) for it in side] for side in (before, after))
    matches: list[int | None] = [None] * len(after)
    gaps: list[tuple[range, range]] = []  # what stands between the same neighbours
    i = j = 0
    for a, b, size in equal_blocks(first, second):
        gaps.append((range(i, a), range(j, b)))
        for step in range(size):
            matches[b + step] = a + step
        i, j = a + size, b + size
    # Equal elements that stand in another order.
    matched = set(matches)
    moved: dict[str, deque[int]] = {}
    for number, text in enumerate(first):
        if number not in matched:
            moved.setdefault(text, deque()).append(number)
    for number, text in enumerate(second):
        if matches[number] is None and moved.get(text):
            matches[number] = moved[text].popleft()
    matched = set(matches)
    for range_before, range_after in gaps:
        unmatched = (number for number in range_before if number not in matched)
        for number, origin in zip(
            (n for n in range_after if matches[n] is None), unmatched, strict=False
        ):
            matches[number] = origin
    return matches


def _unique_names(elements: list[Any]) -> dict[str, int]:
    """Return the indices of the elements by name; {} if some element has no unique name."""
    positions: dict[str, int] = {}
    for number, element in enumerate(elements):
        name = element.get("name") if isinstance(element, dict) else None
        if not isinstance(name, str) or name in positions:
            return {}
        positions[name] = number
    return positions


_BLANK: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"[\[{][ \t]*\r?\n([ \t]+)\S")
_COLON: Final = re.compile(r'"([ \t]*:[ \t]*)')
_DECODER: Final = json.JSONDecoder()
# A string with the colon behind it if it is a key, the beginning of a container, or another
# literal. The closing quote is optional, as a search for one that is missing would begin again at
# every escaped quote.
_VALUE: Final = re.compile(
    r'"(?:[^"\\]++|\\.)*+"?[ \t\r\n]*+(:)?|[\[{]|[^ \t\r\n"\[\]{},:]++', re.DOTALL
)


class JsonEntry(NamedTuple):
    """One entry of an object or array in the text."""

    name: str | int
    start: int  # of its key, if it has one
    value_start: int  # of its value
    end: int
    data: Any


def skip_blanks(text: str, at: int) -> int:
    """Return the position of the first character from `at` that is not white space."""
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def json_entries(text: str, at: int) -> Iterator[JsonEntry]:
    """Yield the entries of the object or array that begins here; nothing for a scalar."""
    if text[at] not in "[{":
        return
    named = text[at] == "{"
    number = 0
    at = skip_blanks(text, at + 1)
    while text[at] not in "]}":
        start, name = at, number
        if named:
            name, after = _DECODER.raw_decode(text, at)
            at = skip_blanks(text, skip_blanks(text, after) + 1)
        data, end = _DECODER.raw_decode(text, at)
        yield JsonEntry(name, start, at, end, data)
        at = skip_blanks(text, end)
        if text[at] == ",":
            at = skip_blanks(text, at + 1)
        number += 1


def edit_json(data: Any, before: str, file: str) -> str:
    """Return the text with new data in it; unchanged values keep their bytes.

    Raises InvalidManifest for values that are not JSON data, and for data that is too deep.
    """
    _check_json(data, file)
    start = skip_blanks(before, 0)
    old, end = _DECODER.raw_decode(before, start)
    padding = "" if _INDENT.search(before) else None
    written = _JsonWriter(before).write_value(start, end, old, data, padding)
    return f"{before[:start]}{written}{before[end:]}"


class _JsonWriter:
    def __init__(self, text: str) -> None:
        self.text = text
        indent_match, colon_match = _INDENT.search(text), _COLON.search(text)
        self.indent = indent_match[1] if indent_match else ""
        self.colon = colon_match[1] if colon_match else ": "
        self.comma = ", " if self.colon.endswith(" ") else ","
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def write_value(self, start: int, end: int, old: Any, new: Any, padding: str | None) -> str:
        """Return the text of a value.

        `padding`: indentation of its line, None if others are on that line.
        """
        if same_json(old, new):
            return self.text[start:end]
        # Nothing of the old text can be reused; an empty container has no entry whose style
        # could be taken.
        if not old or not new or old.__class__ is not new.__class__ or isinstance(new, str):
            return self.dump_value(new, padding)
        if isinstance(new, dict):
            # Kept entries in their order, then new ones.
            names = {str(it.name): n for n, it in enumerate(json_entries(self.text, start))}
            kept = {name: number for name, number in names.items() if name in new}
            added = {name: None for name in new if name not in names}
            return self.write_collection(start, end, new, {**kept, **added})
        if isinstance(new, list):
            return self.write_collection(start, end, new, dict(enumerate(match_elements(old, new))))
        return self.dump_value(new, padding)

    def write_collection(
        self, start: int, end: int, new: Any, sources: Mapping[Any, int | None]
    ) -> str:
        """Build an object or array from the entries that stay and those that are new."""
        text, present = self.text, list(json_entries(self.text, start))
        opening = text[start : present[0].start]
        gaps = [text[entry.end : following.start] for entry, following in pairwise(present)]
        gap = gaps[0] if gaps else f",{opening[1:]}" if "\n" in opening else self.comma
        padding = gap.rpartition("\n")[2] if "\n" in gap else None
        result, previous_source = opening, -1
        for number, (name, source) in enumerate(sources.items()):
            if number:
                follows_last = (
                    source is not None and source == previous_source + 1 and previous_source >= 0
                )
                # Two entries that were neighbors keep the text between them, blank lines included.
                result += gaps[previous_source] if follows_last else gap
            if source is None:
                key = self.dump_value(name, padding) + self.colon if isinstance(name, str) else ""
                result += key + self.dump_value(new[name], padding)
            else:
                entry = present[source]
                result += text[entry.start : entry.value_start]
                result += self.write_value(
                    entry.value_start, entry.end, entry.data, new[name], padding
                )
            previous_source = -1 if source is None else source
        return result + text[present[-1].end : end]

    def dump_value(self, value: Any, padding: str | None) -> str:
        """Return the text of a value that the file does not contain yet."""
        text = json.dumps(
            value,
            indent=None if padding is None else self.indent,
            separators=(self.comma if padding is None else ",", self.colon),
            # A file that escapes its characters has a writer that does so; one with others is
            # left readable.
            ensure_ascii=self.text.isascii(),
        )
        return text if padding is None else text.replace("\n", f"{self.newline}{padding}")


def is_json(file: str) -> bool:
    """Return whether the file is read as JSON, by its name."""
    return file.endswith(".json")


def read_json(text: str, file: str, counter: ValueCounter | None = None) -> Any:
    """Return the data of a JSON file, None for an empty one.

    Raises InvalidManifest with all problems, and InvalidInput if the file has more values
    than `counter` has left.
    """
    if not text.strip():
        return None
    if counter is not None:
        # Without building them, as Python's reader cannot stop.
        max_values = counter.limit - counter.count
        number = 0
        for token in _VALUE.finditer(text):
            number += token[1] is None
            if number > max_values:
                break
        counter.add(number, file)
    has_duplicate = False
    constants: list[str] = []

    def build_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicate
        result = dict(items)
        has_duplicate = has_duplicate or len(result) < len(items)
        return result

    try:
        data = json.loads(text, object_pairs_hook=build_object, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        problem = f"JSON syntax: {error.msg}"
        raise single_problem(file, error.lineno, problem, "correct the syntax") from None
    except (RecursionError, ValueError) as error:
        raise _limit_error(file, error) from None
    # JSON is YAML: the parser with positions is slower, and names the lines of the repeated keys.
    problems = parse_yaml(text, file).problems if has_duplicate else []
    problems += [
        manifest_problem(file, 0, f"{name} is not JSON", "quote it if it is a string")
        for name in constants
    ]
    if has_duplicate and not problems:
        problems = [manifest_problem(file, 0, "an object has a key twice", "remove one")]
    if problems:
        raise InvalidManifest(problems)
    _check_json(data, file)
    return data


def _check_json(data: object, file: str) -> None:
    depth, level = 0, [data]
    while level := [
        child
        for item in level
        if isinstance(item, dict | list)
        for child in (item.values() if isinstance(item, dict) else item)
    ]:
        depth += 1
    try:
        if depth > MAX_DEPTH:
            raise RecursionError
        # Encoding finds what Python's JSON reader lets through: infinities and halves of
        # surrogate pairs.
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except (RecursionError, ValueError) as error:
        raise _limit_error(file, error) from None


def _limit_error(file: str, error: Exception) -> InvalidManifest:
    if isinstance(error, RecursionError):
        return single_problem(file, 0, f"more than {MAX_DEPTH} levels deep", "flatten the object")
    if isinstance(error, UnicodeEncodeError):
        return single_problem(file, 0, "half of a surrogate pair is not a character", "remove it")
    return single_problem(file, 0, "a number is too large", "quote it if it is a string")


def find_json_line(text: str, path: tuple[str | int, ...]) -> int:
    """Return the line, from 1, of the deepest value on the path that exists."""
    line_at = at = skip_blanks(text, 0)
    for part in path:
        match = next((entry for entry in json_entries(text, at) if entry.name == part), None)
        if match is None:
            break
        line_at, at = match.start, match.value_start
    return text.count("\n", 0, line_at) + 1
