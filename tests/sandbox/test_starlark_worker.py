"""Scripts in Starlark, run in real child processes: what they may do, and where they end."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.sandbox.function_runner import run_scripts
from fanout.sandbox.starlark_worker import StarlarkEngine
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.variants.function_requests import ResponseError, ScriptOutput, ScriptRun

LIMITS = WorkerLimits(cpu=2, memory=128, wall_seconds=20)


def thing(kind="ConfigMap", name="x", **fields):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def script(source, *items, config=None):
    whole = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": [*items]}
    return ScriptRun(source, json.dumps({**whole, "functionConfig": config or {}}))


def run(source, *items, limits=LIMITS, config=None):
    [answer] = run_scripts([script(source, *items, config=config)], limits, EventCounters())
    return answer


RIGHT = [
    ("a loop at the top",
     'for r in ctx.resource_list["items"]:\n  r["metadata"]["namespace"] = "a"',
     [thing(metadata={"name": "x", "namespace": "a"})]),
    ("a function",
     ("def run(items, name):\n  for r in items:\n    r['metadata']['name'] = name\n"
      "run(ctx.resource_list['items'], 'y')"), [thing(name="y")]),
    ("a condition at the top, and a name set again",
     "n = 1\nif n == 1:\n  n = 2\nctx.resource_list['items'][0]['data'] = {'n': str(n)}",
     [thing(data={"n": "2"})]),
    ("recursion", ("def f(n):\n  return 0 if n == 0 else 1 + f(n - 1)\n"
     "ctx.resource_list['items'][0]['n'] = f(100)"), [thing(n=100)]),
    ("a new object", "ctx.resource_list['items'].append({'kind': 'A'})", [thing(), {"kind": "A"}]),
    ("other items", "ctx.resource_list['items'] = []", []),
    ("no items", "ctx.resource_list.pop('items')", []),
    ("nothing", "", [thing()]),
    ("methods of dicts and lists", ("r = ctx.resource_list['items'][0]\n"
     "r['metadata'].setdefault('labels', {}).update([('a', 'b')])\nr.pop('kind')\n"
     "r['l'] = sorted([3, 1, 2], reverse=True)[:2]"),
     [{"apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "b"}}, "l": [3, 2]}]),
    ("formatted text",
     "ctx.resource_list['items'][0]['data'] = {'t': '%s-{}'.format(1) % 'a'}",
     [thing(data={"t": "a-1"})]),
    ("JSON", "ctx.resource_list['items'][0]['data'] = json.decode(json.encode({'a': [1, None]}))",
     [thing(data={"a": [1, None]})]),
    ("the catalog's own library", ('load("krmfn.star", "krmfn")\n'
     "for r in ctx.resource_list['items']:\n"
     "  if krmfn.match_gvk(r, 'v1', 'ConfigMap') and krmfn.match_name(r, 'x')"
     " and krmfn.match_namespace(r, ''):\n    r['data'] = {}"), [thing(data={})]),
    ("an environment that is empty", "ctx.resource_list['items'][0]['data'] = ctx.environment",
     [thing(data={})]),
    ("schemas that are empty", "ctx.resource_list['items'][0]['data'] = ctx.open_api",
     [thing(data={})]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "items"), [row[1:] for row in RIGHT], ids=[r[0] for r in RIGHT])
def test_a_script_may_have(source, items):
    assert run(source, thing()) == ScriptOutput(items)


DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(DATA)
def test_values_come_back_as_they_went(value):
    items = [thing(data=value)]
    returned = StarlarkEngine().run_source("", json.loads(json.dumps({"items": items})))["items"]
    assert returned == items
    assert repr(returned) == repr(items)  # 1 is not 1.0, nor True


@pytest.mark.parametrize("field", ["params", "data", "whatever"])
def test_a_script_reads_its_configuration(field):
    source = f"ctx.resource_list['items'][0]['a'] = ctx.resource_list['functionConfig']['{field}']"
    assert run(source, thing(), config={field: {"x": "1"}}) == ScriptOutput([thing(a={"x": "1"})])


WRONG = [
    ("fails", "x = 1\nfail('no', 'replicas', 3)", "line 2 of the script: no replicas 3"),
    ("fails in a function", "def f():\n  fail('bad')\nf()", "line 2 of the script: bad"),
    ("looks for what is not there", "x = {}['a']", 'line 1 of the script: Key `"a"` was not found'),
    ("is no Starlark", "x = (", "line 1 of the script: Parse error: unexpected new line here"),
    ("loops for ever by while", "while True:\n  pass",
     "line 1 of the script: Parse error: cannot use reserved keyword `while`"),
    ("reads a file", "open('/etc/passwd')", "line 1 of the script: Variable `open` not found"),
    ("loads a library", 'load("http.star", "http")', "the script loads http.star"),
    ("changes what it walks through",
     ("for r in ctx.resource_list['items']:\n"
     "  ctx.resource_list['items'].append(r)"), "line 2 of the script: This operation mutates"),
    ("leaves a function",
     "ctx.resource_list['items'][0]['f'] = len", "not supported on type `function`"),
    ("leaves a circle", "r = ctx.resource_list['items'][0]\nr['self'] = r", "Cycle detected"),
    ("calls itself for ever", "def f():\n  f()\nf()",
     "line 2 of the script: Starlark call stack overflow"),
    ("loops for long", "for i in range(1000000000):\n  pass",
     "the script takes more than 20,000,000 instructions"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "problem"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG]
)
def test_a_script_fails_that(source, problem):
    answer = run(source, thing())
    assert isinstance(answer, ResponseError)
    assert problem in answer.problem
    assert "Traceback" not in answer.problem


ENDLESS = [
    ("memory", "x = 'a' * 1000000000", "it needed more than 128 MiB of memory"),
    ("memory, little by little",
     "x = []\nfor i in range(100000):\n  x.append('a' * 100000 + str(i))",
     "it needed more than 128 MiB of memory"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "problem"), [row[1:] for row in ENDLESS], ids=[r[0] for r in ENDLESS]
)
def test_a_script_is_ended_that_takes_too_much(source, problem):
    answer = run(source)
    assert isinstance(answer, ResponseError)
    assert answer.problem == f"the script was ended: {problem}"


def test_a_script_that_takes_too_long_in_one_instruction_is_ended():
    # Nothing is allocated in the loop: the memory limit must not come first.
    source = "x = list(range(1000000))\nfor i in range(10000):\n  max(x)"
    answer = run(source, limits=WorkerLimits(cpu=1, memory=1024, wall_seconds=60))
    assert isinstance(answer, ResponseError)
    assert "processor time" in answer.problem


def test_many_are_answered_in_their_order_and_one_that_is_ended_harms_no_other():
    source = "ctx.resource_list['items'][0]['n'] = 1"
    scripts = [script(source, thing(name=str(number))) for number in range(60)]
    scripts[7] = script("x = 'a' * 1000000000")
    events = EventCounters()
    answers = run_scripts(scripts, LIMITS, events)
    assert events.read(EventName.SANDBOX_KILL) == {("memory",): 1}
    assert isinstance(answers.pop(7), ResponseError)
    names = [answer.items[0]["metadata"]["name"] for answer in answers]
    assert names == [str(number) for number in range(60) if number != 7]


def test_a_script_sees_nothing_of_the_one_before():
    scripts = [script("y = 1"), script("x = y")]
    first, second = run_scripts(scripts, WorkerLimits(processes=1), EventCounters())
    assert first == ScriptOutput([])
    assert isinstance(second, ResponseError)


def test_printed_lines_of_a_script_are_returned():
    answer = run("print('a', 1, {'b': [2]})\nprint('c')")
    assert answer == ScriptOutput([], ("a 1 {'b': [2]}", "c"))


def test_no_more_than_some_lines_are_handed_on():
    answer = run("for i in range(1000):\n  print('x' * 10000)")
    assert isinstance(answer, ScriptOutput)
    assert len(answer.printed) == 50
    assert {len(line) for line in answer.printed} == {300}


NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LONG = "for i in range(1000000000):\n  pass"


@pytest.mark.parametrize("source", [LONG, ENDLESS[0][1]], ids=["by steps", "by memory"])
def test_after_the_first_script_over_a_limit_the_others_of_a_budget_are_left(source):
    budget, events = EvaluationBudget(NOW), EventCounters()
    scripts = [script("y = 1"), script(source), script("z = 1"), script(source, thing())]
    first, broken, skipped, again = run_scripts(scripts, LIMITS, events, budget)
    assert first == ScriptOutput([])
    assert isinstance(broken, ResponseError)
    assert isinstance(skipped, ResponseError)
    assert isinstance(again, ResponseError)
    assert "the script was not run: it is left for the next pass, because" in skipped.problem
    assert "tried again from 2026-03-02T09:01:00Z" in again.remedy
    # The number of instructions is the same on every machine.
    assert [it.is_final for it in (broken, skipped, again)] == [source == LONG, False, False]
    assert run_scripts(scripts[2:3], LIMITS, events, EvaluationBudget(NOW)) == [ScriptOutput([])]
