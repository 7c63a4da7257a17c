"""Recorded status of a policy: only what cannot be derived, nothing clock-driven.

The lines are plain data for the record store, by key: `variant/<name>`,
`stage/<stage>/<revision>`, `revision/<name>`, `repository/<url>#<branch>`,
`draft/<variant>`, `request/<url>#<branch>:<head ref>`, `removed/<name>`, `refused/<variant>`,
`ahead/<record>`, `noticed/<instant>` (docs/concepts/records.md). Field names of the line
classes are the keys in the records and must not change.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

from fanout.api.durations import format_instant
from fanout.api.results import CheckAnswer
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.commit_statement import PackageVersion
from fanout.plan.observation.repository_state import normalize_identity
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.ref_names import parse_publication_number
from fanout.values import Instant, Value, as_data, convert, field, replace

StatusLines = dict[str, Mapping[str, Any] | None]


class _PackageLine(PackageVersion, kw_only=True, forbid_unknown_fields=True):
    """Version of a package on record, and since when it and its revision count."""

    at: Instant
    since: Instant | None = None  # first instant of the revision, if earlier than `at`
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts: see `plan.rejected`


class GrantLine(_PackageLine, kw_only=True, forbid_unknown_fields=True):
    """A release of a draft, recorded before anything is published."""

    repository: str = ""  # target repository, if not the variant's present one
    path: str = ""
    records: str = ""  # newest record at that time; "": written by an older version
    by: tuple[str, ...] = ()  # `Kind/name` of what released it; empty: an older version's line


class PreviousGrantLine(Value, kw_only=True, forbid_unknown_fields=True):
    """The earlier release of a draft that the draft of a newer one is to replace.

    It counts until the newer draft is pushed: people may merge the earlier one before.
    """

    grant: GrantLine
    rendering: str  # tree at `drafts/PATH` of the vendor branch before the push


class PublishedLine(_PackageLine, kw_only=True, forbid_unknown_fields=True):
    """The publication in force, recorded when it was observed."""

    merge: str = ""  # downstream commit
    tag: str = ""
    out_of_band: bool = False  # a person merged it without the gates
    pristine: str = ""  # tree without downstream edits; "": unknown
    heard: str = ""  # newest evidence on record then; instants may be equal
    # Tags of earlier publications at the path that were missing when this one was made: tag →
    # commit.
    lost_tags: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()  # active decisions about newer revisions, which it left active

    def in_force_since(self, revision: str) -> datetime | None:
        """Return since when the revision is in force, or None if another one is."""
        return (self.since or self.at) if self.revision == revision else None


class RecordedLocation(Value, forbid_unknown_fields=True):
    """The place where a variant is or was published, or was to be when it was released."""

    repository: str  # identity of the Git repository; "": unknown
    path: str

    @property
    def place(self) -> PackagePlace:
        """Return the repository identity and the path."""
        return self.repository, self.path


class PreviousLocationLine(RecordedLocation):
    """A place that the variant moved away from, with a package still to be removed."""

    tree: str  # of the package that moved
    tag: str = ""  # of the newest publication there; "": none
    merge: str = ""  # commit on the branch that made it; "": unknown


class VariantLine(RecordedLocation, kw_only=True):
    """Recorded status of one variant."""

    grant: GrantLine | None = None
    published: PublishedLine | None = None
    left: tuple[PreviousLocationLine, ...] = ()
    orphan: bool = False  # hand-written with deletionPolicy Orphan
    stage: str = ""  # at the time of the line; "": none, or unknown
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks about the publication or the draft
    previous_grant: PreviousGrantLine | None = None

    def find_used_number(self, place: PackagePlace) -> int:
        """Return the highest number of the variant's publications on record at a place, or 0."""
        published = self.published.tag if self.published is not None else ""
        tags = [published if self.place == place else ""]
        tags += [it.tag for it in self.left if it.place == place]
        return max(parse_publication_number(tag, place[1]) for tag in tags)

    @property
    def granted_place(self) -> PackagePlace | None:
        """Return the place that the recorded release is for, or None without a release."""
        if (grant := self.grant) is None:
            return None
        return (grant.repository, grant.path) if grant.repository else self.place


class DraftLine(Value, forbid_unknown_fields=True):
    """A draft of a stage that requires reports, and the instant it was first written."""

    digest: str
    at: Instant


class RefusedPushLine(Value, forbid_unknown_fields=True):
    """A push about a variant that its server refuses: the first instant, and the error.

    The line stays until a push about the variant goes through, or none is due any more.
    """

    at: Instant
    repository: str  # identity of the Git repository
    message: str


class RequestLine(Value, kw_only=True, forbid_unknown_fields=True):
    """A pull request that fanout opened, as it was when a pass last changed or saw it.

    `state` is a RequestState. Of one that a person closed, `declined` has the variants in it and
    their revisions, `closed` the instant, and `closed_by` the person as `<host>/<login>`, or "" if
    nothing tells who. `refused` is when the forge last refused to merge that head, with the reason
    and its words, `retryable` whether it may merge in a moment by its own words. `earlier` are the
    closed ones in place of which it was opened, from the same branch or from one where its drafts
    were before: changes that people requested there hold it, too. Before it is opened a line has
    these alone, and the number 0.
    """

    number: int = 0
    state: str
    url: str = ""  # of its page
    head: str = ""  # commit at which the status was set
    status: str = ""  # of fanout at that commit: its state and description
    declined: Mapping[str, str] = field(default_factory=dict)  # revision by variant
    closed: Instant | None = None
    closed_by: str = ""
    refused: Instant | None = None
    refused_since: Instant | None = None  # the first refusal of that head
    refusal_reason: str = ""
    refusal: str = ""
    retryable: bool = False
    accepted: Instant | None = None  # when the forge last accepted the merge of that head
    earlier: tuple[int, ...] = ()  # numbers


RequestKey = tuple[str, str]
"""Identity of the repository, and full ref of the head branch."""


class RecordedStatus(Value, kw_only=True):
    """Recorded status of a policy, parsed from its lines."""

    variants: Mapping[str, VariantLine] = field(default_factory=dict)
    history: Mapping[tuple[str, str], RevisionHistory] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)  # commit at first use, by revision
    draft_repositories: frozenset[str] = frozenset()  # repositories to which drafts were written
    removed: Mapping[str, datetime] = field(default_factory=dict)  # by variant: when it was due
    records_ahead: frozenset[str] = frozenset()  # names of records that a pass saw dated ahead
    noticed_at: Mapping[datetime, datetime] = field(default_factory=dict)
    """Instants in these lines that lie ahead, and when a pass first saw that."""
    drafts: Mapping[str, DraftLine] = field(default_factory=dict)  # by variant
    requests: Mapping[RequestKey, RequestLine] = field(default_factory=dict)
    openings: Mapping[RequestKey, datetime] = field(default_factory=dict)
    """Requests that passes open now, and since when; the results of each pass take its own away."""
    refused_pushes: Mapping[str, RefusedPushLine] = field(default_factory=dict)  # by variant
    broken_lines: tuple[str, ...] = ()  # keys of lines that are not understood


_Line = (
    VariantLine | RevisionHistory | DraftLine | RequestLine | RefusedPushLine | Mapping[str, Any]
)

# Kinds of lines whose name is that of a variant, with the class of their content.
_NAMED_LINES: Mapping[str, type[VariantLine | DraftLine | RefusedPushLine]] = {
    "draft": DraftLine,
    "refused": RefusedPushLine,
    "variant": VariantLine,
}


def parse_status(lines: Mapping[str, Mapping[str, Any]]) -> RecordedStatus:
    """Parse the status from its lines, by key.

    Lines that are not understood are named in `broken_lines`: nobody may act on such a status,
    because one of them may be a release, or the publication in force. The places that a broken
    line of a variant claims stay claimed.
    """
    parsed: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
    broken_lines: list[str] = []
    for key, line in lines.items():
        kind, _, name = key.partition("/")
        try:
            if kind in _NAMED_LINES:
                parsed[kind][name] = _with_identity(convert(line, _NAMED_LINES[kind]))
            elif kind == "stage":
                stage, _, revision = name.partition("/")
                # Durations are recorded as seconds.
                parsed[kind][stage, revision] = convert(line, RevisionHistory, strict=False)
            elif kind == "revision":
                parsed[kind][name] = str(line["commit"])
            elif kind in ("repository", "ahead"):
                parsed[kind][name] = True
            elif kind == "request":
                parsed[kind][_parse_request_key(name)] = convert(line, RequestLine)
            elif kind == "opening":
                parsed[kind][_parse_request_key(name)] = convert(line["at"], Instant)
            elif kind == "removed":
                parsed[kind][name] = convert(line["at"], Instant)
            elif kind == "noticed":
                parsed[kind][convert(name, Instant)] = convert(line["at"], Instant)
            else:
                raise ValueError(kind)
        except (KeyError, TypeError, ValueError):
            broken_lines.append(key)
            if kind == "variant":
                claim = {it: line[it] for it in line if it in ("repository", "path", "left")}
                with suppress(ValueError):
                    parsed[kind][name] = _with_identity(convert(claim, VariantLine))
    return RecordedStatus(
        variants=parsed["variant"],
        history=parsed["stage"],
        revisions=parsed["revision"],
        draft_repositories=frozenset(parsed["repository"]),
        removed=parsed["removed"],
        records_ahead=frozenset(parsed["ahead"]),
        noticed_at=parsed["noticed"],
        drafts=parsed["draft"],
        requests=parsed["request"],
        openings=parsed["opening"],
        refused_pushes=parsed["refused"],
        broken_lines=tuple(broken_lines),
    )


# No URL of a repository and no branch contains it.
_HEAD_MARK = ":refs/heads/"


def changed_lines(before: RecordedStatus, after: RecordedStatus) -> StatusLines:
    """Return the lines that differ, by key; None stands for a removed line."""
    old, new = _lines_by_key(before), _lines_by_key(after)
    return {
        key: _as_plain_data(line) if (line := new.get(key)) is not None else None
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
        # Revisions are never removed: a moved tag is detected by its first commit on record.
        and (key in new or not key.startswith("revision/"))
    }


def _lines_by_key(status: RecordedStatus) -> dict[str, _Line]:
    """Return all lines of the status, of which only those that differ are serialized."""
    return {
        **{f"variant/{name}": line for name, line in status.variants.items()},
        **{f"stage/{stage}/{name}": line for (stage, name), line in status.history.items()},
        **{f"revision/{name}": {"commit": commit} for name, commit in status.revisions.items()},
        **{f"repository/{place}": {"drafts": True} for place in status.draft_repositories},
        **{f"removed/{name}": {"at": at} for name, at in status.removed.items()},
        **{f"refused/{name}": line for name, line in status.refused_pushes.items()},
        **{f"ahead/{name}": {"ahead": True} for name in status.records_ahead},
        **{f"noticed/{format_instant(at)}": {"at": it} for at, it in status.noticed_at.items()},
        **{f"draft/{name}": line for name, line in status.drafts.items()},
        **{f"request/{place}:{head}": line for (place, head), line in status.requests.items()},
        **{f"opening/{place}:{head}": {"at": at} for (place, head), at in status.openings.items()},
    }


_PlacedLine = TypeVar(
    "_PlacedLine",
    bound=VariantLine | DraftLine | RefusedPushLine | PreviousLocationLine | GrantLine,
)


def _with_identity(line: _PlacedLine) -> _PlacedLine:
    """Return the line with repositories as they are spelled now: places are compared as text.

    An earlier version may have kept `.git`, or a slash at the end.
    """
    if isinstance(line, DraftLine):
        return line
    if isinstance(line, VariantLine):
        moved_from = tuple(map(_with_identity, line.left))
        grant = _with_identity(line.grant) if line.grant is not None else None
        if (previous := line.previous_grant) is not None:
            previous = replace(previous, grant=_with_identity(previous.grant))
        line = replace(line, left=moved_from, grant=grant, previous_grant=previous)
    return replace(line, repository=normalize_identity(line.repository))


def _parse_request_key(name: str) -> RequestKey:
    place, _, branch = name.rpartition(_HEAD_MARK)
    return normalize_identity(place), f"refs/heads/{branch}"


def _as_plain_data(value: _Line) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in (value if isinstance(value, Mapping) else as_data(value)).items():
        if isinstance(item, datetime):
            result[name] = format_instant(item)
        elif isinstance(item, timedelta):
            result[name] = int(item.total_seconds())
        elif isinstance(item, Mapping):
            result |= {name: _as_plain_data(item)} if item else {}
        elif isinstance(item, tuple):
            entries = [
                _as_plain_data(element) if isinstance(element, Mapping) else element
                for element in item
            ]
            result |= {name: entries} if item else {}
        # Defaults are left out: lines stay short, and a new field with a default does
        # not rewrite all lines on record.
        elif item is not None and item not in ("", False):
            result[name] = item
    return result
