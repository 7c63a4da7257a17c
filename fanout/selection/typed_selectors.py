"""Label selectors as people type them: `-l 'tier in (dev, prod), region!=eu, !canary'`.

The language is kubectl's: terms joined by commas, each `key`, `!key`, `key=value` (or `==`),
`key!=value`, `key in (a, b)`, `key notin (a, b)`, `key>1` or `key<1`. A value may be empty.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from fanout.api.texts import LABEL_KEY, LABEL_VALUE
from fanout.errors import InvalidInput, Where
from fanout.values import frozen

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_WORD: Final = re.compile(r"[^\s=!(),<>]+")
_ONE_VALUE: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: Final = {"in": "In", "notin": "NotIn"}
_END: Final = ""


@frozen
class TypedRequirement:
    """One term; operators are those of matchExpressions, and Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@frozen
class TypedSelector:
    """All terms have to hold; without any, everything is chosen."""

    match_expressions: tuple[TypedRequirement, ...] = ()
    match_labels: Mapping[str, str] = field(default_factory=dict)


def parse_selector(text: str, origin: str) -> TypedSelector:
    """The selector that was typed for the flag `origin`.

    Raises InvalidInput with what cannot be read and where it stands.
    """
    tokens = _Tokens(text, origin)
    terms: list[TypedRequirement] = []
    while text.strip():
        terms.append(_term(tokens))
        if tokens.peek() == _END:
            break
        tokens.expect(",", "a comma")
    return TypedSelector(tuple(terms))


class _Tokens:
    """The text token by token; the one after the last is `_END`."""

    def __init__(self, text: str, origin: str) -> None:
        self._text = text
        self._origin = origin
        self._tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self._next = 0

    def peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else _END

    def take(self) -> str:
        token = self.peek()
        self._next += 1
        return token

    def expect(self, token: str, called: str) -> None:
        if self.peek() != token:
            raise self.error(called)
        self._next += 1

    def word(self, called: str, pattern: str) -> str:
        """The next token, a key or a value. Raises InvalidInput when it is none."""
        word = self.peek()
        if not _WORD.fullmatch(word) or not re.fullmatch(pattern, word):
            raise self.error(called)
        self._next += 1
        return word

    def error(self, wanted: str) -> InvalidInput:
        token = self.peek()
        found = f"{token!r} at character {self._tokens[self._next][1] + 1}" if token else "the end"
        return InvalidInput(
            f"{self._text!r} is no selector: {wanted} was expected, not {found}",
            reason="InvalidSetting",
            remedy="write KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or KEY notin (A,B), joined"
            " by commas",
            where=Where(field=self._origin),
        )


def _term(tokens: _Tokens) -> TypedRequirement:
    if tokens.peek() == "!":
        tokens.take()
        return TypedRequirement(tokens.word("a key", LABEL_KEY), "DoesNotExist")
    key = tokens.word("a key", LABEL_KEY)
    operator = tokens.peek()
    if operator in (_END, ","):
        return TypedRequirement(key, "Exists")
    if operator in _SETS:
        tokens.take()
        return TypedRequirement(key, _SETS[operator], _several(tokens))
    if operator not in _ONE_VALUE:
        raise tokens.error("a comma or one of = == != in notin > <")
    tokens.take()
    if operator in "<>":
        return TypedRequirement(key, _ONE_VALUE[operator], (tokens.word("a number", r"-?\d+"),))
    return TypedRequirement(key, _ONE_VALUE[operator], (_value(tokens, (_END, ",")),))


def _several(tokens: _Tokens) -> tuple[str, ...]:
    """`(a, b)`; where nothing stands, the empty value is meant."""
    tokens.expect("(", "'('")
    values = [_value(tokens, (",", ")"))]
    while tokens.peek() == ",":
        tokens.take()
        values.append(_value(tokens, (",", ")")))
    tokens.expect(")", "a comma or ')'")
    return tuple(values)


def _value(tokens: _Tokens, ends: tuple[str, ...]) -> str:
    return "" if tokens.peek() in ends else tokens.word("a value", LABEL_VALUE)
