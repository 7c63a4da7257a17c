"""Records that were put back: publications show what was recorded before, and is not any more.

A release is on record before its publication is pushed, and the publication says so with a trailer
(`Fanout-Records`). So where the newest publication of a variant has that trailer, and neither it
nor its release is on record, the records are older than the repositories. (Design §3.)
"""

from collections.abc import Container
from datetime import datetime

from fanout.errors import InvalidInput
from fanout.plan.book import Book, Rewound
from fanout.plan.cases import Case
from fanout.plan.status import PublishedLine
from fanout.plan.trailers import NONE, Trailers, read_records
from fanout.reconcile.history import History
from fanout.reconcile.reading import Reading
from fanout.selection.naming import tag_ref
from fanout.values import frozen, replace

_LISTED = 5  # records that are missing


@frozen
class OnRecord:
    """What the records of a policy have, for publications to be compared with."""

    records: Container[str]  # names
    accepted: datetime | None  # when a person last decided that what is published counts
    now: datetime


def compared(
    case: Case, on_record: OnRecord, reading: Reading, drafts: dict[str, Trailers | None]
) -> Case:
    """Return the case with what its newest publication says, where that is not on record.

    Where a person has accepted that since, it is what is published. Else `rewound` says so.
    """
    published, path, view = case.published, case.spec.path, case.view
    number = view.tags.get(path, 0)
    if (
        published is None
        or not number
        or case.state.tree == published.tree
        or case.line.place != (view.key, path)
        or case.alien
        or published.tag == tag_ref(path, number).removeprefix("refs/tags/")
    ):
        return case
    newest = History(reading(view.remote), view, case.spec, drafts).newest()
    if newest is None:
        return case
    tag, commit, found = newest
    grant, reader = case.line.grant, reading(view.remote)
    later = not published.merge or reader.contains(commit, published.merge)
    if commit == published.merge or not later or (grant and grant.tree == found.tree):
        return case
    made = reader.commit(commit)
    if not read_records(made.message):  # nothing says that its release was recorded
        return case
    if on_record.accepted is None or made.when > on_record.accepted.timestamp():
        return replace(case, rewound=_sentence(case, tag, commit))
    line = PublishedLine(
        found.revision,
        found.commit,
        found.digest,
        found.tree,
        on_record.now,
        merge=commit,
        tag=tag.removeprefix("refs/tags/"),
        pristine=found.pristine,
    )
    return replace(case, published=line, line=replace(case.line, published=line, grant=None))


def remembered_by_mistake(case: Case, on_record: OnRecord, reading: Reading) -> Case:
    """Return the case, found again by its tag, marked where records of its release are missing."""
    published = case.published
    if published is None or not published.merge:
        return case
    made = reading(case.view.remote).commit(published.merge)
    named = read_records(made.message)
    if named in ("", NONE) or named in on_record.records:
        return case
    if on_record.accepted is not None and made.when <= on_record.accepted.timestamp():
        return case
    return replace(case, rewound=_sentence(case, f"refs/tags/{published.tag}", published.merge))


def refuse_put_back(title: str, rewound: Rewound | None) -> None:
    """Raises InvalidInput when the branch does not descend from where it was seen last."""
    if rewound is None:
        return
    raise InvalidInput(
        f"{rewound.branch} does not descend from commit {rewound.lost[:12]}, at which this state"
        f" directory saw it last: records were put back{_missing(rewound)}",
        reason="RecordsRewound",
        remedy=f"restore the branch (that commit, or a later one); {_accept(title)}",
    )


def refuse_unrecorded(title: str, book: Book, cases: tuple[Case, ...]) -> None:
    """Raises InvalidInput when a publication shows that records are missing."""
    found = [case.rewound for case in cases if case.rewound]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise InvalidInput(
            f"{found[0]}{more}: the records, at commit {book.head[:12]}, were put back",
            reason="RecordsRewound",
            remedy=f"restore the newer records; {_accept(title)}",
        )


def missing_records(rewound: Rewound) -> list[str]:
    """Return a line for each record that is missing."""
    return [
        f"{record.kind} {record.name} of {record.by}: {_what(record.spec)}"
        for record in rewound.records or ()
    ]


def _missing(rewound: Rewound) -> str:
    if rewound.records is None:
        return ""
    if not rewound.records:
        return "; no record is missing, only status"
    lines = missing_records(rewound)
    more = f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    return f"; missing: {'; '.join(lines[:_LISTED])}{more}"


def _what(spec: object) -> str:
    assert isinstance(spec, dict), "a record's spec was validated"
    words = [spec.get(name) for name in ("action", "check", "status", "revision")]
    about = [f"stage {spec['stage']}"] if spec.get("stage") else []
    return " ".join([*filter(None, words), *about, *spec.get("variants", ())])


def _sentence(case: Case, tag: str, commit: str) -> str:
    name = tag.removeprefix("refs/tags/")
    return (
        f"publication {name} ({commit[:12]}) of {case.spec.repository} was recorded and is not on"
        " record any more"
    )


def _accept(title: str) -> str:
    namespace, _, name = title.partition("/")
    return (
        "or, if the older copy is meant, take what the repositories have published as the truth:"
        f" `fanout accept-records {name} -n {namespace} --reason WHY`"
    )
