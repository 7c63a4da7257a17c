"""JSON and YAML texts of plain data, with sorted keys."""

import json
from collections.abc import Mapping
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from fanout.package.yaml_scalars import dump


def format_json(value: Any, line_start: str = "\n") -> str:
    """Format plain data as JSON with sorted keys, two spaces of indentation for each level.

    `line_start`: line break and indentation of the value. The standard library indents in Python,
    token by token, and takes twice the time for ten thousand objects.
    """
    if isinstance(value, str):
        return _format_json_string(value)
    inner = f"{line_start}  "
    if isinstance(value, (list, tuple)):
        texts = [format_json(it, inner) for it in value]
        return f"[{inner}{f',{inner}'.join(texts)}{line_start}]" if texts else "[]"
    if isinstance(value, (dict, Mapping)):
        pairs = sorted(value.items())
        texts = [f"{_format_json_string(key)}: {format_json(it, inner)}" for key, it in pairs]
        return f"{{{inner}{f',{inner}'.join(texts)}{line_start}}}" if texts else "{}"
    return json.dumps(value)


def _format_json_string(value: str) -> str:
    text = encode_basestring(value)
    # What JSON leaves as it is may still command a terminal, or turn the direction of its text.
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else encode_basestring_ascii(it)[1:-1] for it in text)


def format_yaml(value: Any) -> str:
    """Format plain data as one YAML document with sorted keys, like kubectl."""
    return dump(_sort_keys(value))


def _sort_keys(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _sort_keys(value[key]) for key in sorted(value)}
        case str():
            return str(value)  # a StrEnum becomes plain text
        case list() | tuple():
            return [_sort_keys(item) for item in value]
        case _:
            return value
