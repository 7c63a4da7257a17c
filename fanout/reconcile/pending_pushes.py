"""Pushes that go on after their pass, because the remote does not answer.

What people restrict meanwhile binds them, too: such a push is ended. Whether the server had taken
it already, the next listing shows, as after a crash.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fanout.declared.declared_objects import DeclaredObjects, have_same_restrictions
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.observation.repository_state import RepositoryChange
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.ports import GitStore


@dataclass(slots=True)
class PendingPushes:
    """Inputs of the plans of the pushes that are under way, in the memory of this process."""

    git: GitStore
    # By key of the remote: what was declared, and the numbers of the records of each policy of
    # the pass, which are only added.
    _bases: dict[str, tuple[DeclaredObjects, Mapping[RecordsKey, int]]] = field(
        default_factory=dict
    )

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
        self._bases |= {it.remote.key: (declared, counts) for it in changes}

    def end_outdated(
        self, declared: DeclaredObjects, records: Mapping[RecordsKey, PolicyRecords]
    ) -> None:
        """End the pushes that go on although something was restricted since they were planned."""
        late = self.git.list_late() if self._bases else frozenset()
        self._bases = {key: it for key, it in self._bases.items() if key in late}
        outdated = {
            key
            for key, (declared_then, counts) in self._bases.items()
            if not have_same_restrictions(declared_then, declared)
            or any(
                len(records[it].records) != count for it, count in counts.items() if it in records
            )
        }
        if outdated:
            self.git.end_late(outdated)
