"""What closures answer is what a worker answers; where they do not know, it is asked."""

import json
import subprocess
import sys
from operator import itemgetter

import pytest
from hypothesis import given, settings
from sandbox.generated import EXPRESSIONS, ROWS

from fanout.sandbox.cel_worker import CelEngine
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.expression_closures import MAX_TEXT_LENGTH, build_closure
from fanout.sandbox.free_variables import encode_part, project_row
from fanout.sandbox.worker_protocol import RefusedError, WorkerLimits, answer_texts
from fanout.selection.variant_spec import ASK, ExpressionFailure
from fanout.telemetry.metrics import Counters
from fanout.values import astuple

ENGINE = CelEngine()


def compiled(text):
    """The closure, or None, as the parent makes it of what a child sends."""
    outline = json.loads(json.dumps(ENGINE.serialize_ast(text)))
    return None if outline is None else build_closure(outline, ENGINE.find_free_variables(text))


def by_worker(text, row):
    """The answer that a child sends, as it sends it: `[value]`, or reason, problem and remedy."""
    part = encode_part(project_row(row, ENGINE.find_free_variables(text)))
    response = json.loads(answer_texts(ENGINE, {"text": text, "rows": [json.loads(part)]}))
    return json.dumps({"answers": response["answers"]})


def sent(value):
    return json.dumps({"answers": [[value]]})


def agrees(text, row, closure):
    """Whether the closure says what a worker says; it may leave the question to it."""
    value = ASK if closure is None else closure(row)
    return value is ASK or sent(value) == by_worker(text, row)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, ROWS)
def test_a_closure_s_answer_is_a_worker_s(text, row):
    try:
        closure = compiled(text)
    except RefusedError:
        return
    assert agrees(text, row, closure)


VALUES = [
    None, True, False, 0, 1, -3, 7, 2**63 - 1, -(2**63), 0.5, 2.0, -1.5, 1e300, "", "a", "ab", "%s",
    "-3", "æ", [], ["a"], [1, "a"], [None, "b"], [True], [[1]], {}, {"a": 1}, {"a": {"b": 1.0}},
]  # fmt: skip
OBJECTS = [{"x": value} for value in VALUES] + [{}]
SIGNS = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "&&", "||"]
OF_TWO = [
    *(f"a.x {sign} b.x" for sign in SIGNS),
    *(f"double(a.x) {sign} double(b.x)" for sign in SIGNS),
    *(f"a.x {sign} 1.0" for sign in SIGNS),
    *(f"0.0 {sign} b.x" for sign in SIGNS),
    "a.x[b.x]",
    "a.x.contains(b.x)",
    "a.x.startsWith(b.x)",
    "a.x.endsWith(b.x)",
    "a.x ? a.x : b.x",
    "has(a.x.a) ? a.x.a : b.x",
    "has(a.x.a.b) ? a.x : -b.x",
    "[a.x, b.x]",
    "{'a': a.x}",
    "!a.x || has(b.x)",
    "size(a.x) + b.x.size()",
    "string(a.x) + string(b.x)",
    "int(a.x)",
]


@pytest.mark.parametrize("text", OF_TWO)
def test_a_closure_agrees_with_a_worker_for_any_two_values(text):
    closure = compiled(text)
    rows = [{"a": a, "b": b} for a in OBJECTS for b in OBJECTS]
    assert [row for row in rows if not agrees(text, row, closure)] == []


# A truth, a lie, no truth, an error, and one of a number that is out of range.
OPERANDS = ["true", "false", "1", "a.gone", "int(1e308 * 10.0)"]
AROUND = [
    "{} && {}",
    "{} || {}",
    "!({} && {})",
    "({} ? {} : 1) || true",
    "({} ? 1 : {}) && false",
    "({} == {}) || true",
    "({} + {} == 1) || true",
    "({} % {} == 1) || true",
    "('%s' % {} == 'x') || {}",
    "('%s' % {} == '') == {} || true",
    "({} in [{}]) || true",
    "has({{'a': {}}}.a) || {}",
    "has({{'a': {}}}.b) || {}",
    "([{}, {}] == []) || true",
    "(size([{}]) == 1) && {}",
    "has((('%s' % {} != '') ? {{'a': 1}} : {{}}).a) || {}",
]


@pytest.mark.parametrize("form", AROUND)
def test_a_fault_goes_as_far_as_in_a_worker(form):
    texts = [form.format(one, other) for one in OPERANDS for other in OPERANDS]
    assert [text for text in texts if not agrees(text, {"a": {}}, compiled(text))] == []


ROW = {
    "stage": {"total": 40, "inFlight": 2, "failed": 0, "share": 0.5, "whole": 3.0},
    "target": {
        "metadata": {
            "name": "eu-1",
            "labels": {"region": "eu", "example.com/tier": "prod", "æ": "\U0001f600"},
        },
        "spec": {"zones": ["a", "b"], "ports": [80, 443], "on": True, "none": None, "size": "12"},
    },
}
IN_PROCESS = [
    ("a comparison of aggregates", "stage.inFlight < 3", True),
    ("sums and products", "stage.inFlight * 2 + 1 <= stage.total / 8", True),
    ("a remainder has the sign of what is divided", "-7 % 4", -3),
    ("division is towards zero", "-7 / 2", -3),
    ("fractions", "stage.share * 3.0", 1.5),
    ("a whole number and a fraction compared", "0 < stage.share && 2.0 == stage.inFlight", True),
    ("a fraction that becomes whole", "stage.share + 0.5", 1),
    ("a whole number written with a dot", "stage.whole == 3", True),
    ("a whole number written with a dot as it is", "stage.whole", 3),
    ("a field", "target.metadata.name", "eu-1"),
    ("a leading dot", ".target.metadata.name", "eu-1"),
    ("a key that is no name", "target.metadata.labels['example.com/tier']", "prod"),
    ("a computed key", "target.metadata.labels['reg' + 'ion']", "eu"),
    ("a map to choose from", "{'eu': 'a', 'us': 'b'}[target.metadata.labels.region]", "a"),
    ("an item", "target.spec.ports[1]", 443),
    ("concatenation", "'monitoring-' + target.metadata.name", "monitoring-eu-1"),
    ("characters are counted, not bytes", "size(target.metadata.labels['æ'])", 1),
    ("items are counted", "target.spec.zones.size() + size(target.metadata.labels)", 5),
    ("has", "has(target.metadata.labels.region) ? 1 : 0", 1),
    ("has of what is not there", "has(target.metadata.labels.canary) ? 1 : 0", 0),
    ("has of null", "has(target.spec.none)", True),
    ("has of a computed map's field", "has({'a': target.spec.on}.a)", True),
    ("a number and a text", "target.metadata.name == 3", False),
    ("a boolean and a number", "target.spec.on == 1 || target.spec.none == 0", False),
    ("a list that is not null", "target.spec.zones != null", True),
    ("in a list of several kinds", "3 in ['3', true, null, [3]]", False),
    ("a boolean as text", "string(target.spec.on)", "true"),
    ("a text put together and its part", "('a' + 'b').contains('ab')", True),
    ("a fraction by zero", "1.0 / 0.0 > 1.0", True),
    ("true beside what is no boolean", "1 || true", True),
    ("only one branch", "has(target.x) ? target.x : 'none'", "none"),
    ("false beside a fault", "has(target.x) && target.x == 'a'", False),
    ("false behind a fault", "target.x == 'a' && has(target.x)", False),
    ("true beside a fault", "stage.total > 3 || target.x", True),
    ("true behind a fault", "target.x || stage.total > 3", True),
    ("in a map", "'region' in target.metadata.labels", True),
    ("in a list", "'c' in target.spec.zones", False),
    ("in a list of numbers", "443 in target.spec.ports", True),
    ("in nothing", "1 in []", False),
    ("text methods", "target.metadata.name.startsWith('eu') && 'abc'.contains('b')", True),
    ("the end of a text", "target.metadata.name.endsWith('eu')", False),
    ("order of text is by code point", "'Z' < 'a' && 'z' < 'æ'", True),
    ("null", "target.spec.none == null && target.metadata.name != null", True),
    ("an empty map", "target.metadata.labels == {}", False),
    ("an empty list", "target.spec.zones != []", True),
    ("not", "!target.spec.on", False),
    ("a negative number", "-stage.inFlight", -2),
    ("conversions", "string(stage.total) + string(1.5) + string(int(target.spec.size))", "401.512"),
    ("a number of a fraction", "int(stage.share) + int(-1.9)", -1),
    ("a fraction of a number", "double(stage.total) / 80.0", 0.5),
    ("a list", "[target.metadata.name, 'x']", ["eu-1", "x"]),
    ("a map", "{'name': target.metadata.name}", {"name": "eu-1"}),
    ("a map as it is", "target.metadata.labels", ROW["target"]["metadata"]["labels"]),
    ("the least number", "-9223372036854775808", -(2**63)),
    ("a number in sixteens", "0x1F", 31),
    ("escapes", r"'\u00e6' + r'\n' + '''a'b'''", "æ\\na'b"),
]


@pytest.mark.parametrize(("_", "text", "value"), IN_PROCESS, ids=map(itemgetter(0), IN_PROCESS))
def test_a_simple_expression_is_evaluated_in_process(_, text, value):
    result = compiled(text)(ROW)
    assert (result, type(result)) == (value, type(value))
    assert sent(result) == by_worker(text, ROW)


NOT_SIMPLE = [
    ("macros", "target.spec.zones.exists(z, z == 'a')"),
    ("patterns", "target.metadata.name.matches('^eu')"),
    ("times", "duration('1h') > duration('1m')"),
    ("unsigned numbers", "1u + 2u"),
    ("bytes", "size(b'abc')"),
    ("types", "type(1) == int"),
    ("keys that are computed", "{target.metadata.name: 1}"),
    ("keys that are there twice", "{'a': 1, 'a': 2}"),
    ("too deep a tree", "+".join(["1"] * 66)),
]


@pytest.mark.parametrize(("_", "text"), NOT_SIMPLE, ids=map(itemgetter(0), NOT_SIMPLE))
def test_a_complex_expression_has_no_closure(_, text):
    assert compiled(text) is None


LONG = "x" * (MAX_TEXT_LENGTH // 2 + 1)
DEEP = json.loads("[" * 25 + "]" * 25)
LEFT = [
    ("a field that is not there", "target.x", {"target": {}}),
    ("a variable that is not there", "target.x", {}),
    ("a field of a text", "target.x.y", {"target": {"x": "a"}}),
    ("faults on both sides", "target.x || target.y", {"target": {}}),
    ("a fault beside what decides nothing", "target.x && true", {"target": {}}),
    ("a choice by a fault", "target.x ? 1 : 2", {"target": {}}),
    ("a choice by a number", "target.x ? 1 : 2", {"target": {"x": 1}}),
    ("a field of what is not there", "has(target.x.y)", {"target": {}}),
    ("a field of a text that is asked for", "has(target.x.y)", {"target": {"x": "a"}}),
    ("a field of no variable", "has(nobody.x)", {}),
    ("nothing has no size", "size(target.x)", {"target": {"x": None}}),
    ("what is no boolean beside what decides nothing", "target.x || false", {"target": {"x": 1}}),
    ("a number and a fraction", "target.x + 1.5", {"target": {"x": 1}}),
    ("too large a sum", "target.x + 1", {"target": {"x": 2**63 - 1}}),
    ("the least number's opposite", "-target.x", {"target": {"x": -(2**63)}}),
    ("division by zero", "1 / target.x", {"target": {"x": 0}}),
    ("a remainder by zero", "1 % target.x", {"target": {"x": 0}}),
    ("a text as a format", "'%s' % target.x == ''", {"target": {}}),
    ("an index too large", "target.x[1]", {"target": {"x": ["a"]}}),
    ("a negative index", "target.x[-1]", {"target": {"x": ["a"]}}),
    ("a truth as number", "target.x + 1", {"target": {"x": True}}),
    ("a text in a text", "'a' in target.x", {"target": {"x": "a"}}),
    ("two full lists", "target.x == [1]", {"target": {"x": [1]}}),
    ("two full maps", "target.x == target.x", {"target": {"x": {"a": 1}}}),
    ("lists put together", "target.x + [1]", {"target": {"x": [1]}}),
    ("no number in a text", "int(target.x)", {"target": {"x": " 1"}}),
    ("fractions in a list", "target.x", {"target": {"x": [1.0]}}),
    ("data out of range that is not looked at", "has(target.x)", {"target": {"x": 2**63}}),
    ("such data in a list", "size(target.x)", {"target": {"x": [[2**63]]}}),
    ("such data in a branch not taken", "true ? 1 : target.x", {"target": {"x": 2**63}}),
    ("such data where fields are looked for", "has(target.x.y)", {"target": {"x": [2**63]}}),
    ("a long text put together", "target.x + target.x", {"target": {"x": LONG}}),
    ("a long text as it is", "target.x", {"target": {"x": LONG + LONG}}),
    ("a long text that is only asked for", "has(target.x)", {"target": {"x": LONG + LONG}}),
    ("a long list", "1 in target.x", {"target": {"x": [1] * (MAX_TEXT_LENGTH // 16 + 1)}}),
    ("a list of long texts", "size(target.x)", {"target": {"x": [LONG, LONG]}}),
    ("deep data", "size(target.x)", {"target": {"x": DEEP}}),
    ("half a character", "size(target.x)", {"target": {"x": "\ud83d\ude00"}}),
]  # fmt: skip


@pytest.mark.parametrize(("_", "text", "row"), LEFT, ids=map(itemgetter(0), LEFT))
def test_an_unusual_row_is_left_to_a_worker(_, text, row):
    assert compiled(text)(row) is ASK


@pytest.fixture(scope="module")
def sandbox():
    with ProcessSandbox(WorkerLimits(), Counters()) as opened:
        yield opened


@pytest.mark.parametrize(("_", "text", "row"), LEFT, ids=map(itemgetter(0), LEFT))
def test_rows_that_a_closure_leaves_have_the_results_of_a_worker(_, text, row, sandbox):
    [[value]] = sandbox.evaluate([text], [row])
    answer = list(astuple(value)) if isinstance(value, ExpressionFailure) else [value]
    assert json.dumps({"answers": [answer]}) == by_worker(text, row)
    (closure,) = sandbox.closures([text])
    assert closure(row) is ASK


def test_simple_expressions_start_no_worker():
    counters = Counters()
    texts = [text for _, text, _ in IN_PROCESS]
    with ProcessSandbox(WorkerLimits(), counters) as sandbox:
        columns = sandbox.evaluate(texts, [ROW, ROW])
        closures = sandbox.closures(texts)
        assert [closure(ROW) for closure in closures] == [value for _, _, value in IN_PROCESS]
    assert columns == [[value, value] for _, _, value in IN_PROCESS]
    assert counters.read()["evaluations"] == 0


def test_a_closure_says_what_it_reads(sandbox):
    simple, macro, wrong = sandbox.closures(["stage.failed == 0", "[1].all(x, true)", "stage."])
    assert (simple.text, simple.reads) == ("stage.failed == 0", {"stage": {"failed": {}}})
    assert (macro, wrong) == (None, None)


def test_a_closure_outlives_its_sandbox():
    with ProcessSandbox(WorkerLimits(), Counters()) as sandbox:
        (closure,) = sandbox.closures(["stage.failed == 0"])
    assert closure({"stage": {"failed": 0}}) is True
    assert closure({"stage": {}}) is ASK


def test_the_parent_does_not_load_what_parses():
    """It takes longer than most commands."""
    heavy = "{'celpy', 'lark', 'jinja2'}"
    code = f"import sys, fanout.sandbox.evaluator; print({heavy} & set(sys.modules))"
    value = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert value.stdout == "set()\n"


def test_a_text_that_is_no_expression_is_refused_though_it_is_a_template(sandbox):
    text = "{{ target.name }}"
    assert list(sandbox.compile([text], [text])) == [text]
