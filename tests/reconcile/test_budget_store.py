"""Budgets of several objects, from one pass and one process to the next."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from reconcile.builders import EDGE_URL, NOW, parsed

from fanout.disk_cache import write_cache_file
from fanout.plan.evaluation_budget import FIRST_PAUSE, MAX_NEW_EXCESSES
from fanout.reconcile.budget_store import BudgetStore

ONE = parsed("Repository", "one", url=EDGE_URL)
TWO = parsed("Repository", "two", url=EDGE_URL)


def begun(path: Path | None = None, key: str = "", after: timedelta = timedelta()):
    budgets = BudgetStore(path, key)
    budgets.begin_pass(NOW + after, [ONE, TWO])
    return budgets


def test_a_text_over_a_limit_ends_the_budget_of_its_owner_alone():
    budgets = begun()
    budgets.get_budget(ONE).note_excess("a", "slow")
    assert budgets.get_budget(ONE).find_refusal("b") is not None
    assert budgets.get_budget(TWO).find_refusal("a") is None
    budgets.begin_pass(NOW, [ONE, TWO])
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


def test_unchanged_budgets_are_not_written(tmp_path: Path):
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
    """It is to be tried again, and others alone are asked for."""
    budgets, end = begun(), NOW + FIRST_PAUSE
    budgets.get_budget(ONE).note_excess("a", "slow")
    for now, asked in ((NOW, "b"), (end, "a"), (end, ""), (end, "b")):
        budgets.begin_pass(now, [ONE, TWO])
        assert "a" in budgets.get_budget(ONE).pauses
        if asked:
            budgets.get_budget(ONE).find_refusal(asked)
    budgets.begin_pass(end, [ONE, TWO])
    assert not budgets.get_budget(ONE).pauses


def test_the_pauses_of_an_object_that_is_gone_are_dropped():
    budgets = begun()
    budgets.get_budget(ONE).note_excess("a", "slow")
    budgets.begin_pass(NOW, [TWO])
    assert not budgets.get_budget(ONE).pauses


def test_templates_do_not_wait_for_costly_policies_of_their_namespace():
    """A publication would have the default message for good."""
    budgets = begun()
    for number in range(MAX_NEW_EXCESSES):
        costly = parsed("Repository", f"costly-{number}", url=EDGE_URL)
        budgets.get_budget(costly).note_excess("a", "slow")
    assert budgets.get_budget(ONE).find_refusal("b") is not None
    promotion = parsed("PromotionPolicy", "one", policies=["a"])
    assert budgets.get_budget(promotion).find_refusal("b") is None


Key = tuple[str, str]  # namespace and name of an owner
# By owner: its texts in the order in which a pass asks for them. Those with "spin" exceed a limit.
TEXTS: dict[Key, tuple[str, ...]] = {
    ("tenant", f"costly-{number:02}"): (
        f"spin {number}",
        "cheap",
        f"spin {number} again",
        f"spin {number} and again",
    )
    for number in range(20)
}
BEHIND, OTHER = ("tenant", "sound"), ("zone", "sound")
TEXTS |= {BEHIND: ("cheap",), OTHER: ("cheap",)}
OWNERS = {it: parsed("Repository", it[1], namespace=it[0], url=EDGE_URL) for it in TEXTS}


def evaluate(budgets: BudgetStore, kept: set[tuple[Key, str]]) -> tuple[set[Key], int]:
    """Evaluate all texts in one pass; return the owners with all cheap values, and the excesses."""
    excesses = 0
    for key, owner in OWNERS.items():
        budget = budgets.get_budget(owner)
        for text in TEXTS[key]:
            if (key, text) in kept or budget.find_refusal(text) is not None:
                continue
            if "spin" in text:
                budget.note_excess(text, "slow")
                excesses += 1
            else:
                budget.note_success(text)
                kept.add((key, text))
    return {key for key in TEXTS if (key, "cheap") in kept}, excesses


INTERVALS = [timedelta(seconds=10), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)]


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
@pytest.mark.parametrize("is_fresh", [False, True], ids=["one process", "a process for each pass"])
def test_costly_policies_of_a_namespace_do_not_add_up(tmp_path: Path, interval, is_fresh):
    """Others have their values at once, sound ones of the namespace after a few passes."""
    budgets, kept = begun(tmp_path / "pauses.json"), set[tuple[Key, str]]()
    counts, served = [], []
    for number in range(60):
        if is_fresh:
            budgets, kept = BudgetStore(tmp_path / "pauses.json"), set()
        budgets.begin_pass(NOW + number * interval, OWNERS.values())
        owners, excesses = evaluate(budgets, kept)
        budgets.store()
        counts.append(excesses)
        served.append(owners)
    # Once they are known, passes in new processes have all that is cheap, too.
    assert served[-1] == set(TEXTS)
    assert max(counts) <= 7
    assert all(OTHER in owners for owners in served)
    assert all(BEHIND in owners for owners in served[6:])


def test_pauses_in_another_form_count_as_none(tmp_path):
    """Versions under development share a number; an earlier one wrote instants as numbers."""
    path = tmp_path / "budgets"
    rows = {"default/UpstreamPolicy/p": {"text": [1772442000.0, 1, "too long"]}}
    write_cache_file(path, json.dumps(rows).encode(), "key")
    begun(path, "key").get_budget(ONE).note_excess("a", "slow")
