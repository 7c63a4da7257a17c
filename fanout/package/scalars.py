"""Single values: what a plain YAML scalar means to Kubernetes, and how a value is written.

Kubernetes reads YAML 1.1 with the extensions and omissions of its own parser (sigs.k8s.io/yaml):
`yes`, `on` and `y` are booleans, `0o7` and `1e3` numbers, dates and `12:30:45` text. Other tools
read YAML 1.2, so whatever any of them would take for something else than text is quoted here. That
is about values; a mapping's key is its text (decision 0027).
"""

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite
from typing import Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys("y Y yes Yes YES true True TRUE on On ON".split(), True),  # noqa: SIM905
    **dict.fromkeys("n N no No NO false False FALSE off Off OFF".split(), False),  # noqa: SIM905
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
TRUTHS: Final = frozenset(word for word, value in _WORDS.items() if value is not None)
_INTEGER: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9][0-9]*))\Z"
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_A_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_LONGEST_NUMBER: Final = 400  # digits; longer ones are text, and cost nothing to look at

# What is written without quotes: begins like a word, holds no indicator, no `: ` and no ` #`.
_PLAIN: Final = re.compile(
    r"[A-Za-z_/][A-Za-z0-9_./@=+()-]*+(?:[: ][A-Za-z0-9_/(][A-Za-z0-9_./@=+()-]*+)*+\Z"
)
# Commit ids; but digits alone, `1e7` and `0b1` are numbers to some reader.
_HEX: Final = re.compile(r"(?![0-9]+(?:e[0-9]*)?\Z|0b[01]*\Z)[0-9a-f]{7,64}\Z")
_RESERVED: Final = frozenset(word.lower() for word in _WORDS) | {"nan", "inf"}

# What YAML reads as a line break, refuses, or shows to nobody.
_ODD: Final = re.compile(
    "[\x7f-\xa0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ud800-\udfff\ufeff\ufff0-\uffff]"
)
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f]|' + _ODD.pattern)
_LITERAL: Final = re.compile(
    r"[^\x00-\x20\x7f-\xa0][^\x00-\x08\x0b-\x1f]*[^\x00-\x20]\n?\Z"  # begins and ends with a mark
)
_BLANK_AT_END: Final = re.compile(r"[ \t]\n")
LONGEST_KEY: Final = 1000  # YAML allows 1024 characters, quotes and escapes included


@lru_cache(maxsize=1 << 14)
def resolve(text: str) -> Scalar:
    """What a plain scalar means; raises ValueError for infinity and not-a-number."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _LONGEST_NUMBER:
        return text
    if _NOT_A_NUMBER.match(text):
        raise ValueError(text)
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


def key_text(value: Scalar) -> str | None:
    """What readers of YAML 1.1 make of a mapping's key; None for null, which cannot be a key."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value)


def number_text(value: float) -> str:
    """A number that YAML 1.1, YAML 1.2 and JSON all read as the same number."""
    if isinstance(value, int):
        return str(value)
    if not -inf < value < inf:
        raise InvalidInput(
            f"{value} cannot be written: Kubernetes has no such number",
            reason=Reason.INVALID_MANIFEST,
            remedy="write a finite number, or text",
        )
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def quoted(text: str) -> str:
    """A double-quoted scalar on one line, the same in YAML and JSON but for astral escapes."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if "\ud800" <= char <= "\udfff":
        raise InvalidInput(
            f"the text has half of a surrogate pair (U+{ord(char):04X}), which is no character",
            reason=Reason.INVALID_MANIFEST,
            remedy="remove it",
        )
    return _ESCAPES.get(char) or f"\\u{ord(char):04x}"


def is_plain(text: str) -> bool:
    """May this text stand without quotes, for every reader?"""
    if _PLAIN.match(text):
        return len(text) > 5 or text.lower() not in _RESERVED
    return _HEX.match(text) is not None


def is_literal(text: str) -> bool:
    """May this text stand as a literal block (`|`), and does it have more than one line?"""
    return (
        "\n" in text[:-1]
        and _LITERAL.match(text) is not None
        and not _ODD.search(text)
        and not _BLANK_AT_END.search(text)
    )


def text_scalar(text: str) -> str:
    """Text on one line, quoted where it must be."""
    return text if is_plain(text) else quoted(text)


_WRITERS: Final[dict[type, Callable[..., str]]] = {
    str: text_scalar,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: number_text,
    type(None): lambda _: "null",
    dict: lambda _: "{}",
    list: lambda _: "[]",
}


def scalar(value: object) -> str:
    """A scalar, or an empty mapping or list, on one line."""
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise unwritable(value)
    return writer(value)


def key_scalar(key: object) -> str:
    """A mapping's key; Raises InvalidInput when it is too long for YAML."""
    if not isinstance(key, str):
        raise unwritable(key)
    text = text_scalar(key)
    if len(text) > LONGEST_KEY:
        raise InvalidInput(
            f"the key {key[:40]}… has more than {LONGEST_KEY} characters",
            reason=Reason.INVALID_MANIFEST,
            remedy="use a shorter key",
        )
    return text


def flow(value: object) -> str:
    """Any value on one line, in flow style."""
    if isinstance(value, dict) and value:
        inside = ", ".join(f"{_flow_safe(key_scalar(k))}: {flow(v)}" for k, v in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list) and value:
        return f"[{', '.join(map(flow, value))}]"
    return _flow_safe(scalar(value))


def _flow_safe(text: str) -> str:
    """Older readers end a plain scalar in flow style at any colon."""
    return f'"{text}"' if ":" in text and text[0] != '"' else text


def unwritable(value: object) -> InvalidInput:
    """The error for what is no JSON data."""
    return InvalidInput(
        f"a {type(value).__name__} cannot be written as YAML",
        reason=Reason.INVALID_MANIFEST,
        remedy="give text, numbers, booleans, null, lists and mappings with text as keys",
    )
