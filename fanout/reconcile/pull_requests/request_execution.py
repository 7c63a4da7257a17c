"""Calls of a pass about pull requests, after its push: requests and statuses first, then merges.

A call that fails is not made again in the pass: what became of it, the next pass sees. Found by
its head branch, a request is never opened twice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock

from fanout.api.reasons import Reason
from fanout.errors import Conflict, FanoutError, RateLimited, Unavailable, Waiting
from fanout.plan.actions import ActionKind, RequestChange
from fanout.plan.observation.merge_outcome import (
    Accepted,
    MergeOutcome,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import (
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestEdit,
    RequestPart,
    RequestState,
)
from fanout.plan.observation.repository_state import PushedChange
from fanout.plan.pull_requests.request_holds import HOLD_LABEL
from fanout.plan.pull_requests.request_plan import format_status
from fanout.plan.records.policy_status import RequestLine
from fanout.ports import Forge, ForgeDirectory, RequestMerger, StatusStore
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import replace

_WORKERS = 8  # requests that are worked on at once; each host admits fewer


@dataclass(slots=True)
class RequestOutcome:
    """Outcome of one change: the errors of its calls by kind of action, and the request.

    `line` is what to record of the request, or None where none is known. It has a head and a status
    if the status was set, what the host made of a merge unless it merged, and is closed if fanout
    closed it. Actions without an error were done: a merge that the host only accepted has one.
    """

    _: KW_ONLY
    errors: dict[ActionKind, FanoutError] = field(default_factory=dict)
    unknown_reviewers: tuple[str, ...] = ()
    hold_label_error: FanoutError | None = None  # of creating it; no call depends on it
    line: RequestLine | None = None


def execute_requests(
    forges: ForgeDirectory,
    changes: Sequence[RequestChange],
    find_push: Callable[[str, str], PushedChange | FanoutError | None],
    now: datetime,
) -> Mapping[tuple[str, str], RequestOutcome]:
    """Make the calls about all requests; return the outcomes by remote and head branch.

    `find_push` returns the result of the push of a head branch, by remote and ref.
    """
    runs = [_RequestRun(forges=forges, change=it, now=now) for it in changes]
    # What each host still opens in this hour is divided among the policies.
    demands: dict[str, tuple[Forge, Counter[str]]] = {}
    locks: dict[tuple[str, RepositoryName], Lock] = {}
    label_creations: dict[tuple[str, RepositoryName], Callable[[], None]] = {}
    for run in runs:
        change = run.change
        run.find_head(find_push(change.remote.key, change.head_ref))
        located = run_isolated(partial(forges.forge_of, change.remote.url))
        if isinstance(located, FanoutError):
            continue  # the calls say what is wrong
        forge, repository = located
        key = forge.host, repository
        if change.opening is not None or change.added_labels:
            # Two calls about labels at once would both create a missing label, and a forge keeps
            # both.
            run.label_lock = locks.setdefault(key, run.label_lock)
        if change.opening is not None:
            _, demand = demands.setdefault(forge.host, (forge, Counter()))
            demand[change.policy] += 1
            if not run.outcome.errors:
                label_creations.setdefault(key, run.create_hold_label)
    for forge, demand in demands.values():
        run_isolated(partial(forge.share_creations, demand))
    with ThreadPoolExecutor(_WORKERS, "requests") as workers:
        # Before the requests: their texts offer the label, and a later pass does not create it.
        _run_all(workers, label_creations.values())
        _run_all(workers, (run.update for run in runs))
        # After all statuses: a branch may require those of several requests.
        _run_all(workers, (run.merge for run in runs if run.change.merge is not None))
    return {(run.change.remote.key, run.change.head_ref): run.outcome for run in runs}


def _run_all(workers: ThreadPoolExecutor, steps: Iterable[Callable[[], None]]) -> None:
    for future in [workers.submit(step) for step in steps]:
        future.result()


@dataclass(slots=True)
class _RequestRun:
    """The calls about one request, in their order."""

    _: KW_ONLY
    forges: ForgeDirectory
    change: RequestChange
    now: datetime
    outcome: RequestOutcome = field(default_factory=RequestOutcome)
    label_lock: Lock = field(default_factory=Lock)  # shared by the runs of the repository
    _head: str = ""  # of the branch after the push
    _request: ObservedRequest | None = None
    _status_head: str = ""  # where the status was set
    _merge_outcome: MergeOutcome | None = None

    def find_head(self, push_result: PushedChange | FanoutError | None) -> None:
        """Find the head of the branch; a failed push fails all calls that are about its result."""
        self._head, self._request = self.change.head_commit, self.change.request
        if isinstance(push_result, PushedChange) and not self._head:
            self._head = push_result.refs.get(self.change.head_ref, "")
        elif isinstance(push_result, FanoutError):
            for kind in self.change.kinds:
                self.outcome.errors[kind] = push_result

    def create_hold_label(self) -> None:
        """Create the label by which people hold requests, unless the repository has it."""

        def create() -> None:
            forge, repository = self._find_forge()
            forge.create_label(repository, HOLD_LABEL)

        self.outcome.hold_label_error = run_isolated(create)

    def update(self) -> None:
        """Open, change or close the request, and set the status at its head."""
        self._make(ActionKind.OPEN_REQUEST)
        unopened = self.outcome.errors.get(ActionKind.OPEN_REQUEST)
        if unopened is not None and self._request is None:
            # Nobody sees a status without its request, and the next pass would set it again.
            for kind in self.change.kinds:
                self.outcome.errors.setdefault(kind, unopened)
        self._make(ActionKind.UPDATE_REQUEST)
        self._make(ActionKind.SET_STATUS)
        self._make(ActionKind.CLOSE_REQUEST)
        is_closed = self.change.closes and not self.outcome.errors
        self._note(RequestState.CLOSED if is_closed else RequestState.OPEN)

    def merge(self) -> None:
        """Merge the request, unless a call before it failed."""
        if self.outcome.errors:
            first = next(iter(self.outcome.errors.values()))
            self.outcome.errors.setdefault(ActionKind.MERGE_REQUEST, first)
            return
        self._make(ActionKind.MERGE_REQUEST)
        error = self.outcome.errors.get(ActionKind.MERGE_REQUEST)
        self._note(RequestState.MERGED if error is None else RequestState.OPEN, error)

    def _make(self, kind: ActionKind) -> None:
        """Make the calls of a kind if they are wanted and possible, and keep their error."""
        if kind not in self.change.kinds or kind in self.outcome.errors:
            return
        error = run_isolated(partial(self._call, kind))
        if isinstance(error, FanoutError):
            self.outcome.errors[kind] = error

    def _find_forge(self) -> tuple[Forge, RepositoryName]:
        forge, repository = self.forges.forge_of(self.change.remote.url)
        return forge.for_policy(self.change.policy), repository

    def _call(self, kind: ActionKind) -> None:
        """Make the calls of a kind. Raises FanoutError."""
        (forge, repository), change = self._find_forge(), self.change
        if kind is ActionKind.OPEN_REQUEST:
            assert change.opening is not None, "it is to be opened"
            self._request = forge.open_request(repository, change.opening)
            failures = self._add_labels(forge, repository) | self._ask_reviewers(forge, repository)
            raise_failures(failures, "it was opened")
        elif kind is ActionKind.UPDATE_REQUEST:
            failures = self._edit(forge, repository) | self._add_labels(forge, repository)
            wanted = len(change.edit.parts if change.edit is not None else ())
            is_partial = len(failures) < wanted + bool(change.added_labels)
            raise_failures(failures, "it was changed" if is_partial else "")
        elif kind is ActionKind.SET_STATUS:
            assert change.status is not None, "it is to be set"
            if not self._head:
                branch = change.head_ref.removeprefix("refs/heads/")
                raise Conflict(f"{branch} was deleted during the pass", reason="RemoteMoved")
            if not isinstance(forge, StatusStore):
                raise Unavailable("the forge has no statuses of commits", reason="ForgeRefuses")
            status = CommitStatus(
                context=change.status.context,
                state=change.status.state,
                creator="",
                instant=self.now,
                description=change.status.description,
                url=self._request.url if self._request is not None else "",
            )
            forge.set_status(repository, self._head, status)
            self._status_head = self._head
        elif kind is ActionKind.CLOSE_REQUEST:
            assert self._request is not None, "what is closed was observed"
            forge.close_request(repository, self._request.number)
        else:
            assert change.merge is not None, "it is to be merged"
            if not isinstance(forge, RequestMerger):
                raise Unavailable(
                    "the forge cannot merge pull requests through its API", reason="ForgeRefuses"
                )
            self._merge_outcome = forge.merge_request(repository, change.merge)
            check_merge(repository, change.merge, self._merge_outcome)

    def _edit(self, forge: Forge, repository: RepositoryName) -> dict[RequestPart, FanoutError]:
        """Make the edit; return the parts that failed."""
        request, edit = self._request, self.change.edit
        if request is None or edit is None:
            return {}

        def write(rest: RequestEdit) -> Mapping[RequestPart, FanoutError]:
            return forge.edit_request(repository, request, rest) if rest.parts else {}

        failures: dict[RequestPart, FanoutError] = {}
        texts = {RequestPart.TITLE: "title", RequestPart.TEXT: "text"}
        if not forge.keeps_text_versions and not texts.keys().isdisjoint(edit.parts):
            present = run_isolated(partial(forge.request, repository, request.number))
            if isinstance(present, FanoutError):
                return dict.fromkeys(edit.parts, present)
            for part, name in texts.items():
                if part in edit.parts and getattr(present, name, None) != getattr(request, name):
                    problem = f"pull request {request.number} of {repository} is not as observed"
                    failures[part] = Conflict(problem, reason="RemoteMoved")
                    edit = replace(edit, **{name: None})
        result = run_isolated(partial(write, edit))
        if isinstance(result, FanoutError):
            return failures | dict.fromkeys(edit.parts, result)
        return failures | dict(result)

    def _add_labels(
        self, forge: Forge, repository: RepositoryName
    ) -> dict[RequestPart, FanoutError]:
        request, labels = self._request, self.change.added_labels
        if request is None or not labels:
            return {}
        with self.label_lock:
            error = run_isolated(partial(forge.add_labels, repository, request, labels))
        return {RequestPart.LABELS: error} if isinstance(error, FanoutError) else {}

    def _ask_reviewers(
        self, forge: Forge, repository: RepositoryName
    ) -> dict[RequestPart, FanoutError]:
        request, reviewers = self._request, self.change.reviewers
        if request is None or not reviewers:
            return {}
        unknown = run_isolated(
            partial(forge.request_reviews, repository, request.number, reviewers)
        )
        if isinstance(unknown, FanoutError):
            return {RequestPart.REVIEWERS: unknown}
        self.outcome.unknown_reviewers = tuple(sorted(unknown))
        return {}

    def _note(self, state: RequestState, merge_error: FanoutError | None = None) -> None:
        if self._request is None:
            return
        status = self.change.status
        # A call that was not made or not answered is no refusal: the next pass plans it again.
        outcome = self._merge_outcome
        refused = outcome if isinstance(outcome, Refused) else None
        refusal = merge_error if refused is not None else None
        self.outcome.line = RequestLine(
            number=self._request.number,
            state=state.value,
            url=self._request.url,
            head=self._status_head,
            status=format_status(status) if status is not None and self._status_head else "",
            refused=self.now if refusal is not None else None,
            refusal_reason=str(refusal.reason) if refusal is not None else "",
            refusal=refusal.problem if refusal is not None else "",
            retryable=refused is not None and refused.is_retryable,
            accepted=self.now if isinstance(outcome, Accepted) else None,
        )


def raise_failures(failures: Mapping[RequestPart, FanoutError], done: str) -> None:
    """Raise one error about the parts of a request that failed, if any did.

    `done` says what was done all the same; "" where nothing was. A call that a limit prevented is
    no failure, so that another error goes before it.
    """
    parts: dict[str, list[RequestPart]] = {}
    for part, error in failures.items():
        # The instants of limits differ between calls.
        words = error.problem if isinstance(error, RateLimited) else str(error)
        parts.setdefault(words, []).append(part)
    if not parts:
        return
    errors = list(failures.values())
    if not done and len(parts) == 1:
        raise errors[0]
    sentences = [f"its {', '.join(names)} failed: {words}" for words, names in parts.items()]
    problem = "; ".join(sentences)
    if done:
        problem = f"{done}, but {problem}"
    limits = [it for it in errors if isinstance(it, RateLimited)]
    if len(limits) == len(errors):
        raise RateLimited(problem, until=max(it.until for it in limits))
    first = next(it for it in errors if not isinstance(it, RateLimited))
    raise type(first)(problem, reason=first.reason)


def check_merge(repository: RepositoryName, merge: GuardedMerge, outcome: MergeOutcome) -> None:
    """Raise Waiting, with what the host says, unless it has merged the request."""
    where = f"pull request {merge.number} of {repository}"
    if isinstance(outcome, Accepted):
        raise Waiting(f"{where} is {outcome.describe()}", reason=Reason.MERGE_ACCEPTED)
    if not isinstance(outcome, Refused):
        return
    if outcome.kind is RefusalKind.STYLE_FORBIDDEN:
        raise Waiting(
            f"{repository} does not allow to merge by {merge.style}",
            reason=outcome.reason,
            remedy="allow it in the repository's settings, or set mergeStyle",
        )
    remedy = ""
    if outcome.kind is RefusalKind.SIGNATURE_REQUIRED:
        remedy = "let the host sign its merges, or remove the rule that requires signatures"
    elif outcome.kind is RefusalKind.QUEUE_REQUIRED:
        remedy = "allow fanout's account to merge past the merge queue"
    problem = f"{where} cannot be merged now: {outcome.words}"
    raise Waiting(problem, reason=outcome.reason, remedy=remedy)
