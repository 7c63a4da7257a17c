"""Kubernetes label selectors. (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels)"""

from collections.abc import Mapping
from typing import Protocol


class Requirement(Protocol):
    """One entry of matchExpressions."""

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
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":  # as in Kubernetes, an absent label is not in any list
            return value not in requirement.values
        case "Exists":
            return value is not None
        case _:  # DoesNotExist; validation admits no other
            return value is None
