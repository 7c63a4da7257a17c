"""Budgets of what the texts of each declared object may cost, kept between passes."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from fanout.api.object_meta import KRMObject
from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.plan.evaluation_budget import EvaluationBudget, NamespaceBudget, Pause, draw
from fanout.values import write_json


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
        self._namespaces: dict[str, NamespaceBudget] = {}  # by namespace and kind
        form = dict[str, dict[str, Pause]]  # by owner and text
        self._stored = (read_cache_value(path, key, form) if path is not None else None) or {}
        self._budgets: dict[str, EvaluationBudget] = {}
        for owner, pauses in self._stored.items():
            self._add_budget(owner, dict(pauses), has_turn=False)

    def begin_pass(self, now: datetime, declarations: Iterable[KRMObject]) -> None:
        """Begin a pass over what is declared: every budget is whole again."""
        self._now = now
        self._namespaces.clear()
        declared = {_name_owner(it) for it in declarations} if self._budgets else set()
        for budget in self._budgets.values():
            budget.drop_gone()
        pauses_by_owner = {
            owner: budget.pauses
            for owner, budget in self._budgets.items()
            if budget.pauses and owner in declared
        }
        self._budgets.clear()
        # One owner of each kind and namespace has its turn: one with a text whose pause has ended,
        # if there is any.
        turns: dict[str, str] = {}
        for owner, pauses in sorted(
            pauses_by_owner.items(),
            key=lambda it: (all(now < pause.until for pause in it[1].values()), draw(it[0], now)),
        ):
            turn = turns.setdefault(_get_group(owner), owner)
            self._add_budget(owner, pauses, has_turn=turn == owner)

    def get_budget(self, declaration: KRMObject) -> EvaluationBudget:
        """Return the budget of a declared object."""
        owner = _name_owner(declaration)
        return self._budgets.get(owner) or self._add_budget(owner, {}, has_turn=True)

    def _add_budget(
        self, owner: str, pauses: dict[str, Pause], *, has_turn: bool
    ) -> EvaluationBudget:
        budget = self._budgets[owner] = EvaluationBudget(
            self._now,
            pauses,
            owner=owner.partition("/")[2],
            namespace=self._namespaces.setdefault(_get_group(owner), NamespaceBudget()),
            has_turn=has_turn,
        )
        return budget

    def store(self) -> None:
        """Write the pauses, if they differ from those in the file."""
        budgets = sorted(self._budgets.items())
        pauses = {owner: dict(it.pauses) for owner, it in budgets if it.pauses}
        if self._path is not None and pauses != self._stored:
            write_cache_file(self._path, write_json(pauses), self._key)
            self._stored = pauses


def _name_owner(declaration: KRMObject) -> str:
    return f"{declaration.metadata.namespace}/{declaration.identity}"


def _get_group(owner: str) -> str:
    # Templates of administrators do not wait for policies: a commit message is written once.
    return owner.rpartition("/")[0]
