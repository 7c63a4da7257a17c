"""State of the tests' GitHub beside Git: accounts, Apps, credentials, and changes of requests."""

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from github_repository import (
    METHODS,
    Account,
    App,
    CheckRun,
    CommitStatus,
    Event,
    MergeConflict,
    Pull,
    Repository,
    Rules,
)

TOKEN_LIFE = timedelta(hours=1)
PASSING_CONCLUSIONS = ("success", "neutral", "skipped")
STYLES = dict(zip(METHODS, ("Merge commits", "Squash merges", "Rebase merges"), strict=True))
BASE_MODIFIED = "Base branch was modified. Review and try the merge again."


class Refusal(Exception):
    """An answer that is not what the call asks for."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: list[dict[str, Any]] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.headers = headers or {}
        documentation = "https://docs.github.com/rest"
        self.body: dict[str, Any] = {"message": message, "documentation_url": documentation}
        if errors is not None:
            self.body["errors"] = errors


@dataclass
class Installation:
    """An App on an account: which repositories it reaches, and what it may do there."""

    id: int
    app: App
    owner: Account
    permissions: dict[str, str]  # name: read or write
    repositories: set[int] | None = None  # None: all of the owner
    is_suspended: bool = False


@dataclass
class Credential:
    """The holder of a token, and what the token allows."""

    account: Account
    permissions: dict[str, str] | None = None  # None: all that the account may
    repositories: set[int] | None = None  # None: all that the account may see
    expires_at: datetime | None = None
    installation: Installation | None = None
    app: App | None = None  # of a signed assertion, which is the App itself

    @property
    def acting_app(self) -> App | None:
        return self.installation.app if self.installation else self.app

    @property
    def is_suspended(self) -> bool:
        return self.installation is not None and self.installation.is_suspended

    @property
    def limit_key(self) -> str:
        """The name of what has a limit of its own: an installation, or a person."""
        return f"installation {self.installation.id}" if self.installation else self.account.login

    def allows(self, name: str, level: str) -> bool:
        """Return whether a permission was granted; write includes read."""
        if self.permissions is None or name == "metadata":
            return True
        return self.permissions.get(name) in ((level, "write") if level == "read" else (level,))


@dataclass(frozen=True)
class Verdict:
    """The newest status or check run of a context."""

    app: int | None  # that set it; None: a person
    passed: bool
    has_failed: bool  # for good, not only so far

    def counts_for(self, app: int | None) -> bool:
        """Return whether it satisfies a rule, which may want it from one App."""
        return self.passed and app in (None, self.app)


@dataclass(frozen=True)
class ArmedMerge:
    """A merge that is carried out once nothing is outstanding, by whom it was asked for.

    It has no head: what a writer pushes later is merged too.
    """

    method: str
    credential: Credential
    at: datetime
    title: str | None = None
    text: str | None = None


@dataclass
class State:
    """All of a server's knowledge. Calls of the API hold `lock`; pushes do not."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    accounts: dict[str, Account] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    installations: dict[int, Installation] = field(default_factory=dict)
    credentials: dict[str, Credential] = field(default_factory=dict)  # by token
    repositories: dict[int, Repository] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)  # full names, also earlier ones
    merges: dict[str, dict[str, Any]] = field(default_factory=dict)  # asynchronous ones, by uuid
    pushers: dict[int, Account] = field(default_factory=dict)  # who pushed last, by repository
    # How often a request is read until it is known whether it can be merged.
    reads_until_mergeable: int = 1
    lock: threading.RLock = field(default_factory=threading.RLock)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1001))

    def next_id(self) -> int:
        return next(self.ids)

    def access(self, credential: Credential | None, repository: Repository) -> str | None:
        """Return `write`, `read`, or None for a repository that this credential does not see."""
        public = None if repository.is_private else "read"
        if credential is None:
            return public
        if credential.repositories is not None and repository.id not in credential.repositories:
            return public
        if installation := credential.installation:
            selected = installation.repositories
            is_reached = selected is None or repository.id in selected
            return "write" if installation.owner == repository.owner and is_reached else public
        login = credential.account.login
        if login == repository.owner.login or login in repository.writers:
            return "write"
        return "read" if login in repository.readers else public

    def find_repository(self, full_name: str) -> Repository | None:
        """Return the repository of a name, or of one that it had."""
        return self.repositories.get(self.names.get(full_name.lower(), 0))

    def record(
        self, pull: Pull, kind: str, credential: Credential, commit: str = "", reason: str = ""
    ) -> None:
        """Add an event to a request, by whom the credential is of."""
        actor, app = credential.account, credential.acting_app
        event = Event(self.next_id(), kind, actor, self.clock(), commit or None, app, reason)
        pull.events.append(event)
        pull.updated_at = self.clock()

    def close(self, pull: Pull, credential: Credential) -> None:
        """Close a request without merging it."""
        pull.state, pull.closed_at = "closed", self.clock()
        self.record(pull, "closed", credential)

    def synchronize(self, repository: Repository) -> None:
        """Bring open requests up to what Git has, as GitHub does after each push."""
        pusher = Credential(self.pushers.get(repository.id, repository.owner))
        for pull in repository.pulls.values():
            if pull.state == "open":
                self._synchronize_pull(repository, pull, pusher)
            if pull.state == "open" and pull.auto_merge is not None:
                self._merge_armed(repository, pull, pull.auto_merge)

    def arm(self, pull: Pull, given: dict[str, Any], credential: Credential) -> None:
        """Let a request be merged when nothing is outstanding, as `enablePullRequestAutoMerge`."""
        method = given.get("mergeMethod", "MERGE").lower()
        title, text = given.get("commitHeadline"), given.get("commitBody")
        pull.auto_merge = ArmedMerge(method, credential, self.clock(), title, text)

    def _merge_armed(self, repository: Repository, pull: Pull, armed: ArmedMerge) -> None:
        if any(it.queue for it in repository.rules(pull.base)):
            if pull.queued_at is None:
                with suppress(Refusal):  # something is outstanding
                    self.enqueue(repository, pull, None, armed.credential)
            return
        body = {"merge_method": armed.method, "commit_title": armed.title}
        if armed.text is not None:
            body["commit_message"] = armed.text
        with suppress(Refusal):  # something is outstanding
            self.merge(repository, pull, body, armed.credential)

    def _synchronize_pull(self, repository: Repository, pull: Pull, pusher: Credential) -> None:
        base = repository.branch_commit(pull.base)
        head = repository.branch_commit(pull.head)
        if head is not None and head != pull.head_commit:
            pull.head_commit, pull.updated_at = head, self.clock()
            if pull.queued_at is not None:  # an armed one stays armed
                self.leave_queue(repository, pull, "MANUAL")
            repository.point_request(pull)
        if base is not None and base != pull.base_commit:
            if repository.contains(base, pull.head_commit):
                self._finish_merge(pull, base, pusher)
                return
            pull.base_commit = base
        if head is None:
            self.record(pull, "head_ref_deleted", pusher)
        if head is None or base is None:
            self.close(pull, pusher)

    def mergeability(self, repository: Repository, pull: Pull) -> tuple[bool | None, str]:
        """Return `mergeable` and `mergeable_state` of a request that somebody reads."""
        if pull.state != "open":
            return None, "unknown"
        key = (pull.head_commit, pull.base_commit)
        if pull.asked != key:
            pull.asked, pull.reads = key, 0
        pull.reads += 1
        if pull.reads <= self.reads_until_mergeable:
            return None, "unknown"
        if repository.has_conflict(pull):
            return False, "dirty"
        if pull.is_draft:
            return True, "draft"
        if self.blockers(repository, pull):
            return True, "blocked"
        if self._is_behind(repository, pull):
            return True, "behind"
        verdicts = self.verdicts(repository, pull.head_commit)
        return True, "clean" if all(it.passed for it in verdicts.values()) else "unstable"

    def verdicts(self, repository: Repository, commit: str) -> dict[str, Verdict]:
        """Return the newest verdict of each context."""
        entries: list[CommitStatus | CheckRun] = [
            *repository.statuses[commit],
            *repository.check_runs[commit],
        ]
        verdicts: dict[str, Verdict] = {}
        by_account = {app.account: app.id for app in self.apps.values()}
        for entry in sorted(entries, key=lambda it: it.id):
            if isinstance(entry, CommitStatus):
                app, passed = by_account.get(entry.creator), entry.state == "success"
                has_failed = entry.state in ("failure", "error")
                verdicts[entry.context] = Verdict(app, passed, has_failed)
            else:
                passed = entry.conclusion in PASSING_CONCLUSIONS
                has_failed = entry.conclusion is not None and not passed
                verdicts[entry.name] = Verdict(entry.app.id, passed, has_failed)
        return verdicts

    def blockers(self, repository: Repository, pull: Pull) -> list[str]:
        """Return what the rules of the base demand and the request has not, in GitHub's words."""
        verdicts = self.verdicts(repository, pull.head_commit)
        messages = []
        for rules in repository.rules(pull.base):
            for context, app in rules.checks.items():
                verdict = verdicts.get(context)
                if verdict is None or not verdict.counts_for(app):
                    messages.append(f'Required status check "{context}" is expected.')
            if self._approvals(repository, pull) < rules.approvals:
                plural = "review is" if rules.approvals == 1 else "reviews are"
                messages.append(
                    f"At least {rules.approvals} approving {plural} required"
                    " by reviewers with write access."
                )
        return messages

    def merge(
        self,
        repository: Repository,
        pull: Pull,
        body: dict[str, Any],
        credential: Credential,
    ) -> str:
        """Merge a request, and return the commit on the base. Raises Refusal."""
        method = body.get("merge_method", "merge")
        self._refuse_unmergeable(repository, pull, method, body.get("sha"))
        title = body.get("commit_title") or (
            f"Merge pull request #{pull.number} from {repository.owner.login}/{pull.head}"
            if method == "merge"
            else f"{pull.title} (#{pull.number})"
        )
        text = body.get("commit_message", pull.title if method == "merge" else "")
        message = f"{title}\n\n{text}" if text else title
        try:
            commit = repository.merge(pull, method, message, credential.account, self.clock())
        except MergeConflict:
            raise Refusal(405, "Pull Request is not mergeable") from None
        repository.before_merge()
        if not repository.move_branch(pull.base, commit, pull.base_commit):
            raise Refusal(405, BASE_MODIFIED)
        self._finish_merge(pull, commit, credential)
        if repository.deletes_merged_branches:
            repository.delete_branch(pull.head)
            self.record(pull, "head_ref_deleted", credential)
        self.synchronize(repository)
        return commit

    def _refuse_unmergeable(
        self, repository: Repository, pull: Pull, method: str, expected: str | None
    ) -> None:
        """Raise the Refusal of a merge that is not to be."""
        rules: list[Rules] = repository.rules(pull.base)
        if pull.state != "open":
            raise Refusal(405, "Pull Request is not mergeable")
        if expected not in (None, pull.head_commit):
            raise Refusal(409, "Head branch was modified. Review and try the merge again.")
        if pull.is_draft:
            raise Refusal(405, "Pull Request is still a draft")
        if any(it.queue for it in rules):
            raise Refusal(405, "Changes must be made through the merge queue")
        allowed = set(repository.methods).intersection(*(it.methods for it in rules))
        if any(it.linear_history for it in rules):
            allowed.discard("merge")
        if method not in allowed:
            raise Refusal(405, f"{STYLES[method]} are not allowed on this repository.")
        if messages := self.blockers(repository, pull):
            raise Refusal(405, messages[0])
        if self._is_behind(repository, pull):
            raise Refusal(405, "Head branch is out of date. Review and try the merge again.")

    def _finish_merge(self, pull: Pull, commit: str, credential: Credential) -> None:
        pull.merge_commit, pull.merged_by = commit, credential.account
        pull.state, pull.closed_at = "closed", self.clock()
        pull.merged_at, pull.queued_at = pull.closed_at, None
        self.record(pull, "merged", credential, commit)
        self.record(pull, "closed", credential, commit)

    def enqueue(
        self, repository: Repository, pull: Pull, expected: str | None, credential: Credential
    ) -> None:
        """Put a request into the merge queue of its base. Raises Refusal."""
        if expected not in (None, pull.head_commit):
            raise Refusal(422, "Head branch was modified. Review and try the merge again.")
        if not any(it.queue for it in repository.rules(pull.base)):
            raise Refusal(422, "The base branch has no merge queue.")
        if pull.state != "open" or pull.is_draft:
            raise Refusal(422, "Pull request is not ready to be merged.")
        if messages := self.blockers(repository, pull):
            raise Refusal(422, messages[0])
        pull.queued_at, pull.queued_by = self.clock(), credential

    def run_queue(self, repository: Repository) -> None:
        """Let the merge queue work: build commits, merge what passed, and throw out what failed.

        The first entry's commit is on the base, each other's on that of the entry before it.
        """
        self.synchronize(repository)
        bases: dict[str, str] = {}
        for pull in repository.queue():
            if not any(it.queue for it in repository.rules(pull.base)):
                self.leave_queue(repository, pull, "QUEUE_CLEARED")
                continue
            base = bases.get(pull.base, pull.base_commit)
            if pull.queue_base != base:
                self._build_entry(repository, pull, base)
            if pull.queued_at is not None and pull.queue_commit is not None:
                if self._settle_entry(repository, pull, base):
                    self.synchronize(repository)
                bases[pull.base] = pull.merge_commit or pull.queue_commit or base

    def _build_entry(self, repository: Repository, pull: Pull, base: str) -> None:
        method = next(it.methods[0] for it in repository.rules(pull.base) if it.queue)
        message = f"Merge pull request #{pull.number} from {repository.owner.login}/{pull.head}"
        merged = replace(pull, base_commit=base)
        try:
            commit = repository.merge(merged, method, message, pull.author, self.clock())
        except MergeConflict:
            self.leave_queue(repository, pull, "MERGE_CONFLICT")
            return
        self._delete_queue_branch(repository, pull)
        pull.queue_base, pull.queue_commit = base, commit
        repository.create_branch(pull.queue_branch, commit)

    def _settle_entry(self, repository: Repository, pull: Pull, base: str) -> bool:
        """Merge an entry or throw it out; return whether it waits no more."""
        verdicts = self.verdicts(repository, str(pull.queue_commit))
        wanted = {
            context: app
            for rules in repository.rules(pull.base)
            for context, app in rules.checks.items()
        }
        if any(it in verdicts and verdicts[it].has_failed for it in wanted):
            self.leave_queue(repository, pull, "CI_FAILURE")
            return True
        passed = all(it in verdicts and verdicts[it].counts_for(app) for it, app in wanted.items())
        commit, credential = pull.queue_commit, pull.queued_by
        if not passed or base != repository.branch_commit(pull.base):
            return False
        assert commit is not None and credential is not None, "it is queued"
        self._delete_queue_branch(repository, pull)
        repository.move_branch(pull.base, commit, base)
        self._finish_merge(pull, commit, credential)
        return True

    def leave_queue(self, repository: Repository, pull: Pull, reason: str) -> None:
        """Take a request out of the queue, for a reason such as `CI_FAILURE` or `MANUAL`."""
        self._delete_queue_branch(repository, pull)
        credential = pull.queued_by or Credential(pull.author)
        self.record(pull, "removed_from_merge_queue", credential, reason=reason)
        pull.queued_at = pull.queue_base = pull.queue_commit = None

    @staticmethod
    def _delete_queue_branch(repository: Repository, pull: Pull) -> None:
        if pull.queue_commit is not None:
            repository.delete_branch(pull.queue_branch)

    @staticmethod
    def _is_behind(repository: Repository, pull: Pull) -> bool:
        is_strict = any(it.is_strict for it in repository.rules(pull.base))
        return is_strict and not repository.contains(pull.head_commit, pull.base_commit)

    @staticmethod
    def _approvals(repository: Repository, pull: Pull) -> int:
        """Return how many writers' last verdict is an approval."""
        verdicts = {
            it.author.login: it.state
            for it in pull.reviews
            if it.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")
        }
        voices = {*repository.writers, repository.owner.login} - {pull.author.login}
        return sum(verdicts.get(it) == "APPROVED" for it in voices)

    def run_merge(self, uuid: str) -> dict[str, Any]:
        """Return what became of an asynchronous merge; the second question carries it out."""
        job = self.merges[uuid]
        if job["status"] == "pending" and job["asked"]:
            repository, pull = job["repository"], job["pull"]
            try:
                if job["queue"]:
                    self.enqueue(repository, pull, job["body"]["sha"], job["credential"])
                    job.update(status="enqueued", details={"message": "Added to the merge queue."})
                else:
                    sha = self.merge(repository, pull, job["body"], job["credential"])
                    details = {"message": "Pull Request successfully merged", "sha": sha}
                    job.update(status="merged", details=details)
            except Refusal as refusal:
                job.update(status="failed", details={"message": refusal.body["message"]})
        job["asked"] = True
        return {"status": job["status"], "details": job["details"]}
