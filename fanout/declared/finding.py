"""Errors and warnings about declared objects, and their lines for people."""

import re
from collections.abc import Iterable, Iterator

from fanout.api.field_errors import Severity
from fanout.errors import ErrorLocation
from fanout.values import Value, asdict, replace


class Finding(Value):
    """One error or warning at its position; an error makes the object unusable.

    `namespace`: that of the object; "" if it has none or it is not known.
    """

    where: ErrorLocation
    problem: str
    remedy: str
    severity: Severity = "error"
    namespace: str = ""

    def is_error_in(self, namespace: str | None) -> bool:
        """True if it is an error that may be of the namespace; of any if that is empty."""
        return self.severity == "error" and self.namespace in ("", namespace or self.namespace)

    def __str__(self) -> str:
        """Format as `file:line: kind/name: field.path: problem; remedy`."""
        location = str(self.where)
        sentence = f"{location}: {self.problem}" if location else self.problem
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


def serialize_finding(finding: Finding) -> dict[str, object]:
    """Return an error or warning as data, with its position."""
    return {
        **asdict(finding.where),
        "problem": finding.problem,
        "remedy": finding.remedy,
        "severity": finding.severity,
    }


MAX_SEPARATE = 10  # similar findings that are printed separately


_SHOWN_POSITIONS = 3  # positions named for more


# Parts in which similar sentences differ: positions, names and values.
_FILE_AND_LINE = re.compile(r"\S+:\d+")


def group_findings(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield each finding with its line; more than ten similar findings share one line.

    Similar means the same problem in the same field of other objects.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        kind, _, name = finding.where.object.partition("/")
        problem = _FILE_AND_LINE.sub("", finding.problem)
        if name:
            problem = problem.replace(name, "")
        key = kind, finding.where.field, problem, finding.remedy, finding.severity
        groups.setdefault(key, []).append(finding)
    for first, *similar in groups.values():
        if len(similar) < MAX_SEPARATE:
            yield from ((finding, str(finding)) for finding in (first, *similar))
            continue
        positions = ", ".join(str(replace(it.where, field="")) for it in similar[:_SHOWN_POSITIONS])
        yield first, f"{first} (and {len(similar):,} more, at {positions}, …)"
