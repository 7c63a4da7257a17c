"""Memo of resolved policies between passes, valid where no declared change concerns them."""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.api.upstream_policy import ObjectSelector, UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.evidence.due_checks import list_namespaces, machine_checks
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.pass_scope import have_same_paths
from fanout.reconcile.selection.policy_resolution import (
    PolicyKey,
    ResolvedPolicy,
    declaration_key,
    resolve_policies,
)
from fanout.selection.cluster_objects import ObjectChange, group_of
from fanout.selection.label_selector import (
    is_text_map,
    list_exact_requirements,
    match_raw_labels,
    read_labels,
)
from fanout.values import Value
from fanout.variants.functions.kind_scopes import CRD_KIND

_Term = tuple[str, ...]
# First words of terms: three of selectors, two of objects that are read.
_LABEL, _UNLABELED, _KIND = "label", "unlabeled", "kind"
_NAME, _CHECK = "name", "check"


class PolicyIndex:
    """Policies by what they choose and read; a change costs those that it may concern."""

    def __init__(self, policies: Iterable[ResolvedPolicy]) -> None:
        """Build the index of these policies."""
        self._policies = {it.key: it for it in policies}
        self._keys_by_term: dict[_Term, set[PolicyKey]] = {}
        for key, resolved_policy in self._policies.items():
            for term in _list_terms(resolved_policy):
                self._keys_by_term.setdefault(term, set()).add(key)

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

    def _find(self, terms: set[_Term]) -> set[PolicyKey]:
        return set().union(*(self._keys_by_term.get(term, ()) for term in terms))


def _object_selectors(policy: UpstreamPolicy) -> Iterator[ObjectSelector]:
    return (it.object_selector for it in policy.spec.targets if it.object_selector is not None)


def _list_terms(resolved_policy: ResolvedPolicy) -> Iterator[_Term]:
    for spec in resolved_policy.variants:
        for injector in spec.injectors:
            yield _NAME, spec.namespace, injector.name
    if (policy := resolved_policy.upstream_policy) is None:
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


class PolicyResolution(Value):
    """All resolved policies, and those that a change of what is declared concerns.

    Among the latter are policies whose own variants, and the objects they inject or check, changed.
    """

    policies: tuple[ResolvedPolicy, ...]
    concerned: frozenset[PolicyKey]
    # False: other policies may be concerned, too, because one was declared otherwise, or because
    # other paths are wanted.
    is_exact: bool = True


@dataclass(slots=True)
class ResolutionMemo:
    """Resolves policies, from one declaration to the next; one per process."""

    sandbox: Sandbox
    budgets: BudgetStore | None = None  # of what the policies' expressions may cost
    _declared: DeclaredObjects = field(default_factory=DeclaredObjects)
    _policies: tuple[ResolvedPolicy, ...] = ()
    _index: PolicyIndex | None = None  # of these policies, if it was needed

    def resolve(self, declared: DeclaredObjects) -> PolicyResolution:
        """Resolve what is declared. Policies that no change concerns stay the same objects."""
        # What failed for want of memory, or was left, is resolved again in the next pass.
        if self._declared is declared and not any(map(_is_unfinished, self._policies)):
            return PolicyResolution(self._policies, frozenset())
        # The first time everything is resolved, whatever changed.
        earlier = self._declared.objects
        changes = tuple(declared.objects.find_changes(earlier)) if self._policies else ()
        # Made when it is first needed: a process of one pass never needs it.
        index = self._index or PolicyIndex(self._policies if changes else ())
        previous = {it.key: it for it in self._policies}
        unchanged: frozenset[PolicyKey] = frozenset()
        if declared.repositories == self._declared.repositories:
            declarations = {declaration_key(it): it for it in declared.declarations}
            choosers = {key for change in changes for key in index.find_choosers(change)}
            unchanged = frozenset(
                key
                for key, it in previous.items()
                # By identity: the positions of an object that was read again may be others.
                if it.declaration is declarations.get(key)
                and key not in choosers
                # A failure may be due to lack of time or memory, so what failed is resolved again.
                and it.error is None
                and not it.failures
                and not _is_unfinished(it)
            )
        self._policies = resolve_policies(
            declared, self.sandbox, self._policies, unchanged, self.budgets
        )
        previous_declared, self._declared = self._declared, declared
        resolved_again = [it for it in self._policies if previous.get(it.key) is not it]
        # By both indexes: who read an object that is gone is to know.
        self._index = PolicyIndex(self._policies) if changes else None
        indexes = [index, self._index] if self._index is not None else []
        readers = {key for it in indexes for change in changes for key in it.find_readers(change)}
        if declared.served_scopes != previous_declared.served_scopes:
            readers |= {it.key for it in self._policies}
        # All but the plain objects is as before.
        before, after = (
            (it.repositories, it.promotions, it.unread, it.left_out, it.unusable, it.faults)
            for it in (previous_declared, declared)
        )
        old, new = previous_declared.declarations, declared.declarations
        is_same = before == after and len(old) == len(new) and all(map(operator.is_, old, new))
        is_exact = is_same and have_same_paths(tuple(previous.values()), self._policies)
        concerned = frozenset(readers.union(it.key for it in resolved_again))
        return PolicyResolution(self._policies, concerned, is_exact)


def _is_unfinished(resolved_policy: ResolvedPolicy) -> bool:
    return (
        not resolved_policy.is_complete
        or any(it.reason == Reason.LIMIT_EXCEEDED for it in resolved_policy.failures)
        or any(spec.offline_error for spec in resolved_policy.variants)
    )
