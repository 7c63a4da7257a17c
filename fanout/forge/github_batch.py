"""Open pull requests of many repositories of GitHub in one GraphQL query, with all about them.

GitHub counts the objects that a query could bring, and refuses one that could bring more than
500,000: 50 repositories of 30 requests are below that. What does not fit into an answer is left
out as a whole, so that it is read by REST: a repository with more requests, the reviews or checks
of a request that has more of them.
"""

from collections.abc import Iterator, Mapping, Sequence

from fanout.forge.answer_fields import AnswerObject, MalformedAnswer
from fanout.forge.github_fields import (
    CONCLUSIONS,
    STATUS_STATES,
    VERDICTS,
    read_mergeability,
)
from fanout.plan.observation.merge_outcome import Accepted, MergeRoute
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ObservedRequest,
    ObservedReview,
    PolledRepository,
    RepositoryName,
    RequestState,
    StatusState,
    find_newest_statuses,
)

REPOSITORIES = 50  # of one query
_REQUESTS = """\
fragment Requests on Repository {
  pullRequests(states: [OPEN], first: 30) {
    pageInfo { hasNextPage }
    nodes { ...Request }
  }
}
fragment Request on PullRequest {
  number url title body isDraft updatedAt
  author { __typename login }
  baseRefName headRefName headRefOid
  headRepository { nameWithOwner }
  mergeStateStatus
  labels(first: 50) { pageInfo { hasNextPage } nodes { name } }
  reviews(first: 100) {
    pageInfo { hasNextPage }
    nodes { state submittedAt url author { __typename login } commit { oid } }
  }
  autoMergeRequest { enabledAt }
  mergeQueueEntry { position state }
  statusCheckRollup {
    contexts(first: 100) {
      pageInfo { hasNextPage }
      nodes {
        __typename
        ... on StatusContext {
          context state description targetUrl createdAt creator { __typename login }
        }
        ... on CheckRun {
          name status conclusion detailsUrl startedAt completedAt checkSuite { app { slug } }
        }
      }
    }
  }
}
"""


def build_query(names: Sequence[RepositoryName]) -> tuple[str, Mapping[str, str]]:
    """Return the query about at most `REPOSITORIES` repositories, and its variables."""
    declared: list[str] = []
    fields: list[str] = []
    variables: dict[str, str] = {}
    for number, name in enumerate(names):
        declared.append(f"$owner{number}: String!, $name{number}: String!")
        fields.append(
            f"  r{number}: repository(owner: $owner{number}, name: $name{number}) {{ ...Requests }}"
        )
        variables |= {f"owner{number}": name.owner, f"name{number}": name.name}
    lines = (f"query({', '.join(declared)}) {{", *fields, "}", _REQUESTS)
    return "\n".join(lines), variables


def read_batch(
    data: AnswerObject, names: Sequence[RepositoryName]
) -> Iterator[tuple[RepositoryName, PolledRepository]]:
    """Yield the repositories that the answer shows as a whole.

    One that the account must not see, or whose name leads nowhere, is null in the answer. Raises
    MalformedAnswer.
    """
    for number, name in enumerate(names):
        repository = data.child(f"r{number}")
        requests = None if repository is None else repository.child("pullRequests")
        nodes = None if requests is None else _whole_list(requests)
        if nodes is None:
            continue
        shown = [_read_request(it) for it in nodes]
        if None in shown:  # more labels than shown
            continue
        reviews: dict[int, tuple[ObservedReview, ...]] = {}
        statuses: dict[str, tuple[CommitStatus, ...]] = {}
        for node, request in zip(nodes, shown, strict=True):
            assert request is not None, "all were read"
            if (listed := _whole_list(node.child("reviews"))) is not None:
                submitted = (_read_review(it) for it in listed)
                by_instant = sorted((it for it in submitted if it), key=lambda it: it.instant)
                reviews[request.number] = tuple(by_instant)
            rollup = node.child("statusCheckRollup")
            contexts = [] if rollup is None else _whole_list(rollup.child("contexts"))
            if contexts is not None:
                statuses[request.head_commit] = find_newest_statuses(map(_read_context, contexts))
        requests_shown = tuple(it for it in shown if it is not None)
        yield name, PolledRepository(requests=requests_shown, reviews=reviews, statuses=statuses)


def _whole_list(connection: AnswerObject | None) -> list[AnswerObject] | None:
    """Return the nodes of a connection; None if there are more than it shows."""
    if connection is None:
        return []
    page = connection.child("pageInfo")
    if page is None or page.flag("hasNextPage"):
        return None
    return connection.children("nodes")


def _login(answer: AnswerObject, name: str) -> str:
    """Return a login as REST has it: that of a bot has a suffix there."""
    actor = answer.child(name)
    if actor is None:
        return ""
    return bot_login(actor.text("login")) if is_bot(actor) else actor.text("login")


def is_bot(actor: AnswerObject) -> bool:
    """Return whether an actor acts for an App."""
    return actor.text("__typename") == "Bot"


def bot_login(slug: str) -> str:
    """Return the login in REST of what acts for an App."""
    return slug if slug.endswith("[bot]") else f"{slug}[bot]"


def _read_request(answer: AnswerObject) -> ObservedRequest | None:
    """Return a request; None if it has more labels than shown."""
    labels = _whole_list(answer.child("labels"))
    if labels is None:
        return None
    accepted = Accepted(MergeRoute.AUTO_MERGE) if answer.child("autoMergeRequest") else None
    if (entry := answer.child("mergeQueueEntry")) is not None:
        words = entry.text("state").lower().replace("_", " ")
        accepted = Accepted(MergeRoute.QUEUE, entry.number("position"), words)
    head = answer.child("headRepository")
    owner, _, name = ("" if head is None else head.text("nameWithOwner")).rpartition("/")
    return ObservedRequest(
        number=answer.number("number"),
        url=answer.text("url"),
        state=RequestState.OPEN,
        is_draft=answer.flag("isDraft"),
        title=answer.text("title"),
        text=answer.text("body", ""),
        author=_login(answer, "author"),
        labels=frozenset(it.text("name") for it in labels),
        head_repository=None if head is None else RepositoryName(owner, name),
        head_branch=answer.text("headRefName"),
        head_commit=answer.text("headRefOid"),
        base_branch=answer.text("baseRefName"),
        updated=answer.instant("updatedAt"),
        accepted=accepted,
        mergeability=read_mergeability(answer.text("mergeStateStatus").lower()),
    )


def _read_review(answer: AnswerObject) -> ObservedReview | None:
    state, commit = answer.text("state"), answer.child("commit")
    verdict = VERDICTS.get(state)
    if verdict is None:
        return None
    return ObservedReview(
        reviewer=_login(answer, "author"),
        verdict=verdict,
        commit="" if commit is None else commit.text("oid"),
        instant=answer.instant("submittedAt"),
        is_dismissed=state == "DISMISSED",
        url=answer.text("url", ""),
    )


def _read_context(answer: AnswerObject) -> CommitStatus:
    """Return a status or a check run."""
    if answer.text("__typename") == "StatusContext":
        return CommitStatus(
            context=answer.text("context"),
            # One that is expected has not been set.
            state=STATUS_STATES.get(answer.text("state").lower(), StatusState.PENDING),
            creator=_login(answer, "creator"),
            instant=answer.instant("createdAt"),
            description=answer.text("description", ""),
            url=answer.text("targetUrl", ""),
        )
    suite = answer.child("checkSuite")
    app = None if suite is None else suite.child("app")
    instant = answer.optional_instant("completedAt") or answer.optional_instant("startedAt")
    if instant is None:
        raise MalformedAnswer("startedAt is missing")
    return CommitStatus(
        context=answer.text("name"),
        state=CONCLUSIONS.get(answer.text("conclusion", "").lower(), StatusState.PENDING),
        creator="" if app is None else bot_login(app.text("slug")),
        instant=instant,
        url=answer.text("detailsUrl", ""),
        is_rerunnable=True,
    )
