"""What every in-process function is: a name, a version, and changes to one object at a time.

A function never edits anything itself. It is shown an object as it stands and yields what it wants
changed; the pipeline applies that to the text. So one function serves every layout of YAML, and
what it yields for an object can be kept for all targets that share its configuration. The few
functions that must look at several objects at once say so, and run for every target anew.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from fanout.api.reasons import Reason
from fanout.errors import Where
from fanout.package.dump import dump
from fanout.package.merge.keys import Schemas
from fanout.package.spelling import Spelling
from fanout.values import frozen
from fanout.variants.canonical import canonical
from fanout.variants.questions import Program, Question, Run

Path = tuple[str | int, ...]
# What is at the path from now on; missing maps on the way are made. At the empty path REMOVE takes
# the object out of the package, and any other value is the object from now on, of which the text
# keeps what it can. A Comment goes on the line of the value that is there.
Change = tuple[Path, object]
Identity = tuple[str, str, str, str]  # group, kind, namespace, name
Object = Mapping[str, Any]

ERROR = "error"  # the severity of a result that fails the rendering
LOCAL_CONFIG = "config.kubernetes.io/local-config"


class Comment(NamedTuple):
    """A comment to be put on a value's line, without its `#`."""

    text: str


class Unfit(Exception):
    """An object does not fit what the function is to do; the pipeline adds file and line."""

    def __init__(
        self, path: Path, problem: str, remedy: str, reason: Reason = Reason.RENDER_FAILED
    ) -> None:
        super().__init__(problem)
        self.reason = reason
        self.path = path
        self.problem = problem
        self.remedy = remedy


class Result(NamedTuple):
    """What a function has to say about the package (porch.md §8.3)."""

    message: str
    severity: str = "info"  # info | warning | error
    function: str = ""
    object: str = ""  # "Deployment/web"
    field: str = ""
    file: str = ""
    line: int = 0  # 0: unknown

    @property
    def sentence(self) -> str:
        """Who says it, about what, and what."""
        where = Where(self.object, self.field, self.file, self.line)
        return ": ".join(part for part in (self.function, str(where), self.message) if part)


class Finding(NamedTuple):
    """What a function finds wrong with a value of an object."""

    path: Path
    problem: str
    severity: str = ERROR


class Written(Protocol):
    """How the object's values stand in the file."""

    def comments(self) -> Mapping[Path, str]:
        """The comments on values' lines, those that functions have put there included."""

    def spelling(self, path: Path) -> Spelling:
        """The spelling of a value that is there."""


class Room(Protocol):
    """How much may still be put into the package; all raise Unfit for the path."""

    def put(self, file: str, path: Path, before: object, after: object) -> None:
        """Count that a value takes the place of another one."""

    def substituted(
        self,
        pattern: re.Pattern[str],
        text: str,
        value: Callable[[re.Match[str]], str],
        path: Path,
    ) -> str:
        """The text with values in place of what the pattern matches."""

    def joined(self, separator: str, parts: Sequence[str], path: Path) -> str:
        """The parts with the separator between them."""


class Seen(NamedTuple):
    """One of the objects that a function sees."""

    value: Object
    file: str  # from the directory of the package whose pipeline it is
    written: Written
    room: Room


@frozen
class Facts:
    """What a function may know of the package around an object, as it stands before the function.

    `namespaced` is filled in only where some object of the package names its dependencies, `survey`
    and `answer` where the function has one; `file`, `written` and `room` where it looks at the
    text. `custom` is by apiVersion and kind.
    """

    # Whether custom kinds have a namespace, by definitions in the package and declared ones.
    scopes: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    namespaced: frozenset[Identity] = frozenset()
    survey: Any = None
    answer: Any = None  # to what the function asks of the world
    custom: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # schemas of the CRDs
    shapes: Schemas = field(default_factory=dict)  # what they say of lists
    file: str = ""
    written: Written | None = None
    room: Room | None = None


@frozen
class InProcess:
    """One function of the catalog that runs inside fanout.

    `version` enters the digest: it grows whenever the function yields something else for the same
    package. `configure` reads the function's configuration object into a value that can be hashed;
    it raises InvalidInput. `changes` yields what is to change in an object; it raises Unfit.
    """

    name: str
    version: str
    configure: Callable[[Object], Hashable]
    changes: Callable[[Any, Object, Facts], Iterator[Change]]
    in_text: bool = False  # `changes` looks at the object's file and comments
    sees_local: bool = False  # it sees objects that are for tools alone
    # What it wants to know of all its objects together; raises InvalidInput.
    survey: Callable[[Any, Sequence[Seen]], object] | None = None
    # Objects that are to be new in the package, and their files; raises InvalidInput.
    adds: Callable[[Any, Sequence[Seen]], Iterator[tuple[str, Object]]] | None = None
    # What it reports of its objects, or of its configuration: then with a field of that alone.
    reports: Callable[[Any, Sequence[Seen], Facts], Iterator[Result]] | None = None
    # What it finds wrong with one object.
    judges: Callable[[Any, Object, Facts], Iterator[Finding]] | None = None
    # What of its configuration and of an object decides where `changes` puts something; all other
    # texts of the configuration it only copies, alone or as part of a text. None: nobody can say.
    heeds: Callable[[Any, Object, Facts], Iterator[object]] | None = None
    # Is this setting, by name and text, among those texts? The others decide.
    copies: Callable[[str, str], bool] = lambda _name, _text: True
    by_scope: bool = False  # it goes by which kinds have a namespace
    # What it must be told before it can begin; the answer is in the facts.
    asks: Callable[[Any], Question] | None = None

    @property
    def looks_around(self) -> bool:
        """Does it need to see several objects at once?"""
        return any((self.survey, self.adds, self.reports))


@frozen
class External:
    """A function that is run as a program of its own: it sees all objects at once, as kpt's do."""

    program: Program
    sees_local: bool = True
    looks_around: bool = True

    @property
    def name(self) -> str:
        """As its pipeline calls it."""
        return self.program.name

    @property
    def version(self) -> str:
        """Of what is run; it enters the digest."""
        return self.program.version

    def configure(self, config: Object) -> str:
        """The configuration as it is handed on."""
        return canonical(config)

    def question(self, config: str, listed: Mapping[str, Any]) -> Question:
        """What is asked of the world, for a configuration and a ResourceList that has it."""
        del config  # the list has it
        return Run(self.program, dump(listed).encode())


_MAPS = (dict, Mapping)  # the first is asked first and is the quick answer


def mapping(value: object) -> Mapping[Any, Any]:
    """The value if it is a map, else an empty one: what is not there is not looked into."""
    return value if isinstance(value, _MAPS) else {}


def is_local(item: Object) -> bool:
    """Is the object for tools alone? The catalog's functions pass such objects by."""
    notes = mapping(mapping(item.get("metadata")).get("annotations"))
    return str(notes.get(LOCAL_CONFIG) or "false").lower() != "false"


def kinds_only(_config: Any, item: Object, _facts: Facts) -> Iterator[object]:
    """The `heeds` of a function that goes by the kind of an object and by which fields it has."""
    yield item.get("apiVersion")
    yield item.get("kind")


def nothing(_config: Any, _item: Object, _facts: Facts) -> Iterator[Change]:
    """The changes of a function that changes no object."""
    return iter(())
