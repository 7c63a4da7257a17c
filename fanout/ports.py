"""What the core's driver asks of the world; each protocol has its room, named in its docstring."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol

from fanout.errors import FanoutError
from fanout.package.limits import SizeLimits
from fanout.package.tree import Entry
from fanout.plan.book import Book, BookKey, StatusChange
from fanout.plan.probe import Heard, Probe, Unheard
from fanout.plan.repository import (
    Commit,
    Identity,
    Listing,
    Look,
    PathState,
    Remote,
    RepositoryChange,
    Written,
)
from fanout.selection.closure import Closure
from fanout.selection.model import Broken
from fanout.values import frozen
from fanout.variants.questions import Broken as Unrun
from fanout.variants.questions import Listed, Ran, Run, Script

# ---- Git ---------------------------------------------------------------------------------------


class Reader(Protocol):
    """Reads objects of one mirror. Ids that are not there raise Unavailable."""

    def has(self, oid: str) -> bool:
        """Is the object in the mirror?"""

    def commit(self, oid: str) -> Commit:
        """The commit."""

    def contains(self, head: str, commit: str) -> bool:
        """Is the commit the head or one of its ancestors?"""

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """What is at each path of the commit."""

    def entries(self, tree: str, limits: SizeLimits | None = None) -> Mapping[str, Entry]:
        """All files below a tree, by path; submodules are refused (InvalidInput).

        So is, as soon as it is walked, what exceeds `limits`; packages' own where none are given.
        """

    def entry(self, tree: str, name: str) -> Entry | None:
        """The file of this name directly in a tree; nothing else is walked."""

    def files(
        self, tree: str, known: Mapping[str, bytes] | None = None
    ) -> Mapping[str, tuple[Entry, bytes]]:
        """The files of a package with their content, by path; `known` are contents by blob id.

        What exceeds the limits of packages is refused (InvalidInput) before any content is read.
        """

    def blob(self, oid: str, largest: int | None = None) -> bytes:
        """A file's content; InvalidInput, unread, where it has more bytes.

        Without `largest` it may have as many as a file of a package.
        """


# Hosts take any user name beside a token, some none that is empty.
TOKEN_USER = "x-access-token"  # noqa: S105 a user name


@frozen
class Secret:
    """The content of a `secretRef`; its repr shows nothing of it. Keys and certificates are PEM."""

    username: str = field(default="", repr=False)  # some hosts take the token as the name
    password: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)
    certificate_authority: str = field(default="", repr=False)


class GitStore(Protocol):
    """Repositories behind private bare mirrors (room: git)."""

    def look(self, looks: Sequence[Look]) -> Mapping[str, Listing | FanoutError]:
        """One listing per repository and at most one fetch, by URL; a failure is its own answer."""

    def reuse_listings(self) -> None:
        """Let the next look at each repository answer with the last one, if it asks the same."""

    def reader(self, remote: Remote) -> AbstractContextManager[Reader]:
        """Read what the last look brought."""

    def change(self, changes: Sequence[RepositoryChange]) -> Mapping[str, Written | FanoutError]:
        """Write and push, by URL. Conflict: a ref is not as `expected`; nothing was done."""


# ---- Expressions and templates -----------------------------------------------------------------


class Sandbox(Protocol):
    """Expressions and templates of strangers, within limits (room: sandbox)."""

    def evaluate(
        self, expressions: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """Each expression over each row of variables: `answer[expression][row]`.

        A value is plain data (str, int, float, bool, None, list, dict) or `Broken`. An expression
        that exceeds its limits is Broken for all rows; the others are answered all the same.
        """

    def closures(self, expressions: Sequence[str]) -> list[Closure | None]:
        """The same expressions to be asked in process, a row at a time, while the sandbox is open.

        None: the expression is beyond the bounded subset of design §12, or none at all.
        """

    def compile(self, expressions: Sequence[str], templates: Sequence[str]) -> Mapping[str, Broken]:
        """Those that are no expressions or templates, by their text."""

    def names(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """The variables that each of them names; none where it does not compile."""

    def fill(self, templates: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
        """The same for Jinja templates; values are text."""


class Workshop(Protocol):
    """Programs that an administrator allows, and scripts of packages (package: sandbox)."""

    def run(self, questions: Sequence[Run]) -> list[Ran | Unrun]:
        """Run each on its ResourceList; what did not come to its end has no answer and says why."""

    def run_scripts(self, scripts: Sequence[Script]) -> list[Listed | Unrun]:
        """Run each on its ResourceList, within limits; the same holds."""


# ---- Checks ------------------------------------------------------------------------------------


class Probes(Protocol):
    """HTTP services and Prometheus servers (room: probes)."""

    def ask(self, questions: Sequence[Probe]) -> list[Heard | Unheard]:
        """What each says, or why it says nothing; nothing that a server does is raised."""


# ---- What is recorded -------------------------------------------------------------------------


class RecordStore(Protocol):
    """Records and status (room: cluster; in file mode the records repository)."""

    def read(self, keys: Sequence[BookKey]) -> Mapping[BookKey, Book]:
        """All books in one listing. Raises Unavailable."""

    def read_all(self, keys: Sequence[BookKey]) -> Mapping[BookKey, Book]:
        """The same, and the books of whom nobody named."""

    def as_seen(self, heads: Mapping[BookKey, str]) -> bool:
        """Are these the heads that were seen last, as far as this is known here?"""

    def heads(self) -> Mapping[BookKey, str]:
        """Where all books are, in one listing; none is read. Raises Unavailable."""

    def blank(self) -> str:
        """Where nothing at all is on record, as a sentence; "" when something is."""

    def append(
        self, key: BookKey, records: Sequence[Mapping[str, Any]], by: Identity, at: datetime
    ) -> tuple[str, ...]:
        """Add records (KRM objects as plain data); answers their names; races are run again."""

    def put_status(
        self, changes: Mapping[BookKey, StatusChange], at: datetime
    ) -> Mapping[BookKey, str]:
        """Compare and swap, all or nothing; answers the new heads. Conflict: a book moved."""
