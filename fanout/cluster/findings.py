"""What is wrong with the files that a user handed in: told all at once, each with its place."""

import re
from collections.abc import Iterable, Iterator

from fanout.api.faults import Severity
from fanout.errors import InvalidInput, Where
from fanout.values import frozen, replace


@frozen
class Finding:
    """One fault, at its place; an error keeps the object from being used, a warning does not."""

    where: Where
    problem: str
    remedy: str
    severity: Severity = "error"

    def __str__(self) -> str:
        """`file:line: kind/name: field.path: what is wrong; what to do`."""
        place = str(self.where)
        sentence = f"{place}: {self.problem}" if place else self.problem
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


EACH = 10  # equal findings that have a line each
_NAMED = 3  # places of more
# What sets equal sentences apart: where something else is, and names and values in them.
_PLACE = re.compile(r"\S+:\d+")


def folded(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Each finding and its line; where more than a few are equal, the first, and one line for all.

    Equal is the same problem in the same field of other objects.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault(_sort_of(one), []).append(one)
    for first, *others in groups.values():
        if len(others) < EACH:
            yield from ((one, str(one)) for one in (first, *others))
            continue
        places = ", ".join(str(replace(it.where, field="")) for it in others[:_NAMED])
        yield first, f"{first} (and {len(others):,} more, at {places}, …)"


def _sort_of(one: Finding) -> tuple[str, ...]:
    kind, _, name = one.where.object.partition("/")
    problem = _PLACE.sub("", one.problem)
    if name:
        problem = problem.replace(name, "")
    return kind, one.where.field, problem, one.remedy, one.severity


class InvalidFiles(InvalidInput):
    """A file that is needed as a whole is wrong; carries every finding."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(
            first.problem, reason="InvalidObject", remedy=first.remedy, where=first.where
        )

    def __str__(self) -> str:
        """One line per finding."""
        return "\n".join(map(str, self.findings))
