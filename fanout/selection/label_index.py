"""Index of the objects of one kind by namespace and label.

A thousand policies that select among ten thousand objects would otherwise compare ten million
times.
"""

from collections.abc import Mapping, Sequence

from fanout.selection.label_selector import MatchableSelector, is_text_map
from fanout.selection.variant_spec import Object

ObjectName = tuple[str, str]  # namespace and name


class LabelIndex:
    """Names of objects by namespace, and by the values of those labels that selectors name."""

    def __init__(self, objects: Mapping[ObjectName, Object]) -> None:
        self._labels = {name: read_labels(item) for name, item in objects.items()}
        self._by_namespace: dict[str, list[ObjectName]] = {}
        for name in objects:
            self._by_namespace.setdefault(name[0], []).append(name)
        # By label and namespace; a label is indexed when a selector first names it.
        self._by_value: dict[tuple[str, str], dict[str, list[ObjectName]]] = {}
        # Their labels are no strings, so whether they match is for the selector to say.
        self._irregular: dict[str, list[ObjectName]] = {}
        for name, labels in self._labels.items():
            if labels is not None and not is_text_map(labels):
                self._irregular.setdefault(name[0], []).append(name)

    def find_candidates(self, namespace: str, selector: MatchableSelector) -> Sequence[ObjectName]:
        """Return the objects of a namespace that the selector may match, and few others."""
        lists = [
            self._find_labeled(namespace, key, values)
            for key, values in list_exact_requirements(selector)
        ]
        if not lists:
            return self._by_namespace.get(namespace, ())
        return [*min(lists, key=len), *self._irregular.get(namespace, ())]

    def _find_labeled(
        self, namespace: str, key: str, values: Sequence[str]
    ) -> Sequence[ObjectName]:
        if (key, namespace) not in self._by_value:
            by_value: dict[str, list[ObjectName]] = {}
            for name in self._by_namespace.get(namespace, ()):
                labels = self._labels[name]
                if is_text_map(labels) and key in labels:
                    by_value.setdefault(labels[key], []).append(name)
            self._by_value[key, namespace] = by_value
        by_value = self._by_value[key, namespace]
        if len(values) == 1:
            return by_value.get(values[0], ())
        return [name for value in dict.fromkeys(values) for name in by_value.get(value, ())]


def read_labels(item: Object) -> object:
    """Return the labels of an object as written; None if it has none."""
    return (item.get("metadata") or {}).get("labels")


def list_exact_requirements(selector: MatchableSelector) -> list[tuple[str, tuple[str, ...]]]:
    """Return the labels that must have one of the given values, with these values."""
    return [(key, (value,)) for key, value in selector.match_labels.items()] + [
        (it.key, it.values) for it in selector.match_expressions if it.operator == "In"
    ]
