"""Objects of GitHub's REST API of 2026-03-10, and its words, which GraphQL has in capitals."""

from fanout.api.promotion_policy import MergeStyle
from fanout.forge.answer_fields import AnswerObject, MalformedAnswer
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Mergeability,
    MergeabilityKind,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ObservedRequest,
    ObservedReview,
    RepositoryFacts,
    RepositoryName,
    RequestState,
    ReviewVerdict,
    StatusState,
)

_METHODS = {
    MergeStyle.MERGE: "allow_merge_commit",
    MergeStyle.SQUASH: "allow_squash_merge",
    MergeStyle.REBASE: "allow_rebase_merge",
}
VERDICTS = {
    "APPROVED": ReviewVerdict.APPROVED,
    "CHANGES_REQUESTED": ReviewVerdict.CHANGES_REQUESTED,
    "COMMENTED": ReviewVerdict.COMMENTED,
    # The dismissal takes the place of the verdict, and takes back whatever it was.
    "DISMISSED": ReviewVerdict.APPROVED,
}  # without PENDING, which nobody has submitted
STATUS_STATES = {
    "success": StatusState.SUCCESS,
    "pending": StatusState.PENDING,
    "failure": StatusState.FAILURE,
    "error": StatusState.FAILURE,
}
# Of check runs that have ended.
CONCLUSIONS = {
    "success": StatusState.SUCCESS,
    "failure": StatusState.FAILURE,
    "timed_out": StatusState.FAILURE,
    "startup_failure": StatusState.FAILURE,
    "neutral": StatusState.NEUTRAL,
    "skipped": StatusState.SKIPPED,
    "stale": StatusState.STALE,
    "cancelled": StatusState.CANCELLED,
    "action_required": StatusState.ACTION_REQUIRED,
}
_MERGEABILITIES = {
    "clean": MergeabilityKind.CLEAN,
    "unstable": MergeabilityKind.CLEAN,  # a status that is not required is no success
    "has_hooks": MergeabilityKind.CLEAN,
    "behind": MergeabilityKind.BEHIND,
    "blocked": MergeabilityKind.BLOCKED,
    "dirty": MergeabilityKind.CONFLICT,
    "unknown": MergeabilityKind.CHECKING,
    "draft": MergeabilityKind.DRAFT,
}


def read_login(answer: AnswerObject, name: str) -> str:
    """Return the login of an account in the answer; "" without one."""
    child = answer.child(name)
    return "" if child is None else child.text("login")


def _read_name(answer: AnswerObject) -> RepositoryName:
    owner, _, name = answer.text("full_name").rpartition("/")
    return RepositoryName(owner, name)


def read_repository(answer: AnswerObject) -> RepositoryFacts:
    """Read a `full-repository`."""
    return RepositoryFacts(
        name=_read_name(answer),
        is_archived=answer.flag("archived"),
        merge_styles=frozenset(
            style for style, setting in _METHODS.items() if answer.flag(setting)
        ),
    )


def read_request(answer: AnswerObject) -> ObservedRequest:
    """Read a `pull-request`, or a `pull-request-simple` of a list, which says less of merging."""
    head, base = answer.child("head"), answer.child("base")
    if head is None or base is None:
        raise MalformedAnswer("head or base is missing")
    head_repository = head.child("repo")
    is_merged = answer.optional_instant("merged_at") is not None
    word = "" if is_merged else answer.text("mergeable_state", "")
    return ObservedRequest(
        number=answer.number("number"),
        url=answer.text("html_url"),
        state=RequestState.MERGED if is_merged else RequestState(answer.text("state")),
        is_draft=answer.flag("draft"),
        title=answer.text("title"),
        text=answer.text("body", ""),
        author=read_login(answer, "user"),
        labels=frozenset(label.text("name") for label in answer.children("labels")),
        head_repository=None if head_repository is None else _read_name(head_repository),
        head_branch=head.text("ref"),
        head_commit=head.text("sha"),
        base_branch=base.text("ref"),
        updated=answer.instant("updated_at"),
        closed=answer.optional_instant("closed_at"),
        merged_by=read_login(answer, "merged_by"),
        accepted=Accepted(MergeRoute.AUTO_MERGE) if answer.child("auto_merge") else None,
        mergeability=read_mergeability(word) if word else None,
    )


def read_review(answer: AnswerObject) -> ObservedReview | None:
    """Read a `pull-request-review`; None for one that nobody has submitted."""
    state = answer.text("state")
    verdict = VERDICTS.get(state)
    if verdict is None:
        return None
    return ObservedReview(
        reviewer=read_login(answer, "user"),
        verdict=verdict,
        commit=answer.text("commit_id", ""),
        instant=answer.instant("submitted_at"),
        is_dismissed=state == "DISMISSED",
        url=answer.text("html_url", ""),
    )


def read_status(answer: AnswerObject) -> CommitStatus:
    """Read a `status`."""
    return CommitStatus(
        context=answer.text("context"),
        # A state of a later version is not taken for a success.
        state=STATUS_STATES.get(answer.text("state"), StatusState.PENDING),
        creator=read_login(answer, "creator"),
        instant=answer.instant("created_at"),
        description=answer.text("description", ""),
        url=answer.text("target_url", ""),
    )


def read_check_run(answer: AnswerObject) -> CommitStatus:
    """Read a `check-run`."""
    app = answer.child("app")
    instant = answer.optional_instant("completed_at") or answer.optional_instant("started_at")
    if instant is None:
        raise MalformedAnswer("started_at is missing")
    return CommitStatus(
        context=answer.text("name"),
        state=CONCLUSIONS.get(answer.text("conclusion", ""), StatusState.PENDING),
        creator="" if app is None else f"{app.text('slug')}[bot]",
        instant=instant,
        url=answer.text("html_url", ""),
        is_rerunnable=True,
    )


def read_merge(answer: AnswerObject) -> Merged:
    """Read a `pull-request-merge-result`."""
    return Merged(answer.text("sha"))


def read_refusal(words: str, quoted: str) -> Refused:
    """Return why GitHub does not merge (405): its words alone tell rules, conflicts and races."""
    kinds = (
        ("merge queue", RefusalKind.QUEUE_REQUIRED),
        ("are not allowed on this repository", RefusalKind.STYLE_FORBIDDEN),
    )
    kind = next((kind for part, kind in kinds if part in words), RefusalKind.NOT_NOW)
    # Another merge came just before.
    return Refused(kind, quoted, is_retryable="Base branch was modified" in words)


def read_mergeability(word: str) -> Mergeability:
    """Return what GitHub says of a merge, by its word in small letters."""
    return Mergeability(_MERGEABILITIES.get(word, MergeabilityKind.OTHER), word)
