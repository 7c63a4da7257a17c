"""Kubernetes label selectors.

See https://kubernetes.io/docs/concepts/overview/working-with-objects/labels
"""

import re
from collections.abc import Mapping
from typing import Final, Protocol, TypeGuard

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
    """Return whether the selector selects an object with these labels.

    An empty one selects all.
    """
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
    if labels is None or _is_text_map(labels):
        return matches(selector, labels or {})
    raw_labels = labels if isinstance(labels, Mapping) else {}
    text_labels = {key: value for key, value in raw_labels.items() if isinstance(value, str)}
    results = [(key, text_labels.get(key) == value) for key, value in selector.match_labels.items()]
    results += [
        (requirement.key, _is_met(requirement, text_labels))
        for requirement in selector.match_expressions
    ]
    # An absent label is known to be absent only if the labels are a mapping at all.
    known = [
        key in text_labels or (key not in raw_labels and raw_labels is labels) for key, _ in results
    ]
    if any(is_known and not holds for (_, holds), is_known in zip(results, known, strict=True)):
        return False
    return True if all(known) else None


def _is_text_map(labels: object) -> TypeGuard[Mapping[str, str]]:
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
            return _compare_numbers(value or "", operator, int(requirement.values[0]))
        case _:  # DoesNotExist; validation admits no other
            return value is None


def _compare_numbers(value: str, operator: str, bound: int) -> bool:
    """Compare labels as whole numbers; any other label is neither greater nor less."""
    if not _NUMBER.fullmatch(value):
        return False
    return int(value) > bound if operator == "Gt" else int(value) < bound
