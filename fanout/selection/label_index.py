"""Index of the objects of one kind by namespace and label.

A thousand policies that select among ten thousand objects would otherwise compare ten million
times.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from fanout.selection.label_selector import MatchableSelector, is_text_map
from fanout.selection.variant_spec import Object

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
