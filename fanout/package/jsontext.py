"""JSON files are manifests too: reading with the same guards, finding lines, editing."""

import json
from typing import Any

from fanout.errors import InvalidInput
from fanout.package.invalid import MAX_DEPTH, InvalidManifest, fault
from fanout.package.jsonlayout import entries, rewritten, skip
from fanout.package.nodes import read


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
    line_at = at = skip(text, 0)
    for part in path:
        found = next((entry for entry in entries(text, at) if entry.name == part), None)
        if found is None:
            break
        line_at, at = found.start, found.at
    return text.count("\n", 0, line_at) + 1


def edited_json(data: Any, before: str, file: str) -> str:
    """The text with this data in it; what did not change keeps its bytes.

    Raises InvalidManifest for what is no JSON data, and for what is too deep.
    """
    _check(data, file)
    return rewritten(data, before)
