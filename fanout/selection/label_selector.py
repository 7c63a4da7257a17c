"""Kubernetes label selectors, and the index by which they find objects.

See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels

The language of the flag `--selector` is kubectl's: terms joined by commas, each `key`,
`!key`, `key=value` (or `==`), `key!=value`, `key in (a, b)`, `key notin (a, b)`, `key>1`
or `key<1`. A value may be empty.

A thousand policies that select among ten thousand objects would compare ten million times. So the
objects of a kind are indexed by namespace and label.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeGuard

from fanout.api.text_fields import LABEL_KEY, LABEL_VALUE
from fanout.errors import ErrorLocation, InvalidInput
from fanout.selection.variant_spec import Object
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


def parse_selector(text: str) -> FlagSelector:
    """Parse the text of `--selector`. Raises InvalidInput with the position."""
    tokens = _Tokens(text)
    terms: list[FlagRequirement] = []
    while text.strip():
        terms.append(_parse_term(tokens))
        if tokens.peek() == _END:
            break
        tokens.expect(",", "a comma")
    return FlagSelector(tuple(terms))


class _Tokens:
    """Tokens of the text; the one after the last is `_END`."""

    def __init__(self, text: str) -> None:
        self._text = text
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
            where=ErrorLocation(field="--selector"),
        )


def _parse_term(tokens: _Tokens) -> FlagRequirement:
    if tokens.peek() == "!":
        tokens.take()
        return FlagRequirement(tokens.word("a key", LABEL_KEY), "DoesNotExist")
    key = tokens.word("a key", LABEL_KEY)
    if (operator := tokens.peek()) in (_END, ","):
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


ObjectName = tuple[str, str]  # namespace and name
_ListKey = tuple[str, str | None, str]
"""Namespace, label and value; without a label: all objects, or those with irregular labels."""
_ALL, _IRREGULAR = (None, "all"), (None, "irregular")
_FEW = 0.1  # of all objects; beyond, a new index costs less than a changed one


class LabelIndex:
    """Names of objects by namespace, and by the values of those labels that selectors name."""

    def __init__(self, objects: Mapping[ObjectName, Object]) -> None:
        """Index the objects, which are in the order of their names."""
        self._labels = {name: read_labels(item) for name, item in objects.items()}
        # In order; other indexes share the lists, so they are not changed.
        self._names: dict[_ListKey, list[ObjectName]] = {}
        # By namespace; a label is indexed when a selector first names it.
        self._indexed: dict[str, frozenset[str]] = {}
        for name, labels in self._labels.items():
            for list_key in self._list_keys(name, labels):
                self._names.setdefault(list_key, []).append(name)

    def find_candidates(self, namespace: str, selector: MatchableSelector) -> Sequence[ObjectName]:
        """Return the objects of a namespace that the selector may match, and few others."""
        lists = [
            self._find_labeled(namespace, key, values)
            for key, values in list_exact_requirements(selector)
        ]
        if not lists:
            return self._names.get((namespace, *_ALL), ())
        return [*min(lists, key=len), *self._names.get((namespace, *_IRREGULAR), ())]

    def with_objects(
        self, previous: Mapping[ObjectName, Object], present: Mapping[ObjectName, Object]
    ) -> "LabelIndex":
        """Return an index of the present objects; `previous` are those of this index.

        It costs what differs, unless that is much.
        """
        changed = [name for name, item in present.items() if previous.get(name) is not item]
        changed += previous.keys() - present.keys()
        if not changed:
            return self
        if len(changed) > _FEW * len(present):
            return LabelIndex(present)
        index = LabelIndex({})
        index._labels, index._indexed = self._labels.copy(), self._indexed.copy()
        replaced: dict[_ListKey, list[ObjectName]] = {}
        for name in changed:
            before: set[_ListKey] = set()
            if name in self._labels:
                before = {*self._list_keys(name, index._labels.pop(name))}
            after: set[_ListKey] = set()
            if name in present:
                labels = index._labels[name] = read_labels(present[name])
                after = {*self._list_keys(name, labels)}
            for list_key in before ^ after:
                names = replaced.setdefault(list_key, [*self._names.get(list_key, ())])
                place = bisect_left(names, name)
                names[place : place + (list_key in before)] = [name] * (list_key in after)
        index._names = {**self._names, **replaced}
        return index

    def _list_keys(self, name: ObjectName, labels: object) -> Iterator[_ListKey]:
        """Yield the keys of the lists that have an object with these labels."""
        namespace = name[0]
        yield namespace, *_ALL
        if labels is None:
            return
        if not is_text_map(labels):
            # Whether such an object matches is for the selector to say.
            yield namespace, *_IRREGULAR
            return
        for key in self._indexed.get(namespace, ()):
            if key in labels:
                yield namespace, key, labels[key]

    def _find_labeled(
        self, namespace: str, key: str, values: Sequence[str]
    ) -> Sequence[ObjectName]:
        indexed = self._indexed.get(namespace, frozenset())
        if key not in indexed:
            self._indexed[namespace] = indexed | {key}
            for name in self._names.get((namespace, *_ALL), ()):
                labels = self._labels[name]
                if is_text_map(labels) and key in labels:
                    self._names.setdefault((namespace, key, labels[key]), []).append(name)
        if len(values) == 1:
            return self._names.get((namespace, key, values[0]), ())
        return [
            name
            for value in dict.fromkeys(values)
            for name in self._names.get((namespace, key, value), ())
        ]


def read_labels(item: Object) -> object:
    """Return the labels of an object as written; None if it has none."""
    return (item.get("metadata") or {}).get("labels")


def list_exact_requirements(selector: MatchableSelector) -> list[tuple[str, tuple[str, ...]]]:
    """Return the labels that must have one of the given values, with these values."""
    return [(key, (value,)) for key, value in selector.match_labels.items()] + [
        (it.key, it.values) for it in selector.match_expressions if it.operator == "In"
    ]
