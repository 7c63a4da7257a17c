"""JSON files are manifests too: reading with the same guards, finding lines, editing.

An edit writes the whole file again, with the indentation, spacing and last line break it had.
"""

import json
import re
from typing import Any, Final

from fanout.errors import InvalidInput
from fanout.package.invalid import MAX_DEPTH, InvalidManifest, fault
from fanout.package.nodes import read

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"[\[{][ \t]*\r?\n([ \t]+)\S")
_DECODER: Final = json.JSONDecoder()


def is_json(file: str) -> bool:
    """Is the file read as JSON?"""
    return file.endswith(".json")


def read_json(text: str, file: str) -> Any:
    """The data of a JSON file, None for an empty one. Raises InvalidManifest with every fault."""
    if not text.strip():
        return None
    twice = False
    constants: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        found = dict(items)
        twice = twice or len(found) < len(items)
        return found

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        problem = fault(file, error.lineno, f"JSON syntax: {error.msg}", "correct the syntax")
        raise InvalidManifest([problem]) from None
    except (RecursionError, ValueError) as error:
        raise InvalidManifest([_too_much(file, error)]) from None
    problems = read(text, file).problems if twice else []
    problems += [
        fault(file, 0, f"{name} is no JSON", "quote it if it is text") for name in constants
    ]
    if twice and not problems:
        problems = [fault(file, 0, "an object has one key twice", "remove one")]
    if problems:
        raise InvalidManifest(problems)
    _check(data, file)
    return data


def _check(data: object, file: str) -> None:
    try:
        if _depth(data) > MAX_DEPTH:
            raise RecursionError
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except (RecursionError, ValueError) as error:
        raise InvalidManifest([_too_much(file, error)]) from None


def _too_much(file: str, error: Exception) -> InvalidInput:
    if isinstance(error, RecursionError):
        return fault(file, 0, f"more than {MAX_DEPTH} levels deep", "flatten the object")
    if isinstance(error, UnicodeEncodeError):
        return fault(file, 0, "half of a surrogate pair is no character", "remove it")
    return fault(file, 0, "a number is too large", "quote it if it is text")


def _depth(data: object) -> int:
    depth, level = 0, [data]
    while level := [
        child
        for item in level
        if isinstance(item, dict | list)
        for child in (item.values() if isinstance(item, dict) else item)
    ]:
        depth += 1
    return depth


def json_line(text: str, path: tuple[str | int, ...]) -> int:
    """The line of the deepest value on the path that is there."""
    at = _skip(text, 0)
    line_at = at
    for part in path:
        found = _child(text, at, part)
        if found is None:
            break
        line_at, at = found
    return text.count("\n", 0, line_at) + 1


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _child(text: str, at: int, part: str | int) -> tuple[int, int] | None:
    """Where the entry begins and where its value does."""
    if text[at] != ("{" if isinstance(part, str) else "["):
        return None
    position = 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        entry, key = at, position
        if isinstance(part, str):
            key, after = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, after) + 1)
        if key == part:
            return entry, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        position += 1
    return None


def write_json(data: Any, before: str) -> str:
    """The data as text in the manner of the text that was there before."""
    match = _INDENT.search(before)
    tail = before[len(before.rstrip()) :]
    wide = ": " in before or ", " in before
    text = json.dumps(
        data,
        indent=match[1] if match else None,
        separators=(",", ": ") if match else (", ", ": ") if wide else (",", ":"),
        ensure_ascii=before.isascii(),
    )
    return text.replace("\n", "\r\n") + tail if "\r\n" in before else text + tail
