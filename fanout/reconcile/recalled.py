"""Cases of the pass before: where all that one rests on is the very same, it is the same case.

A process that stays makes most of its passes because something changed for a few. For all others
what was found, chosen and told the gates a pass ago is taken as it is. Only what is plain is kept:
a variant that moves, that shares its place, or whose package people changed is looked at each time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fanout.plan.cases import Case
from fanout.plan.facts import Known
from fanout.plan.observation import RepositoryView
from fanout.plan.status import Status, VariantLine, read_status
from fanout.reconcile.dependencies import Key
from fanout.selection.model import VariantSpec


@dataclass(slots=True)
class Recalled:
    """What is kept of one policy, or of one variant written by hand."""

    stays: bool = False  # False: of cases nothing is, which would be in vain
    _status: tuple[Mapping[str, Mapping[str, Any]], Status] | None = None
    _opened: dict[str, tuple[VariantLine | None, Case]] = field(default_factory=dict)
    _chosen: dict[str, tuple[Case, Case]] = field(default_factory=dict)
    _before: Known = field(default_factory=dict)
    _told: Known = field(default_factory=dict)

    def status(self, lines: Mapping[str, Mapping[str, Any]]) -> Status:
        """The status lines, read. Raises ValueError."""
        if self._status is None or self._status[0] is not lines:
            self._status = lines, read_status(lines)
        return self._status[1]

    def opened(
        self, spec: VariantSpec, view: RepositoryView, line: VariantLine | None
    ) -> Case | None:
        """The case as it was opened with the same line, if it was a plain one."""
        known = self._opened.get(spec.name)
        if known is None or known[0] is not line:
            return None
        case = known[1]
        return case if case.spec is spec and case.view is view else None

    def keep_opened(self, line: VariantLine | None, case: Case) -> Case:
        """Remember it, where it rests on nothing but its spec, its line and its repository."""
        if self.stays and _plain(case) and (line is None or _at_home(line, case)):
            self._opened[case.spec.name] = line, case
        else:
            self._opened.pop(case.spec.name, None)
        return case

    def chosen(self, case: Case) -> Case | None:
        """The same case as it was at its candidate, whichever that was."""
        known = self._chosen.get(case.spec.name)
        return known[1] if known is not None and known[0] is case else None

    def keep_chosen(self, case: Case, chosen: Case) -> Case:
        """Remember what became of the case."""
        if self.stays:
            self._chosen[case.spec.name] = case, chosen
        return chosen

    @property
    def before(self) -> Known | None:
        """What the gates were told of cases before candidates were chosen; None: nobody asks."""
        return self._before if self.stays else None

    @property
    def told(self) -> Known | None:
        """The same once they were chosen."""
        return self._told if self.stays else None

    def only(self, names: Iterable[str]) -> None:
        """Forget all other variants."""
        kept = frozenset(names)
        known: tuple[dict[str, Any], ...] = (self._opened, self._chosen, self._before, self._told)
        for each in known:
            for name in each.keys() - kept:
                del each[name]


@dataclass(slots=True)
class Recall:
    """What is kept of everybody; one per process. Without `stays`, of cases nothing."""

    stays: bool = False
    _known: dict[Key, Recalled] = field(default_factory=dict)

    def of(self, key: Key) -> Recalled:
        """What is kept of one."""
        return self._known.setdefault(key, Recalled(self.stays))

    def only(self, keys: Iterable[Key]) -> None:
        """Forget all others."""
        self._known = {key: self._known[key] for key in keys if key in self._known}


def _plain(case: Case) -> bool:
    special = (
        case.unrecorded, case.adopts, case.origin, case.alien, case.choices.by_key, case.former,
        case.strays, case.leavings, case.partners, case.waits, case.reverted, case.faults,
        case.obstacle, case.view.failure, case.rewound, case.unfinished,
    )  # fmt: skip
    return not any(special)


def _at_home(line: VariantLine, case: Case) -> bool:
    """Is all that is on record about the place where it is to be?"""
    here = case.view.key, case.spec.path
    return line.place == here and line.granted_place in (None, here) and not line.left
