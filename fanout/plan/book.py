"""What is on record for one policy: the store hands it over as plain data, `facts` reads it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fanout.errors import FanoutError
from fanout.values import frozen, replace


@dataclass(frozen=True, slots=True, order=True)
class BookKey:
    """Whose records: a policy's, or with an empty policy those of hand-written variants."""

    namespace: str
    policy: str


@frozen
class Recorded:
    """One record as it was found. `at` and `by` are those of the commit that brought it."""

    name: str
    at: datetime
    by: str  # "name <email>"
    kind: str  # Evidence | Approval | Decision
    spec: Mapping[str, Any]
    withdrawn: bool = False  # of Evidence: it keeps its place in the order and says nothing


WITHDRAW = "Withdraw"
ACCEPT_RECORDS = "AcceptRecords"


def accepted(records: Iterable[Recorded]) -> Recorded | None:
    """The last decision that what is published counts, and not what is missing on record."""
    found = None
    for record in records:
        if record.kind == "Decision" and record.spec["action"] == ACCEPT_RECORDS:
            found = record
    return found


def standing(records: Iterable[Recorded]) -> tuple[Recorded, ...]:
    """The records without the decisions that a later one withdraws, and without the withdrawals.

    Withdrawn evidence stays, marked: what was recorded before it is known by its place. A
    withdrawal counts at once, whatever its clock says, as taking back an approval does.
    """
    given: dict[str, Recorded] = {}
    for record in records:
        withdrawn = record.spec.get("withdraws", "")
        if record.kind != "Decision" or record.spec["action"] != WITHDRAW:
            given[record.name] = record
        elif withdrawn in given and given[withdrawn].kind == "Decision":
            del given[withdrawn]
        elif withdrawn in given and given[withdrawn].kind == "Evidence":
            given[withdrawn] = replace(given[withdrawn], withdrawn=True)
    return tuple(given.values())


@frozen
class Rewound:
    """A branch of records that does not descend from where it was seen last."""

    branch: str  # where, as people name it
    lost: str  # commit at which the branch was seen last
    records: tuple[Recorded, ...] | None = None  # those that are missing; None: nobody knows


@frozen
class Book:
    """All that is on record for one policy."""

    head: str = ""  # commit; "": nothing was recorded yet
    records: tuple[Recorded, ...] = ()  # in the order in which they were recorded
    status: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # key → what is known
    unreadable: tuple[str, ...] = ()  # sentences; such a book holds its policy
    failure: FanoutError | None = None  # why nothing of it is known; holds its policy too
    rewound: Rewound | None = None  # the branch was put back to what it was before


@frozen
class StatusChange:
    """What a pass adds to a policy's status; None removes a key."""

    expected: str  # head of the book as observed
    lines: Mapping[str, Mapping[str, Any] | None]
