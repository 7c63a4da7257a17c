"""Publications of a policy, derived from the revisions of its recorded status.

A status line has only the publication in force; the commits of the records branch have all earlier
ones, each with the release before it. Lines that cannot be read are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.results import CheckAnswer
from fanout.gates.revision_history import RevisionHistory
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
        latest = self._in_force
        if latest is not None:
            self.publications[-1] = replace(latest, until=at, is_removed=True)

    @property
    def _in_force(self) -> RecordedPublication | None:
        latest = self.publications[-1] if self.publications else None
        return latest if latest is not None and latest.until is None else None
