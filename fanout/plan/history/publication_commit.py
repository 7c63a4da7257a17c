"""The commit on the target branch by which a publication came into force."""

from datetime import UTC, datetime

from fanout.api.commit_trailers import Trailer
from fanout.plan.draft_trailers import parse_last_record, parse_trailers
from fanout.plan.observation.repository_state import Commit
from fanout.plan.stage_drafts.stage_commit import parse_stage_commit
from fanout.values import Value


class PublicationCommit(Value):
    """Statements of a commit that published packages, and its author."""

    oid: str
    at: datetime  # the committer's time
    is_own: bool  # made by fanout, or by a forge with fanout's message
    author: str = ""  # "name <email>" of the person who merged; "": fanout, or unknown
    approvers: tuple[str, ...] = ()  # whose reviews counted


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
