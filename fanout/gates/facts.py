"""What was observed of one policy: everything that the evaluator may look at.

The evaluator knows nothing of Git, files or API objects: `plan` fills these in from what the pass
observed, a scenario file fills in the same ones. Instants are aware datetimes in UTC, durations
timedeltas.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta

from fanout.calendar.windows import Calendar
from fanout.gates.records import Records
from fanout.gates.rules import StageRule, Variables, Verdict
from fanout.values import frozen


@frozen
class StageHistory:
    """What the status remembers of one revision in one stage, because nothing else does.

    The first stretch in which the revision is ready begins when the verdict passes. It ends when
    the stage moves on; when the stage is ready with the revision again, another stretch begins.
    """

    passed: datetime | None = None  # since when the stage's verdict is passed; None: it is not
    left: datetime | None = None  # when the stage moved on; None: a stretch runs, or none ever did
    soaked: timedelta = timedelta(0)  # the longest of the stretches that are over
    since: datetime | None = None  # when the present stretch began, if it is not the first

    @property
    def begun(self) -> datetime | None:
        """When the present stretch began, or the last one if the stage has moved on."""
        return self.since or self.passed


@frozen
class Hold:
    """One reason why something does not go on, for people."""

    reason: str  # CamelCase, from fanout.api.reasons
    sentence: str
    who: str = ""  # who can do something about it
    since: datetime | None = None
    until: datetime | None = None  # when it ends by itself


@frozen
class Published:
    """What a variant has in force."""

    revision: str
    digest: str
    tree: str
    at: datetime
    commits: frozenset[str] = frozenset()  # commits at which evidence about this counts
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    undone: Hold | None = None  # somebody took it back on the branch
    heard: str = ""  # the last evidence on record then, where instants alone do not tell
    since: datetime | None = None  # since when it has the revision; None: since `at`


@frozen
class Draft:
    """A variant's open draft as it stands on its branch."""

    revision: str
    digest: str
    tree: str
    current: bool = True  # it is what the candidate's rendering asks for
    disputed: int = 0  # values that both sides changed and nobody has decided
    adopts: bool = False  # its package is one that fanout did not write
    moves: bool = False  # it is for another place than the published package's
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    authors: frozenset[str] = frozenset()  # who has changed what is in it; people as `by`
    commits: frozenset[str] = frozenset()  # commits at which evidence about this counts
    written: datetime | None = None  # when it was first written with this digest; None: not known


@frozen
class Grant:
    """A release on record: the variant may change to exactly this."""

    revision: str
    digest: str
    at: datetime


@frozen
class Reading:
    """What a machine said about a draft or a publication when it was asked in this pass."""

    check: str
    digest: str  # of the draft or the publication that it was asked about
    verdict: Verdict  # pending: no answer yet, or none could be had
    sentence: str  # what it said, or why there is no answer
    seen: str = ""  # the revision or commit that it has seen; "": it names none


@frozen
class Answer:
    """An answer that was given, on record because nothing else remembers it."""

    check: str
    digest: str
    verdict: Verdict  # passed or failed
    at: datetime  # when it was first recorded
    sentence: str = ""


@frozen
class Dependency:
    """A variant that must be ready at its own revision first."""

    name: str
    ready: bool
    sentence: str = ""  # how it stands
    who: str = ""
    until: datetime | None = None


@frozen
class VariantFacts:
    """One variant, as observed."""

    name: str
    stage: str
    target: str
    priority: int = 0
    group: int = 0  # its place in the rollout's groups; who is in none comes after all of them
    published: Published | None = None
    draft: Draft | None = None
    grant: Grant | None = None
    suspended: bool = False  # by spec
    offline: bool = False  # its target says so
    readings: tuple[Reading, ...] = ()  # of machine checks, in this pass
    answers: tuple[Answer, ...] = ()  # on record
    depends_on: tuple[Dependency, ...] = ()
    variables: Variables = field(default_factory=dict)  # what `propagateWhen` sees of it
    held: Hold | None = None  # it cannot be rendered, written or published, and why
    failed: Hold | None = None  # its rendering failed for the candidate
    removed: datetime | None = None  # when a person last decided that it goes

    @property
    def stepped(self) -> datetime | None:
        """When it took its last step. What was said before that was said about another step.

        That is its publication; for one that has none, its removal by a person.
        """
        return self.published.at if self.published is not None else self.removed

    def granted(self, draft: Draft) -> Grant | None:
        """Its release to exactly this draft, if that is on record."""
        grant = self.grant
        if grant is None or (grant.revision, grant.digest) != (draft.revision, draft.digest):
            return None
        return grant


@frozen
class PolicyFacts:
    """Everything the evaluator may look at."""

    name: str
    stages: tuple[StageRule, ...]  # in the order written
    variants: tuple[VariantFacts, ...]
    revisions: tuple[str, ...]  # those the policy's rule allows, oldest first
    records: Records
    history: Mapping[tuple[str, str], StageHistory]  # by (stage, revision)
    now: datetime
    suspended: bool = False  # by spec
    serialize: bool = False  # a newer revision waits for what is in flight
    calendars: tuple[Calendar, ...] = ()  # when anything may be published: all must be open
    finishing: frozenset[str] = frozenset()  # those whose end lets a rollout that has begun go on
    unread: bool = False  # there may be a calendar that could not be read
    sweep: bool = True  # False: only what a person decided is published in this pass
