"""Course of one check through the statements of its reporters.

A check has passed while every reporter's last statement says so. It has passed since the instant at
which that became true and stayed true: another reporter who agrees changes nothing. (Design §6.)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fanout.gates.records import Evidence
from fanout.gates.rules import Verdict
from fanout.values import frozen


@dataclass(slots=True, eq=False)  # compared by identity: there is one for each piece of evidence
class Statement:
    """One piece of evidence, with its place in the order of the records."""

    order: int
    at: datetime
    evidence: Evidence


@frozen
class Course:
    """Outcome of a course: the last statement of each reporter that counts."""

    latest: tuple[Statement, ...] = ()
    since: datetime | None = None  # since when all of them have passed without a break

    @property
    def verdict(self) -> Verdict:
        """Failed if anybody says so, passed if everybody does, else pending."""
        statuses = {statement.evidence.status for statement in self.latest}
        if Verdict.FAILED in statuses:
            return Verdict.FAILED
        return Verdict.PASSED if statuses == {Verdict.PASSED} else Verdict.PENDING


def follow(statements: Iterable[Statement], retried: datetime | None) -> Course:
    """Follow statements in record order; failures up to `retried` are forgotten from then on."""
    latest: dict[str, Statement] = {}
    since: datetime | None = None
    for statement in statements:
        if retried is not None and statement.at > retried:
            since = _forget(latest, since, retried)
            retried = None
        latest[statement.evidence.by] = statement
        since = _passed_since(latest, since, statement.at)
    if retried is not None:
        since = _forget(latest, since, retried)
    return Course(tuple(latest.values()), since)


def _forget(
    latest: dict[str, Statement], since: datetime | None, retried: datetime
) -> datetime | None:
    for by, statement in tuple(latest.items()):
        if statement.evidence.status is Verdict.FAILED:
            del latest[by]
    return _passed_since(latest, since, retried)


def _passed_since(
    latest: dict[str, Statement], since: datetime | None, at: datetime
) -> datetime | None:
    passed = bool(latest) and all(
        statement.evidence.status is Verdict.PASSED for statement in latest.values()
    )
    if not passed:
        return None
    return at if since is None else since
