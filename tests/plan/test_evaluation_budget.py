"""What the texts of one owner may cost: one over a limit in a pass, and later and later again."""

from datetime import UTC, datetime, timedelta

from fanout.plan.evaluation_budget import (
    FIRST_PAUSE,
    LEFT_PAUSE,
    MAX_PAUSE,
    MAX_PAUSES,
    STEPS_PER_PASS,
    EvaluationBudget,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def next_pass(budget: EvaluationBudget, after: timedelta) -> EvaluationBudget:
    assert budget.now is not None
    return EvaluationBudget(budget.now + after, budget.pauses)


def test_after_the_first_text_over_a_limit_the_others_are_left_for_the_next_pass():
    budget = EvaluationBudget(NOW)
    assert budget.find_refusal("a") is None
    failure = budget.note_excess("a", "it takes too long")
    assert failure == budget.find_refusal("a")
    assert (failure.reason, failure.problem) == ("LimitExceeded", "it takes too long")
    assert failure.remedy == "simplify it; it is tried again from 2026-03-02T09:01:00Z"
    other = budget.find_refusal("b")
    assert other is not None
    assert other.problem == (
        "it is left for the next pass, because a exceeded a limit: it takes too long"
    )
    budget = next_pass(budget, timedelta(seconds=1))
    assert budget.find_refusal("b") is None
    assert budget.find_refusal("a") == failure


def test_a_text_is_tried_again_later_and_later():
    budget, pauses = EvaluationBudget(NOW), []
    for _ in range(20):
        assert budget.find_refusal("a") is None
        budget.note_excess("a", "slow")
        assert budget.now is not None
        pauses.append(budget.pauses["a"].until - budget.now)
        budget = next_pass(budget, pauses[-1])
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == MAX_PAUSE
    budget.note_success("a")
    budget.note_excess("a", "slow")
    assert budget.now is not None
    assert budget.pauses["a"].until == budget.now + FIRST_PAUSE


def test_many_costly_texts_end_a_budget_without_one_over_a_limit():
    budget = EvaluationBudget(NOW)
    budget.spend(STEPS_PER_PASS)
    assert budget.find_refusal("a") is None
    budget.spend(1)
    refusal = budget.find_refusal("a")
    assert refusal is not None
    assert "left for the next pass, because those before it took more than" in refusal.problem
    assert next_pass(budget, timedelta(seconds=1)).find_refusal("a") is None


def test_the_time_of_a_request_counts_where_steps_say_less():
    budget = EvaluationBudget(NOW)
    for _ in range(1000):
        budget.spend(0, 0.4)
    assert budget.find_refusal("a") is None
    for _ in range(4):
        budget.spend(0, 2.0)
    assert budget.find_refusal("a") is not None


def test_costly_texts_are_retried_singly_and_delay_no_other_text():
    budget, refused = EvaluationBudget(NOW), "it is tried again in a later pass"
    for text in ("a", "b", "c"):
        budget.note_excess(text, "slow")
    budget = next_pass(budget, FIRST_PAUSE)
    [tried] = [it for it in ("a", "b", "c") if budget.find_refusal(it) is None]
    first, second = (it for it in ("a", "b", "c") if it != tried)
    refusal = budget.find_refusal(first)
    assert refusal is not None
    assert refused in refusal.remedy
    budget.note_success(tried)
    [tried] = [it for it in (first, second) if budget.find_refusal(it) is None]
    budget.note_excess(tried, "slow")
    assert all(budget.find_refusal(it) is not None for it in (first, second))
    assert budget.find_refusal("d") is None


def test_each_paused_text_is_tried_at_some_time_whatever_the_others_do():
    """Also where every pass comes after all pauses."""
    budget, tried = EvaluationBudget(NOW), set()
    texts = [f"text {number}" for number in range(5)]
    for text in texts:
        budget.note_excess(text, "slow")
    for _ in range(60):
        budget = next_pass(budget, MAX_PAUSE)
        for text in texts:
            if budget.find_refusal(text) is None:
                tried.add(text)
                budget.note_excess(text, "slow")
    assert tried == set(texts)


def test_a_budget_knows_when_the_next_text_is_to_be_tried():
    budget = EvaluationBudget(NOW)
    budget.find_refusal("a")
    assert budget.retry_at is None
    budget.note_excess("a", "slow")
    assert budget.retry_at == NOW + FIRST_PAUSE
    budget.find_refusal("b")
    # The more texts exceeded a limit, the longer the others wait.
    assert budget.retry_at == NOW + 2 * LEFT_PAUSE
    budget = next_pass(budget, timedelta(seconds=30))
    budget.find_refusal("a")
    assert budget.retry_at == NOW + FIRST_PAUSE


def test_without_an_instant_nothing_is_paused():
    budget = EvaluationBudget()
    assert budget.note_excess("a", "slow").remedy == "simplify it"
    assert budget.pauses == {}
    assert budget.find_refusal("b") is not None


def test_a_clock_that_is_set_back_ends_a_pause():
    budget = EvaluationBudget(NOW)
    budget.note_excess("a", "slow")
    assert next_pass(budget, -2 * MAX_PAUSE).find_refusal("a") is None


def test_the_number_of_pauses_is_bounded():
    budget = EvaluationBudget(NOW)
    for number in range(MAX_PAUSES + 3):
        budget.note_excess(str(number), "slow")
    assert list(budget.pauses) == [str(number) for number in range(3, MAX_PAUSES + 3)]


def test_a_long_text_is_shortened_in_the_message_about_another():
    budget = EvaluationBudget(NOW)
    budget.note_excess("x" * 500, "slow")
    refusal = budget.find_refusal("b")
    assert refusal is not None
    assert f"{'x' * 119}… exceeded" in refusal.problem
