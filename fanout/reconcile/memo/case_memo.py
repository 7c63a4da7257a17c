"""Memo of cases between passes, valid while their inputs are the same objects.

A long-running process makes most passes because something changed for a few variants.
Cases, chosen candidates and gate facts of all others are reused. Only plain cases are
kept: a variant that moves, shares its path or was edited downstream is inspected in
each pass.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from fanout.plan.gate_inputs.policy_facts import VariantFactsMemo
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import RecordedStatus, VariantLine, parse_status
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.variant_dependencies import PolicyKey
from fanout.selection.variant_spec import VariantSpec


@dataclass(slots=True)
class CaseMemo:
    """Memo of the cases of one policy, or of one hand-written variant."""

    _: KW_ONLY
    keeps_cases: bool = False  # False for a single pass, which cannot reuse cases
    _status: tuple[Mapping[str, Mapping[str, Any]], RecordedStatus] | None = None
    _opened: dict[str, tuple[VariantLine | None, ObservedVariant]] = field(default_factory=dict)
    _chosen: dict[str, SelectedVariant] = field(default_factory=dict)
    _preliminary_facts: VariantFactsMemo = field(default_factory=dict)
    _gate_facts: VariantFactsMemo = field(default_factory=dict)

    def read_status(self, lines: Mapping[str, Mapping[str, Any]]) -> RecordedStatus:
        """Return the parsed status of the lines; unchanged lines are parsed once.

        Raises ValueError.
        """
        if self._status is None or self._status[0] is not lines:
            self._status = lines, parse_status(lines)
        return self._status[1]

    def find_opened(
        self, spec: VariantSpec, repository_state: RepositoryState, status_line: VariantLine | None
    ) -> ObservedVariant | None:
        """Return the memoized case if all its inputs are the same objects, else None."""
        memoized = self._opened.get(spec.name)
        # By identity, because comparing values costs as much as opening the case again.
        if memoized is None or memoized[0] is not status_line:
            return None
        case = memoized[1]
        return case if case.spec is spec and case.repository_state is repository_state else None

    def store_opened(
        self, status_line: VariantLine | None, case: ObservedVariant
    ) -> ObservedVariant:
        """Store the case if it depends on its spec, status line and repository state only.

        Return it.
        """
        if (
            self.keeps_cases
            and _is_plain(case)
            and (status_line is None or _is_at_path(status_line, case))
        ):
            self._opened[case.spec.name] = status_line, case
        else:
            self._opened.pop(case.spec.name, None)
        return case

    def find_chosen(self, case: ObservedVariant) -> SelectedVariant | None:
        """Return the variant with its last candidate, or None if it was observed anew."""
        memoized = self._chosen.get(case.spec.name)
        return memoized if memoized is not None and memoized.observed is case else None

    def store_chosen(self, chosen: SelectedVariant) -> SelectedVariant:
        """Store the variant with its candidate; return it."""
        if self.keeps_cases:
            self._chosen[chosen.spec.name] = chosen
        return chosen

    @property
    def preliminary_facts(self) -> VariantFactsMemo | None:
        """Memo of gate facts before candidates are chosen; None if cases are not kept."""
        return self._preliminary_facts if self.keeps_cases else None

    @property
    def gate_facts(self) -> VariantFactsMemo | None:
        """Memo of gate facts after candidates are chosen; None if cases are not kept."""
        return self._gate_facts if self.keeps_cases else None

    def retain(self, names: Iterable[str]) -> None:
        """Drop all variants except the named ones."""
        # Variants come and go: without this the memo of a long-running process would only grow.
        retained = frozenset(names)
        memos: tuple[dict[str, Any], ...] = (
            self._opened,
            self._chosen,
            self._preliminary_facts,
            self._gate_facts,
        )
        for memo in memos:
            for name in memo.keys() - retained:
                del memo[name]


@dataclass(slots=True)
class CaseMemos:
    """Case memos of all policies; one per process."""

    keeps_cases: bool = False
    _memos: dict[PolicyKey, CaseMemo] = field(default_factory=dict)

    def for_policy(self, key: PolicyKey) -> CaseMemo:
        """Return the memo of one policy; an empty one if it is new."""
        return self._memos.setdefault(key, CaseMemo(keeps_cases=self.keeps_cases))

    def retain(self, keys: Iterable[PolicyKey]) -> None:
        """Drop the memos of all other policies."""
        self._memos = {key: self._memos[key] for key in keys if key in self._memos}


def _is_plain(case: ObservedVariant) -> bool:
    special = (
        case.is_unrecorded,
        case.may_adopt,
        case.origin,
        case.published_for_another,
        case.choices.by_key,
        case.previous,
        case.misplaced_drafts,
        case.abandoned,
        case.exchange_partners,
        case.wait_hold,
        case.reverted_publication,
        case.published_faults,
        case.obstacle,
        case.repository_state.failure,
        case.rewound_records,
        case.unfinished_push,
    )
    return not any(special)


def _is_at_path(status_line: VariantLine, case: ObservedVariant) -> bool:
    """Return True if the status line mentions no path but the wanted one."""
    wanted_location = case.repository_state.identity, case.spec.path
    return (
        status_line.place == wanted_location
        and status_line.granted_place in (None, wanted_location)
        and not status_line.left
    )
