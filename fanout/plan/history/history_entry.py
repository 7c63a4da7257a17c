"""One publication with all that is known about it, and lists of them over time."""

from collections.abc import Iterable
from datetime import datetime

from fanout.api.publication_view import Admission, ApprovalView, EvidenceView
from fanout.plan.history.publication_commit import PublicationCommit
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.values import Value, replace


class HistoryEntry(Value):
    """A publication, what released it, its approvals and its evidence."""

    recorded: RecordedPublication
    admission: Admission
    commit: PublicationCommit | None = None  # None: its repository cannot be read now
    approvals: tuple[ApprovalView, ...] = ()
    evidence: tuple[EvidenceView, ...] = ()

    @property
    def at(self) -> datetime:
        """Return the time at which the publication came into force."""
        return self.recorded.line.at


def merge_publications(
    recorded: Iterable[RecordedPublication], found: Iterable[RecordedPublication]
) -> tuple[RecordedPublication, ...]:
    """Return recorded publications and those found in repositories alone, oldest first.

    Each ends when the next one of its variant begins.
    """
    by_variant: dict[str, list[RecordedPublication]] = {}
    for publication in (*recorded, *found):
        by_variant.setdefault(publication.variant, []).append(publication)
    merged = [it for publications in by_variant.values() for it in _link(publications)]
    return tuple(sorted(merged, key=lambda it: (it.line.at, it.variant)))


def _link(publications: Iterable[RecordedPublication]) -> list[RecordedPublication]:
    linked: list[RecordedPublication] = []
    for publication in sorted(publications, key=lambda it: it.line.at):
        if linked and linked[-1].until is None:
            linked[-1] = replace(linked[-1], until=publication.line.at)
        if linked and publication.previous is None:
            linked.append(replace(publication, previous=linked[-1].line))
        else:
            linked.append(publication)
    return linked
