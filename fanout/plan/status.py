"""What a policy's status remembers: only what cannot be derived, nothing that moves with the clock.

The lines are plain data for the record store, by key: `variant/<name>`, `stage/<stage>/<revision>`,
`revision/<name>`, `repository/<url>#<branch>`, `draft/<variant>`, `removed/<name>`,
`ahead/<record>`, `noticed/<instant>`. (Design §3, "records repository".)
"""

from collections.abc import Mapping
from dataclasses import asdict, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fanout.gates.facts import Answer, StageHistory
from fanout.gates.rules import Verdict
from fanout.plan.repository import same_place
from fanout.values import frozen

Lines = dict[str, Mapping[str, Any] | None]
Place = tuple[str, str]
"""(identity of the Git repository, path in it)"""


@frozen
class GrantLine:
    """A release: recorded before anything is published."""

    revision: str
    commit: str  # upstream commit
    digest: str
    tree: str
    at: datetime
    repository: str = ""  # where it is for, when that is not where the variant is
    path: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts: see `plan.rejected`
    records: str = ""  # the last record that there was then; "": an older fanout wrote the line


@frozen
class PublishedLine:
    """What is in force: recorded when it was seen to be."""

    revision: str
    commit: str  # upstream commit
    digest: str
    tree: str
    at: datetime
    merge: str = ""  # downstream commit
    tag: str = ""
    out_of_band: bool = False  # a person merged it without the gates
    pristine: str = ""  # tree without anybody's edits; "": not known
    reads: Mapping[str, str] = field(default_factory=dict)  # cluster objects in it: key → version
    heard: str = ""  # the last evidence on record then, where instants alone do not tell
    since: datetime | None = None  # since when it has the revision; None: since `at`
    rejected: tuple[str, ...] = ()  # values not taken at merge conflicts: see `plan.rejected`

    def stay(self, revision: str) -> datetime | None:
        """Since when it has the revision without a break; None: it has another one."""
        return (self.since or self.at) if self.revision == revision else None


@frozen
class LeftPlace:
    """Where the variant was before it moved: its package stays there until the new one is ready."""

    repository: str  # identity of the Git repository
    path: str
    tree: str  # of the package that was taken along

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.repository, self.path


@frozen
class VariantLine:
    """One variant's line."""

    repository: str  # identity of the Git repository
    path: str
    grant: GrantLine | None = None
    published: PublishedLine | None = None
    left: tuple[LeftPlace, ...] = ()
    orphan: bool = False  # written by hand, and its package stays when it goes
    stage: str = ""  # in which it was when the line was written; "": none, or not known
    answers: tuple[Answer, ...] = ()  # of machines, about what is published or drafted

    @property
    def place(self) -> Place:
        """Where it is published, or was released to be."""
        return self.repository, self.path

    @property
    def granted_place(self) -> Place | None:
        """Where the release on record is for."""
        grant = self.grant
        if grant is None:
            return None
        return (grant.repository, grant.path) if grant.repository else self.place


@frozen
class DraftLine:
    """A draft of a stage that requires reports, and when it was first written."""

    digest: str
    at: datetime


@frozen
class Status:
    """A policy's status, read."""

    variants: Mapping[str, VariantLine] = field(default_factory=dict)
    history: Mapping[tuple[str, str], StageHistory] = field(default_factory=dict)
    revisions: Mapping[str, str] = field(default_factory=dict)  # name → commit when first used
    places: frozenset[str] = frozenset()  # repositories to which drafts were written
    removed: Mapping[str, datetime] = field(default_factory=dict)  # variant → when it was to go
    ahead: frozenset[str] = frozenset()  # records that a pass has seen dated ahead, by name
    noticed: Mapping[datetime, datetime] = field(default_factory=dict)
    """Instants in these lines that lie ahead, and when a pass first saw that."""
    drafts: Mapping[str, DraftLine] = field(default_factory=dict)  # by variant


def read_status(lines: Mapping[str, Mapping[str, Any]]) -> Status:
    """The status from its lines. Raises ValueError with the key of a line that is not one of ours.

    What is not understood is never left out: it may be a release, or what is in force.
    """
    variants: dict[str, VariantLine] = {}
    history: dict[tuple[str, str], StageHistory] = {}
    revisions: dict[str, str] = {}
    places: set[str] = set()
    removed: dict[str, datetime] = {}
    ahead: set[str] = set()
    noticed: dict[datetime, datetime] = {}
    drafts: dict[str, DraftLine] = {}
    for key, line in lines.items():
        kind, _, name = key.partition("/")
        try:
            if kind == "variant":
                variants[name] = _read_variant(line)
            elif kind == "stage":
                stage, _, revision = name.partition("/")
                history[stage, revision] = _read_history(line)
            elif kind == "revision":
                revisions[name] = str(line["commit"])
            elif kind == "repository":
                places.add(name)
            elif kind == "draft":
                drafts[name] = DraftLine(line["digest"], instant(line["at"]))
            elif kind == "removed":
                removed[name] = instant(line["at"])
            elif kind == "ahead":
                ahead.add(name)
            elif kind == "noticed":
                noticed[instant(name)] = instant(line["at"])
            else:
                raise ValueError(kind)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(key) from error
    return Status(
        variants, history, revisions, frozenset(places), removed, frozenset(ahead), noticed, drafts
    )


def changes(
    before: Status,
    after: Status,
) -> Lines:
    """The lines that differ; None for those that are gone."""
    lines: Lines = {}
    for name in before.variants.keys() | after.variants.keys():
        old, new = before.variants.get(name), after.variants.get(name)
        if old != new:
            lines[f"variant/{name}"] = _write(new)
    for stage, revision in before.history.keys() | after.history.keys():
        past, present = before.history.get((stage, revision)), after.history.get((stage, revision))
        if past != present:
            lines[f"stage/{stage}/{revision}"] = _write(present)
    for name, commit in after.revisions.items():
        if before.revisions.get(name) != commit:
            lines[f"revision/{name}"] = {"commit": commit}
    for place in after.places - before.places:
        lines[f"repository/{place}"] = {"drafts": True}
    for place in before.places - after.places:
        lines[f"repository/{place}"] = None
    for name in before.removed.keys() | after.removed.keys():
        if before.removed.get(name) != (at := after.removed.get(name)):
            lines[f"removed/{name}"] = {"at": written(at)} if at else None
    lines |= _clocks(before, after) | _drafts(before, after)
    return dict(sorted(lines.items()))


def _drafts(before: Status, after: Status) -> Lines:
    """The lines about drafts that differ."""
    return {
        f"draft/{name}": _write(draft)
        for name in before.drafts.keys() | after.drafts.keys()
        if before.drafts.get(name) != (draft := after.drafts.get(name))
    }


def _clocks(before: Status, after: Status) -> Lines:
    """The lines about clocks that ran ahead that differ."""
    lines: Lines = {}
    for name in before.ahead ^ after.ahead:
        lines[f"ahead/{name}"] = {"ahead": True} if name in after.ahead else None
    for at in before.noticed.keys() | after.noticed.keys():
        if before.noticed.get(at) != (seen := after.noticed.get(at)):
            lines[f"noticed/{written(at)}"] = {"at": written(seen)} if seen else None
    return lines


def instant(text: str) -> datetime:
    """An instant as it is recorded: RFC 3339 in UTC, whole seconds."""
    return datetime.fromisoformat(text).astimezone(UTC)


def written(moment: datetime) -> str:
    """The same, written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_variant(line: Mapping[str, Any]) -> VariantLine:
    grant, published = line.get("grant"), line.get("published")
    return VariantLine(
        repository=same_place(line["repository"]),
        path=line["path"],
        grant=_read_grant(grant) if grant else None,
        published=_read_published(published) if published else None,
        left=tuple(
            LeftPlace(**{**place, "repository": same_place(place["repository"])})
            for place in line.get("left", ())
        ),
        orphan=line.get("orphan", False),
        answers=tuple(_read_answer(answer) for answer in line.get("answers", ())),
        stage=line.get("stage", ""),
    )


def _read_answer(answer: Mapping[str, Any]) -> Answer:
    told = {"at": instant(answer["at"]), "verdict": Verdict(answer["verdict"])}
    return Answer(**{**answer, **told})


def _read_grant(grant: Mapping[str, Any]) -> GrantLine:
    place = {"repository": same_place(grant["repository"])} if grant.get("repository") else {}
    return GrantLine(**{**grant, **place, **_of_release(grant)})


def _read_published(published: Mapping[str, Any]) -> PublishedLine:
    since = {"since": instant(published["since"])} if "since" in published else {}
    return PublishedLine(**{**published, **_of_release(published), **since})


def _of_release(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a release and a publication have in common that is no plain text."""
    return {"at": instant(line["at"]), "rejected": tuple(map(str, line.get("rejected", ())))}


def _read_history(line: Mapping[str, Any]) -> StageHistory:
    return StageHistory(
        passed=instant(line["passed"]) if line.get("passed") else None,
        left=instant(line["left"]) if line.get("left") else None,
        soaked=timedelta(seconds=line.get("soaked", 0)),
        since=instant(line["since"]) if line.get("since") else None,
    )


def _write(line: VariantLine | StageHistory | DraftLine | None) -> Mapping[str, Any] | None:
    return None if line is None else _plain(asdict(line))


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, datetime):
            result[name] = written(item)
        elif isinstance(item, timedelta):
            result[name] = int(item.total_seconds())
        elif isinstance(item, Mapping):
            result |= {name: _plain(item)} if item else {}
        elif isinstance(item, tuple):
            entries = [one if isinstance(one, str) else _plain(one) for one in item]
            result |= {name: entries} if item else {}
        elif item is not None and item not in ("", False):
            result[name] = item
    return result
