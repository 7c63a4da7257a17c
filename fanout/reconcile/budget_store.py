"""Budgets of what the texts of each declared object may cost, kept between passes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fanout.api.object_meta import KRMObject
from fanout.disk_cache import read_cache_file, write_cache_file
from fanout.plan.evaluation_budget import MAX_PAUSE, EvaluationBudget, Pause


class BudgetStore:
    """Budgets by object; one per process. The pauses are in a file for the next process.

    Else a process that makes one pass would try the same text first, each time, and the texts
    behind it never. The file may be deleted at any time (`fanout.disk_cache`).
    """

    def __init__(self, path: Path | None = None, key: str = "") -> None:
        """Read the pauses from the file at `path`; None: there is none.

        `key`: version of the program, and the limits. With others all texts are tried at once.
        """
        self._path = path
        self._key = key
        self._now: datetime | None = None
        self._stored: Mapping[str, Any] = self._read_rows()
        self._budgets = {owner: _read_budget(rows) for owner, rows in self._stored.items()}

    def begin_pass(self, now: datetime) -> None:
        """Begin a pass: every budget is whole again."""
        self._now = now
        pauses_by_owner = {
            # One that ended long ago is of a text that is gone.
            owner: {text: it for text, it in budget.pauses.items() if it.until + MAX_PAUSE >= now}
            for owner, budget in self._budgets.items()
            if budget.pauses
        }
        self._budgets = {
            owner: EvaluationBudget(now, pauses) for owner, pauses in pauses_by_owner.items()
        }

    def get_budget(self, declaration: KRMObject) -> EvaluationBudget:
        """Return the budget of a declared object."""
        owner = f"{declaration.metadata.namespace}/{declaration.identity}"
        if owner not in self._budgets:
            self._budgets[owner] = EvaluationBudget(self._now)
        return self._budgets[owner]

    def store(self) -> None:
        """Write the pauses that have not ended, if they differ from those in the file."""
        rows = {
            owner: pauses
            for owner, budget in sorted(self._budgets.items())
            if (
                pauses := {
                    text: [it.until.timestamp(), it.attempts, it.problem]
                    for text, it in budget.pauses.items()
                }
            )
        }
        if self._path is not None and rows != self._stored:
            write_cache_file(self._path, json.dumps(rows).encode(), self._key)
            self._stored = rows

    def _read_rows(self) -> Mapping[str, Any]:
        content = read_cache_file(self._path, self._key) if self._path is not None else None
        rows: Mapping[str, Any] = json.loads(content) if content else {}
        return rows


def _read_budget(rows: Mapping[str, Any]) -> EvaluationBudget:
    pauses = {
        text: Pause(datetime.fromtimestamp(until, UTC), attempts, problem)
        for text, (until, attempts, problem) in rows.items()
    }
    return EvaluationBudget(None, pauses)
