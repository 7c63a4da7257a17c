"""Recorded status of a policy: only what cannot be derived, nothing clock-driven.

The lines are plain data for the record store, by key: `variant/<name>`,
`stage/<stage>/<revision>`, `revision/<name>`, `repository/<url>#<branch>`,
`draft/<variant>`, `request/<url>#<branch>:<head ref>`, `removed/<name>`, `refused/<variant>`,
`ahead/<record>`, `noticed/<instant>` (design §3, "records repository"). Field names of the line
classes are the keys in the records and must not change.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from fanout.api.gate_vocabulary import Verdict
from fanout.gates.gate_facts import CheckAnswer, RevisionHistory
from fanout.plan.observation.repository_state import normalize_identity
from fanout.selection.path_collisions import PackagePlace
from fanout.values import Value, as_data, field, replace

StatusLines = dict[str, Mapping[str, Any] | None]


class GrantLine(Value, kw_only=True):
    """A release of a draft, recorded before anything is published."""

    revision: str
    commit: str  # upstream commit
    digest: str
    tree: str
    at: datetime
    repository: str = ""  # target repository, if not the variant's present one
    path: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts: see `plan.rejected`
    records: str = ""  # newest record at that time; "": written by an older version
    by: tuple[str, ...] = ()  # `Kind/name` of what released it; empty: an older version's line
    since: datetime | None = None  # first release of the revision, if earlier than `at`


class PreviousGrantLine(Value, kw_only=True):
    """The earlier release of a draft that the draft of a newer one is to replace.

    It counts until the newer draft is pushed: people may merge the earlier one before.
    """

    grant: GrantLine
    rendering: str  # tree at `drafts/PATH` of the vendor branch before the push


class PublishedLine(Value, kw_only=True):
    """The publication in force, recorded when it was observed."""

    revision: str
    commit: str  # upstream commit
    digest: str
    tree: str
    at: datetime
    merge: str = ""  # downstream commit
    tag: str = ""
    out_of_band: bool = False  # a person merged it without the gates
    pristine: str = ""  # tree without downstream edits; "": unknown
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    heard: str = ""  # newest evidence on record then; instants may be equal
    since: datetime | None = None  # start of the revision if earlier than `at`
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts: see `plan.rejected`
    # Tags of earlier publications at the path that were missing when this one was made: tag →
    # commit.
    lost_tags: Mapping[str, str] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()  # active decisions about newer revisions, which it left active

    def in_force_since(self, revision: str) -> datetime | None:
        """Return since when the revision is in force, or None if another one is."""
        return (self.since or self.at) if self.revision == revision else None


class PreviousLocationLine(Value):
    """A place that the variant moved away from, with a package still to be removed."""

    repository: str  # identity of the Git repository
    path: str
    tree: str  # of the package that moved

    @property
    def place(self) -> PackagePlace:
        """Return the repository identity and the path."""
        return self.repository, self.path


class VariantLine(Value, kw_only=True):
    """Recorded status of one variant."""

    repository: str  # identity of the Git repository
    path: str
    grant: GrantLine | None = None
    published: PublishedLine | None = None
    left: tuple[PreviousLocationLine, ...] = ()
    orphan: bool = False  # hand-written with deletionPolicy Orphan
    stage: str = ""  # at the time of the line; "": none, or unknown
    answers: tuple[CheckAnswer, ...] = ()  # of machine checks about the publication or the draft
    previous_grant: PreviousGrantLine | None = None

    @property
    def place(self) -> PackagePlace:
        """Return where the variant is published, or was to be when it was released."""
        return self.repository, self.path

    @property
    def granted_place(self) -> PackagePlace | None:
        """Return the place that the recorded release is for, or None without a release."""
        grant = self.grant
        if grant is None:
            return None
        return (grant.repository, grant.path) if grant.repository else self.place

    def with_pushed_grant(self, rendering: str | None) -> "VariantLine":
        """Return the line with the release of the draft that was pushed last.

        `rendering` is the tree at `drafts/PATH` of the vendor branch, which a push moves together
        with the draft.
        """
        if self.previous_grant is None:
            return self
        is_pushed = rendering != self.previous_grant.rendering
        grant = self.grant if is_pushed else self.previous_grant.grant
        return replace(self, grant=grant, previous_grant=None)


class DraftLine(Value):
    """A draft of a stage that requires reports, and the instant it was first written."""

    digest: str
    at: datetime


class RefusedPushLine(Value):
    """A push about a variant that its server refuses: the first instant, and the error.

    The line stays until a push about the variant goes through, or none is due any more.
    """

    at: datetime
    repository: str  # identity of the Git repository
    message: str


class RequestLine(Value, kw_only=True):
    """A pull request that fanout opened, as it was when a pass last changed or saw it.

    `state` is a RequestState. Of one that a person closed, `declined` has the variants in it and
    their revisions, `closed` the instant, and `closed_by` the person as `<host>/<login>`, or "" if
    nothing tells who. `refused` is when the forge last refused to merge
    that head, with the reason and its words.
    """

    number: int
    state: str
    url: str = ""  # of its page
    head: str = ""  # commit at which the status was set
    status: str = ""  # of fanout at that commit: its state and description
    declined: Mapping[str, str] = field(default_factory=dict)  # revision by variant
    closed: datetime | None = None
    closed_by: str = ""
    refused: datetime | None = None
    refusal_reason: str = ""
    refusal: str = ""


RequestKey = tuple[str, str]
"""Identity of the repository, and full ref of the head branch."""


class RecordedStatus(Value, kw_only=True):
    """Recorded status of a policy, parsed from its lines."""

    variants: Mapping[str, VariantLine] = field(default_factory=dict)
    history: Mapping[tuple[str, str], RevisionHistory] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)  # commit at first use, by revision
    draft_repositories: frozenset[str] = frozenset()  # repositories to which drafts were written
    # by variant: time at which it was due
    removed: Mapping[str, datetime] = field(default_factory=dict)
    records_ahead: frozenset[str] = frozenset()  # names of records that a pass saw dated ahead
    noticed_at: Mapping[datetime, datetime] = field(default_factory=dict)
    """Instants in these lines that lie ahead, and when a pass first saw that."""
    drafts: Mapping[str, DraftLine] = field(default_factory=dict)  # by variant
    requests: Mapping[RequestKey, RequestLine] = field(default_factory=dict)
    openings: Mapping[RequestKey, datetime] = field(default_factory=dict)
    """Requests that passes open now, and since when; the results of each pass take its own away."""
    refused_pushes: Mapping[str, RefusedPushLine] = field(default_factory=dict)  # by variant


_Line = (
    VariantLine | RevisionHistory | DraftLine | RequestLine | RefusedPushLine | Mapping[str, Any]
)


def parse_status(lines: Mapping[str, Mapping[str, Any]]) -> RecordedStatus:
    """Parse the status from its lines, by key.

    Raises ValueError with the key of a line that is not understood. No such line is
    skipped: it may be a release, or the publication in force.
    """
    variants: dict[str, VariantLine] = {}
    history: dict[tuple[str, str], RevisionHistory] = {}
    revisions: dict[str, str] = {}
    names: dict[str, set[str]] = {"repository": set(), "ahead": set()}
    removed: dict[str, datetime] = {}
    noticed_at: dict[datetime, datetime] = {}
    drafts: dict[str, DraftLine] = {}
    requests: dict[RequestKey, RequestLine] = {}
    openings: dict[RequestKey, datetime] = {}
    refused_pushes: dict[str, RefusedPushLine] = {}
    by_name: Mapping[str, tuple[dict[str, Any], Callable[[Mapping[str, Any]], object]]] = {
        "draft": (drafts, _parse_draft),
        "refused": (refused_pushes, _parse_refused_push),
        "variant": (variants, _parse_variant),
    }
    for key, line in lines.items():
        kind, _, name = key.partition("/")
        try:
            if kind in by_name:
                parsed_lines, parse = by_name[kind]
                parsed_lines[name] = parse(line)
            elif kind == "stage":
                stage, _, revision = name.partition("/")
                history[stage, revision] = _parse_history(line)
            elif kind == "revision":
                revisions[name] = str(line["commit"])
            elif kind in names:
                names[kind].add(name)
            elif kind == "request":
                requests[_parse_request_key(name)] = _parse_request(line)
            elif kind == "opening":
                openings[_parse_request_key(name)] = parse_instant(line["at"])
            elif kind == "removed":
                removed[name] = parse_instant(line["at"])
            elif kind == "noticed":
                noticed_at[parse_instant(name)] = parse_instant(line["at"])
            else:
                raise ValueError(kind)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(key) from error
    return RecordedStatus(
        variants=variants,
        history=history,
        revisions=revisions,
        draft_repositories=frozenset(names["repository"]),
        removed=removed,
        records_ahead=frozenset(names["ahead"]),
        noticed_at=noticed_at,
        drafts=drafts,
        requests=requests,
        openings=openings,
        refused_pushes=refused_pushes,
    )


# No URL of a repository and no branch contains it.
_HEAD_MARK = ":refs/heads/"


def changed_lines(before: RecordedStatus, after: RecordedStatus) -> StatusLines:
    """Return the lines that differ, by key; None stands for a removed line."""
    old, new = _lines_by_key(before), _lines_by_key(after)
    return {
        key: _serialize(new.get(key))
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


# One pass writes the same instant into the lines of thousands of variants.
@lru_cache(4096)
def parse_instant(text: str) -> datetime:
    """Parse a recorded instant: RFC 3339, UTC, whole seconds."""
    return datetime.fromisoformat(text).astimezone(UTC)


@lru_cache(4096)
def format_instant(moment: datetime) -> str:
    """Format an instant as it is recorded: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_variant(line: Mapping[str, Any]) -> VariantLine:
    grant, published = line.get("grant"), line.get("published")
    previous = line.get("previous_grant")
    return VariantLine(
        # The URL may be spelled differently now (`.git`, a trailing slash); places are
        # compared as text.
        repository=normalize_identity(line["repository"]),
        path=line["path"],
        grant=_parse_grant(grant) if grant else None,
        published=_parse_published(published) if published else None,
        left=tuple(
            PreviousLocationLine(**{**place, "repository": normalize_identity(place["repository"])})
            for place in line.get("left", ())
        ),
        orphan=line.get("orphan", False),
        answers=tuple(_parse_answer(answer) for answer in line.get("answers", ())),
        stage=line.get("stage", ""),
        previous_grant=PreviousGrantLine(
            grant=_parse_grant(previous["grant"]), rendering=previous["rendering"]
        )
        if previous
        else None,
    )


def _parse_draft(line: Mapping[str, Any]) -> DraftLine:
    return DraftLine(line["digest"], parse_instant(line["at"]))


def _parse_refused_push(line: Mapping[str, Any]) -> RefusedPushLine:
    return RefusedPushLine(
        at=parse_instant(line["at"]),
        repository=normalize_identity(line["repository"]),
        message=str(line["message"]),
    )


def _parse_request_key(name: str) -> RequestKey:
    place, _, branch = name.rpartition(_HEAD_MARK)
    return normalize_identity(place), f"refs/heads/{branch}"


def _parse_request(line: Mapping[str, Any]) -> RequestLine:
    instants = {name: parse_instant(line[name]) for name in ("closed", "refused") if name in line}
    return RequestLine(**{**line, **instants})


def _parse_answer(answer: Mapping[str, Any]) -> CheckAnswer:
    parsed = {"at": parse_instant(answer["at"]), "verdict": Verdict(answer["verdict"])}
    return CheckAnswer(**{**answer, **parsed})


def _parse_grant(grant: Mapping[str, Any]) -> GrantLine:
    place = (
        {"repository": normalize_identity(grant["repository"])} if grant.get("repository") else {}
    )
    releasers = {"by": tuple(map(str, grant.get("by", ())))}
    since = {"since": parse_instant(grant["since"])} if "since" in grant else {}
    return GrantLine(**{**grant, **place, **releasers, **_parse_common_fields(grant), **since})


def _parse_published(published: Mapping[str, Any]) -> PublishedLine:
    since = {"since": parse_instant(published["since"])} if "since" in published else {}
    waiting = {"waiting": tuple(map(str, published.get("waiting", ())))}
    return PublishedLine(**{**published, **_parse_common_fields(published), **since, **waiting})


def _parse_common_fields(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parse the fields that a release and a publication share and that are not plain text."""
    return {"at": parse_instant(line["at"]), "rejected": tuple(map(str, line.get("rejected", ())))}


def _parse_history(line: Mapping[str, Any]) -> RevisionHistory:
    return RevisionHistory(
        passed=parse_instant(line["passed"]) if line.get("passed") else None,
        left=parse_instant(line["left"]) if line.get("left") else None,
        soaked=timedelta(seconds=line.get("soaked", 0)),
        since=parse_instant(line["since"]) if line.get("since") else None,
    )


def _serialize(line: _Line | None) -> Mapping[str, Any] | None:
    if line is None:
        return None
    if not isinstance(line, Mapping):
        return _as_plain_data(as_data(line))
    return {it: format_instant(at) if isinstance(at, datetime) else at for it, at in line.items()}


def _as_plain_data(value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, datetime):
            result[name] = format_instant(item)
        elif isinstance(item, timedelta):
            result[name] = int(item.total_seconds())
        elif isinstance(item, Mapping):
            result |= {name: _as_plain_data(item)} if item else {}
        elif isinstance(item, tuple):
            entries = [
                element if isinstance(element, str) else _as_plain_data(element) for element in item
            ]
            result |= {name: entries} if item else {}
        # Defaults are left out: lines stay short, and a new field with a default does
        # not rewrite all lines on record.
        elif item is not None and item not in ("", False):
            result[name] = item
    return result
