"""What people and machines have said, as the evaluator knows it: records never change.

Instants are aware datetimes in UTC.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from fanout.gates.rules import Verdict
from fanout.values import frozen


@frozen
class Evidence:
    """An answer to a check, from one reporter, about a stage or some of its variants."""

    name: str
    at: datetime
    by: str
    stage: str
    check: str
    status: Verdict
    revision: str = ""
    commit: str = ""
    variants: tuple[str, ...] = ()  # empty: all of the stage
    link: str = ""
    withdrawn: bool = False  # a person has taken it back


@frozen
class Approval:
    """One person's yes to draft trees; `revokes` names an earlier approval that is taken back."""

    name: str
    at: datetime
    by: str
    stage: str
    check: str
    revision: str
    trees: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()
    revokes: str = ""


class Action(StrEnum):
    """What a person can decide."""

    PUBLISH = "Publish"
    ROLLBACK = "Rollback"
    SKIP = "Skip"
    RETRY = "Retry"
    SUSPEND = "Suspend"
    RESUME = "Resume"


class Override(StrEnum):
    """What a Publish decision may lift, and nothing else."""

    AFTER = "after"
    SOAK = "soak"
    REQUIRES = "requires"
    VERIFICATION = "verification"
    WINDOW = "window"
    BUDGET = "budget"


@frozen
class Decision:
    """A person's decision about a policy, a stage (if named) or variants (if named)."""

    name: str
    at: datetime
    by: str
    action: Action
    stage: str = ""
    variants: tuple[str, ...] = ()
    revision: str = ""
    trees: frozenset[str] = frozenset()  # of the drafts that a Publish is about
    overrides: frozenset[Override] = frozenset()
    accept_conflicts: bool = False  # a Publish takes the drafts of its variants as they stand
    reason: str = ""
    expires: datetime | None = None


@frozen
class Records:
    """All that was said about one policy, in the order in which it was recorded."""

    evidence: tuple[Evidence, ...] = ()
    approvals: tuple[Approval, ...] = ()
    decisions: tuple[Decision, ...] = ()
    removals: Mapping[str, datetime] = field(default_factory=dict)  # variant → when last removed

    def moment(self, now: datetime) -> "Moment":
        """The pass's instant, and where these records ended then, if instants do not tell it."""
        late = any(item.at >= now for item in self.evidence)
        return Moment(now, self.evidence[-1].name if late else "")


@frozen
class Moment:
    """When something came into force, among what people said.

    What is dated no earlier may have been said before: in the same second, or by a clock that runs
    ahead. So the last evidence is remembered that was on record.
    """

    now: datetime
    heard: str = ""
    records: str = ""  # the last record of all, for publications to name
