"""What expressions yield and how their errors read; that reading only a part changes nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import StringConstraints

from fanout.api.text_fields import Expression
from fanout.sandbox.cel_syntax import MAX_EXPRESSION_LENGTH
from fanout.sandbox.cel_worker import CelEngine
from fanout.sandbox.free_variables import encode_part, project_row
from fanout.sandbox.worker_protocol import RefusedError

ENGINE = CelEngine()
TARGET = {
    "metadata": {"name": "eu-1", "labels": {"region": "eu", "fanout.dev/tier": "prod"}},
    "spec": {"size": 3, "ratio": 0.5, "whole": 2.0, "zones": ["a", "b"], "on": True, "none": None},
}
ROW = {"target": TARGET, "repository": {"metadata": {"name": "edge"}}}


def outcome(text, row, *, part=True):
    """The value, or the reason and sentence; over what is read or over the whole row."""
    try:
        return ENGINE.evaluate(
            text, project_row(row, ENGINE.find_free_variables(text)) if part else row
        )
    except RefusedError as refusal:
        return f"{refusal.reason}: {refusal.problem}"


VALUES = [
    ("a field", "target.metadata.name", "eu-1"),
    ("a key that is no name", "target.metadata.labels['fanout.dev/tier']", "prod"),
    ("a double-quoted key", 'target.metadata["name"]', "eu-1"),
    ("a computed key", "target.metadata.labels['reg' + 'ion']", "eu"),
    ("concatenation", "'monitoring-' + target.metadata.name", "monitoring-eu-1"),
    ("two variables", "repository.metadata.name + '/' + target.metadata.name", "edge/eu-1"),
    ("a whole map", "target.metadata.labels", TARGET["metadata"]["labels"]),
    ("has of what is there", "has(target.metadata.labels.region) ? 1 : 0", 1),
    ("has of what is not there", "has(target.metadata.labels.canary) ? 1 : 0", 0),
    ("has below what may not be there", "has(target.status) && has(target.status.phase)", False),
    ("in a map", "'region' in target.metadata.labels", True),
    ("in a list", "'c' in target.spec.zones", False),
    ("size", "size(target.spec.zones)", 2),
    ("a method", "target.metadata.name.startsWith('eu-')", True),
    ("a pattern", "target.metadata.name.matches('^eu-[0-9]+$')", True),
    ("a whole number written with a dot", "target.spec.whole == 2", True),
    ("a fraction", "target.spec.ratio", 0.5),
    ("a fraction that becomes whole", "target.spec.ratio + 0.5", 1),
    ("null", "target.spec.none", None),
    ("a list", "target.spec.zones.map(z, z + '1')", ["a1", "b1"]),
    ("a filter", "target.spec.zones.filter(z, z != 'a')", ["b"]),
    ("exists", "target.spec.zones.exists(z, z == 'b')", True),
    ("all of nothing", "[].all(z, z == 'b')", True),
    ("a map of literals", "{'a': target.spec.size}", {"a": 3}),
    ("an error beside a true is true", "target.nothing.x == 1 || true", True),
    ("a name bound by a macro hides the variable", "['x'].map(target, target)", ["x"]),
    ("durations compare", "duration('1h30m') > duration('80m')", True),
    ("a year of a timestamp", "timestamp('2025-01-01T00:00:00Z').getFullYear() == 2025", True),
    ("a leading dot", ".target.metadata.name", "eu-1"),
]


@pytest.mark.parametrize(("sentence", "text", "value"), VALUES, ids=[row[0] for row in VALUES])
def test_values(sentence, text, value):
    result = outcome(text, ROW)
    assert (result, type(result)) == (value, type(value))


FAULTS = [
    ("an unknown name", "cluster.name", "there is no variable 'cluster' (column 1)"),
    ("an unknown function", "1 == shout(2)", "there is no function 'shout' (column 6)"),
    ("an unknown method", "target.metadata.name.split('-')", "there is no function 'split'"),
    ("an item of an unknown method", "target.metadata.name.split('-')[1]",
     "there is no function 'split' (column 22)"),
    ("an unknown function beside a truth", "true || shout(1)", "there is no function 'shout'"),
    ("an item of what is not there", "target.spec.nothing[0]",
     "target.spec has no field 'nothing' (column 1)"),
    ("a choice by what is not there", "target.nothing ? 1 : 2", "target has no field 'nothing'"),
    ("has below what is not there", "has(target.status.phase)", "target has no field 'status'"),
    ("has of null", "has(target.spec.none.x)",
     "target.spec.none is null, has() cannot ask for a field of it (column 1)"),
    ("a missing field", "'x' + target.metadata.nam", "target.metadata has no field 'nam'"),
    ("a missing map", "target.status.phase", "target has no field 'status' (column 1)"),
    ("a missing key", "target.metadata.labels['a/b']", "target.metadata.labels has no key 'a/b'"),
    ("a field of a string", "target.metadata.name.x", "target.metadata.name is a string"),
    ("a field of a list", "target.spec.zones.x", "target.spec.zones is a list"),
    ("a field of null", "target.spec.none.x", "target.spec.none is null, it has no field 'x'"),
    ("a missing item", "target.spec.zones[7]", "target.spec.zones has no item with that index"),
    ("adding kinds", "'a' + target.spec.size", "'+' cannot be applied to a string and a num"),
    ("comparing kinds", "target.spec.size < '3'", "'<' cannot be applied to a number and a str"),
    ("negating a number", "!target.spec.size", "'!' cannot be applied to a number"),
    ("choosing by a number", "target.spec.size ? 1 : 2", "'?:' cannot be applied to a number"),
    ("a wrong argument", "size(target.spec.size)", "'size' cannot be applied to a number"),
    ("dividing by zero", "1 / 0", "division by zero"),
    ("too large a number", "9223372036854775807 + 1", "out of range"),
    ("no number", "int(target.metadata.name)", "cannot be converted"),
    ("no duration", "duration('x')", "cannot be converted"),
    ("an item's fault in a map", "target.spec.zones.map(z, z.x)", "z is a string, it has no"),
    ("a fault inside a literal map", "{'a': target.nothing}", "target has no field 'nothing'"),
    ("a fault that is a key", "{target.nothing: 1}", "target has no field 'nothing' (column 2)"),
    ("a macro on null", "target.spec.none.all(x, true)", "a macro needs a list or a map"),
    ("a macro on a number", "target.spec.size.map(x, x)", "a macro needs a list or a map"),
    ("a number as key", "{1: 2}", "a map's key is a number, not a string"),
    ("a timestamp", "timestamp('2025-01-01T00:00:00Z')", "is a timestamp, not plain data"),
    ("a duration", "duration('1h')", "is a duration, not plain data"),
    ("bytes", "b'abc'", "is bytes, not plain data"),
    ("a type", "type(1)", "is a type, not plain data"),
    ("a function", "size", "there is no variable 'size' (column 1)"),
    ("a function as a method", "target.spec.size.string()", "string() is a function (column 1)"),
    ("a method as a function", "startsWith('a', 'b')", "startsWith() is a method (column 1)"),
    ("an argument too few", "matches('a')", "matches() needs 2, not 1 arguments (column 1)"),
    ("a reserved word", "package == 1", "'package' is reserved in CEL, and no name of a variable"),
    ("a word of CEL as a field", "target.in", "'in' has a meaning in CEL, and cannot follow a dot"),
    ("an unknown escape", r"'a\q'", r"there is no escape \q in strings (column 1)"),
    ("a day as a unit", "duration('1d')", "a string cannot be converted by duration() (column 1)"),
    ("no finite number", "1.0e308 * 10.0", "not a finite number"),
    ("an end too early", "target.metadata.name ==", "syntax error: the expression ends too early"),
    ("a bracket too many", "1 + 2)", "syntax error at column 6: unexpected ')'"),
    ("a fault in the second line", "1 +\n2)", "syntax error at line 2, column 2: unexpected ')'"),
    ("an open string", "'abc", "syntax error at column 1: the string is not closed"),
    ("nothing", "  ", "syntax error: the expression is empty"),
    ("has of a value", "has(1)", "has() takes one field (column 1)"),
    ("has of nothing", "has()", "has() takes one field"),
    ("a macro with three arguments", "[1].map(x, x > 0, x)", "map() takes a name and"),
    ("a macro without a name", "[1].all(1, true)", "all() takes a name and an expression"),
    ("what only celpy has", "[1].reduce(r, i, 0, r + i)", "no function 'reduce' (column 5)"),
    ("a message", "Foo{a: 1}", "objects cannot be constructed"),
    ("a function with a dot", ".size([1])", "a function call must not start with a dot"),
]  # fmt: skip


BRANCHES = "size(target.metadata.name) > 3 && size(target.metadata.name + 'a') > 4"


@pytest.mark.parametrize("branch", ["target.metadata", "target.spec"])
def test_a_long_expression_is_repeated_with_its_end(branch):
    """That is where two branches differ."""
    text = f"({BRANCHES} && {BRANCHES} ? {branch} : {branch}).nothing"
    result = outcome(text, ROW)
    assert result.startswith("ExpressionError: size(target.metadata.name) > 3 && ")
    assert f" ? {branch} : {branch} has no field 'nothing'" in result


@pytest.mark.parametrize(("sentence", "text", "problem"), FAULTS, ids=[row[0] for row in FAULTS])
def test_faults(sentence, text, problem):
    result = outcome(text, ROW)
    assert str(result).startswith("ExpressionError: ")
    assert problem in result
    assert "celpy" not in result


REMEDIES = [
    ("a misspelt method", "target.metadata.name.startswith('eu')", "did you mean startsWith?"),
    ("a misspelt function", "strin(1)", "did you mean string?"),
    ("a method of other programs", "target.metadata.name.split('-')[1]",
     ("use one of all(), contains(), endsWith(), exists(), exists_one(), filter(), map(),"
      " matches()")),
    ("has of a value", "has(1)", "write has(target.spec.x), or 'x' in target.spec for keys"),
    ("a template", "sites/{{ target.metadata.name }}", ("CEL is not a template language: join"
                                                       " strings with +")),
    ("a filter", "target.metadata.name | lower", "CEL has no filters"),
    ("words for signs", "target.a and target.b", "use &&, || and !"),
    ("such words in a text alone", "'this and that' +", ""),
    ("a comma at the end", "['a', 'b',]", "leave out the last comma"),
    ("a raw string that ends in a backslash", r"r'\' + 'a'", "write a raw string that ends with a"),
    ("optional chaining", "target?.name", "use has(target.spec.x)"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "text", "remedy"), REMEDIES, ids=[row[0] for row in REMEDIES])
def test_a_refusal_says_what_to_write_instead(sentence, text, remedy):
    with pytest.raises(RefusedError) as refusal:
        ENGINE.find_free_variables(text)
    assert refusal.value.remedy.startswith(remedy)
    assert bool(refusal.value.remedy) == bool(remedy)


LIMITS = [
    ("too long", "1 + " * 300 + "1", "1201 characters"),
    ("brackets too deep", "(" * 21 + "1" + ")" * 21, "nested more than 20 deep"),
    ("macros too deep", "[1].map(a, [1].map(b, [1].map(c, c)))", "macros are nested more than 2"),
    ("a chain too deep", "!" * 1000 + "true", "nested too deep"),
]


@pytest.mark.parametrize(("sentence", "text", "problem"), LIMITS, ids=[row[0] for row in LIMITS])
def test_limits(sentence, text, problem):
    result = outcome(text, ROW)
    assert str(result).startswith("LimitExceeded: ")
    assert problem in result


def test_expressions_within_the_limits_are_evaluated():
    assert outcome("(" * 20 + "1" + ")" * 20, ROW) == 1
    assert outcome("'((((((((((((((((((((((((('", ROW) == "((((((((((((((((((((((((("
    assert outcome("[[1], [2]].map(a, a.map(b, b + 1))", ROW) == [[2], [3]]
    assert outcome(" || ".join(["false"] * 100), ROW) is False


READS = [
    ("a field", "target.a.b", {"target": {"a": {"b": {}}}}),
    ("two fields", "target.a.b + target.a.c", {"target": {"a": {"b": {}, "c": {}}}}),
    ("a map and a field of it", "size(target.a) + target.a.b", {"target": {"a": {}}}),
    ("a field and the map it is in", "target.a.b + size(target.a)", {"target": {"a": {}}}),
    ("a literal key", "target.a['b/c']", {"target": {"a": {"b/c": {}}}}),
    ("a literal index of a list", "target.a[0].b", {"target": {"a": {}}}),
    ("a computed key", "target.a[target.b]", {"target": {"a": {}, "b": {}}}),
    ("has", "has(target.a.b)", {"target": {"a": {"b": {}}}}),
    ("a method", "target.a.startsWith(other.b)", {"target": {"a": {}}, "other": {"b": {}}}),
    ("a variable as it is", "target == other.b", {"target": {}, "other": {"b": {}}}),
    ("no bound name", "target.a.all(c, c.d == 1)", {"target": {"a": {}}}),
    ("a name beside where it is bound", "c.a.all(c, c.d == 1) && c.b", {"c": {"a": {}, "b": {}}}),
    ("a name that a macro outside binds", "a.map(c, c.d.map(d, d + c.e + e))", {"a": {}, "e": {}}),
    ("nothing", "1 + 2", {}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "text", "reads"), READS, ids=[row[0] for row in READS])
def test_reads(sentence, text, reads):
    assert ENGINE.find_free_variables(text) == reads


# ---- the law: over what it reads an expression is what it is over everything --------------------

names = st.sampled_from(["a", "b", "c"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b", ""]))
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(names, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(names, data, min_size=1, max_size=3)
rows = st.fixed_dictionaries({"target": objects}, optional={"other": objects, "x": objects})


def selections(inner):
    return st.one_of(
        st.builds(lambda of, name: f"{of}.{name}", inner, names),
        st.builds(lambda of, name: f"{of}['{name}']", inner, names),
        st.builds(lambda of, key: f"{of}[{key}]", inner, inner),
        st.builds(lambda of: f"{of}[0]", inner),
    )


variables = st.sampled_from(["target", "target", "other", "x"])
paths = st.recursive(variables, selections, max_leaves=4)
literals = st.sampled_from(["'a'", "1", "true", "null", "[]", "['a', 'b']", "{'a': 1}"])


def compounds(inner):
    binary = st.sampled_from(["+", "==", "!=", "<", "&&", "||", "in", "-"])
    macro = st.sampled_from(["map", "filter", "all", "exists", "exists_one"])
    return st.one_of(
        st.builds(lambda a, sign, b: f"({a} {sign} {b})", inner, binary, inner),
        st.builds(lambda a, b, c: f"({a} ? {b} : {c})", inner, inner, inner),
        st.builds(lambda a: f"!{a}", inner),
        st.builds(lambda a: f"size({a})", inner),
        st.builds(lambda a, name: f"has({a}.{name})", paths, names),
        st.builds(lambda a, b: f"[{a}, {b}]", inner, inner),
        st.builds(lambda a: f"{{'k': {a}}}", inner),
        st.builds(lambda a, f, var, b: f"{a}.{f}({var}, {b})", paths, macro, variables, inner),
    )


expressions = st.recursive(st.one_of(paths, literals), compounds, max_leaves=5)


@settings(max_examples=150, deadline=None)
@given(expressions, rows)
def test_over_what_is_read_and_over_everything_the_answer_is_the_same(text, row):
    result = outcome(text, row)
    assert encode_part({"": result}) == encode_part({"": outcome(text, row, part=False)})


def test_the_schema_and_the_sandbox_have_the_same_length_limit():
    """The schema has the limit of the sandbox, whose process loads none of the schema."""
    [limits] = [it for it in Expression.__metadata__ if isinstance(it, StringConstraints)]
    assert limits.max_length == MAX_EXPRESSION_LENGTH
