"""apply-setters, create-setters and list-setters: values that comments name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import rows
from variants.running import after, configured_by, rendered, run

from fanout.errors import InvalidInput
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.functions.setters import derive_values, fill_pattern, setter_names
from fanout.variants.size_accounting import SizeCounter

HEAD = "apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: x\n"

APPLIED = [
    ("a value that is one setter", {"n": "3"}, "a: 4 # kpt-set: ${n}", "a: 3 # kpt-set: ${n}"),
    ("part of a value", {"tag": "1.2"}, 'a: "web:1.1" # kpt-set: web:${tag}',
     'a: web:1.2 # kpt-set: web:${tag}'),
    ("the others keep their present values", {"tag": "2"}, "a: web:1 # kpt-set: ${image}:${tag}",
     "a: web:2 # kpt-set: ${image}:${tag}"),
    ("one setter twice in a value", {"n": "b"}, "a: a-a # kpt-set: ${n}-${n}",
     "a: b-b # kpt-set: ${n}-${n}"),
    ("setters that nobody gives stay", {"other": "1"}, "a: 4 # kpt-set: ${n}", None),
    ("comments of people stay out of it", {"n": "3"}, "a: 4 # about ${n}", None),
    ("what is in quotes stays text", {"n": "5"}, 'a: "4" # kpt-set: ${n}',
     'a: "5" # kpt-set: ${n}'),
    ("what is not becomes what it looks like", {"n": "true"}, "a: off # kpt-set: ${n}",
     "a: true # kpt-set: ${n}"),
    ("a number that would lose a digit is text", {"n": "1.20"}, "a: 1.1 # kpt-set: ${n}",
     'a: "1.20" # kpt-set: ${n}'),
    ("an empty value is empty text", {"n": ""}, "a: 4 # kpt-set: ${n}", 'a: "" # kpt-set: ${n}'),
    ("nothing gets a value", {"n": "4"}, "a: # kpt-set: ${n}", "a: 4 # kpt-set: ${n}"),
    ("a value with a setter's name in it is taken as it is", {"n": "${m}", "m": "x"},
     "a: 1 # kpt-set: ${n}", 'a: "${m}" # kpt-set: ${n}'),
    ("an element of a list", {"e": "prod"}, "a:\n- dev # kpt-set: ${e}\n- qa",
     "a:\n- prod # kpt-set: ${e}\n- qa"),
    ("a whole list", {"e": "- prod\n- qa\n"}, "a: # kpt-set: ${e}\n- dev",
     "a: # kpt-set: ${e}\n- prod\n- qa"),
    ("a list on one line stays on one", {"e": "[prod, qa]"}, "a: [dev] # kpt-set: ${e}",
     "a: [prod, qa] # kpt-set: ${e}"),
    ("elements that stay keep their comments", {"e": "[qa, prod, dev]"},
     "a: # kpt-set: ${e}\n- dev # first\n# the last\n- prod",
     "a: # kpt-set: ${e}\n- qa\n# the last\n- prod\n- dev # first"),
    ("an element that goes takes its comment along", {"e": "[prod]"},
     "a: # kpt-set: ${e}\n- dev # first\n- prod # last", "a: # kpt-set: ${e}\n- prod # last"),
    ("a list is emptied", {"e": ""}, "a: # kpt-set: ${e}\n- dev", "a: [] # kpt-set: ${e}"),
    ("an empty list is filled", {"e": "[qa]"}, "a: [] # kpt-set: ${e}",
     "a: # kpt-set: ${e}\n- qa"),
    ("a list that has these elements stays as it is", {"e": "[dev]"},
     "a: # kpt-set: ${e}\n  - dev  # first", None),
    ("a label is text, whatever it looks like", {"n": "on"}, "labels:\n  a: b # kpt-set: ${n}",
     'labels:\n  a: "on" # kpt-set: ${n}'),
]  # fmt: skip


@pytest.mark.parametrize(("values", "before", "expected"), rows(APPLIED))
def test_apply_setters(values, before, expected):
    text = f"{HEAD}{before}\nb: 1 # stays\n"
    wanted = f"{HEAD}{before if expected is None else expected}\nb: 1 # stays\n"
    assert after(text, "apply-setters", **values) == wanted


LOST = [
    ("a value that cannot be had from what is there", {"a": "1"}, "v: x # kpt-set: ${a}-${b}",
     "a.yaml:5: Gadget/x: v: apply-setters: there is no value for b"),
    ("one that two readings disagree about", {"c": "1"}, "v: a-b # kpt-set: ${a}-${a}${c}",
     "there is no value for a"),
    ("several setters for a list", {"a": "[1]"}, "v: [x] # kpt-set: ${a}${b}",
     "a.yaml:5: Gadget/x: v: apply-setters: ${a}${b} is not a setter of a list"),
    ("a list's setter without a list", {"a": "b: c"}, "v: [x] # kpt-set: ${a}", "a is not a list"),
    ("one that is no YAML", {"a": "[b"}, "v: [x] # kpt-set: ${a}", "a is not a list"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "line", "sentence"), rows(LOST))
def test_apply_setters_is_refused_by(values, line, sentence):
    with pytest.raises(InvalidInput) as caught:
        after(f"{HEAD}{line}\n", "apply-setters", **values)
    assert sentence in str(caught.value)


def test_objects_for_tools_alone_have_setters_too():
    local = f"{HEAD}  annotations:\n    config.kubernetes.io/local-config: 'true'\na: 1"
    files = {"a.yaml": f"{local} # kpt-set: ${{n}}\n"}
    assert run(files, FunctionSpec("apply-setters", config={"n": "2"})) == {
        "a.yaml": files["a.yaml"].replace("a: 1", "a: 2")
    }


def test_setters_in_a_file():
    values = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\ndata:\n  size: '2'\n"
    files = {"Kptfile": configured_by("apply-setters"), "config.yaml": values,
             "a.yaml": f"{HEAD}a: 1 # kpt-set: ${{size}}\n"}  # fmt: skip
    assert run(files) == {"a.yaml": f"{HEAD}a: 2 # kpt-set: ${{size}}\n"}


def test_setters_that_an_earlier_function_made():
    made = (FunctionSpec("create-setters", config={"n": "7"}),
            FunctionSpec("apply-setters", config={"n": "2"}))  # fmt: skip
    assert run({"a.yaml": f"{HEAD}a: 7\n"}, *made) == {"a.yaml": f"{HEAD}a: 2 # kpt-set: ${{n}}\n"}


def test_values_of_a_json_file_are_a_warning():
    text = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}\n'
    function = FunctionSpec("create-setters", config={"n": "web"})
    [result] = rendered({"a.json": text}, function).results
    assert (result.severity, result.where.field) == ("warning", "metadata.name")


def test_a_json_file_has_no_setters():
    text = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "1"}}\n'
    files = {"a.json": text}
    assert run(files, FunctionSpec("apply-setters", config={"n": "2"})) == {}
    assert run(files, FunctionSpec("create-setters", config={"n": "1"})) == {}


CREATED = [
    ("a value that a setter has", {"n": "4"}, "a: 4", "a: 4 # kpt-set: ${n}"),
    ("part of a value", {"tag": "1.1"}, "a: web:1.1", "a: web:1.1 # kpt-set: web:${tag}"),
    ("the longest setter first", {"a": "web", "b": "web-prod"}, "a: web-prod-web",
     "a: web-prod-web # kpt-set: ${b}-${a}"),
    ("the name decides between equal values", {"b": "web", "a": "web"}, "a: web",
     "a: web # kpt-set: ${a}"),
    ("other values stay", {"n": "4"}, "a: 5", None),
    ("keys are no values", {"n": "abc"}, "abc: 5", None),
    ("several lines have no room for a comment", {"n": "4"}, "a: |\n  4\n  5", None),
    ("nor have values between others on one line", {"n": "4"}, "a: {b: 4, c: 5}", None),
    ("a list in whatever order", {"e": "[qa, dev]"}, "a:\n- dev\n- qa",
     "a: # kpt-set: ${e}\n- dev\n- qa"),
    ("a list on one line", {"e": "[qa, dev]"}, "a: [dev, qa]", "a: [dev, qa] # kpt-set: ${e}"),
    ("a list with more elements is another one", {"e": "[dev]"}, "a:\n- dev\n- qa", None),
    ("elements by themselves", {"e": "dev"}, "a:\n- dev\n- qa",
     "a:\n- dev # kpt-set: ${e}\n- qa"),
    ("a comment gives way, its column stays", {"n": "4"}, "a: 4   # four",
     "a: 4   # kpt-set: ${n}"),
    ("one that is there stays, to the blank", {"n": "4"}, "a: 4  # kpt-set: ${n}", None),
    ("what comes from an anchor is commented once, where it stands", {"n": "4"},
     "a: &a\n  v: 4\nd: *a", "a: &a\n  v: 4 # kpt-set: ${n}\nd: *a"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "before", "expected"), rows(CREATED))
def test_create_setters(values, before, expected):
    text = f"{HEAD}{before}\nb: stays # here\n"
    wanted = f"{HEAD}{before if expected is None else expected}\nb: stays # here\n"
    assert after(text, "create-setters", **values) == wanted


WRONG = [
    ("create-setters: no setters", "create-setters", {}, "create-setters: data is empty"),
    (
        "an empty value",
        "create-setters",
        {"a": " "},
        ("create-setters: data.a is not a valid setter"),
    ),
    ("a map", "create-setters", {"a": "b: c"}, "create-setters: data.a is a map"),
    ("a list of maps", "create-setters", {"a": "[{b: c}]"}, "data.a is not a list of scalars"),
]


@pytest.mark.parametrize(("function", "data", "sentence"), rows(WRONG))
def test_a_configuration_is_refused_with(function, data, sentence):
    with pytest.raises(InvalidInput) as caught:
        after(HEAD, function, **data)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("function", ["apply-setters", "create-setters"])
def test_setters_are_in_a_config_map(function):
    files = {"Kptfile": configured_by(function), "config.yaml": HEAD}
    with pytest.raises(InvalidInput, match=f"Kptfile:7: .*{function}: .* of kind Gadget"):
        run(files)


def test_list_setters():
    text = (
        f"{HEAD}a: 4 # kpt-set: ${{n}}\nb: 4 # kpt-set: ${{n}}\n"
        'c: "web:1.1" # kpt-set: ${image}:${tag}\nd: # kpt-set: ${envs}\n- dev\n- qa\n'
        "e: [dev] # kpt-set: ${two}${setters}\nf: x # ours\n"
    )
    result = rendered({"a.yaml": text}, FunctionSpec("list-setters"))
    assert [remark.message for remark in result.results] == [
        "Name: envs, Value: [dev, qa], Type: array, Count: 1",
        "Name: image, Value: web, Type: str, Count: 1",
        "Name: n, Value: 4, Type: int, Count: 2",
        "Name: tag, Value: 1.1, Type: str, Count: 1",
    ]
    assert {remark.severity for remark in result.results} == {"info"}
    assert run({"a.yaml": text}, FunctionSpec("list-setters")) == {}


WORDS = st.text("ab-.${", min_size=1, max_size=4).filter(lambda text: "${" not in text)


@given(st.lists(st.tuples(WORDS, st.sampled_from("xyz")), min_size=1, max_size=4), WORDS)
def test_derived_setter_values_yield_the_value_again(parts, last):
    pattern = "".join(f"{literal}${{{name}}}" for literal, name in parts) + last
    values = {name: f"{name}1" for name in setter_names(pattern)}
    derived = derive_values(pattern, fill_pattern(pattern, values, SizeCounter(), ()))
    assert derived.keys() == values.keys()
    assert fill_pattern(pattern, derived, SizeCounter(), ()) == fill_pattern(
        pattern, values, SizeCounter(), ()
    )


WARNED = [
    ("an element of a list on one line", {"n": "dev"}, "a: [dev, qa]", [("a[0]", "${n}")]),
    ("a value of a map on one line", {"n": "4"}, "a: {b: 4, c: 5}", [("a.b", "${n}")]),
    ("part of a value", {"tag": "1.2"}, "a: ['web:1.2', b]", [("a[0]", "web:${tag}")]),
    ("a list in a map on one line", {"e": "[qa, dev]"}, "a: {b: [dev, qa], c: 1}",
     [("a.b", "${e}")]),
    ("a list that gets its comment", {"e": "[qa, dev]"}, "a: [dev, qa]", []),
    ("a list as a block", {"n": "dev"}, "a:\n- dev\n- qa", []),
    ("text of several lines, as documented", {"n": "dev"}, "a: |\n  dev\n  qa", []),
    ("a value that is none", {"n": "prod"}, "a: [dev, qa]", []),
    ("what an alias stands for", {"n": "4"}, "a: &a\n  v: 4\nd: *a", []),
]  # fmt: skip


@pytest.mark.parametrize(("data", "lines", "warned"), rows(WARNED))
def test_create_setters_warns_of(data, lines, warned):
    text = f"apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: x\n{lines}\n"
    function = FunctionSpec("create-setters", config=data)
    results = rendered({"a.yaml": text}, function).results
    assert [(it.where.field, it.severity, it.message) for it in results if it.where.field] == [
        (field, "warning",
         f"no comment `{comment}` fits on its line; write the enclosing list or map in block style")
        for field, comment in warned
    ]  # fmt: skip
