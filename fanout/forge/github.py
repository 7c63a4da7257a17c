"""Pull requests on GitHub and GitHub Enterprise Server, by REST 2026-03-10 and by GraphQL.

GraphQL is asked for what REST does not have: draft flags, the commit of a merge, the own login.
REST names a bot `slug[bot]`. What an account must not see, GitHub answers with 404.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from fanout.errors import Conflict, Denied, FanoutError, Unavailable
from fanout.forge.answer_fields import AnswerObject, MalformedAnswer
from fanout.forge.api_client import ApiClient, message_of
from fanout.forge.forge_call import ForgeResponse
from fanout.forge.forge_http import ForgeHttp
from fanout.forge.github_batch import REPOSITORIES, build_query, read_batch
from fanout.forge.github_fields import (
    read_check_run,
    read_login,
    read_merge,
    read_refusal,
    read_repository,
    read_request,
    read_review,
    read_status,
)
from fanout.forge.github_rules import join_rules, read_protection, read_rule
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.merge_outcome import (
    Merged,
    Refused,
)
from fanout.plan.observation.observed_request import (
    ChangedPaths,
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    ObservedReview,
    PolledRepository,
    RepositoryFacts,
    RepositoryName,
    RequestDraft,
    RequestEdit,
    RequestPart,
    RequestState,
    find_newest_statuses,
)
from fanout.plan.pull_requests.call_limits import CallKind
from fanout.ports import Forge
from fanout.values import replace

_TEAM_PREFIX = "team/"
_MOST_FILES = 3000  # that GitHub lists of a request; it does not say that there are more
_MOST_DESCRIPTION = 140  # characters of the description of a status
_LOGIN = "query { viewer { login } }"
_MERGE_COMMIT = """query($pull: ID!) {
  nodes(ids: [$pull]) { ... on PullRequest { mergeCommit { oid } } }
}"""
_READY = """mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { isDraft } }
}"""
_DRAFT = """mutation($pull: ID!) {
  convertPullRequestToDraft(input: {pullRequestId: $pull}) { pullRequest { isDraft } }
}"""


class GitHubForge:
    """Implementation of `fanout.ports.Forge` and of its abilities, but for search, on GitHub."""

    def __init__(
        self,
        http: ForgeHttp,
        policy: str = "",
        polled: Mapping[RepositoryName, PolledRepository] | None = None,
    ) -> None:
        """Create a client whose calls count for a policy; what is `polled` needs none."""
        self._http = http
        self._polled = polled or {}
        self._client = ApiClient(http, policy, ("per_page", 100), is_conditional=True)

    @property
    def host(self) -> str:
        """Return the host as the configuration names it."""
        return self._http.access.host

    @property
    def account_digest(self) -> str:
        """Return a digest of address and credential."""
        return self._http.account_digest

    def for_policy(self, policy: str) -> Forge:
        """Return the same forge with calls counted for this policy."""
        return GitHubForge(self._http, policy)

    def share_creations(self, demand: Mapping[str, int]) -> None:
        """Divide the requests that the host still takes in this hour among policies."""
        self._http.share_creations(demand)

    # ---- reading -------------------------------------------------------------------------------

    def login(self) -> str:
        """Return the login of the account that fanout has on the host."""
        # REST has no answer for what acts for an App.
        viewer = self._ask(_LOGIN, {}).child("viewer")
        return "" if viewer is None else viewer.text("login")

    def identify(self, login: str) -> ForgeIdentity:
        """Return the account of fanout; shorter logins of GraphQL are written as REST has them."""
        return ForgeIdentity(login)

    def repository(self, name: RepositoryName) -> RepositoryFacts:
        """Return the settings of a repository."""
        return self._client.read_one(_path(name), read_repository)

    def request(self, repository: RepositoryName, number: int) -> ObservedRequest | None:
        """Return the pull request of this number; None if there is none."""
        answer = self._client.read_optional(
            (*_path(repository), "pulls", str(number)),
            lambda answer: (read_request(answer), answer.text("node_id")),
        )
        if answer is None:
            self.repository(repository)  # raises Denied if the repository is hidden
            return None
        request, node = answer
        if request.state is not RequestState.MERGED:
            return request
        # Since 2026-03-10 REST has only the commit of a merge that is made by the call itself.
        pulls = self._ask(_MERGE_COMMIT, {"pull": node}).children("nodes")
        commits = [it.child("mergeCommit") for it in pulls]
        [oid, *_] = (*(it.text("oid") for it in commits if it is not None), "")
        return replace(request, merged_commit=oid)

    def open_requests(self, repository: RepositoryName) -> Sequence[ObservedRequest]:
        """Return the open pull requests to any branch, also those from other repositories."""
        if (polled := self._polled.get(repository)) is not None:
            return polled.requests
        query = ("state", "open")
        return self._client.read_all((*_path(repository), "pulls"), read_request, query)

    def poll_requests(
        self, repositories: Sequence[RepositoryName]
    ) -> tuple[Forge, Mapping[RepositoryName, PolledRepository], datetime | None]:
        """Return the forge with what one query for each 50 repositories shows of them."""
        polled: dict[RepositoryName, PolledRepository] = {}
        instant: datetime | None = None
        for start in range(0, len(repositories), REPOSITORIES):
            names = repositories[start : start + REPOSITORIES]
            document, variables = build_query(names)
            response, data = self._ask_in_part(document, variables)
            instant = instant or response.instant
            try:
                polled |= read_batch(data, names)
            except MalformedAnswer as error:
                raise self._client.malformed("a GraphQL query", str(error)) from None
        return GitHubForge(self._http, polled=polled), polled, instant

    def closed_requests(self, repository: RepositoryName, author: str) -> Iterator[ObservedRequest]:
        """Yield the closed and merged pull requests of an author, those changed last first."""
        query = (("state", "closed"), ("sort", "updated"), ("direction", "desc"))
        path = (*_path(repository), "pulls")
        for page, _ in self._client.read_pages(path, read_request, *query):
            yield from (it for it in page if self.identify(author).is_named(it.author))

    def closed_by(self, repository: RepositoryName, request: ObservedRequest) -> str:
        """Return the login of whoever closed a pull request last, or ""."""
        events = self._client.read_all(
            (*_path(repository), "issues", str(request.number), "events"),
            lambda answer: (answer.text("event"), read_login(answer, "actor")),
        )
        return next((login for kind, login in reversed(events) if kind == "closed"), "")

    def changed_paths(self, repository: RepositoryName, number: int) -> ChangedPaths:
        """Return the paths of all files that differ between the head and the merge base."""
        path = (*_path(repository), "pulls", str(number))

        def read_head() -> str:
            return self._client.read_one(path, read_request).head_commit

        # The list does not name the commit that it is of.
        head = read_head()
        files = self._client.read_all(
            (*path, "files"),
            lambda it: {it.text("filename"), it.text("previous_filename", "")} - {""},
        )
        is_whole = len(files) < _MOST_FILES and read_head() == head
        return ChangedPaths(head if is_whole else "", frozenset().union(*files))

    def reviews(self, repository: RepositoryName, number: int) -> Sequence[ObservedReview]:
        """Return the submitted reviews of a pull request, oldest first."""
        if (polled := self._polled.get(repository)) is not None and number in polled.reviews:
            return polled.reviews[number]
        path = (*_path(repository), "pulls", str(number), "reviews")
        submitted = [it for it in self._client.read_all(path, read_review) if it is not None]
        return sorted(submitted, key=lambda review: review.instant)

    def statuses(self, repository: RepositoryName, commit: str) -> Sequence[CommitStatus]:
        """Return the newest status or check run of each name and creator, newest first."""
        if (polled := self._polled.get(repository)) is not None and commit in polled.statuses:
            return polled.statuses[commit]
        path = (*_path(repository), "commits", commit)
        statuses = self._client.read_all((*path, "statuses"), read_status, is_optional=True)
        runs = self._client.read_all(
            (*path, "check-runs"),
            read_check_run,
            ("filter", "latest"),
            within="check_runs",
            is_optional=True,
        )
        # Statuses are listed newest first.
        return find_newest_statuses((*statuses, *runs))

    def branch(self, repository: RepositoryName, branch: str) -> BranchFacts | None:
        """Return the rules of a branch; None if there is no such branch."""
        path = _path(repository)
        answer = self._client.read_optional((*path, "branches", branch), lambda it: it)
        if answer is None:
            self.repository(repository)  # raises Denied if the repository is hidden
            return None
        # Classic protection is in the answer about the branch, rulesets are not.
        rules = self._client.read_all((*path, "rules", "branches", branch), lambda it: it)
        try:
            protection = read_protection(answer, self._name_app)
            return join_rules((protection, *(read_rule(it, self._name_app) for it in rules)))
        except MalformedAnswer as error:
            raise self._client.malformed("the rules of a branch", str(error)) from None

    def _name_app(self, number: int) -> str:
        """Return the login of an App by its id, or words for one that is not fanout's own."""
        if number < 0:  # any
            return ""
        is_own = str(number) == self._http.access.secret.github_app_id
        return self.login() if is_own else f"app {number}"

    # ---- writing -------------------------------------------------------------------------------

    def open_request(self, repository: RepositoryName, draft: RequestDraft) -> ObservedRequest:
        """Open a pull request."""
        response = self._client.write(
            "POST",
            (*_path(repository), "pulls"),
            {
                "head": draft.head_branch,
                "base": draft.base_branch,
                "title": draft.title,
                "body": draft.text,
                "draft": draft.is_draft,
            },
            expected=(422,),
            kind=CallKind.CREATION,
        )
        if response.status == 422:
            branches = f"from {draft.head_branch} to {draft.base_branch}"
            words = _reasons(response)
            if "Draft pull requests are not supported" in words:
                raise Unavailable(
                    f"{repository} takes no pull requests that are drafts",
                    reason="ForgeRefuses",
                    remedy="set pullRequest.draft: false in the PromotionPolicy",
                )
            raise Conflict(
                f"{repository} takes no pull request {branches}: {self._http.quote(words)}",
                reason="RemoteMoved",
            )
        return self._client.parse("its answer to an opened request", response, read_request)

    @property
    def keeps_text_versions(self) -> bool:
        """False: whoever writes last overwrites."""
        return False

    def edit_request(
        self, repository: RepositoryName, request: ObservedRequest, edit: RequestEdit
    ) -> Mapping[RequestPart, FanoutError]:
        """Change title, text and target branch in one call, and the draft flag in another."""
        path = (*_path(repository), "pulls", str(request.number))
        changes = {
            RequestPart.TITLE: ("title", edit.title),
            RequestPart.TEXT: ("body", edit.text),
            RequestPart.BASE_BRANCH: ("base", edit.base_branch),
        }
        body = {name: value for name, value in changes.values() if value is not None}
        is_marked = edit.is_draft is not None and edit.is_draft != request.is_draft
        failures: dict[RequestPart, FanoutError] = {}
        if body:
            try:
                self._client.write("PATCH", path, body, kind=CallKind.CONTENT)
            except FanoutError as error:
                if not is_marked:
                    raise
                failures = {it: error for it, (name, _) in changes.items() if name in body}
        if is_marked:
            try:
                node = self._client.read_one(path, lambda answer: answer.text("node_id"))
                document = _DRAFT if edit.is_draft else _READY
                self._ask(document, {"pull": node}, kind=CallKind.CONTENT)
            except FanoutError as error:
                failures[RequestPart.DRAFT_FLAG] = error
        return failures

    def close_request(self, repository: RepositoryName, number: int) -> None:
        """Close a pull request without merging it. Raises Conflict if it was merged."""
        path = (*_path(repository), "pulls", str(number))
        response = self._client.write(
            "PATCH", path, {"state": "closed"}, expected=(422,), kind=CallKind.CONTENT
        )
        closed = response.status != 422 and self._client.parse("its answer", response, read_request)
        if not closed or closed.state is RequestState.MERGED:
            raise Conflict(
                f"pull request {number} of {repository} is not open any more", reason="RemoteMoved"
            )

    def create_label(self, repository: RepositoryName, name: str) -> None:
        """Create no label: GitHub creates one when it is named."""

    def add_labels(
        self, repository: RepositoryName, request: ObservedRequest, labels: Collection[str]
    ) -> None:
        """Add labels to a pull request, which keeps its others."""
        if missing := sorted(set(labels) - request.labels):
            path = (*_path(repository), "issues", str(request.number), "labels")
            self._client.write("POST", path, {"labels": missing}, kind=CallKind.CONTENT)

    def request_reviews(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> Collection[str]:
        """Ask people, or `team/NAME`, for a review; return those who cannot be asked."""
        if not reviewers or self._ask_for_review(repository, number, reviewers):
            return ()
        # GitHub refuses all of them for one who has no access, and for the author.
        return [
            reviewer
            for reviewer in sorted(reviewers)
            if not self._ask_for_review(repository, number, [reviewer])
        ]

    def set_status(self, repository: RepositoryName, commit: str, status: CommitStatus) -> None:
        """Set a status of a commit; creator and instant are the host's to say."""
        self._client.write(
            "POST",
            (*_path(repository), "statuses", commit),
            {
                "context": status.context,
                "state": str(status.state),
                "description": status.description[:_MOST_DESCRIPTION],
                "target_url": status.url,
            },
            kind=CallKind.CONTENT,
        )

    @property
    def checks_when_merging(self) -> bool:
        """False: GitHub computes whether it can merge when it is asked about the request."""
        return False

    def merge_request(self, repository: RepositoryName, merge: GuardedMerge) -> Merged | Refused:
        """Merge a pull request if its head is the commit that was judged."""
        where = f"pull request {merge.number} of {repository}"
        path = (*_path(repository), "pulls", str(merge.number))
        response = self._client.write(
            "PUT",
            (*path, "merge"),
            {
                "sha": merge.head_commit,
                "merge_method": merge.style.lower(),
                "commit_title": merge.subject,
                "commit_message": merge.body,
            },
            expected=(404, 405, 409),
            kind=CallKind.CONTENT,
        )
        words = message_of(response)
        if response.status == 404:
            self.repository(repository)  # raises Denied if the repository is hidden
            raise Conflict(f"{where} is not open any more", reason="RemoteMoved")
        if response.status == 409:
            raise Conflict(f"{where} is not as observed: {words}", reason="RemoteMoved")
        if response.status == 405:
            return read_refusal(words, self._http.quote(words) or "status 405")
        # It is merged whatever becomes of the branch, which the next pass sees.
        with suppress(FanoutError):
            names = merge.head_branch.split("/")
            address = (*_path(repository), "git", "refs", "heads", *names)
            self._client.write("DELETE", address, expected=(404, 409, 422))
        return self._client.parse("its answer to a merge", response, read_merge)

    # ---- calls ---------------------------------------------------------------------------------

    def _ask_for_review(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> bool:
        teams = [it.removeprefix(_TEAM_PREFIX) for it in reviewers if it.startswith(_TEAM_PREFIX)]
        people = [it for it in reviewers if not it.startswith(_TEAM_PREFIX)]
        # Without the right to read members, 403 answers for teams.
        response = self._client.write(
            "POST",
            (*_path(repository), "pulls", str(number), "requested_reviewers"),
            {"reviewers": sorted(people), "team_reviewers": sorted(teams)},
            expected=(403, 404, 422),
            kind=CallKind.CONTENT,
        )
        return 200 <= response.status < 300

    def _ask(
        self, document: str, variables: Mapping[str, Any], kind: CallKind = CallKind.READ
    ) -> AnswerObject:
        """Return `data` of the answer to a document. Raises Denied for an error in any part."""
        response, data = self._ask_in_part(document, variables, kind)
        if errors := AnswerObject(response.data).children("errors"):
            words = self._http.quote(errors[0].text("message", ""))
            raise Denied(f"{self.host} refuses a GraphQL query: {words}", reason="ForgeDenied")
        return data

    def _ask_in_part(
        self, document: str, variables: Mapping[str, Any], kind: CallKind = CallKind.READ
    ) -> tuple[ForgeResponse, AnswerObject]:
        """Return the answer to a GraphQL document, and its `data`: null where a part is refused."""
        body = {"query": document, "variables": variables}
        # On github.com below the address of the API, on Enterprise Server beside its version.
        base = self._http.access.api.rstrip("/").removesuffix("/v3")
        response = self._client.write(
            "POST", ("graphql",), body, kind=kind, base=base, pool="graphql"
        )
        data = self._client.parse("a GraphQL query", response, lambda it: it.child("data"))
        if data is None:
            raise self._client.malformed("a GraphQL query", "data is missing")
        return response, data


def _path(repository: RepositoryName) -> tuple[str, ...]:
    return ("repos", repository.owner, repository.name)


def _reasons(response: ForgeResponse) -> str:
    """Return the sentences of a refused request, in one line."""
    errors = response.data.get("errors") if isinstance(response.data, Mapping) else None
    sentences = [
        error.get("message") or f"{error.get('field')} is {error.get('code')}"
        for error in errors or []
        if isinstance(error, Mapping)
    ]
    return "; ".join(map(str, sentences)) or message_of(response)
