"""Expressions: RE2's syntax, whole values, linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.variants.functions.regex import compile_regex

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
    match = compile_regex(expression).match(text)
    assert (None if match is None else match[1:]) == groups


REFUSED = [
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


@pytest.mark.parametrize(("expression", "sentence"), REFUSED)
def test_an_expression_is_refused(expression, sentence):
    with pytest.raises(InvalidInput) as caught:
        compile_regex(expression)
    assert sentence in str(caught.value)


def test_a_refused_expression_is_reported_by_the_error_alone(capfd):
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
    match = compile_regex(expression).match(text)
    assert match == ((text, *wanted.groups()) if wanted else None)
