"""Kubernetes label selectors. (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels)"""

import re
from collections.abc import Mapping
from typing import Final, Protocol, TypeGuard

_MAPS = (dict, Mapping)  # the first is asked first and is the quick answer
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")  # as Kubernetes reads a label for > and <


class Requirement(Protocol):
    """One entry of matchExpressions, or what somebody typed; only that has Gt and Lt."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class LabelSelector(Protocol):
    """What has to hold for an object's labels; all entries are ANDed."""

    @property
    def match_labels(self) -> Mapping[str, str]: ...
    @property
    def match_expressions(self) -> tuple[Requirement, ...]: ...


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Does the selector choose an object with these labels? An empty one chooses all."""
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return not selector.match_expressions or all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def chooses(selector: LabelSelector, labels: object) -> bool | None:
    """As `matches`, for labels as they were written; None when nobody can say.

    That is so when a label that is asked for is no text (`tier: 1`). What another label rules out
    is ruled out all the same.
    """
    if labels is None or _is_text_map(labels):
        return matches(selector, labels or {})
    written = labels if isinstance(labels, Mapping) else {}
    texts = {key: value for key, value in written.items() if isinstance(value, str)}
    answers = [(key, texts.get(key) == value) for key, value in selector.match_labels.items()]
    answers += [(one.key, _holds(one, texts)) for one in selector.match_expressions]
    clear = [key in texts or (key not in written and written is labels) for key, _ in answers]
    if any(sure and not holds for (_, holds), sure in zip(answers, clear, strict=True)):
        return False
    return True if all(clear) else None


def _is_text_map(labels: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(labels, _MAPS) and set(map(type, labels.values())) <= {str}


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":  # as in Kubernetes, an absent label is not in any list
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "Gt" | "Lt" as operator:
            return _compares(value or "", operator, int(requirement.values[0]))
        case _:  # DoesNotExist; validation admits no other
            return value is None


def _compares(value: str, operator: str, bound: int) -> bool:
    """Labels that are no whole number are neither greater nor less."""
    if not _NUMBER.fullmatch(value):
        return False
    return int(value) > bound if operator == "Gt" else int(value) < bound
