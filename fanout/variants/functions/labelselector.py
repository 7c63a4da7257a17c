"""Label selectors as text: `app=web,tier in (a, b),!canary`, as kubectl and kustomize read them."""

import re
from collections.abc import Mapping

from fanout.errors import InvalidInput
from fanout.values import frozen

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?"
_VALUE = rf"(?:{_NAME})?"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<none>{_NAME})"
    rf"|(?P<key>{_NAME})(?:\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    r"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|\Z)"
)


@frozen
class Term:
    """One requirement: the label has one of these values, or none of them, or is there or not."""

    key: str
    wanted: bool
    values: frozenset[str] | None  # None: any

    def holds(self, labels: Mapping[str, object]) -> bool:
        """Is it met? A label that is not there has none of the values."""
        if self.values is None:
            return (self.key in labels) is self.wanted
        return (labels.get(self.key) in self.values) is self.wanted


def parse(text: str) -> tuple[Term, ...]:
    """The requirements, all of which must hold; an empty text has none. Raises InvalidInput."""
    terms, at = [], 0
    if not text.strip():
        return ()
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            raise InvalidInput(
                f"{text!r} is no selector", remedy="write it like app=web,tier in (a,b),!canary"
            )
        terms.append(_term(match))
        at = match.end()
    return tuple(terms)


def _term(match: re.Match[str]) -> Term:
    if match["absent"]:
        return Term(match["none"], False, None)
    if match["word"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return Term(match["key"], match["word"] == "in", values)
    if match["sign"]:
        return Term(match["key"], match["sign"] != "!=", frozenset({match["value"]}))
    return Term(match["key"], True, None)
