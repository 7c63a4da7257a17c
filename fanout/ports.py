"""Protocols through which the reconciler reaches Git, sandbox, probes and records."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from fanout.errors import FanoutError
from fanout.package.package_limits import SizeLimits
from fanout.package.tree_ids import TreeEntry
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
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
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey, StatusChange
from fanout.selection.variant_spec import ExpressionFailure, InProcessExpression
from fanout.values import frozen
from fanout.variants.function_requests import ProgramOutput, ProgramRun, ScriptOutput, ScriptRun
from fanout.variants.function_requests import ResponseError as ProgramError

# ---- Git ---------------------------------------------------------------------------------------


class ObjectReader(Protocol):
    """Reader of the objects of one mirror.

    Methods raise Unavailable for ids that are missing.
    """

    @property
    def limits(self) -> SizeLimits:
        """Size limits of the packages that it reads."""

    def has(self, oid: str) -> bool:
        """Return whether the object is in the mirror."""

    def commit(self, oid: str) -> Commit:
        """Return the commit of this id."""

    def contains(self, head: str, commit: str) -> bool:
        """Return whether the commit is the head or one of its ancestors."""

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """Return the state of each of these paths in the commit, by path."""

    def entries(self, tree: str, limits: SizeLimits | None = None) -> Mapping[str, TreeEntry]:
        """Return all files below a tree, by path.

        Raises InvalidInput for a submodule, and for a tree that exceeds `limits` (default: the
        limits of packages) as soon as the excess is seen.
        """

    def entry(self, tree: str, name: str) -> TreeEntry | None:
        """Return the file of this name directly in a tree, or None.

        Subdirectories are not read.
        """

    def files(
        self, tree: str, contents_by_id: Mapping[str, bytes] | None = None
    ) -> Mapping[str, tuple[TreeEntry, bytes]]:
        """Return the files of a package with their content, by path.

        `contents_by_id`: contents read before, by blob id; they are not read again. Raises
        InvalidInput for what exceeds the limits of packages, before any content is read.
        """

    def blob(self, oid: str, max_bytes: int | None = None) -> bytes:
        """Return the content of a file.

        Raises InvalidInput, without reading it, if it has more than `max_bytes` (default: the
        limit for one file of a package).
        """


# Git hosts accept any user name with a token, but some refuse an empty one.
TOKEN_USER = "x-access-token"  # noqa: S105 a user name


@frozen
class Credentials:
    """Content of a `secretRef`.

    Its repr shows nothing of it. Keys and certificates are PEM.
    """

    username: str = field(default="", repr=False)  # some hosts expect the token here
    password: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)
    certificate_authority: str = field(default="", repr=False)


class GitStore(Protocol):
    """Repositories behind private bare mirrors (package: git)."""

    def list_refs(
        self, requests: Sequence[RefListingRequest]
    ) -> Mapping[str, RefListing | FanoutError]:
        """List the refs of repositories, with at most one fetch each; return listings by URL.

        The failure of one repository is its own value in the result and does not affect the
        others.
        """

    def reuse_listings(self) -> None:
        """Let the next listing of a repository reuse the last one of the same refs."""

    def reader(self, remote: Remote) -> AbstractContextManager[ObjectReader]:
        """Return a reader of the objects that the last listing fetched."""

    def change(
        self, changes: Sequence[RepositoryChange]
    ) -> Mapping[str, PushedChange | FanoutError]:
        """Write commits and push refs; return the result of each repository by URL.

        A Conflict among the results means that a ref was not as the change expects; then
        nothing was pushed.
        """


# ---- Expressions and templates -----------------------------------------------------------------


class Sandbox(Protocol):
    """Evaluation of untrusted expressions and templates, within limits (package: sandbox)."""

    def evaluate(
        self, expressions: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """Evaluate each expression over each row of variables.

        Return `values[expression][row]`. A value is plain data (str, int, float, bool, None,
        list, dict) or an error value. An expression that exceeds its limits is an error in all
        rows; the others are evaluated all the same.
        """

    def closures(self, expressions: Sequence[str]) -> list[InProcessExpression | None]:
        """Compile expressions to closures that run in process while the sandbox is open.

        None stands for an expression that is invalid or beyond the bounded subset of design
        §12.
        """

    def compile(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> Mapping[str, ExpressionFailure]:
        """Return the error of each expression or template that does not compile, by its text."""

    def free_variables(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """Return the free variables of each expression and of each template.

        None if it does not compile.
        """

    def render(
        self, templates: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """Render each Jinja template over each row of variables.

        Return `texts[template][row]`.
        """


class FunctionRunner(Protocol):
    """Runtime of allowed programs and of scripts in packages (package: sandbox)."""

    def run(self, runs: Sequence[ProgramRun]) -> list[ProgramOutput | ProgramError]:
        """Run each program on its ResourceList.

        Return outputs in order, or an error for a failed run.
        """

    def run_scripts(self, scripts: Sequence[ScriptRun]) -> list[ScriptOutput | ProgramError]:
        """Run each script on its ResourceList, within limits.

        Return outputs or errors in order.
        """


# ---- Checks ------------------------------------------------------------------------------------


class ProbeClient(Protocol):
    """Client of HTTP services and Prometheus servers (package: probes)."""

    def ask(self, requests: Sequence[ProbeQuery]) -> list[ProbeResponse | ProbeFailure]:
        """Send each request.

        Return responses or failures in order. Nothing that a server does is raised.
        """


# ---- Records ----------------------------------------------------------------------------------


class RecordStore(Protocol):
    """Records and status (package: cluster; in file mode the records repository)."""

    def read(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read the records and status of these policies in one listing. Raises Unavailable."""

    def read_all(self, keys: Sequence[RecordsKey]) -> Mapping[RecordsKey, PolicyRecords]:
        """Read the records and status of all policies, these and others."""

    def heads_unchanged(self, heads: Mapping[RecordsKey, str]) -> bool:
        """Return whether these heads equal the ones that this process listed last."""

    def heads(self) -> Mapping[RecordsKey, str]:
        """List the head commit of each policy's records without reading them.

        Raises Unavailable.
        """

    def empty_problem(self) -> str:
        """Return a sentence that describes the store if it is empty, else ""."""

    def append(
        self,
        key: RecordsKey,
        records: Sequence[Mapping[str, Any]],
        author: CommitIdentity,
        now: datetime,
    ) -> tuple[str, ...]:
        """Add records (KRM objects as plain data) and return their names.

        Lost races are retried.
        """

    def put_status(
        self, changes: Mapping[RecordsKey, StatusChange], now: datetime
    ) -> Mapping[RecordsKey, str]:
        """Replace status documents by compare and swap, all or nothing; return the new heads.

        Raises Conflict if the records of a policy moved meanwhile.
        """
