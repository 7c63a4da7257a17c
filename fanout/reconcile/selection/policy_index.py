"""Index from kinds, labels and names of objects to the policies that choose or read them."""

from collections.abc import Collection, Iterator

from fanout.api.upstream_policy import ObjectSelector, UpstreamPolicy
from fanout.plan.evidence.due_checks import list_namespaces, machine_checks
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy
from fanout.selection.cluster_objects import ObjectChange, group_of
from fanout.selection.label_selector import (
    is_text_map,
    list_exact_requirements,
    match_raw_labels,
    read_labels,
)
from fanout.variants.functions.kind_scopes import CRD_KIND

_Term = tuple[str, ...]
# First words of terms: three of selectors, two of objects that are read.
_LABEL, _UNLABELED, _KIND = "label", "unlabeled", "kind"
_NAME, _CHECK = "name", "check"


class PolicyIndex:
    """Policies by what they choose and read; a change costs those that it may concern."""

    def __init__(self) -> None:
        self._keys_by_term: dict[_Term, set[PolicyKey]] = {}
        self._terms: dict[PolicyKey, frozenset[_Term]] = {}
        self._policies: dict[PolicyKey, ResolvedPolicy] = {}

    def update(self, policies: Collection[ResolvedPolicy]) -> None:
        """Make the index one of these policies; those that it has already cost next to nothing."""
        keys = {it.key for it in policies}
        for key in self._policies.keys() - keys:
            for term in self._terms.pop(key):
                self._discard(term, key)
            del self._policies[key]
        for resolved_policy in policies:
            key = resolved_policy.key
            if self._policies.get(key) is not resolved_policy:
                terms = frozenset(_list_terms(resolved_policy))
                previous_terms = self._terms.get(key, frozenset())
                for term in previous_terms - terms:
                    self._discard(term, key)
                for term in terms - previous_terms:
                    self._keys_by_term.setdefault(term, set()).add(key)
                self._policies[key], self._terms[key] = resolved_policy, terms

    def find_choosers(self, change: ObjectChange) -> set[PolicyKey]:
        """Return the policies for which the object is, was or may be a target."""
        terms: set[_Term] = {(_UNLABELED, *change.kind)}
        for item in (change.previous, change.present):
            labels = read_labels(item) if item is not None else None
            if is_text_map(labels):
                terms |= {(_LABEL, *change.kind, key, value) for key, value in labels.items()}
            elif labels is not None:
                terms.add((_KIND, *change.kind))
        namespace, name = change.name
        return {
            key
            for key in self._find(terms)
            if (policy := self._policies[key].upstream_policy) is not None
            and namespace in ("", policy.metadata.namespace)
            and any(
                (group_of(selector.api_version), selector.kind) == change.kind
                and selector.name in (None, name)
                and match_raw_labels(selector, read_labels(item)) is not False
                for selector in _object_selectors(policy)
                for item in (change.previous, change.present)
                if item is not None
            )
        }

    def find_readers(self, change: ObjectChange) -> set[PolicyKey]:
        """Return the policies that may inject the object, check it, or know its scope by it."""
        if change.kind == CRD_KIND:
            return set(self._policies)
        namespace, _ = change.name
        return self._find({(_NAME, *change.name), (_CHECK, *change.kind, namespace)})

    def _discard(self, term: _Term, key: PolicyKey) -> None:
        keys = self._keys_by_term[term]
        keys.discard(key)
        if not keys:  # names of objects come and go
            del self._keys_by_term[term]

    def _find(self, terms: set[_Term]) -> set[PolicyKey]:
        return set().union(*(self._keys_by_term.get(term, ()) for term in terms))


def _object_selectors(policy: UpstreamPolicy) -> Iterator[ObjectSelector]:
    return (it.object_selector for it in policy.spec.targets if it.object_selector is not None)


def _list_terms(resolved_policy: ResolvedPolicy) -> Iterator[_Term]:
    for spec in resolved_policy.variants:
        for injector in spec.injectors:
            yield _NAME, spec.namespace, injector.name
    policy = resolved_policy.upstream_policy
    if policy is None:
        return
    for selector in _object_selectors(policy):
        kind = (group_of(selector.api_version), selector.kind)
        yield _KIND, *kind
        # One requirement suffices to find the policy; the whole selector is matched afterwards.
        label, values = next(iter(list_exact_requirements(selector)), ("", ()))
        if not label:
            yield _UNLABELED, *kind
        yield from ((_LABEL, *kind, label, value) for value in values)
    for stage in policy.spec.stages:
        for check in (*machine_checks(stage.verification), *machine_checks(stage.requires)):
            if check.object is not None:
                kind = (group_of(check.object.api_version), check.object.kind)
                for namespace in list_namespaces(check.object, policy.metadata.namespace):
                    yield _CHECK, *kind, namespace
