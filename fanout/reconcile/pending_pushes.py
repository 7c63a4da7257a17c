"""Pushes that go on after their pass, because the remote does not answer.

What people restrict meanwhile binds them, too: such a push is ended. Whether the server had taken
it already, the next listing shows, as after a crash.
"""

from collections.abc import Iterable, Mapping

from fanout.declared.declared_objects import DeclaredObjects, have_same_restrictions
from fanout.plan.observation.repository_state import RepositoryChange
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.ports import GitStore
from fanout.values import Value


class _Basis(Value):
    """Inputs of the plan of a push."""

    declared: DeclaredObjects
    record_counts: Mapping[RecordsKey, int]  # of the policies of its pass; records are only added


class PendingPushes:
    """Plans of the pushes that are under way, in the memory of this process."""

    def __init__(self, git: GitStore) -> None:
        """Start without any."""
        self._git = git
        self._bases: dict[str, _Basis] = {}  # by key of the remote

    def note(
        self,
        changes: Iterable[RepositoryChange],
        plans: Iterable[PolicyPlan],
        declared: DeclaredObjects,
        records: Mapping[RecordsKey, PolicyRecords],
    ) -> None:
        """Take note of the changes that a pass is going to push."""
        names = {(it.namespace, it.name) for it in plans}
        counts = {
            key: len(it.records)
            for key, it in records.items()
            if (key.namespace, key.policy) in names or not key.policy
        }
        self._bases |= {it.remote.key: _Basis(declared, counts) for it in changes}

    def end_outdated(
        self, declared: DeclaredObjects, records: Mapping[RecordsKey, PolicyRecords]
    ) -> None:
        """End the pushes that go on although something was restricted since they were planned."""
        late = self._git.list_late() if self._bases else frozenset()
        self._bases = {key: it for key, it in self._bases.items() if key in late}
        outdated = {
            key
            for key, basis in self._bases.items()
            if not have_same_restrictions(basis.declared, declared)
            or any(
                len(records[it].records) != count
                for it, count in basis.record_counts.items()
                if it in records
            )
        }
        if outdated:
            self._git.end_late(outdated)
