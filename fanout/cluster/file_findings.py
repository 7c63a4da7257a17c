"""Errors and warnings of the files that a user supplied, each with its position."""

import re
from collections.abc import Iterable, Iterator

from fanout.api.field_errors import Severity
from fanout.errors import ErrorLocation, InvalidInput
from fanout.values import frozen, replace


@frozen
class FileFinding:
    """One error or warning at its position; an error makes the object unusable."""

    where: ErrorLocation
    problem: str
    remedy: str
    severity: Severity = "error"

    def __str__(self) -> str:
        """Format as `file:line: kind/name: field.path: problem; remedy`."""
        location = str(self.where)
        sentence = f"{location}: {self.problem}" if location else self.problem
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


MAX_SEPARATE = 10  # similar findings that are printed separately
_SHOWN_POSITIONS = 3  # positions named for more
# Parts in which similar sentences differ: positions, names and values.
_FILE_AND_LINE = re.compile(r"\S+:\d+")


def group_findings(findings: Iterable[FileFinding]) -> Iterator[tuple[FileFinding, str]]:
    """Yield each finding with its line; more than ten similar findings share one line.

    Similar means the same problem in the same field of other objects.
    """
    groups: dict[tuple[str, ...], list[FileFinding]] = {}
    for finding in findings:
        groups.setdefault(_similarity_key(finding), []).append(finding)
    for first, *similar in groups.values():
        if len(similar) < MAX_SEPARATE:
            yield from ((finding, str(finding)) for finding in (first, *similar))
            continue
        positions = ", ".join(str(replace(it.where, field="")) for it in similar[:_SHOWN_POSITIONS])
        yield first, f"{first} (and {len(similar):,} more, at {positions}, …)"


def _similarity_key(finding: FileFinding) -> tuple[str, ...]:
    kind, _, name = finding.where.object.partition("/")
    problem = _FILE_AND_LINE.sub("", finding.problem)
    if name:
        problem = problem.replace(name, "")
    return kind, finding.where.field, problem, finding.remedy, finding.severity


class InvalidFiles(InvalidInput):
    """A file that is needed as a whole is invalid; has every finding."""

    def __init__(self, findings: Iterable[FileFinding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(
            first.problem, reason="InvalidObject", remedy=first.remedy, where=first.where
        )

    def __str__(self) -> str:
        """Format one line per finding."""
        return "\n".join(map(str, self.findings))
