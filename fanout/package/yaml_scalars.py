"""YAML scalars: values as Kubernetes reads them, and how they are written.

Kubernetes reads YAML 1.1 with the extensions and omissions of its own parser (sigs.k8s.io/yaml):
`yes`, `on` and `y` are booleans, `0o7` and `1e3` numbers, dates and `12:30:45` text. Other tools
read YAML 1.2, so text that any of them would take for another type is quoted here. Mapping keys are
not resolved; a key is its text (decision 0027).
"""

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite
from typing import Any, Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.values import Value

Scalar = str | int | float | bool | None

_RESERVED_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys("y Y yes Yes YES true True TRUE on On ON".split(), True),  # noqa: SIM905
    **dict.fromkeys("n N no No NO false False FALSE off Off OFF".split(), False),  # noqa: SIM905
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
BOOLEAN_WORDS: Final = frozenset(
    word for word, value in _RESERVED_WORDS.items() if value is not None
)
_INTEGER: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9][0-9]*))\Z"
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_A_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_MAX_NUMBER_LENGTH: Final = 400  # digits; longer ones are text, and cost nothing to look at

# Text written without quotes: begins like a word, contains no indicator, no `: ` and no ` #`.
_PLAIN: Final = re.compile(
    r"[A-Za-z_/][A-Za-z0-9_./@=+()-]*+(?:[: ][A-Za-z0-9_/(][A-Za-z0-9_./@=+()-]*+)*+\Z"
)
# Commit ids; digits alone, `1e7` and `0b1` are numbers to some readers.
_HEX: Final = re.compile(r"(?![0-9]+(?:e[0-9]*)?\Z|0b[01]*\Z)[0-9a-f]{7,64}\Z")
_RESERVED: Final = frozenset(word.lower() for word in _RESERVED_WORDS) | {"nan", "inf"}

# Characters that YAML reads as line breaks or refuses, and invisible ones.
_UNSAFE: Final = re.compile(
    "[\x7f-\xa0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\uffff]"
)
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f]|' + _UNSAFE.pattern)
# Begins and ends with a visible character.
_LITERAL: Final = re.compile(r"[^\x00-\x20\x7f-\xa0][^\x00-\x08\x0b-\x1f]*[^\x00-\x20]\n?\Z")
_BLANK_AT_END: Final = re.compile(r"[ \t]\n")
MAX_KEY_LENGTH: Final = 1000  # YAML allows 1024 characters, quotes and escapes included


@lru_cache(maxsize=1 << 14)
def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar. Raises ValueError for infinity and not-a-number."""
    if text in _RESERVED_WORDS:
        return _RESERVED_WORDS[text]
    # Python's int() takes time quadratic in the number of digits; nobody writes such
    # numbers in good faith.
    if text[0] not in "+-.0123456789" or len(text) > _MAX_NUMBER_LENGTH:
        return text
    if _NOT_A_NUMBER.match(text):
        raise ValueError(text)
    # sigs.k8s.io/yaml drops underscores from numbers, but not from one that begins with a point.
    digits = text if text[0] == "." else text.replace("_", "")
    if match := _INTEGER.match(digits):
        sign, *groups = match.groups()
        for base, group in zip((16, 8, 2, 10), groups, strict=True):
            if group is not None:
                return -int(group, base) if sign == "-" else int(group, base)
    if _FLOAT.match(digits):
        number = float(digits)
        return number if isfinite(number) else text
    return text


def yaml11_key(value: Scalar) -> str | None:
    """Return a mapping's key as YAML 1.1 readers see it. None for null, which cannot be a key."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return format_number(value)


def format_number(value: float) -> str:
    """Format a number so that YAML 1.1, YAML 1.2 and JSON read the same number.

    Raises InvalidInput for infinity and not-a-number.
    """
    if isinstance(value, int):
        return str(value)
    if not -inf < value < inf:
        problem = f"{value} cannot be written: Kubernetes does not support this number"
        raise _invalid_value(problem, "write a finite number, or a string")
    text = repr(value)
    # YAML 1.1 takes `1e22` for text: its floats must have a point.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def quote(text: str) -> str:
    """Return a double-quoted scalar, the same in YAML and JSON but for astral escapes."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if "\ud800" <= char <= "\udfff":
        raise _invalid_value(
            f"the text has half of a surrogate pair (U+{ord(char):04X}), which is not a character",
            "remove it",
        )
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"


def is_plain(text: str) -> bool:
    """Return whether every reader takes this text for a string without quotes."""
    if _PLAIN.match(text):
        # No reserved word has more than five letters: most texts are spared the lookup.
        return len(text) > 5 or text.lower() not in _RESERVED
    return _HEX.match(text) is not None


def is_literal(text: str) -> bool:
    """Return whether this text has several lines and can be a literal block (`|`)."""
    return (
        "\n" in text[:-1]
        and _LITERAL.match(text) is not None
        and not _UNSAFE.search(text)
        and not _BLANK_AT_END.search(text)
    )


def format_text(text: str) -> str:
    """Return text on one line, quoted if necessary."""
    return text if is_plain(text) else quote(text)


_WRITERS: Final[dict[type, Callable[..., str]]] = {
    str: format_text,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: format_number,
    type(None): lambda _: "null",
    dict: lambda _: "{}",
    list: lambda _: "[]",
}


def format_scalar(value: object) -> str:
    """Return a scalar, or an empty mapping or list, on one line. Raises InvalidInput."""
    if (writer := _WRITERS.get(type(value))) is None:
        raise _not_json(value)
    return writer(value)


def format_key(key: object) -> str:
    """Return a mapping's key. Raises InvalidInput if it is too long for YAML."""
    if not isinstance(key, str):
        raise _not_json(key)
    text = format_text(key)
    if len(text) > MAX_KEY_LENGTH:
        problem = f"the key {key[:40]}… has more than {MAX_KEY_LENGTH} characters"
        raise _invalid_value(problem, "use a shorter key")
    return text


def format_flow(value: object) -> str:
    """Return a value of any kind on one line, in flow style."""
    if isinstance(value, dict) and value:
        inside = ", ".join(
            f"{_flow_safe(format_key(k))}: {format_flow(v)}" for k, v in value.items()
        )
        return f"{{{inside}}}"
    if isinstance(value, list) and value:
        return f"[{', '.join(map(format_flow, value))}]"
    return _flow_safe(format_scalar(value))


def _flow_safe(text: str) -> str:
    """Quote a scalar with a colon, at which older readers end it in flow style."""
    return f'"{text}"' if ":" in text and text[0] != '"' else text


def _not_json(value: object) -> InvalidInput:
    return _invalid_value(
        f"a {type(value).__name__} cannot be written as YAML",
        "use strings, numbers, booleans, null, lists, and mappings with string keys",
    )


def _invalid_value(problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(problem, reason=Reason.INVALID_MANIFEST, remedy=remedy)


class YamlStyle(Value):
    """Indentation of a file: columns per mapping, and of lists below their key."""

    mapping: int = 2
    sequence: int = 0
    literals: bool = True  # text of several lines may stand as a literal block


def dump(value: Any) -> str:
    """Return a document as YAML text.

    Keys keep their order; empty collections take one line. Text that a reader of YAML 1.1 or 1.2
    would take for another type is quoted. Raises InvalidInput for values that are not JSON data.
    """
    if isinstance(value, dict | list) and value:
        return "".join(f"{line}\n" for line in block_lines(value, 0, YamlStyle()))
    return f"{format_scalar(value)}\n"


def dump_all(values: list[Any]) -> str:
    """Return several documents as one text, separated by markers."""
    return "---\n".join(map(dump, values))


def block_lines(value: dict[str, Any] | list[Any], column: int, style: YamlStyle) -> list[str]:
    """Return the lines of a mapping or list that is not empty, indented to the column."""
    padding = " " * column
    lines: list[str] = []
    if isinstance(value, dict):
        for key, child in value.items():
            name = f"{padding}{format_key(key)}:"
            if isinstance(child, dict | list) and child:
                lines.append(name)
                step = style.mapping if isinstance(child, dict) else style.sequence
                lines += block_lines(child, column + step, style)
            else:
                head, *following = single_lines(child, column + style.mapping, style)
                lines += [f"{name} {head}", *following]
        return lines
    for child in value:
        if isinstance(child, dict | list) and child:
            # The first line of the element moves behind the dash, so its indentation is cut off.
            head, *following = block_lines(child, column + 2, style)
            lines += [f"{padding}- {head[column + 2 :]}", *following]
        else:
            head, *following = single_lines(child, column + 2, style)
            lines += [f"{padding}- {head}", *following]
    return lines


def single_lines(value: Any, column: int, style: YamlStyle) -> list[str]:
    """Return the lines of a value without children: one, or a literal block at the column."""
    if isinstance(value, str) and "\n" in value and style.literals and is_literal(value):
        return literal_lines(value, column)
    return [format_scalar(value)]


def literal_lines(text: str, column: int) -> list[str]:
    """Return a literal block: its header, then its lines at the column."""
    padding = " " * column
    return [
        "|" if text.endswith("\n") else "|-",
        *(f"{padding}{line}" if line else "" for line in text.removesuffix("\n").split("\n")),
    ]
