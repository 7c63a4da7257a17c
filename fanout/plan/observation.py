"""What one pass saw of the world, frozen. The planner reads this and nothing else."""

from collections.abc import Mapping
from dataclasses import field

from fanout.errors import FanoutError, InvalidInput
from fanout.plan.repository import PathState, Remote, place_at
from fanout.plan.trailers import Trailers
from fanout.values import frozen

NOTHING = PathState(None)


@frozen
class OpenDraft:
    """A draft branch of this installation."""

    ref: str
    commit: str  # its tip
    tree: str | None  # of the package at the tip
    trailers: Trailers  # of fanout's newest commit on it
    edited: bool  # a person's commits are on it
    settled: frozenset[str] = frozenset()  # keys of the disputes that those commits decided
    faults: tuple[InvalidInput, ...] = ()  # what people's work has put into it and breaks it
    people: frozenset[str] = frozenset()  # who wrote and who committed that work
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts, as fanout's commit says

    @property
    def carries(self) -> bool:
        """Is people's work in it, on top of fanout's commit or taken into that?"""
        return self.edited or bool(self.trailers.takes)


@frozen
class Renderings:
    """Pristine renderings of one path on fanout's own branch, by the ids of their trees."""

    published: str | None
    drafted: str | None


@frozen
class RepositoryView:
    """A downstream repository as listed and read at one moment."""

    remote: Remote
    branch: str  # full ref name
    refs: Mapping[str, str]
    head: str = ""  # "": the branch does not exist
    head_time: int = 0
    vendor: str = ""  # head of fanout's own branch; "": there is none
    vendor_time: int = 0
    paths: Mapping[str, PathState] = field(default_factory=dict)  # on the branch
    published: Mapping[str, str] = field(default_factory=dict)  # pristine renderings in force
    drafted: Mapping[str, str] = field(default_factory=dict)  # pristine renderings of open drafts
    drafts: Mapping[str, OpenDraft] = field(default_factory=dict)  # by ref
    strangers: Mapping[str, str] = field(default_factory=dict)  # draft refs that are not fanout's
    others: Mapping[str, str] = field(default_factory=dict)  # path → installation drafting there
    tags: Mapping[str, int] = field(default_factory=dict)  # path → highest published number
    failure: FanoutError | None = None

    @property
    def key(self) -> str:
        """What makes two Repository objects the same place."""
        return place_at(self.remote.url, self.branch)
