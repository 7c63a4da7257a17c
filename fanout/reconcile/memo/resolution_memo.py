"""Memo of resolved policies between passes, valid where no declared change concerns them."""

import operator
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.declared.declared_objects import DeclaredObjects
from fanout.ports import Sandbox
from fanout.reconcile.budget_store import BudgetStore
from fanout.reconcile.memo.ownership_memo import have_same_paths
from fanout.reconcile.selection.policy_index import PolicyIndex
from fanout.reconcile.selection.policy_resolution import (
    PolicyKey,
    ResolvedPolicy,
    declaration_key,
    list_declarations,
    resolve_policies,
)
from fanout.values import Value


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
    _index: PolicyIndex = field(default_factory=PolicyIndex)

    def resolve(self, declared: DeclaredObjects) -> PolicyResolution:
        """Resolve what is declared. Policies that no change concerns stay the same objects."""
        # What failed for want of memory, or was left, is resolved again in the next pass.
        if self._declared is declared and not any(map(_is_unfinished, self._policies)):
            return PolicyResolution(self._policies, frozenset())
        # The first time everything is resolved, whatever changed.
        earlier = self._declared.objects
        changes = tuple(declared.objects.find_changes(earlier)) if self._policies else ()
        # Made when it is first needed: a process of one pass never needs it.
        if changes:
            self._index.update(self._policies)
        previous = {it.key: it for it in self._policies}
        unchanged: frozenset[PolicyKey] = frozenset()
        if declared.repositories == self._declared.repositories:
            declarations = {declaration_key(it): it for it in list_declarations(declared)}
            choosers = {key for change in changes for key in self._index.find_choosers(change)}
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
        # Before the index is updated: who read an object that is gone is to know.
        readers = {key for change in changes for key in self._index.find_readers(change)}
        if changes:
            self._index.update(self._policies)
        readers |= {key for change in changes for key in self._index.find_readers(change)}
        if declared.served_scopes != previous_declared.served_scopes:
            readers |= {it.key for it in self._policies}
        # All but the plain objects is as before.
        before, after = (
            (it.repositories, it.promotions, it.unread, it.left_out, it.unusable, it.faults)
            for it in (previous_declared, declared)
        )
        old, new = list_declarations(previous_declared), list_declarations(declared)
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
