"""Budgets of several objects, from one pass and one process to the next."""

from datetime import timedelta
from pathlib import Path

from reconcile.builders import EDGE_URL, NOW, parsed

from fanout.plan.evaluation_budget import FIRST_PAUSE, MAX_PAUSE
from fanout.reconcile.budget_store import BudgetStore

ONE = parsed("Repository", "one", url=EDGE_URL)
TWO = parsed("Repository", "two", url=EDGE_URL)


def begun(path: Path | None = None, key: str = "", after: timedelta = timedelta()):
    budgets = BudgetStore(path, key)
    budgets.begin_pass(NOW + after)
    return budgets


def test_a_text_over_a_limit_ends_the_budget_of_its_owner_alone():
    budgets = begun()
    budgets.get_budget(ONE).note_excess("a", "slow")
    assert budgets.get_budget(ONE).find_refusal("b") is not None
    assert budgets.get_budget(TWO).find_refusal("a") is None
    budgets.begin_pass(NOW)
    assert budgets.get_budget(ONE).find_refusal("b") is None
    assert budgets.get_budget(ONE).find_refusal("a") is not None


def test_the_next_process_reads_the_pauses(tmp_path: Path):
    path = tmp_path / "pauses.json"
    first = begun(path, "1")
    failure = first.get_budget(ONE).note_excess("a", "slow")
    first.store()
    second = begun(path, "1")
    assert second.get_budget(ONE).find_refusal("a") == failure
    assert second.get_budget(ONE).find_refusal("b") is None
    assert begun(path, "with other limits").get_budget(ONE).find_refusal("a") is None
    path.write_bytes(path.read_bytes()[:-3])
    assert begun(path, "1").get_budget(ONE).find_refusal("a") is None


def test_nothing_is_written_where_nothing_changed(tmp_path: Path):
    path = tmp_path / "pauses.json"
    budgets = begun(path)
    budgets.store()
    assert not path.exists()
    budgets.get_budget(ONE).note_excess("a", "slow")
    budgets.store()
    path.unlink()
    budgets.store()
    assert not path.exists()


def test_the_pause_of_a_text_that_is_gone_is_dropped():
    budgets = begun()
    budgets.get_budget(ONE).note_excess("a", "slow")
    budgets.begin_pass(NOW + FIRST_PAUSE + MAX_PAUSE)
    assert "a" in budgets.get_budget(ONE).pauses
    budgets.begin_pass(NOW + FIRST_PAUSE + MAX_PAUSE + timedelta(seconds=1))
    assert not budgets.get_budget(ONE).pauses
