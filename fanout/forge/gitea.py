"""Pull requests on Gitea, by version 1 of its API (tried with 1.26; Forgejo answers alike).

Gitea marks drafts by a prefix of the title. It sends no ETag, so that every read is a full one.
What an account must not see, it answers with 404.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, FanoutError
from fanout.forge.answer_fields import AnswerObject, MalformedAnswer
from fanout.forge.api_client import ApiClient, message_of
from fanout.forge.forge_http import ForgeHttp
from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.merge_outcome import Merged, RefusalKind, Refused
from fanout.plan.observation.observed_request import (
    ChangedPaths,
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    ObservedReview,
    RepositoryFacts,
    RepositoryName,
    RequestDraft,
    RequestEdit,
    RequestMatch,
    RequestPart,
    RequestState,
    ReviewVerdict,
    SearchedRequests,
    StatusState,
    find_newest_statuses,
)
from fanout.plan.pull_requests.call_limits import CallKind
from fanout.ports import Forge
from fanout.values import replace

Result = TypeVar("Result")

_DRAFT_PREFIX = "WIP: "
_DRAFT_PREFIXES = re.compile(r"(?i)^(?:WIP:|\[WIP\])\s*")  # Gitea's default setting
_PAGE_SIZE = 50  # the most that Gitea gives by default
_LABEL_COLOR = "#1d76db"
_TEAM_PREFIX = "team/"
_STYLE_SETTINGS = {
    MergeStyle.MERGE: "allow_merge_commits",
    MergeStyle.SQUASH: "allow_squash_merge",
    MergeStyle.REBASE: "allow_rebase",
}
_VERDICTS = {
    "APPROVED": ReviewVerdict.APPROVED,
    "REQUEST_CHANGES": ReviewVerdict.CHANGES_REQUESTED,
    "COMMENT": ReviewVerdict.COMMENTED,
}  # without PENDING and REQUEST_REVIEW, which nobody has submitted
_STATUS_STATES = {
    "success": StatusState.SUCCESS,
    "pending": StatusState.PENDING,
    "skipped": StatusState.SKIPPED,
    "failure": StatusState.FAILURE,
    "error": StatusState.FAILURE,
    "warning": StatusState.FAILURE,
}


class GiteaForge:
    """Implementation of `fanout.ports.Forge` and of all its abilities for one Gitea host."""

    def __init__(self, http: ForgeHttp, policy: str = "") -> None:
        """Create a client whose calls count for a policy."""
        self._http = http
        self._client = ApiClient(http, policy, ("limit", _PAGE_SIZE))

    @property
    def host(self) -> str:
        """Return the host as the configuration names it."""
        return self._http.access.host

    @property
    def account_digest(self) -> str:
        """Return a digest of address and account."""
        return self._http.account_digest

    def for_policy(self, policy: str) -> Forge:
        """Return the same forge with calls counted for this policy."""
        return GiteaForge(self._http, policy)

    def share_creations(self, demand: Mapping[str, int]) -> None:
        """Divide the requests that the host still takes in this hour among policies."""
        self._http.share_creations(demand)

    @property
    def checks_when_merging(self) -> bool:
        """True: an attempt is refused while Gitea checks, and harmless."""
        return True

    # ---- reading -------------------------------------------------------------------------------

    def login(self) -> str:
        """Return the login of the account that fanout has on the host."""
        return self._client.read_one(("user",), lambda answer: answer.text("login"))

    def identify(self, login: str) -> ForgeIdentity:
        """Return the account of a login: Gitea has one name for it, in any case."""
        return ForgeIdentity(login)

    def repository(self, name: RepositoryName) -> RepositoryFacts:
        """Return the settings of a repository."""
        return self._client.read_one(_path(name), _read_repository)

    def request(self, repository: RepositoryName, number: int) -> ObservedRequest | None:
        """Return the pull request of this number; None if there is none."""
        request = self._one_or_none(repository, ("pulls", str(number)), _read_request)
        if request is None or request.state is RequestState.OPEN:
            return request
        # Gitea answers the present head of the branch. Its head when it was merged or closed is
        # kept under a ref.
        ref = (*_path(repository), "git", "refs", "pull", str(number), "head")
        heads = self._client.read_all(
            ref, lambda it: _child_text(it, "object", "sha"), is_optional=True
        )
        [head, *_] = (*heads, "")
        return replace(request, head_commit=head) if head else request

    def open_requests(self, repository: RepositoryName) -> Sequence[ObservedRequest]:
        """Return the open pull requests to any branch, also those from other repositories."""
        # The call for one base and head answers the oldest, which may be closed.
        return self._client.read_all(
            (*_path(repository), "pulls"), _read_request, ("state", "open")
        )

    def closed_requests(self, repository: RepositoryName, author: str) -> Iterator[ObservedRequest]:
        """Yield the closed and merged pull requests of an author, those changed last first."""
        # Unlike the call for one request, the list has the head that each was closed with.
        query = (("state", "closed"), ("sort", "recentupdate"), ("poster", author))
        for page, _ in self._client.read_pages(
            (*_path(repository), "pulls"), _read_request, *query
        ):
            yield from page

    def search_requests(self, since: datetime) -> SearchedRequests:
        """Return the pull requests by fanout's account updated at or after an instant."""
        query = (
            ("type", "pulls"),
            ("state", "all"),
            ("created", "true"),
            ("since", since.isoformat()),
        )

        def read(answer: AnswerObject) -> RequestMatch:
            repository = answer.child("repository")
            if repository is None:
                raise MalformedAnswer("repository is missing")
            number, updated = answer.number("number"), answer.instant("updated_at")
            return RequestMatch(_read_name(repository), number, updated)

        matches: dict[RequestMatch, None] = {}
        instant: datetime | None = None
        for page, answered in self._client.read_pages(("repos", "issues", "search"), read, *query):
            matches |= dict.fromkeys(page)
            instant = instant or answered
        return SearchedRequests(tuple(matches), instant)

    def closed_by(self, repository: RepositoryName, request: ObservedRequest) -> str:
        """Return the login of whoever closed a pull request last, or ""."""
        if request.closed is None:
            return ""
        events = self._client.read_all(
            (*_path(repository), "issues", str(request.number), "timeline"),
            lambda answer: (answer.text("type"), _login(answer, "user")),
            ("since", request.closed.isoformat()),
        )
        return next((login for kind, login in reversed(events) if kind == "close"), "")

    def changed_paths(self, repository: RepositoryName, number: int) -> ChangedPaths:
        """Return the paths of all files that differ between the head and the merge base."""

        def read(answer: AnswerObject) -> tuple[str, set[str]]:
            # Some time passes between a push and the change of what this answer is of; only its
            # addresses name the commit.
            commit = answer.text("contents_url").rpartition("?ref=")[2]
            return commit, {answer.text("filename"), answer.text("previous_filename", "")} - {""}

        files = self._client.read_all((*_path(repository), "pulls", str(number), "files"), read)
        commits = {commit for commit, _ in files}
        # Somebody may push while the pages are read.
        commit = commits.pop() if len(commits) == 1 else ""
        return ChangedPaths(commit, frozenset(name for _, names in files for name in names))

    def reviews(self, repository: RepositoryName, number: int) -> Sequence[ObservedReview]:
        """Return the submitted reviews of a pull request, oldest first."""
        reviews = self._client.read_all(
            (*_path(repository), "pulls", str(number), "reviews"), _read_review
        )
        submitted = (review for review in reviews if review is not None)
        return sorted(submitted, key=lambda review: review.instant)

    def statuses(self, repository: RepositoryName, commit: str) -> Sequence[CommitStatus]:
        """Return the newest status of each context and creator at a commit, newest first."""
        path = (*_path(repository), "commits", commit, "statuses")
        # Instants are whole seconds; of statuses within one, the id tells the order.
        # Of a commit that is not there, Gitea has no list.
        statuses = self._client.read_all(
            path, lambda it: (_read_status(it), it.number("id")), is_optional=True
        )
        statuses.sort(key=lambda it: it[1], reverse=True)
        return list(find_newest_statuses(status for status, _ in statuses))

    def branch(self, repository: RepositoryName, branch: str) -> BranchFacts | None:
        """Return the rules of a branch; None if there is no such branch."""
        return self._one_or_none(repository, ("branches", branch), _read_branch)

    # ---- writing -------------------------------------------------------------------------------

    def open_request(self, repository: RepositoryName, draft: RequestDraft) -> ObservedRequest:
        """Open a pull request."""
        response = self._client.write(
            "POST",
            (*_path(repository), "pulls"),
            {
                "head": draft.head_branch,
                "base": draft.base_branch,
                "title": _marked_title(draft.title, is_draft=draft.is_draft),
                "body": draft.text,
            },
            expected=(404, 409),
            kind=CallKind.CREATION,
        )
        branches = f"from {draft.head_branch} to {draft.base_branch}"
        if response.status == 409:
            raise Conflict(
                f"{repository} has an open pull request {branches} already", reason="RemoteMoved"
            )
        if response.status == 404:
            self.repository(repository)  # raises Denied if the repository is hidden
            raise Conflict(
                f"{repository} has no pull request {branches}: one of the branches is missing",
                reason="RemoteMoved",
            )
        return self._client.parse("its answer to an opened request", response, _read_request)

    @property
    def keeps_text_versions(self) -> bool:
        """True: `content_version` counts the changes of a text."""
        return True

    def edit_request(
        self, repository: RepositoryName, request: ObservedRequest, edit: RequestEdit
    ) -> Mapping[RequestPart, FanoutError]:
        """Change title, draft flag, text or target branch of a pull request, in one call."""
        body: dict[str, Any] = {}
        if edit.title is not None or edit.is_draft is not None:
            title = request.title if edit.title is None else edit.title
            is_draft = request.is_draft if edit.is_draft is None else edit.is_draft
            body["title"] = _marked_title(title, is_draft=is_draft)
        if edit.text is not None:
            body |= {"body": edit.text, "content_version": request.text_version}
        if edit.base_branch is not None:
            body["base"] = edit.base_branch
        self._edit(repository, request.number, body)
        return {}

    def close_request(self, repository: RepositoryName, number: int) -> None:
        """Close a pull request without merging it. Raises Conflict if it was merged."""
        self._edit(repository, number, {"state": "closed"})

    def create_label(self, repository: RepositoryName, name: str) -> None:
        """Create a label unless the repository has it."""
        # Gitea takes a second label of one name.
        if name not in dict(self._client.read_all((*_path(repository), "labels"), _read_label)):
            self._create_label(repository, name)

    def add_labels(
        self, repository: RepositoryName, request: ObservedRequest, labels: Collection[str]
    ) -> None:
        """Add labels to a pull request, which keeps its others."""
        path = (*_path(repository), "issues", str(request.number), "labels")
        missing = sorted(set(labels) - request.labels)
        if missing and not set(missing) <= self._add_labels(path, missing).keys():
            # Gitea leaves out names that the repository does not have.
            present = self._add_labels(path, missing)
            for name in sorted(set(missing) - present.keys()):
                self._create_label(repository, name)
            self._add_labels(path, missing)

    def request_reviews(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> Collection[str]:
        """Ask people, or `team/NAME`, for a review; return those who cannot be asked."""
        if not reviewers or self._ask_for_review(repository, number, reviewers):
            return ()
        # Gitea refuses all of them for one whom it does not know.
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
                "description": status.description,
                "target_url": status.url,
            },
        )

    def merge_request(self, repository: RepositoryName, merge: GuardedMerge) -> Merged | Refused:
        """Merge a pull request if its head is the commit that was judged."""
        response = self._client.write(
            "POST",
            (*_path(repository), "pulls", str(merge.number), "merge"),
            {
                "Do": merge.style.lower(),
                "MergeTitleField": merge.subject,
                "MergeMessageField": merge.body,
                "head_commit_id": merge.head_commit,
                "delete_branch_after_merge": True,
            },
            expected=(404, 405, 409),
        )
        if 200 <= response.status < 300:
            return Merged()  # the answer is empty
        words = message_of(response)
        where = f"pull request {merge.number} of {repository}"
        if response.status == 404:
            self.repository(repository)  # raises Denied if the repository is hidden
            raise Conflict(f"{where} is not open any more", reason="RemoteMoved")
        if "head out of date" in words or "already merged" in words:
            raise Conflict(f"{where} is not as observed: {words}", reason="RemoteMoved")
        quoted = self._http.quote(words) or f"status {response.status}"
        if "merge style" in words:
            return Refused(RefusalKind.STYLE_FORBIDDEN, quoted)
        if "wont sign" in words:
            return Refused(RefusalKind.SIGNATURE_REQUIRED, quoted)
        # "Please try again later" is the answer while Gitea checks for conflicts, and to a conflict
        # as well: no refusal is sure to end by itself.
        return Refused(RefusalKind.NOT_NOW, quoted)

    # ---- calls ---------------------------------------------------------------------------------

    def _edit(self, repository: RepositoryName, number: int, body: Mapping[str, Any]) -> None:
        path = (*_path(repository), "pulls", str(number))
        response = self._client.write("PATCH", path, body, expected=(409, 412))
        if response.status in (409, 412):
            words = self._http.quote(message_of(response))
            raise Conflict(
                f"pull request {number} of {repository} is not as observed: {words}",
                reason="RemoteMoved",
            )

    def _add_labels(self, path: tuple[str, ...], names: Sequence[str]) -> Mapping[str, int]:
        """Add those labels that the repository has; return all labels of the request."""
        response = self._client.write("POST", path, {"labels": list(names)})
        return dict(self._client.parse_list("its labels", response, _read_label))

    def _create_label(self, repository: RepositoryName, name: str) -> None:
        self._client.write(
            "POST", (*_path(repository), "labels"), {"name": name, "color": _LABEL_COLOR}
        )

    def _ask_for_review(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> bool:
        teams = [it.removeprefix(_TEAM_PREFIX) for it in reviewers if it.startswith(_TEAM_PREFIX)]
        people = [it for it in reviewers if not it.startswith(_TEAM_PREFIX)]
        response = self._client.write(
            "POST",
            (*_path(repository), "pulls", str(number), "requested_reviewers"),
            {"reviewers": sorted(people), "team_reviewers": sorted(teams)},
            expected=(404, 422),
        )
        return 200 <= response.status < 300

    def _one_or_none(
        self,
        repository: RepositoryName,
        path: tuple[str, ...],
        read: Callable[[AnswerObject], Result],
    ) -> Result | None:
        value = self._client.read_optional((*_path(repository), *path), read)
        if value is None:
            self.repository(repository)  # raises Denied if the repository is hidden
        return value


def _path(repository: RepositoryName) -> tuple[str, ...]:
    return ("repos", repository.owner, repository.name)


def _marked_title(title: str, *, is_draft: bool) -> str:
    return f"{_DRAFT_PREFIX}{title}" if is_draft else title


def _child_text(answer: AnswerObject, child: str, name: str) -> str:
    """Return a string of an object in the answer; "" without the object."""
    value = answer.child(child)
    return "" if value is None else value.text(name)


def _login(answer: AnswerObject, name: str) -> str:
    return _child_text(answer, name, "login")


def _read_name(answer: AnswerObject) -> RepositoryName:
    owner, _, name = answer.text("full_name").rpartition("/")
    return RepositoryName(owner, name)


def _read_repository(answer: AnswerObject) -> RepositoryFacts:
    return RepositoryFacts(
        name=_read_name(answer),
        is_archived=answer.flag("archived"),
        merge_styles=frozenset(
            style for style, setting in _STYLE_SETTINGS.items() if answer.flag(setting)
        ),
    )


def _read_request(answer: AnswerObject) -> ObservedRequest:
    """Read a request, without mergeability.

    `mergeable` is true without conflicts, whatever the rules of the branch are, and false for a
    conflict, a check that has not ended, and a draft alike: neither tells what a merge would do.
    """
    head, base = answer.child("head"), answer.child("base")
    if head is None or base is None:
        raise MalformedAnswer("head or base is missing")
    head_repository = head.child("repo")
    is_merged, is_draft = answer.flag("merged"), answer.flag("draft")
    title = answer.text("title")
    state = RequestState.MERGED if is_merged else RequestState(answer.text("state"))
    return ObservedRequest(
        number=answer.number("number"),
        url=answer.text("html_url"),
        state=state,
        is_draft=is_draft,
        title=_DRAFT_PREFIXES.sub("", title) if is_draft else title,
        text=answer.text("body", ""),
        text_version=answer.number("content_version", 0),
        author=_login(answer, "user"),
        labels=frozenset(label.text("name") for label in answer.children("labels")),
        head_repository=None if head_repository is None else _read_name(head_repository),
        # Of a branch that is deleted, only the label has the name.
        head_branch=head.text("label", "")
        if head.text("ref").startswith("refs/pull/")
        else head.text("ref"),
        head_commit=head.text("sha"),
        base_branch=base.text("ref"),
        updated=answer.instant("updated_at"),
        closed=answer.optional_instant("closed_at"),
        merged_by=_login(answer, "merged_by"),
        merged_commit=answer.text("merge_commit_sha", "") if is_merged else "",
    )


def _read_review(answer: AnswerObject) -> ObservedReview | None:
    verdict = _VERDICTS.get(answer.text("state"))
    if verdict is None:
        return None
    return ObservedReview(
        reviewer=_login(answer, "user"),
        verdict=verdict,
        commit=answer.text("commit_id", ""),
        instant=answer.instant("submitted_at"),
        is_dismissed=answer.flag("dismissed"),
        url=answer.text("html_url", ""),
    )


def _read_status(answer: AnswerObject) -> CommitStatus:
    return CommitStatus(
        context=answer.text("context"),
        # A state of a later version is not taken for a success.
        state=_STATUS_STATES.get(answer.text("status"), StatusState.PENDING),
        creator=_login(answer, "creator"),
        instant=answer.instant("created_at"),
        description=answer.text("description", ""),
        url=answer.text("target_url", ""),
    )


def _read_branch(answer: AnswerObject) -> BranchFacts:
    """Read the rules of a branch: Gitea has no others than these, and hides one.

    Whether a protected branch takes unsigned commits, only administrators of the repository see.
    """
    answer.text("name")
    is_protected = answer.flag("protected")
    # Without contexts the check wants every status of a head to be a success.
    contexts = answer.texts("status_check_contexts") or frozenset("*")
    is_checked = answer.flag("enable_status_check")
    return BranchFacts(
        is_protected=is_protected,
        required_statuses=frozenset(map(RequiredStatus, contexts)) if is_checked else frozenset(),
        required_approvals=answer.number("required_approvals", 0),
        may_push=answer.flag("user_can_push"),
        requires_signatures=None if is_protected else False,
    )


def _read_label(answer: AnswerObject) -> tuple[str, int]:
    return answer.text("name"), answer.number("id")
