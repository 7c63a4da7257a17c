"""Revisions of a stage over time: when each began and passed, and with how many variants."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fanout.api.publication_view import AdmissionType
from fanout.plan.history.history_entry import HistoryEntry
from fanout.plan.history.recorded_publications import VerdictChange
from fanout.values import Value


class StageRevision(Value, kw_only=True):
    """One stretch in which variants of a stage took a revision."""

    stage: str
    revision: str
    began: datetime  # of a stage without variants: when it passed
    passed: datetime | None = None  # when the stage passed it in this stretch
    ended: datetime | None = None  # when no variant had it any more
    number: int = 1  # counts the stretches of the revision in the stage
    entries: tuple[HistoryEntry, ...] = ()  # its publications, oldest first

    @property
    def variants(self) -> frozenset[str]:
        """Return the names of the variants that took it."""
        return frozenset(entry.recorded.variant for entry in self.entries)


def group_by_stage(
    entries: Iterable[HistoryEntry], verdicts: Sequence[VerdictChange]
) -> tuple[StageRevision, ...]:
    """Group publications, which come oldest first, by stage and revision; oldest first.

    A variant that takes a revision again after another one begins a new stretch, and so does a
    rollback.
    """
    stretches: list[_Stretch] = []
    newest: dict[tuple[str, str], _Stretch] = {}
    for entry in entries:
        key = (entry.recorded.stage, entry.recorded.line.revision)
        stretch = newest.get(key)
        if stretch is None or stretch.is_over_for(entry):
            number = stretch.number + 1 if stretch is not None else 1
            stretch = newest[key] = _Stretch(number)
            stretches.append(stretch)
        stretch.add(entry)
    groups = [_build_group(stretch, verdicts) for stretch in stretches]
    passed_without = {
        (it.stage, it.revision): it.history.passed
        for it in verdicts
        if it.history is not None
        and it.history.passed is not None
        and (it.stage, it.revision) not in newest
    }
    groups += [
        StageRevision(stage=stage, revision=revision, began=passed, passed=passed)
        for (stage, revision), passed in passed_without.items()
    ]
    return tuple(sorted(groups, key=lambda it: (it.began, it.stage, it.revision)))


@dataclass(slots=True)
class _Stretch:
    number: int
    entries: list[HistoryEntry] = field(default_factory=list)
    variants: set[str] = field(default_factory=set)

    def add(self, entry: HistoryEntry) -> None:
        self.entries.append(entry)
        self.variants.add(entry.recorded.variant)

    def is_over_for(self, entry: HistoryEntry) -> bool:
        """Return whether an entry of the same stage and revision is of another stretch."""
        types = {self.entries[-1].admission.type, entry.admission.type}
        if len(types) > 1 and AdmissionType.ROLLED_BACK in types:
            return True
        previous, revision = entry.recorded.previous, entry.recorded.line.revision
        is_other = previous is not None and previous.revision != revision
        return is_other and entry.recorded.variant in self.variants


def _build_group(stretch: _Stretch, verdicts: Sequence[VerdictChange]) -> StageRevision:
    first = stretch.entries[0]
    began, key = first.at, (first.recorded.stage, first.recorded.line.revision)
    ends = [entry.recorded.until for entry in stretch.entries]
    ended = None if None in ends else max(it for it in ends if it is not None)
    passes = [
        it.history.passed
        for it in verdicts
        if (it.stage, it.revision) == key
        and it.history is not None
        and it.history.passed is not None
        and it.history.passed >= began
        and (ended is None or it.history.passed <= ended)
    ]
    return StageRevision(
        stage=first.recorded.stage,
        revision=first.recorded.line.revision,
        began=began,
        passed=min(passes, default=None),
        ended=ended,
        number=stretch.number,
        entries=tuple(stretch.entries),
    )
