"""One publication with all that is known about it and its commit, and lists of them over time."""

from collections.abc import Iterable
from datetime import UTC, datetime

from fanout.api.commit_trailers import Trailer
from fanout.api.publication_view import Admission, ApprovalView, EvidenceView
from fanout.plan.draft_trailers import parse_last_record, parse_trailers
from fanout.plan.history.recorded_publications import RecordedPublication
from fanout.plan.observation.repository_state import Commit
from fanout.plan.stage_drafts.stage_commit import parse_stage_commit
from fanout.values import Value, replace


class PublicationCommit(Value):
    """Statements of a commit that published packages, and its author."""

    oid: str
    at: datetime  # the committer's time
    is_own: bool  # made by fanout, or by a forge with fanout's message
    author: str = ""  # "name <email>" of the person who merged; "": fanout, or unknown
    approvers: tuple[str, ...] = ()  # whose reviews counted


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
    merged: list[RecordedPublication] = []
    for publications in by_variant.values():
        linked: list[RecordedPublication] = []
        for publication in sorted(publications, key=lambda it: it.line.at):
            if linked and linked[-1].until is None:
                linked[-1] = replace(linked[-1], until=publication.line.at)
            if linked and publication.previous is None:
                linked.append(replace(publication, previous=linked[-1].line))
            else:
                linked.append(publication)
        merged += linked
    return tuple(sorted(merged, key=lambda it: (it.line.at, it.variant)))


def parse_publication_commit(commit: Commit, own_identity: str) -> PublicationCommit:
    """Parse a commit; `own_identity` is "name <email>" of fanout's commits."""
    is_draft = parse_trailers(commit.message) is not None or (
        parse_stage_commit(commit.message) is not None
    )
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
        oid=commit.oid,
        at=datetime.fromtimestamp(commit.timestamp, UTC),
        is_own=is_own,
        author=author,
        approvers=tuple(_list_values(commit.message, Trailer.APPROVED_BY)),
    )


def _list_values(message: str, key: Trailer) -> list[str]:
    prefix = f"{key.value}: "
    return [line.removeprefix(prefix) for line in message.splitlines() if line.startswith(prefix)]
