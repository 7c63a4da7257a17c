"""search-replace: what is found, what is put there, and the syntax of its expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants.builders import rows
from variants.functions import function_config
from variants.running import after, configured_by, rendered, run

from fanout.errors import InvalidInput
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.function_registry import FUNCTIONS_BY_NAME
from fanout.variants.functions.search_replace import (
    compile_glob,
    compile_regex,
    matches_path,
    split_path,
)

HEAD = "apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: x\n"

FOUND = [
    ("by value", {"by-value": "3", "put-value": "4"}, "a: 3\nb: 33\nc: 3 # three",
     "a: 4\nb: 33\nc: 4 # three"),
    ("a value in quotes stays text", {"by-value": "3", "put-value": "4"}, 'a: "3"', 'a: "4"'),
    ("a number gives way to text", {"by-value": "3", "put-value": "four"}, "a: 3", "a: four"),
    ("text to a number", {"by-value": "four", "put-value": "4"}, "a: four", "a: 4"),
    ("a value as it is written", {"by-value": "0755", "put-value": "0700"}, "a: 0755\nb: 493",
     "a: 448\nb: 493"),
    ("elements of lists", {"by-value": "dev", "put-value": "qa"}, "a: [dev, x]\nb:\n- dev",
     "a: [qa, x]\nb:\n- qa"),
    ("by expression, with its groups", {"by-value-regex": "(.*)-dev-(.*)",
     "put-value": "${2}-prod-${1}"}, "a: x-dev-z\nb: x-qa-z", "a: z-prod-x\nb: x-qa-z"),
    ("an expression is about the whole value", {"by-value-regex": "dev", "put-value": "qa"},
     "a: my-dev-app\nb: dev", "a: my-dev-app\nb: qa"),
    ("an expression does not match nothing", {"by-value-regex": ".*", "by-path": "a",
     "put-value": "z"}, "a:\nb: 1", None),
    ("by path", {"by-path": "a.b", "put-value": "new"}, "a:\n  b: old\n  c: old",
     "a:\n  b: new\n  c: old"),
    ("a path that is not there is made", {"by-path": "a.b", "put-value": "new"}, "a:\n  c: d",
     "a:\n  c: d\n  b: new"),
    ("but not where a value is searched too", {"by-path": "a.b", "by-value": "x",
     "put-value": "new"}, "a:\n  c: d", None),
    ("nor an element", {"by-path": "a.b[2]", "put-value": "new"}, "a:\n  b: [c]", None),
    ("any one field", {"by-path": "a.*.c", "put-value": "new"},
     "a:\n  b: {c: 1, d: 2}\n  e: {c: x}",
     "a:\n  b: {c: new, d: 2}\n  e: {c: new}"),
    ("at any depth", {"by-path": "a.**.c", "put-value": "new"},
     "a:\n  c: 1\n  b:\n  - d:\n      c: 2", "a:\n  c: new\n  b:\n  - d:\n      c: new"),
    ("an element by number", {"by-path": "a.b[1].c", "put-value": "new"},
     "a:\n  b:\n  - c: 1\n  - c: 2", "a:\n  b:\n  - c: 1\n  - c: new"),
    ("every element", {"by-path": "a.b[*].c", "put-value": "new"},
     "a:\n  b:\n  - c: 1\n  - c: 2", "a:\n  b:\n  - c: new\n  - c: new"),
    ("path and value together", {"by-path": "a", "by-value": "3", "put-value": "4"}, "a: 3\nb: 3",
     "a: 4\nb: 3"),
    ("a comment", {"by-value": "3", "put-comment": "kpt-set: ${n}"}, "a: 3\nb: 4",
     "a: 3 # kpt-set: ${n}\nb: 4"),
    ("a comment in place of another", {"by-value": "3", "put-comment": "new"}, "a: 3  # old",
     "a: 3  # new"),
    ("a comment with groups", {"by-value-regex": "app-(.*)", "put-comment": "${n}-${1}"},
     "a: app-dev", "a: app-dev # ${n}-dev"),
    ("a comment on a list", {"by-path": "a", "put-comment": "kpt-set: ${l}"}, "a:\n- b",
     "a: # kpt-set: ${l}\n- b"),
    ("value and comment", {"by-value": "3", "put-value": "4", "put-comment": "c"}, "a: 3",
     "a: 4 # c"),
    ("a field that is made has its comment", {"by-path": "a.b", "put-value": "4",
     "put-comment": "c"}, "a: {}", "a:\n  b: 4 # c"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "before", "expected"), rows(FOUND))
def test_search_replace(data, before, expected):
    text = f"{HEAD}spec:\n  z: 9 # stays\n{before}\n"
    wanted = f"{HEAD}spec:\n  z: 9 # stays\n{before if expected is None else expected}\n"
    assert after(text, "search-replace", **data) == wanted


def test_a_missing_namespace_is_set_in_every_object():
    data = {"by-path": "metadata.namespace", "put-value": "shop"}
    assert after(HEAD, "search-replace", **data) == f"{HEAD}  namespace: shop\n"


def test_values_are_text_where_kubernetes_has_only_text():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  a: word\n"
    data = {"by-path": "data.a", "put-value": "true"}
    assert after(text, "search-replace", **data) == text.replace("word", '"true"')


FILES = ("a.yaml", "sub/a.yaml", "sub/deep/a.yaml", "sub/b.yml")
GLOBS = [
    ("**/a.yaml", "a.yaml sub/a.yaml sub/deep/a.yaml"),
    ("*.yaml", "a.yaml"),
    ("*/a.yaml", "sub/a.yaml"),
    ("sub/**", "sub/a.yaml sub/deep/a.yaml sub/b.yml"),
    ("sub/**/a.yaml", "sub/a.yaml sub/deep/a.yaml"),
    ("sub/**.yaml", "sub/a.yaml"),
    ("sub/?.y*ml", "sub/a.yaml sub/b.yml"),
    ("sub/[a-c].{yaml,yml}", "sub/a.yaml sub/b.yml"),
    ("sub/[!a].*", "sub/b.yml"),
    ("sub/[^b].*", "sub/a.yaml"),
    (r"\*.yaml", ""),
    ("a.yam", ""),
    ("", ""),
]


@pytest.mark.parametrize(("pattern", "matched"), GLOBS)
def test_file_patterns(pattern, matched):
    assert [file for file in FILES if compile_glob(pattern).match(file)] == matched.split()


def test_by_file_path_is_from_the_package_s_directory():
    data = {"by-value": "3", "by-file-path": "deep/*.yaml", "put-value": "4"}
    text = f"{HEAD}a: 3\n"
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n" + "".join(
        f'  {key}: "{value}"\n' for key, value in data.items()
    )
    files = {"sub/Kptfile": configured_by("search-replace"), "sub/config.yaml": config,
             "sub/a.yaml": text, "sub/deep/a.yaml": text, "deep/a.yaml": text}  # fmt: skip
    assert run(files) == {"sub/deep/a.yaml": f"{HEAD}a: 4\n"}


PATHS = [
    ("a", "a", True),
    ("a.b", "a", False),
    ("a", "a.b", False),
    ("a.b.c", "a.**", True),
    ("a", "a.**", True),
    ("a.b.c", "**.c", True),
    ("a.b.c", "a.**.**.c", True),
    ("a.b[1].c", "a.b[1].c", True),
    ("a.b[1].c", "a.*[1].c", True),
    ("a.b[1].c", "a.*.c", True),
    ("a.b[1].c", "a.b.c", False),
    ("a.b[1].c", "a.b[2].c", False),
    ("a.b.c.b", "a.**.b", True),
    ("a.a.b.c.e.b", "a.*.b.**.b", True),
]


@pytest.mark.parametrize(("path", "pattern", "expected"), PATHS)
def test_path_patterns(path, pattern, expected):
    assert matches_path(path.split("."), pattern.split(".")) is expected


def test_dots_in_keys_part_elements_on_both_sides():
    assert split_path(("metadata", "annotations", "a.b/c", 0)) == ["metadata", "annotations", "a",
                                                                 "b/c[0]"]  # fmt: skip


REFUSED = [
    ("nothing to search by", {"put-value": "a"}, "data has no search condition"),
    ("files alone", {"by-file-path": "*", "put-value": "a"}, "data has no search condition"),
    ("two ways to search a value", {"by-value": "a", "by-value-regex": "b", "put-value": "c"},
     "by-value and by-value-regex exclude each other"),
    ("an unknown field", {"by-key": "a", "put-value": "b"}, "unknown field data.by-key"),
    ("a number", {"by-value": 1, "put-value": "b"}, "data.by-value is not a string"),
    ("an expression that is none", {"by-value-regex": "(", "put-value": "b"},
     "data.by-value-regex: a parenthesis is not closed"),
    ("a group that is not there", {"by-value-regex": "(a)", "put-value": "${2}"},
     "data.put-value refers to a group"),
    ("a file pattern that is none", {"by-value": "a", "by-file-path": "[a", "put-value": "b"},
     "data.by-file-path: in '\\[a' a \\[ is not closed"),
    ("a comment of two lines", {"by-value": "a", "put-comment": "a\nb"}, "several lines"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), rows(REFUSED))
def test_a_configuration_is_refused_with(data, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        FUNCTIONS_BY_NAME["search-replace"].configure(function_config(**data))


UNFIT = [
    ("a comment between values", {"by-value": "3", "put-comment": "c"}, "a: [3, 4]",
     "a.yaml:5: Gadget/x: a[0]: search-replace: a comment does not fit here"),
    ("a path through a value", {"by-path": "a.b", "put-value": "c"}, "a: 3",
     "a.yaml:5: Gadget/x: a: search-replace: by-path passes a value that is not a map"),
    ("a path to a map", {"by-path": "a", "put-value": "c"}, "a: {b: c}",
     "a.yaml:5: Gadget/x: a: search-replace: by-path leads to a map"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "line", "sentence"), rows(UNFIT))
def test_an_object_is_refused_with(data, line, sentence):
    with pytest.raises(InvalidInput) as caught:
        after(f"{HEAD}{line}\n", "search-replace", **data)
    assert sentence in str(caught.value)


def test_json_has_no_room_for_comments():
    text = '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}\n'
    with pytest.raises(InvalidInput, match=r"a.json:1: Service/x: metadata.name: .* does not fit"):
        run({"a.json": text}, FunctionSpec("search-replace", config={
            "by-value": "x", "put-comment": "c"}))  # fmt: skip


SEARCHES = [
    ("a value", {"by-value": "3"}, [("a", "the value '3' is found")]),
    ("an expression", {"by-value-regex": "x|y"}, [("metadata.name", "the value 'x' is found"),
                                                 ("b[0]", "the value 'y' is found")]),
    ("a path", {"by-path": "b"}, [("b", "a list of 2 is found")]),
    ("elements", {"by-path": "b[*]"}, [("b[0]", "the value 'y' is found"),
                                       ("b[1]", "the value 'z' is found")]),
    ("a value at a path", {"by-path": "b[*]", "by-value": "z"},
     [("b[1]", "the value 'z' is found")]),
    ("a file", {"by-value": "3", "by-file-path": "other.yaml"}, []),
    ("what is not there", {"by-path": "c.d"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("data", "remarks"), rows(SEARCHES))
def test_a_search_that_puts_nothing_reports_and_changes_nothing(data, remarks):
    text = f"{HEAD}a: 3 # kept\nb: [y, z]\n"
    function = FunctionSpec("search-replace", config=data)
    assert run({"a.yaml": text}, function) == {}
    results = rendered({"a.yaml": text}, function).results
    reported = [(it.where.field, it.message) for it in results if it.where.file == "a.yaml"]
    assert reported == remarks
    assert {item.severity for item in results} <= {"info"}


def test_a_report_names_the_line():
    text = f"{HEAD}a: 3\n"
    function = FunctionSpec("search-replace", config={"by-value": "3"})
    [result] = rendered({"a.yaml": text}, function).results
    assert result.sentence == "search-replace: a.yaml:5: Gadget/x: a: the value '3' is found"


def test_the_values_of_a_secret_are_not_reported():
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n"
    function = FunctionSpec("search-replace", config={"by-value": "hunter2"})
    [result] = rendered({"a.yaml": text}, function).results
    assert result.message == "a value is found"


MATCHES = [
    ("abc", "abc", ()),
    ("abc", "xabc", None),
    ("a.c", "a\nc", None),
    ("(?s)a.c", "a\nc", ()),
    ("^abc$", "abc", ()),
    (r"\Aabc\z", "abc", ()),
    ("(?m)^a$\n^b$", "a\nb", ()),
    ("a$b", "ab", None),
    (r"a\b-\bb", "a-b", ()),
    (r"a\Bb", "ab", ()),
    ("(a+)(b*)", "aab", ("aa", "b")),
    ("(a+?)(a*)", "aaa", ("a", "aa")),
    ("(a|ab)(c|bcd)(d*)", "abcd", ("a", "bcd", "")),
    ("(?P<x>a)(?<y>b)", "ab", ("a", "b")),
    ("(?:ab)*", "abab", ()),
    ("(a)|b", "b", (None,)),
    ("(?i)ABC", "aBc", ()),
    ("(?i:a)B", "AB", ()),
    ("(?i:a)B", "Ab", None),
    ("(?i)[a-c]+", "AbC", ()),
    ("(?U)(a+)(a*)", "aaa", ("a", "aa")),
    ("a{2}", "aa", ()),
    ("a{2,}", "aaaa", ()),
    ("a{1,2}", "aaa", None),
    ("a{x}", "a{x}", ()),
    (r"\d+\.\w\s", "12.x ", ()),
    (r"[^\d]", "x", ()),
    (r"[\w-]+", "a-b", ()),
    ("[]a]+", "]a", ()),
    ("[[:alpha:]]+", "abc", ()),
    ("[[:^digit:]]", "1", None),
    (r"\x41\x{1F600}", "A😀", ()),
    (r"\Qa.b*\E+", "a.b**", ()),
    (r"\Q\C\E", r"\C", ()),
    (r"\\C", r"\C", ()),
    (r"(\pL+)-(.)", "é-😀", ("é", "😀")),
    ("", "", ()),
    ("a||b", "", ()),
    ("café", "café", ()),
]


@pytest.mark.parametrize(("expression", "text", "groups"), MATCHES)
def test_matching(expression, text, groups):
    found = compile_regex(expression).match(text)
    assert (None if found is None else found[1:]) == groups


REFUSED_EXPRESSIONS = [
    ("(", "a parenthesis is not closed in ("),
    (")", "a parenthesis is closed that was not opened"),
    ("*a", "there is nothing to repeat with *"),
    ("a**", "a repetition is repeated with **"),
    ("a{2,1}", "runs backward in {2,1}"),
    ("a{1001}", "a repetition is too long"),
    ("(a{500}){500}", "a repetition is too long"),
    (".{1000}" * 8, "the expression is too large"),
    (r"\pL" * 300, "the expression is too large"),
    ("x" * 5_001, "the expression is too large"),
    ("[a", "a bracket is not closed in [a"),
    ("[b-a]", "b-a is not a valid character class or range"),
    ("[[:word", "a bracket is not closed"),
    ("[[:none:]]", "[:none:] is not a valid character class or range"),
    (r"\pX", r"\pX is not a valid character class or range"),
    (r"(a)\1", "\\1 is not a valid escape"),
    (r"\C", "\\C is not supported"),
    (r"\\\C", "\\C is not supported"),
    (r"\x{110000}", "is not a valid escape"),
    ("(?=a)", "neither lookaround"),
    ("(?!a)", "neither lookaround"),
    ("(?<=a)", "neither lookaround"),
    ("(?<!a)", "neither lookaround"),
    ("(?P=a)", "nor backreferences"),
    ("(?P<x", "(?P<x is not a valid group name"),
    ("(?x:a)", "(?x is not supported"),
    ("a\\", "nothing follows"),
    ("(" * 200 + ")" * 200, "more than 100 groups"),
    ("(" * 101 + ")" * 101, "more than 100 groups"),
]


@pytest.mark.parametrize(("expression", "sentence"), REFUSED_EXPRESSIONS)
def test_an_expression_is_refused(expression, sentence):
    with pytest.raises(InvalidInput) as caught:
        compile_regex(expression)
    assert sentence in str(caught.value)


def test_a_refused_expression_is_told_by_the_error_alone(capfd):
    with pytest.raises(InvalidInput):
        compile_regex("(")
    assert capfd.readouterr() == ("", "")


LARGE = [".{5}" * 1_000, "x" * 5_000, "(.{50})" * 100]


@pytest.mark.parametrize("expression", LARGE, ids=["any", "plain", "groups"])
def test_five_thousand_characters_are_not_too_many(expression):
    assert compile_regex(expression).match("x" * 5_000) is not None


@pytest.mark.parametrize(
    "expression", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*b", "(.*)(.*)(.*)b"]
)
def test_no_expression_takes_longer_than_its_text(expression):
    assert compile_regex(expression).match("a" * 100_000) is None


ATOMS = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    "(a)",
    "(a|b)",
    "(?:ab|a)",
    "(b*)",
    "(a+?)",
    "a{1,2}",
]
PIECES = st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "|"]))


@given(st.lists(PIECES, max_size=5), st.text("abx", max_size=6))
def test_expressions_match_like_python_s(pieces, text):
    expression = "".join(atom + bar for atom, bar in pieces)
    wanted = re.fullmatch(expression, text)
    found = compile_regex(expression).match(text)
    assert found == ((text, *wanted.groups()) if wanted else None)
