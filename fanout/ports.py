"""Protocols through which passes reach declared objects, Git, forges, probes and records."""

from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, ObjectKey
from fanout.errors import Denied, FanoutError
from fanout.package.package_limits import SizeLimits
from fanout.package.tree_ids import TreeEntry
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.plan.history.recorded_publications import StatusRevision
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.merge_outcome import MergeOutcome
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
    SearchedRequests,
)
from fanout.plan.observation.repository_state import (
    Commit,
    CommitIdentity,
    PathState,
    PushedChange,
    RefListing,
    RefListingRequest,
    Remote,
    RepositoryChange,
)
from fanout.plan.pull_requests.call_limits import HostLimits
from fanout.plan.records.logged_sweep import LoggedSweep
from fanout.plan.records.policy_records import (
    PolicyRecords,
    RecordEntry,
    RecordsKey,
    StatusChange,
    SubmittedRecord,
)
from fanout.plan.records.record_listing import ClusterUser, RecordListing, RecordObject, RecordState
from fanout.plan.written_objects import ObjectName, PolicyEvent, WrittenObject
from fanout.selection.variant_spec import ExpressionFailure, InProcessExpression
from fanout.values import Value
from fanout.variants.function_requests import ProgramOutput, ProgramRun, ScriptOutput, ScriptRun
from fanout.variants.function_requests import ResponseError as ProgramError

# ---- Declared objects --------------------------------------------------------------------------


class Inventory(Protocol):
    """Source of the declared objects (packages: cluster, from files; kube, from an API server)."""

    def read(self) -> DeclaredObjects:
        """Return what is declared now, errors included; the same value if nothing changed."""

    def require(self, injected: Mapping[ObjectKey, Collection[tuple[str, str]]]) -> bool:
        """Return whether the next reading differs by kinds that packages inject.

        `injected`: group and kind of what the packages of each policy or variant inject.
        """


# ---- Git ---------------------------------------------------------------------------------------


class ObjectReader(Protocol):
    """Reader of the objects of one mirror. Methods raise Unavailable for ids that are missing."""

    @property
    def limits(self) -> SizeLimits:
        """Size limits of the packages that it reads."""

    def has(self, oid: str) -> bool:
        """Return whether the object is in the mirror."""

    def commit(self, oid: str) -> Commit:
        """Return the commit of this id."""

    def contains(self, head: str, commit: str) -> bool:
        """Return whether the commit is the head or one of its ancestors."""

    def merge_base(self, head: str, commit: str) -> str:
        """Return a newest common ancestor of two commits, "" without any."""

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """Return the state of each of these paths in the commit, by path."""

    def changed_files(
        self, commit: str, references: Sequence[str], omitted: Collection[str], limit: int
    ) -> Sequence[str]:
        """Return the paths of files that are otherwise, or absent, in each of the references.

        References are commits; a file that the commit lacks is compared if the first one has it.
        `omitted` are directories that are not read. At most `limit` paths are returned.
        """

    def entries(self, tree: str, limits: SizeLimits | None = None) -> Mapping[str, TreeEntry]:
        """Return all files below a tree, by path.

        Raises InvalidInput for a submodule, and as soon as the tree is seen to exceed `limits`
        (default: the limits of packages).
        """

    def directory(self, tree: str, limits: SizeLimits) -> Mapping[str, TreeEntry]:
        """Return what is directly in a tree, by name; raises InvalidInput as `entries` does.

        Directories have the mode `DIRECTORY_MODE`.
        """

    def entry(self, tree: str, name: str) -> TreeEntry | None:
        """Return the file of this name directly in a tree, or None."""

    def files(
        self, tree: str, contents_by_id: Mapping[str, bytes] | None = None
    ) -> Mapping[str, tuple[TreeEntry, bytes]]:
        """Return the files of a package with their content, by path.

        `contents_by_id`: contents read before, by blob id; they are not read again. Raises
        InvalidInput for what exceeds the limits of packages, before any content is read.
        """

    def blob(self, oid: str, max_bytes: int | None = None) -> bytes:
        """Return the content of a file.

        Raises InvalidInput, without reading it, if it has more than `max_bytes` (default: the limit
        for one file of a package).
        """


# Git hosts accept any user name with a token, but some refuse an empty one.
TOKEN_USER = "x-access-token"  # noqa: S105 a user name


class Credentials(Value):
    """Content of a `secretRef`, of which its repr shows nothing. Keys and certificates are PEM."""

    username: str = ""  # some hosts expect the token here
    password: str = ""
    private_key: str = ""
    known_hosts: str = ""
    certificate_authority: str = ""
    github_app_id: str = ""  # or the client ID of the App
    github_app_private_key: str = ""

    @property
    def is_github_app(self) -> bool:
        """Return whether it is a GitHub App, whose tokens are minted when they are needed."""
        return bool(self.github_app_id or self.github_app_private_key)

    @property
    def secret_texts(self) -> tuple[str, ...]:
        """Return the texts that nobody must see."""
        return self.password, self.private_key, self.github_app_private_key

    def __repr__(self) -> str:
        """Return the name of the class."""
        return "Credentials()"


def authorization_header(secret: Credentials) -> str:
    """Return the value of the HTTP header with these credentials. Raises Denied."""
    if not secret.password:
        raise Denied("its secret has neither a password nor a token", reason="SecretUnusable")
    if not (secret.password.isascii() and secret.password.isprintable()):
        # An HTTP library's own error would show the secret.
        raise Denied("its secret has characters that no header has", reason="SecretUnusable")
    if secret.username in ("", TOKEN_USER):
        return f"Bearer {secret.password}"
    pair = f"{secret.username}:{secret.password}".encode()
    return f"Basic {b64encode(pair).decode()}"


# Fields of credentials by key, named as in kubernetes.io/basic-auth, kubernetes.io/ssh-auth and
# Flux.
SECRET_KEYS = {
    "username": "username",
    "password": "password",
    "ssh-privatekey": "private_key",
    "identity": "private_key",
    "known_hosts": "known_hosts",
    "ca.crt": "certificate_authority",
    "githubAppID": "github_app_id",
    "githubAppPrivateKey": "github_app_private_key",
}
_REQUIRED_FIELDS = {"password", "private_key", "github_app_id", "github_app_private_key"}  # one of


def read_secret_keys(texts: Mapping[str, str]) -> Credentials | None:
    """Return the credentials of a Secret with these texts by key.

    None without a password, a private key and the fields of a GitHub App. Other keys are ignored.
    """
    fields = {
        SECRET_KEYS[key]: text.strip() for key, text in texts.items() if text and key in SECRET_KEYS
    }
    if _REQUIRED_FIELDS.isdisjoint(fields):
        return None
    return Credentials(**{"username": TOKEN_USER, **fields})


class Secrets(Protocol):
    """Secrets by namespace and name (package: cluster)."""

    def get(self, namespace: str, name: str) -> Credentials:
        """Return a secret; the administrator's own have the namespace "".

        In file mode one directory serves all namespaces. Raises Denied if the secret is missing or
        unusable; the message shows nothing of its content.
        """


class GitStore(Protocol):
    """Repositories behind private bare mirrors (package: git)."""

    def list_refs(
        self, requests: Sequence[RefListingRequest], max_age: float = 0.0
    ) -> Mapping[str, RefListing | FanoutError]:
        """List the refs of repositories, with at most one fetch each; return listings by remote.

        A listing that is at most `max_age` seconds old is returned again, with what was pushed
        since; after a push that failed the repository is listed.

        The failure of one repository is its own value in the result and does not affect the others.
        One that does not answer in time is not waited for: the attempt goes on, and a later call
        returns its result.
        """

    def read_default_branch(self, remote: Remote) -> str:
        """Return the short name of the branch that HEAD of the remote names; "" if unknown."""

    def report_answers(self, report: Callable[[str], object]) -> None:
        """Call `report`, in any thread, with the URL of each repository that answers late."""

    def list_late(self) -> frozenset[str]:
        """Return the keys of the remotes that were given up and are still being worked on."""

    def end_late(self, keys: Collection[str]) -> None:
        """End the work on these remotes that goes on after they were given up."""

    def hurry(self) -> None:
        """Wait for nobody for long any more, because the process ends; for a signal handler."""

    def close(self) -> None:
        """End what goes on although nobody waits for it any more."""

    def reuse_listings(self) -> None:
        """Let the next listing of a repository reuse the last one of the same refs."""

    def reader(self, remote: Remote) -> AbstractContextManager[ObjectReader]:
        """Return a reader of the objects that the last listing fetched."""

    def change(
        self, changes: Sequence[RepositoryChange]
    ) -> Mapping[str, PushedChange | FanoutError]:
        """Write commits and push refs; return the result of each remote by its key.

        A Conflict among the results means that a ref was not as the change expects; then
        nothing was pushed. What became of a push whose remote did not answer in time, only the
        next listing tells: it goes on, and until it has ended the repository cannot be listed.
        """


# ---- Forges ------------------------------------------------------------------------------------


class Forge(Protocol):
    """Pull requests of one host, as every forge has them (package: forge).

    All methods, and those of the abilities below, raise Denied where the account of fanout
    lacks a right or the host hides the repository, RateLimited for a call that was not made,
    and Unavailable where the host gave no usable answer or refused. What became of a write
    that raised Unavailable, only looking tells.
    """

    @property
    def host(self) -> str:
        """Return the host as the configuration names it: `git.example.com`."""

    @property
    def account_digest(self) -> str:
        """Return a digest of address and account: another one is shown other things."""

    def for_policy(self, policy: str) -> "Forge":
        """Return the same forge with calls counted for this policy."""

    def share_creations(self, demand: Mapping[str, int]) -> None:
        """Divide the requests that the host still takes in this hour among policies.

        `demand`: number of requests to open by policy, for one pass; no policy gets less than
        another unless it wants less. It replaces the previous demand; an empty one divides nothing.
        """

    def login(self) -> str:
        """Return the login of the account that fanout has on the host."""

    def identify(self, login: str) -> ForgeIdentity:
        """Return the account of fanout of this login, with all its names; no call is made."""

    def repository(self, name: RepositoryName) -> RepositoryFacts:
        """Return the settings of a repository."""

    def request(self, repository: RepositoryName, number: int) -> ObservedRequest | None:
        """Return the pull request of this number; None if there is none."""

    def open_requests(self, repository: RepositoryName) -> Sequence[ObservedRequest]:
        """Return the open pull requests to any branch, also those from other repositories."""

    def closed_requests(self, repository: RepositoryName, author: str) -> Iterator[ObservedRequest]:
        """Yield the closed and merged pull requests of an author, those changed last first.

        `head_commit` is the one that each was closed with. They are read while they are taken.
        """

    def open_request(self, repository: RepositoryName, draft: RequestDraft) -> ObservedRequest:
        """Open a pull request. Raises Conflict if one is open from this branch to the same one."""

    @property
    def keeps_text_versions(self) -> bool:
        """True if the host refuses to overwrite a text that somebody changed meanwhile.

        Of another one, title and text are compared right before they are written.
        """

    def edit_request(
        self, repository: RepositoryName, request: ObservedRequest, edit: RequestEdit
    ) -> Mapping[RequestPart, FanoutError]:
        """Change title, draft flag, text or target branch; return the parts that failed.

        What the host takes in one call fails as one: then its error is raised, and is about all
        parts. Raises Conflict if the host knows that the text is not the observed one.
        """

    def close_request(self, repository: RepositoryName, number: int) -> None:
        """Close a pull request without merging it."""

    def create_label(self, repository: RepositoryName, name: str) -> None:
        """Create a label unless the repository has it.

        Beside another call about labels of the repository it may be created twice, for ever.
        """

    def add_labels(
        self, repository: RepositoryName, request: ObservedRequest, labels: Collection[str]
    ) -> None:
        """Add labels to a pull request, which keeps its others. Missing labels are created."""

    def request_reviews(
        self, repository: RepositoryName, number: int, reviewers: Collection[str]
    ) -> Collection[str]:
        """Ask people, or `team/NAME`, for a review; return those who cannot be asked."""


class ForgeDirectory(Protocol):
    """The forges of all hosts that an administrator lists."""

    def forge_of(self, url: str) -> tuple[Forge, RepositoryName]:
        """Return the forge of a repository, by its Git URL, and its name there.

        Raises InvalidInput if its host is not listed, Denied if the secret is unusable.
        """

    def limits_of(self, url: str) -> HostLimits | None:
        """Return the limits of a repository's host; None if the host is not listed."""

    def exchange_secret(
        self, url: str, name: str, read_secret: Callable[[], Credentials]
    ) -> Credentials:
        """Return the credentials of Git for a URL, given the secret `name` of a GitHub App.

        They have a token that lasts for five minutes at least; calls of the API use the same one.
        Raises Denied, InvalidInput, RateLimited, Unavailable.
        """

    def remaining_calls(self) -> Mapping[tuple[str, str], int]:
        """Return how many `calls` (a minute) and `creations` (an hour) each host takes now."""


@runtime_checkable
class RequestSearch(Protocol):
    """Ability of a forge to find pull requests in all its repositories by one search."""

    def search_requests(self, since: datetime) -> SearchedRequests:
        """Return the pull requests by fanout's account updated at or after an instant.

        It shows reviews, comments, pushes, labels, closing and merging, but neither statuses nor
        renamed or deleted branches.
        """


@runtime_checkable
class RequestPoll(Protocol):
    """Ability of a forge to show the open pull requests of many repositories by few calls."""

    def poll_requests(
        self, repositories: Sequence[RepositoryName]
    ) -> "tuple[Forge, Mapping[RepositoryName, PolledRepository], datetime | None]":
        """Return the forge as it is now, what it shows of these repositories, and its time.

        The forge answers reads about what it has shown without a call. A repository that is hidden,
        or of which the host does not show all at once, is left out.
        """


@runtime_checkable
class ClosingReader(Protocol):
    """Ability of a forge to say who closed a pull request."""

    def closed_by(self, repository: RepositoryName, request: ObservedRequest) -> str:
        """Return the login of whoever closed a pull request last, or ""."""


@runtime_checkable
class ChangedPathReader(Protocol):
    """Ability of a forge to show which paths a pull request changes."""

    def changed_paths(self, repository: RepositoryName, number: int) -> ChangedPaths:
        """Return the paths of all files that differ between the head and the merge base."""


@runtime_checkable
class ReviewReader(Protocol):
    """Ability of a forge to show which commit each review is about."""

    def reviews(self, repository: RepositoryName, number: int) -> Sequence[ObservedReview]:
        """Return the submitted reviews of a pull request, oldest first."""


@runtime_checkable
class StatusStore(Protocol):
    """Ability of a forge to keep statuses of commits."""

    def statuses(self, repository: RepositoryName, commit: str) -> Sequence[CommitStatus]:
        """Return the newest status of each context and creator at a commit, newest first."""

    def set_status(self, repository: RepositoryName, commit: str, status: CommitStatus) -> None:
        """Set a status of a commit; creator and instant are the host's to say."""


@runtime_checkable
class BranchReader(Protocol):
    """Ability of a forge to show the rules of a branch."""

    def branch(self, repository: RepositoryName, branch: str) -> BranchFacts | None:
        """Return the rules of a branch; None if there is no such branch."""


@runtime_checkable
class RequestMerger(Protocol):
    """Ability of a forge to merge a pull request only if its head is a given commit."""

    @property
    def checks_when_merging(self) -> bool:
        """True if an attempt to merge makes the host compute whether it can.

        Where it does not, nothing is asked while the host says that it is computing.
        """

    def merge_request(self, repository: RepositoryName, merge: GuardedMerge) -> MergeOutcome:
        """Ask the host to merge a pull request; return what it made of that.

        Of one that the host has accepted already it is asked again without harm. Raises Conflict
        if the head is another commit, or the request is not open any more.
        """


# ---- Expressions and templates -----------------------------------------------------------------


class Sandbox(Protocol):
    """Evaluation of untrusted expressions and templates, within limits (package: sandbox)."""

    def evaluate(
        self,
        expressions: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        budget: EvaluationBudget | None = None,
    ) -> list[list[Any]]:
        """Evaluate each expression over each row of variables.

        Return `values[expression][row]`. A value is plain data (str, int, float, bool, None,
        list, dict) or an error value. An expression that exceeds its limits is an error in all
        rows; the others are evaluated all the same, or refused by the budget of their owner.
        """

    def closures(self, expressions: Sequence[str]) -> list[InProcessExpression | None]:
        """Compile expressions to closures that run in process.

        None stands for an expression that is invalid or beyond the bounded subset. A
        closure returns `ASK` for a row that has to be passed to `evaluate`.
        """

    def compile(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> Mapping[str, ExpressionFailure]:
        """Return the error of each expression or template that does not compile, by its text."""

    def free_variables(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """Return the free variables of each expression and template; None if one is invalid."""

    def render(
        self,
        templates: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        budget: EvaluationBudget | None = None,
    ) -> list[list[Any]]:
        """Render each Jinja template over each row of variables; return `texts[template][row]`."""


class FunctionRunner(Protocol):
    """Runtime of allowed programs and of scripts in packages (package: sandbox)."""

    def run(
        self, runs: Sequence[ProgramRun], budget: EvaluationBudget | None = None
    ) -> list[ProgramOutput | ProgramError]:
        """Run each program on its ResourceList, as far as the budget of their owner allows.

        Return outputs in order, or an error for a failed run.
        """

    def run_scripts(
        self, scripts: Sequence[ScriptRun], budget: EvaluationBudget | None = None
    ) -> list[ScriptOutput | ProgramError]:
        """Run each script on its ResourceList, within limits and budget, as `run` does."""


# ---- Checks ------------------------------------------------------------------------------------


class ProbeClient(Protocol):
    """Client of HTTP services and Prometheus servers (package: probes)."""

    def ask(self, requests: Sequence[ProbeQuery]) -> list[ProbeResponse | ProbeFailure]:
        """Send each request; return responses or failures in order. No server makes it raise."""


# ---- Notifications -----------------------------------------------------------------------------


class EventBatch(Value):
    """Events for one address, in order: HTTP bodies, which are signed with a secret."""

    url: str
    secret: str  # its name
    bodies: tuple[bytes, ...]


class BatchResult(Value):
    """Result of a batch: how many of its events were delivered, and what ended it early."""

    delivered: int
    problem: str = ""  # about the event after those that were delivered; "": all were


class EventSender(Protocol):
    """Sender of events to HTTP addresses (module: notify)."""

    def send(self, batches: Sequence[EventBatch]) -> list[BatchResult]:
        """Send batches at once, each up to its first event that is not accepted.

        Return results in order, in bounded time. Nothing that an address does is raised.
        """


# ---- Records ----------------------------------------------------------------------------------


class RecordStore(Protocol):
    """Records and status (package: cluster; in file mode the records repository)."""

    def read(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read the records and status of these policies in one listing. Raises Unavailable."""

    def read_all(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read the records and status of all policies, these and others."""

    def find_push_refusal(self) -> str:
        """Return the words of the last write if the repository refused it, else ""."""

    def read_status_revisions(self, key: RecordsKey) -> Sequence[StatusRevision]:
        """Return all changes of a policy's status, oldest first, up to the head read last."""

    def take_changed_elsewhere(self, keys: Iterable[RecordsKey]) -> bool:
        """Return whether another process has written the status of one of these policies.

        A change counts once: from the first reading that shows it until it was returned.
        """

    def heads_unchanged(self, heads: Mapping[RecordsKey, str]) -> bool:
        """Return whether these heads equal the ones that this process listed last."""

    def heads(self) -> Mapping[RecordsKey, str]:
        """List the head of each policy's records without reading them. Raises Unavailable."""

    def empty_problem(self) -> str:
        """Return a sentence that describes the store if it is empty, else ""."""

    def append(
        self,
        key: RecordsKey,
        records: Sequence[Mapping[str, Any]],
        author: CommitIdentity,
        now: datetime,
    ) -> tuple[str, ...]:
        """Add records (KRM objects as plain data), also after lost races; return their names."""

    def append_once(
        self, key: RecordsKey, records: Sequence[SubmittedRecord], now: datetime
    ) -> Sequence[RecordEntry]:
        """Add those records whose uid is not on record, each under its author's name, in order.

        Return the entries of all of them. Nothing or all of it is written. Lost races are retried.
        """

    def hold_status(self, problems: Mapping[RecordsKey, str]) -> None:
        """Refuse to change the status of these policies alone, with these sentences.

        Their records wait, and may forbid what the status would allow.
        """

    def find_hold(self, key: RecordsKey) -> FanoutError | None:
        """Return why the status of a policy must not change, or None."""

    def put_status(
        self, changes: Mapping[RecordsKey, StatusChange], now: datetime
    ) -> Mapping[RecordsKey, str]:
        """Replace status documents, all or nothing; return the new heads.

        Raises Conflict if the records of a policy moved meanwhile.
        """


class PendingRecords(Protocol):
    """Records that people create as objects (package: kube)."""

    def read(self) -> RecordListing:
        """List the objects that are not on record yet. Raises Denied, Unavailable.

        The list is not older than the request. Whether admission proves their authors is checked
        after.
        """

    def read_recorded(self) -> Sequence[RecordObject]:
        """List the objects that are on record. Raises Denied, Unavailable."""

    def write_states(
        self, states: Sequence[tuple[RecordObject, RecordState]]
    ) -> Mapping[str, FanoutError]:
        """Write the status of exactly these objects, unless they are gone; return errors."""

    def delete(self, items: Sequence[RecordObject]) -> Mapping[str, FanoutError]:
        """Delete exactly these objects, unless they are gone; return errors by their identity."""


class RecordCreator(Protocol):
    """Creation of records as objects, in the name of a user of a cluster (package: kube)."""

    @property
    def user(self) -> ClusterUser:
        """Return who creates them. Raises Denied, Unavailable."""

    def create(self, record: Mapping[str, Any]) -> str:
        """Create the object of a record, and return its name.

        Raises Denied with the right that the user lacks, and Stopped if the object would be
        refused, because the admission policies are missing.
        """

    def find_uid(self, kind: str, namespace: str, name: str) -> str:
        """Return the uid of the object of a record; "" if there is none. Raises Denied."""

    def read_states(self) -> Mapping[str, RecordState]:
        """Return the state of each object that was created here, by kind and name."""


class SweepLog(Protocol):
    """Instants up to which sweeps are done (package: cluster)."""

    def read(self) -> Mapping[str, LoggedSweep]:
        """Return the entries by `namespace/name` of the PromotionPolicy.

        Raises InvalidInput if unreadable, Unavailable, Denied.
        """

    def write(self, changes: Mapping[str, LoggedSweep | None], at: datetime) -> None:
        """Write the changed entries; None removes one. An unreadable log is replaced.

        Raises Conflict, Unavailable, Denied.
        """


# ---- A cluster as a controller uses it ---------------------------------------------------------


class FinalizerWriter(Protocol):
    """Writer of the finalizer of UpstreamPolicies and PackageVariants (package: kube)."""

    def add_missing(self, declared: DeclaredObjects) -> DeclaredObjects:
        """Add the finalizer where it is missing; return what has it. Raises Unavailable."""

    def remove(self, declarations: Collection[UpstreamPolicy | PackageVariant]) -> None:
        """Remove the finalizer of deleted objects. A failure is logged."""


class WatchedCluster(Protocol):
    """API server whose objects are watched (package: kube)."""

    @property
    def finalizers(self) -> FinalizerWriter:
        """Writer of the finalizer."""

    @property
    def pending_records(self) -> PendingRecords:
        """Records that people create."""

    def notify(
        self,
        on_change: Callable[[], None],
        on_record: Callable[[], None],
        on_return: Callable[[], None],
    ) -> None:
        """Call these functions from now on, on any thread.

        `on_change`: an object has changed. `on_record`: a record may have to be taken in.
        `on_return`: the API server answers again after an outage.
        """

    def refresh(self) -> None:
        """List fanout's own kinds anew: what is read next is not older than the call.

        Raises Denied, Unavailable.
        """


class ClusterLease(Protocol):
    """Lease of an installation of fanout in a cluster (package: kube)."""

    def find_obstacle(self) -> str:
        """Return why this installation writes no status, "" if it does. For any thread."""

    def renewed(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Renew the lease while open; `notify` is called when that of another one has ended."""


# ---- Statuses in a cluster ---------------------------------------------------------------------


class WriterResult(Value):
    """Result of writes to a cluster: how many were made, what failed, and the first problem."""

    number: int
    failed: frozenset[ObjectName] = frozenset()
    problem: str = ""


class StatusWriter(Protocol):
    """Writer of what people see of fanout in a cluster (package: kube).

    No method raises for one object that cannot be written: it is in the result.
    """

    def start(self, notify: Callable[[], None]) -> None:
        """List and watch the objects; `notify` is called after any of them has changed."""

    def stop(self) -> None:
        """End the watches."""

    def list_made(self) -> Mapping[tuple[str, str], str]:
        """Return the policy of each PackageVariant that has one, by namespace and name."""

    def list_records(self) -> Mapping[str, ObjectName]:
        """Return the names of the objects of records, by uid."""

    def find_changed(self) -> Collection[ObjectName]:
        """Return the objects that are not any more as they were written, and new records."""

    def write(
        self, objects: Iterable[WrittenObject], await_turn: Callable[[], None]
    ) -> WriterResult:
        """Write the objects and statuses that differ from what is there, in this order.

        `objects` is iterated over by several threads, one at a time. `await_turn` is called before
        each write, by the thread that makes it.
        """

    def remove(self, names: Iterable[ObjectName]) -> WriterResult:
        """Delete PackageVariants of policies."""

    def record(self, events: Iterable[PolicyEvent]) -> WriterResult:
        """Create events."""
