"""Kubernetes label selectors.

See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels

The language of the flag `--selector` is kubectl's: terms joined by commas, each `key`,
`!key`, `key=value` (or `==`), `key!=value`, `key in (a, b)`, `key notin (a, b)`, `key>1`
or `key<1`. A value may be empty.
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol, TypeGuard

from fanout.api.text_fields import LABEL_KEY, LABEL_VALUE
from fanout.errors import ErrorLocation, InvalidInput
from fanout.values import Value, field

_MAPS = (dict, Mapping)  # dict first: the check is faster than for Mapping
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")  # as Kubernetes reads a label for > and <


class MatchableRequirement(Protocol):
    """One entry of matchExpressions, or of a selector flag; only the latter has Gt and Lt."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class MatchableSelector(Protocol):
    """Requirements on an object's labels; all entries are ANDed."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> tuple[MatchableRequirement, ...]: ...


def matches(selector: MatchableSelector, labels: Mapping[str, str]) -> bool:
    """Return whether the selector selects an object with these labels. An empty one selects all."""
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return not selector.match_expressions or all(
        _is_met(requirement, labels) for requirement in selector.match_expressions
    )


def match_raw_labels(selector: MatchableSelector, labels: object) -> bool | None:
    """Match labels as they were written; None if the result is unknown.

    It is unknown when a selected label is not a string (`tier: 1`), unless another label
    already rules the object out.
    """
    if labels is None or is_text_map(labels):
        return matches(selector, labels or {})
    raw_labels = labels if isinstance(labels, Mapping) else {}
    text_labels = {key: value for key, value in raw_labels.items() if isinstance(value, str)}
    results = [(key, text_labels.get(key) == value) for key, value in selector.match_labels.items()]
    results += [
        (requirement.key, _is_met(requirement, text_labels))
        for requirement in selector.match_expressions
    ]
    # An absent label is known to be absent only if the labels are a mapping at all.
    certainties = [
        key in text_labels or (key not in raw_labels and raw_labels is labels) for key, _ in results
    ]
    if any(is_sure and not holds for (_, holds), is_sure in zip(results, certainties, strict=True)):
        return False
    return True if all(certainties) else None


def is_text_map(labels: object) -> TypeGuard[Mapping[str, str]]:
    """Return whether the labels of an object are a mapping whose values are all strings."""
    return isinstance(labels, _MAPS) and set(map(type, labels.values())) <= {str}


def _is_met(requirement: MatchableRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":  # as in Kubernetes, an absent label is not in any list
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "Gt" | "Lt" as operator:
            # Any label that is no whole number is neither greater nor less.
            if value is None or not _NUMBER.fullmatch(value):
                return False
            number, bound = int(value), int(requirement.values[0])
            return number > bound if operator == "Gt" else number < bound
        case _:  # DoesNotExist; validation admits no other
            return value is None


_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_WORD: Final = re.compile(r"[^\s=!(),<>]+")
_ONE_VALUE: Final = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: Final = {"in": "In", "notin": "NotIn"}
_END: Final = ""


class FlagRequirement(Value):
    """One term; operators are those of matchExpressions, and Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class FlagSelector(Value):
    """Terms of a selector flag, all of which must hold. Without any, everything is selected."""

    match_expressions: tuple[FlagRequirement, ...] = ()
    match_labels: Mapping[str, str] = field(default_factory=dict)


def parse_selector(text: str, origin: str) -> FlagSelector:
    """Parse the selector given for the flag `origin`.

    Raises InvalidInput with what cannot be parsed and its position.
    """
    tokens = _Tokens(text, origin)
    terms: list[FlagRequirement] = []
    while text.strip():
        terms.append(_parse_term(tokens))
        if tokens.peek() == _END:
            break
        tokens.expect(",", "a comma")
    return FlagSelector(tuple(terms))


class _Tokens:
    """Tokens of the text; the one after the last is `_END`."""

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

    def expect(self, token: str, expected: str) -> None:
        if self.peek() != token:
            raise self.error(expected)
        self._next += 1

    def word(self, expected: str, pattern: str) -> str:
        """Return the next token, a key or a value. Raises InvalidInput if it is none."""
        word = self.peek()
        if not _WORD.fullmatch(word) or not re.fullmatch(pattern, word):
            raise self.error(expected)
        self._next += 1
        return word

    def error(self, expected: str) -> InvalidInput:
        token = self.peek()
        position = (
            f"{token!r} at character {self._tokens[self._next][1] + 1}" if token else "the end"
        )
        return InvalidInput(
            f"{self._text!r} is not a label selector: expected {expected}, got {position}",
            reason="InvalidSetting",
            remedy="write KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or KEY notin (A,B), joined"
            " by commas",
            where=ErrorLocation(field=self._origin),
        )


def _parse_term(tokens: _Tokens) -> FlagRequirement:
    if tokens.peek() == "!":
        tokens.take()
        return FlagRequirement(tokens.word("a key", LABEL_KEY), "DoesNotExist")
    key = tokens.word("a key", LABEL_KEY)
    operator = tokens.peek()
    if operator in (_END, ","):
        return FlagRequirement(key, "Exists")
    if operator in _SETS:
        tokens.take()
        tokens.expect("(", "'('")
        values = [_parse_value(tokens, (",", ")"))]
        while tokens.peek() == ",":
            tokens.take()
            values.append(_parse_value(tokens, (",", ")")))
        tokens.expect(")", "a comma or ')'")
        return FlagRequirement(key, _SETS[operator], tuple(values))
    if operator not in _ONE_VALUE:
        raise tokens.error("a comma or one of = == != in notin > <")
    tokens.take()
    if operator in "<>":
        return FlagRequirement(key, _ONE_VALUE[operator], (tokens.word("a number", r"-?\d+"),))
    return FlagRequirement(key, _ONE_VALUE[operator], (_parse_value(tokens, (_END, ",")),))


def _parse_value(tokens: _Tokens, ends: tuple[str, ...]) -> str:
    """Parse a value; one that is omitted is the empty string."""
    return "" if tokens.peek() in ends else tokens.word("a value", LABEL_VALUE)
