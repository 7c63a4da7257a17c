"""One publication with all that is known about it and its commit, and lists of them over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fanout.api.commit_trailers import Trailer
from fanout.api.publication_view import Admission, AdmissionType, ApprovalView, EvidenceView
from fanout.plan.commit_statement import parse_last_record, parse_message
from fanout.plan.history.recorded_publications import RecordedPublication, VerdictChange
from fanout.plan.observation.repository_state import Commit
from fanout.values import Value, replace


class PublicationCommit(Value):
    """Statements of a commit that published packages, and its author."""

    at: datetime  # the committer's time
    is_own: bool  # made by fanout, or by a forge with fanout's message
    author: str = ""  # "name <email>" of the person who merged; "": fanout, or unknown
    approvers: tuple[str, ...] = ()  # whose reviews counted


class HistoryEntry(Value):
    """A publication, what released it, its approvals and its evidence."""

    recorded: RecordedPublication
    admission: Admission
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
    merged: list[RecordedPublication] = []
    latest: dict[str, int] = {}  # index by variant
    for publication in sorted((*recorded, *found), key=lambda it: (it.line.at, it.variant)):
        index, linked = latest.get(publication.variant), publication
        if index is not None:
            before = merged[index]
            if before.until is None:
                merged[index] = replace(before, until=publication.line.at)
            if publication.previous is None:
                linked = replace(publication, previous=before.line)
        latest[publication.variant] = len(merged)
        merged.append(linked)
    return tuple(merged)


def parse_publication_commit(commit: Commit, own_identity: str) -> PublicationCommit:
    """Parse a commit; `own_identity` is "name <email>" of fanout's commits."""
    is_draft = parse_message(commit.message) is not None
    is_own = not is_draft and bool(
        parse_last_record(commit.message) or _list_values(commit.message, Trailer.POLICY)
    )
    # A merge commit is of who merged. A squashed or rebased one has as its author who opened the
    # request, fanout's account, or who wrote the change; who merged is its committer.
    is_merge = len(commit.parents) > 1
    signatures = (commit.author, commit.committer)
    people = [it for it in signatures[:: 1 if is_merge else -1] if it and it != own_identity]
    author = "" if is_own or is_draft or not people else people[0]
    return PublicationCommit(
        at=datetime.fromtimestamp(commit.timestamp, UTC),
        is_own=is_own,
        author=author,
        approvers=tuple(_list_values(commit.message, Trailer.APPROVED_BY)),
    )


def _list_values(message: str, key: Trailer) -> list[str]:
    prefix = f"{key.value}: "
    return [line.removeprefix(prefix) for line in message.splitlines() if line.startswith(prefix)]


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
        stretch.entries.append(entry)
        stretch.variants.add(entry.recorded.variant)
    passes: dict[tuple[str, str], list[datetime]] = {}
    for verdict in verdicts:
        if verdict.history is not None and verdict.history.passed is not None:
            key = (verdict.stage, verdict.revision)
            passes.setdefault(key, []).append(verdict.history.passed)
    groups: list[StageRevision] = []
    for stretch in stretches:
        first = stretch.entries[0]
        stage, revision = first.recorded.stage, first.recorded.line.revision
        ends = [entry.recorded.until for entry in stretch.entries]
        ended = None if None in ends else max(it for it in ends if it is not None)
        own_passes = (
            it
            for it in passes.get((stage, revision), ())
            if first.at <= it and (ended is None or it <= ended)
        )
        groups.append(
            StageRevision(
                stage=stage,
                revision=revision,
                began=first.at,
                passed=min(own_passes, default=None),
                ended=ended,
                number=stretch.number,
                entries=tuple(stretch.entries),
            )
        )
    groups += [
        StageRevision(stage=stage, revision=revision, began=times[-1], passed=times[-1])
        for (stage, revision), times in passes.items()
        if (stage, revision) not in newest
    ]
    return tuple(sorted(groups, key=lambda it: (it.began, it.stage, it.revision)))


@dataclass(slots=True)
class _Stretch:
    number: int
    entries: list[HistoryEntry] = field(default_factory=list)
    variants: set[str] = field(default_factory=set)

    def is_over_for(self, entry: HistoryEntry) -> bool:
        """Return whether an entry of the same stage and revision is of another stretch."""
        types = {self.entries[-1].admission.type, entry.admission.type}
        if len(types) > 1 and AdmissionType.ROLLED_BACK in types:
            return True
        previous, revision = entry.recorded.previous, entry.recorded.line.revision
        is_other = previous is not None and previous.revision != revision
        return is_other and entry.recorded.variant in self.variants
