"""What is wrong with the files that a user handed in: told all at once, each with its place."""

from collections.abc import Iterable

from fanout.api.faults import Severity
from fanout.errors import InvalidInput, Where
from fanout.values import frozen


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
