"""Real child processes: what is endless or greedy costs its own expression, nothing else."""

import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fanout.errors import Bug
from fanout.plan.evaluation_budget import FIRST_PAUSE, EvaluationBudget
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_pool import (
    MAX_BATCHES,
    ROWS_PER_REQUEST,
    ROWS_PER_WORKER,
    TEXTS_PER_REQUEST,
)
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.metrics import Counters, EventName
from fanout.values import replace

TIGHT = WorkerLimits(cpu=1, memory=128, wall_seconds=0.6, processes=1)
ROWS = [{"target": {"metadata": {"name": name}, "n": 1}} for name in ("a", "b")]
LIST = "[" + ",".join(["1"] * 60) + "]"
SUM = " + ".join(["a"] * 95)
COSTLY = f"[{LIST}].all(a, ({SUM}).all(b, {SUM} != []))"  # in steps


def lasting(factor):
    """An expression that takes much time in few steps: RE2 has no automaton of that size."""
    text, long = "'" + "x" * 100 + "'", " + ".join(["a"] * 40)
    longer = " + ".join(["b"] * factor)
    return f"[{text} + {text}].all(a, [{long}].all(b, !({longer}).matches('((x?){{30}}){{30}}y')))"


ENDLESS = lasting(40)  # a quarter of a minute


@pytest.fixture(scope="module")
def tight():
    with ProcessSandbox(TIGHT, Counters()) as sandbox:
        yield sandbox


def pids(workers):
    return [it._process.pid for it in workers._workers.values()]


def children(sandbox):
    """Process ids of all running children of a sandbox."""
    return pids(sandbox._expressions.workers) + pids(sandbox._templates.workers)


def descriptors():
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def child_processes():
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


def test_answers_by_expression_and_row(tight):
    answers = tight.evaluate(["target.metadata.name", "target.n + 1"], ROWS)
    assert answers == [["a", "b"], [2, 2]]


def test_without_rows_or_expressions_there_is_nothing_to_do(tight):
    assert tight.evaluate([], ROWS) == []
    assert tight.evaluate(["target.n"], []) == [[]]


def test_the_same_expression_twice_is_answered_twice(tight):
    assert tight.evaluate(["target.n", "target.n"], ROWS) == [[1, 1], [1, 1]]


def test_an_error_of_a_row_is_its_own(tight):
    rows = [*ROWS, {"target": {"n": 2}}]
    (names,) = tight.evaluate(["target.metadata.name"], rows)
    assert names[:2] == ["a", "b"]
    assert names[2] == ExpressionFailure(
        "ExpressionError", "target has no field 'metadata' (column 1)"
    )


def test_a_row_that_is_no_plain_data_is_broken_by_itself(tight):
    rows = [{"target": {"n": 1}}, {"target": {"n": float("nan")}}, {"target": {"n": {1, 2}}}]
    (values,) = tight.evaluate(["target.n"], rows)
    assert values[0] == 1
    assert [value.reason for value in values[1:]] == ["ExpressionError", "ExpressionError"]


# Each with room in the other limits, so that a slow machine hits the one that is meant.
HOSTILE = [
    (
        "endless loops",
        ENDLESS,
        WorkerLimits(cpu=30, memory=256, wall_seconds=0.6),
        "took longer than 0.6 s",
        "wall_time",
    ),
    (
        "half a gigabyte",
        "target.names.map(a, target.names.map(b, a + b))",
        WorkerLimits(cpu=30, memory=64, wall_seconds=30),
        "of memory",
        "memory",
    ),
]


@pytest.mark.parametrize(
    ("sentence", "text", "limits", "problem", "cause"), HOSTILE, ids=[row[0] for row in HOSTILE]
)
def test_an_expression_over_a_limit_fails_for_all_rows_and_the_others_go_on(
    sentence, text, limits, problem, cause
):
    names = ["x" * 200_000] * 40
    rows = [{"target": {"names": names, "n": number}} for number in range(2)]
    counters = Counters()
    with ProcessSandbox(limits, counters) as sandbox:
        broken, before, after = sandbox.evaluate([text, "target.n", "target.n + 1"], rows)
    assert [each.reason for each in broken] == ["LimitExceeded", "LimitExceeded"]
    assert problem in broken[0].problem
    assert (before, after) == ([0, 1], [1, 2])
    assert counters.events.read(EventName.SANDBOX_KILL) == {(cause,): 1}


def test_processor_time_is_limited_on_its_own():
    limits = WorkerLimits(cpu=1, memory=128, wall_seconds=30, processes=1)
    counters = Counters()
    with ProcessSandbox(limits, counters) as sandbox:
        broken, fine = sandbox.evaluate([ENDLESS, "target.n"], ROWS)
    assert counters.events.read(EventName.SANDBOX_KILL) == {("processor_time",): 1}
    assert (
        broken
        == [ExpressionFailure("LimitExceeded", "it took more than 1 s of processor time")] * 2
    )
    assert fine == [1, 1]


def test_steps_are_limited_and_the_verdict_is_kept_by_text_and_values():
    """It is the same on every machine, so no repetition helps."""
    text = "target.many.all(a, target.many.all(b, a + b >= 0))"
    rows = [{"target": {"many": list(range(number))}} for number in (10, 1000, 20)]
    counters = Counters()
    with ProcessSandbox(WorkerLimits(), counters) as sandbox:
        for _ in range(3):
            [[few, many, some]] = sandbox.evaluate([text], rows)
            assert few is True
            assert many == ExpressionFailure("LimitExceeded", "it takes more than 500,000 steps")
    assert some is True
    # The last row is left at first: what exceeded a limit would cost the limit for each row.
    assert counters.read()["evaluations"] == 3
    assert counters.events.read(EventName.SANDBOX_KILL) == {}


def test_steps_count_what_is_handled_too():
    with ProcessSandbox(replace(TIGHT, wall_seconds=60), Counters()) as patient:
        [answers] = patient.evaluate([COSTLY], ROWS)
    assert {it.problem for it in answers} == {"it takes more than 500,000 steps"}


NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CHEAP = "[target.n].map(n, n + 1)[0]"


@pytest.mark.parametrize("costly", [COSTLY, ENDLESS], ids=["by steps", "by time"])
def test_after_the_first_text_over_a_limit_the_others_of_a_budget_are_left(costly):
    counters = Counters()
    first, other = EvaluationBudget(NOW), EvaluationBudget(NOW)
    with ProcessSandbox(TIGHT, counters) as sandbox:
        texts = ["target.n", costly, CHEAP, f"{ENDLESS} && true"]
        simple, broken, *skipped = sandbox.evaluate(texts, ROWS[:1], first)
        assert simple == [1]
        assert broken[0].reason == "LimitExceeded"
        assert all("left for the next pass, because [" in it.problem for [it] in skipped)
        assert sandbox.evaluate([CHEAP], ROWS[:1], other) == [[2]]
        killed = counters.events.read(EventName.SANDBOX_KILL)
        # What was answered stays answered, and what exceeded a limit waits for its time.
        again = sandbox.evaluate([CHEAP, costly], ROWS, EvaluationBudget(NOW, first.pauses))
        assert again[0] == [2, 2]
        assert counters.events.read(EventName.SANDBOX_KILL) == killed


def test_a_text_that_exceeded_a_limit_of_time_is_tried_again_after_its_pause():
    budget = EvaluationBudget(NOW)
    text = f"target.n == 1 || {lasting(4)}"
    with ProcessSandbox(TIGHT, Counters()) as sandbox:
        row = {"target": {"n": 2}}
        [[broken]] = sandbox.evaluate([text], [row], budget)
        assert broken.problem == "it took longer than 0.6 s"
    with ProcessSandbox(WorkerLimits(cpu=60, wall_seconds=60), Counters()) as sandbox:
        [[paused]] = sandbox.evaluate([text], [row], EvaluationBudget(NOW, budget.pauses))
        assert paused == broken
        later = EvaluationBudget(NOW + FIRST_PAUSE, budget.pauses)
        assert sandbox.evaluate([text], [row], later) == [[True]]
        assert later.pauses == {}


def test_a_verdict_that_is_kept_is_no_success():
    budget = EvaluationBudget(NOW)
    with ProcessSandbox(WorkerLimits(cpu=60, wall_seconds=60), Counters()) as sandbox:
        [[broken]] = sandbox.evaluate([COSTLY], ROWS[:1], budget)
        again = EvaluationBudget(NOW + FIRST_PAUSE, budget.pauses)
        assert sandbox.evaluate([COSTLY], ROWS[:1], again) == [
            [ExpressionFailure("LimitExceeded", "it takes more than 500,000 steps")]
        ]
    assert broken.problem == "it takes more than 500,000 steps"
    assert COSTLY in again.pauses


def test_costly_texts_below_the_limit_end_a_budget_together():
    rows = [{"target": {"many": list(range(150)), "n": number}} for number in range(40)]
    text = "target.many.all(a, target.many.all(b, a + b >= 0)) && target.n >= 0"
    limits = WorkerLimits(cpu=60, wall_seconds=60, processes=1)
    with ProcessSandbox(limits, Counters()) as sandbox:
        [answers] = sandbox.evaluate([text], rows, EvaluationBudget(NOW, {}, 1_000_000))
        done = answers.count(True)
        # Time counts too, so that a slow machine gets fewer of them done.
        assert 0 < done < 20
        assert all("left for the next pass" in it.problem for it in answers[done:])
        [answers] = sandbox.evaluate([text], rows, EvaluationBudget(NOW, {}, 1_000_000))
        further = answers.count(True)
        assert done < further < 40
        assert answers[:further] == [True] * further


def test_time_counts_where_steps_tell_little():
    budget = EvaluationBudget(NOW, {}, 500_000)
    limits = WorkerLimits(cpu=60, wall_seconds=60, processes=1)
    with ProcessSandbox(limits, Counters()) as sandbox:
        [done], [skipped] = sandbox.evaluate([lasting(8), CHEAP], ROWS[:1], budget)
    assert done is True
    assert "left for the next pass, because those before it took" in skipped.problem
    assert budget.pauses == {}


def test_parsing_is_counted_by_what_a_text_consists_of():
    """A text of single characters takes several times as long to parse as one of words."""
    dense = [f"{'n?b:' * 250}{it}" for it in range(30)]
    usual = [f"target.metadata.labels.tier == 'prod' && target.n > {it}" for it in range(30)]
    limits = WorkerLimits(cpu=60, wall_seconds=60, processes=1)
    for texts, is_left in ((dense, True), (usual, False)):
        with ProcessSandbox(limits, Counters()) as sandbox:
            columns = sandbox.evaluate(texts, ROWS[:1], EvaluationBudget(NOW, {}, 2_000_000))
        left_texts = {"left for the next pass" in str(answer) for [answer] in columns}
        assert left_texts == {is_left}


def test_the_time_of_parsing_counts_where_its_length_tells_little():
    deep = "{{ " + "+".join(["n"] * 330) + " }}"  # a time that grows with the square of its depth
    limits = WorkerLimits(cpu=60, wall_seconds=60, processes=1)
    with ProcessSandbox(limits, Counters()) as sandbox:
        budget = EvaluationBudget(NOW, {}, 100_000)
        [done] = sandbox.render([deep], [{"n": 1}], budget)
        [skipped] = sandbox.render(["{{ n }}"], [{"n": 1}], budget)
    assert "left for the next pass" not in str(done)
    assert "left for the next pass" in str(skipped)


def test_large_values_outside_of_macros_end_a_budget_together():
    """Each text takes some hundredths of a second, and no step."""
    row = {"target": {"many": list(range(3700))}}
    texts = [" || ".join([f"{it}.5 in target.many"] * 30) for it in range(64)]
    limits = WorkerLimits(cpu=60, wall_seconds=60, processes=1)
    with ProcessSandbox(limits, Counters()) as sandbox:
        sandbox.compile(texts, [])
        columns = sandbox.evaluate(texts, [row], EvaluationBudget(NOW, {}, 1_000_000))
    done = [answer for [answer] in columns].count(False)
    assert 1 <= done < 40
    assert all("left for the next pass" in answer.problem for [answer] in columns[done:])


def test_a_duration_of_many_letters_is_no_work(tight):
    text = f"duration('{'a' * 200}!')"
    (values,) = tight.evaluate([text, ], ROWS)  # fmt: skip
    assert [value.reason for value in values] == ["ExpressionError", "ExpressionError"]
    (values,) = tight.evaluate([f"duration('{'1' * 900}!')"], ROWS)
    assert [value.reason for value in values] == ["ExpressionError", "ExpressionError"]


def test_an_answer_that_is_too_long_is_no_answer(tight):
    rows = [{"target": {"name": "x" * 600_000}}]
    (values,) = tight.evaluate(["target.name + target.name"], rows)
    assert values[0].reason == "LimitExceeded"
    assert "longer than 1048576 characters" in values[0].problem


def test_half_a_character_is_no_text(tight):
    (values,) = tight.evaluate(["'\\ud800'"], ROWS)
    assert isinstance(values[0], ExpressionFailure)


def test_evaluated_rows_are_not_asked_again():
    counters = Counters()
    rows = [{"target": {"stage": f"s{number % 4}", "name": str(number)}} for number in range(100)]
    texts = ["[target.stage].map(s, s)[0]", "[target.stage].map(s, s + 'x')[0]"]
    with ProcessSandbox(TIGHT, counters) as sandbox:
        first = sandbox.evaluate(texts, rows)
        assert counters.read()["evaluations"] == 8
        assert sandbox.evaluate(texts, rows) == first
        assert counters.read()["evaluations"] == 8
    assert first[0][:5] == ["s0", "s1", "s2", "s3", "s0"]


def test_values_that_look_alike_are_kept_apart(tight):
    rows = [{"target": {"n": value}} for value in (1, True, "1", 1.5, None)]
    (values,) = tight.evaluate(["[target.n].map(n, n)"], rows)
    assert [repr(value) for value in values] == ["[1]", "[True]", "['1']", "[1.5]", "[None]"]


def test_big_batches_are_shared_out_among_two_children():
    rows = [
        {"target": {"name": f"t{number}"}}
        for number in range(ROWS_PER_WORKER + ROWS_PER_REQUEST + 7)
    ]
    with ProcessSandbox(WorkerLimits(processes=2), Counters()) as sandbox:
        (values,) = sandbox.evaluate(["[target.name].map(n, n + '!')[0]"], rows)
        assert len(children(sandbox)) == 2
    assert values == [f"{row['target']['name']}!" for row in rows]


def test_a_limit_exceeded_in_a_big_batch_leaves_the_others_whole():
    limits = WorkerLimits(cpu=5, memory=128, wall_seconds=1.0, processes=2)
    rows = [{"target": {"n": number}} for number in range(ROWS_PER_WORKER)]
    endless = f"{ENDLESS} || target.n > 0"
    with ProcessSandbox(limits, Counters()) as sandbox:
        broken, fine = sandbox.evaluate([endless, "[target.n].map(n, n + 1)[0]"], rows)
    assert {each.reason for each in broken} == {"LimitExceeded"}
    assert fine == list(range(1, ROWS_PER_WORKER + 1))


def test_a_text_too_costly_to_read_leaves_the_others_of_its_question_whole():
    greedy = "{{a}}" * 13_000  # a second to read, and allowed to be so long
    with ProcessSandbox(WorkerLimits(cpu=30, wall_seconds=0.3, processes=1), Counters()) as sandbox:
        broken = sandbox.compile([], ["{{ a }}", greedy, "{{"])
        assert sandbox.render(["{{ target.n }}"], ROWS[:1]) == [["1"]]
    assert {text: each.reason for text, each in broken.items()} == {
        greedy: "LimitExceeded",
        "{{": "ExpressionError",
    }


def test_more_texts_than_one_question_holds_are_read(tight):
    texts = [f"target.n + {number}" for number in range(2 * TEXTS_PER_REQUEST + 3)]
    assert tight.evaluate(texts, ROWS[:1]) == [[1 + number] for number in range(len(texts))]


def test_an_idle_worker_does_not_wear_out():
    with ProcessSandbox(TIGHT, Counters()) as sandbox:
        sandbox.evaluate(["target.n"], ROWS)
        before = children(sandbox)
        for _ in range(MAX_BATCHES + 1):
            sandbox.evaluate(["target.n"], ROWS)
        assert children(sandbox) == before


def test_a_worker_killed_while_idle_is_replaced(tight):
    tight.evaluate(["target.n"], ROWS)
    (before,) = pids(tight._expressions.workers)
    os.kill(before, signal.SIGKILL)
    assert tight.evaluate(["[target.n].map(n, n + 40)[0]"], ROWS) == [[41, 41]]
    assert pids(tight._expressions.workers) != [before]


def test_a_worker_killed_in_the_middle_is_replaced_and_the_query_repeated():
    rows = [{"target": {"n": number}} for number in range(3 * ROWS_PER_REQUEST)]
    text = f"({' + '.join([LIST] * 5)}).all(a, a + target.n > 0)"  # a chunk takes a while
    with ProcessSandbox(WorkerLimits(wall_seconds=60, cpu=60, processes=1), Counters()) as sandbox:
        sandbox.evaluate(["target.n"], rows[:1])
        (pid,) = children(sandbox)
        killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
        killer.start()
        (values,) = sandbox.evaluate([text], rows)
        killer.join()
        assert children(sandbox) != [pid]
    assert values == [True] * len(rows)


def test_an_interrupted_question_s_answer_is_not_taken_for_the_next_one_s():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with ProcessSandbox(WorkerLimits(processes=1), Counters()) as sandbox:
            sandbox.evaluate(["target.n"], ROWS)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                sandbox.evaluate([ENDLESS], ROWS)
            assert sandbox.evaluate(["target.n + 1"], ROWS) == [[2, 2]]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_no_worker_and_no_descriptor_is_left_behind():
    before, running = descriptors(), child_processes()
    with ProcessSandbox(TIGHT, Counters()) as sandbox:
        sandbox.evaluate([ENDLESS, "[target.n].map(n, n)"], ROWS)
        sandbox.render(["{{ target.n }}"], ROWS)
        pids = children(sandbox)
        assert len(pids) == 2
    assert descriptors() == before
    assert child_processes() <= running
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    sandbox.close()  # once more is no fault


def test_a_busy_worker_is_ended_at_close():
    sandbox = ProcessSandbox(WorkerLimits(processes=1), Counters())
    sandbox.evaluate(["target.n"], ROWS)
    (pid,) = children(sandbox)
    os.kill(pid, signal.SIGSTOP)  # deaf to everything but a kill
    sandbox.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_closed_sandbox_starts_nothing():
    sandbox = ProcessSandbox(TIGHT, Counters())
    sandbox.close()
    with pytest.raises(Bug, match="closed"):
        sandbox.evaluate(["1"], ROWS)


def test_the_worker_sees_no_environment_and_no_files_of_ours(monkeypatch, tight):
    monkeypatch.setenv("FANOUT_TOKEN", "hunter2")
    with ProcessSandbox(TIGHT, Counters()) as sandbox:
        sandbox.evaluate(["target.n"], ROWS)
        (pid,) = children(sandbox)
        process = Path(f"/proc/{pid}")
        assert b"hunter2" not in (process / "environ").read_bytes()
        assert (process / "cwd").readlink() == Path("/")
        assert len(list((process / "fd").iterdir())) <= 4
        limits = (process / "limits").read_text().splitlines()
    by_name = {line[:26].strip(): line[26:].split()[:2] for line in limits}
    assert by_name["Max file size"] == ["0", "0"]
    assert by_name["Max processes"] == ["0", "0"]
    assert by_name["Max open files"] == ["16", "16"]
    assert by_name["Max core file size"] == ["0", "0"]
    assert int(by_name["Max address space"][0]) < 2 << 30
