"""Publications of a policy, derived from the revisions of its recorded status.

A status line has only the publication in force; the commits of the records branch have all earlier
ones, each with the release before it. Lines that cannot be read are left out. An entry of the
history adds what is known about a publication and its commit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fanout.api.commit_trailers import Trailer
from fanout.api.publication_view import Admission, AdmissionType, ApprovalView, EvidenceView
from fanout.api.results import CheckAnswer
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.commit_statement import parse_last_record, parse_message
from fanout.plan.observation.repository_state import Commit
from fanout.plan.records.policy_status import (
    GrantLine,
    PublishedLine,
    RecordedLocation,
    VariantLine,
    parse_status,
)
from fanout.values import Value, replace


class StatusRevision(Value):
    """Status lines that one commit changed, by key; None stands for a removed line."""

    at: datetime  # the committer's time
    lines: Mapping[str, Mapping[str, Any] | None]


class RecordedPublication(RecordedLocation, kw_only=True):
    """One publication of a variant, with the time at which it ended."""

    variant: str
    stage: str  # at the time; "": none, or unknown
    line: PublishedLine
    grant: GrantLine | None = None  # the release before it; None: none is on record
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks
    previous: PublishedLine | None = None  # the variant's publication before
    until: datetime | None = None  # None: it is in force
    is_removed: bool = False  # at `until` the package was removed, not replaced
    is_recovered: bool = False  # read from its repository; the time of recording is later
    is_unchanged: bool = False  # new inputs or another revision of the same package


class VerdictChange(Value):
    """A recorded change of what a stage remembers about a revision."""

    at: datetime
    stage: str
    revision: str
    history: RevisionHistory | None  # None: it was removed from the status


class RecordedHistory(Value):
    """Publications and verdicts of one policy, oldest first."""

    publications: tuple[RecordedPublication, ...] = ()
    verdicts: tuple[VerdictChange, ...] = ()


def derive_history(revisions: Iterable[StatusRevision]) -> RecordedHistory:
    """Derive publications and verdicts from revisions of the status, oldest first."""
    timelines: dict[str, _VariantTimeline] = {}
    verdicts: list[VerdictChange] = []
    for revision in revisions:
        present = {key: line for key, line in revision.lines.items() if line is not None}
        status = parse_status(present)
        for key, value in revision.lines.items():
            kind, _, name = key.partition("/")
            if key in status.broken_lines:
                continue
            if kind == "variant":
                timeline = timelines.setdefault(name, _VariantTimeline(name))
                timeline.add(status.variants.get(name), revision.at)
            elif kind == "removed" and value is not None and name in timelines:
                timelines[name].end(revision.at)
            elif kind == "stage":
                stage, _, package_revision = name.partition("/")
                history = status.history.get((stage, package_revision))
                verdicts.append(VerdictChange(revision.at, stage, package_revision, history))
    publications = [it for timeline in timelines.values() for it in timeline.publications]
    publications.sort(key=lambda it: (it.line.at, it.variant))
    return RecordedHistory(tuple(publications), tuple(verdicts))


@dataclass(slots=True)
class _VariantTimeline:
    """Publications of one variant up to a revision of the status."""

    variant: str
    publications: list[RecordedPublication] = field(default_factory=list)
    _grant: GrantLine | None = None

    def add(self, line: VariantLine | None, at: datetime) -> None:
        """Add a changed line of the variant; None: it was removed from the status."""
        if line is None or line.published is None:
            self.end(at)
            self._grant = line.grant if line is not None else None
            return
        published, latest = line.published, self._in_force
        before = latest.line if latest is not None else None
        is_unmoved = latest is not None and latest.place == line.place
        is_merge = before is not None and before.merge == published.merge
        is_tag = before is not None and before.tag == published.tag
        if (
            latest is not None
            and before is not None
            and is_unmoved
            and before.revision == published.revision
            # The commit, or the tag, may be filled in by a later pass.
            and (is_merge or (bool(before.tag) and is_tag))
        ):
            self.publications[-1] = replace(latest, line=published)
        else:
            grant, is_unchanged = self._grant, is_unmoved and is_merge and is_tag
            if grant is not None and published.digest != grant.digest:
                # The inputs changed after the release; a merged draft is then of its revision.
                grant = grant if published.revision == grant.revision else None
            if latest is not None:
                self.publications[-1] = replace(latest, until=published.at)
            self.publications.append(
                RecordedPublication(
                    variant=self.variant,
                    stage=line.stage or (latest.stage if latest is not None else ""),
                    repository=line.repository,
                    path=line.path,
                    line=published,
                    grant=grant,
                    previous=before,
                    is_recovered=grant is None and not is_unchanged and not published.out_of_band,
                    is_unchanged=is_unchanged,
                )
            )
        latest = self.publications[-1]
        listed = {(it.check, it.at) for it in latest.answers}
        about = (latest.line.digest, latest.line.tree)
        answers = (it for it in line.answers if (it.check, it.at) not in listed)
        if more := tuple(it for it in answers if it.digest in about):
            self.publications[-1] = replace(latest, answers=(*latest.answers, *more))
        self._grant = line.grant

    def end(self, at: datetime) -> None:
        """End the publication in force, because its package was removed."""
        if (latest := self._in_force) is not None:
            self.publications[-1] = replace(latest, until=at, is_removed=True)

    @property
    def _in_force(self) -> RecordedPublication | None:
        latest = self.publications[-1] if self.publications else None
        return latest if latest is not None and latest.until is None else None


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
    recorded: Iterable[RecordedPublication], observed: Iterable[RecordedPublication]
) -> tuple[RecordedPublication, ...]:
    """Return recorded publications and those found in repositories alone, oldest first.

    Each ends when the next one of its variant begins.
    """
    merged: list[RecordedPublication] = []
    latest: dict[str, int] = {}  # index by variant
    for publication in sorted((*recorded, *observed), key=lambda it: (it.line.at, it.variant)):
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
    return PublicationCommit(
        at=datetime.fromtimestamp(commit.timestamp, UTC),
        is_own=is_own,
        author="" if is_own or is_draft or not people else people[0],
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
        if (stretch := newest.get(key)) is None or stretch.is_over_for(entry):
            stretch = newest[key] = _Stretch(stretch.number + 1 if stretch is not None else 1)
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
