"""Expressions: RE2's syntax, whole values, linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.variants.functions.regex import Regex

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
    ("", "", ()),
    ("a||b", "", ()),
    ("café", "café", ()),
]


@pytest.mark.parametrize(("expression", "text", "groups"), MATCHES)
def test_matching(expression, text, groups):
    found = Regex.of(expression).match(text)
    assert (None if found is None else found[1:]) == groups


REFUSED = [
    ("(", "a parenthesis is not closed at character 2"),
    (")", "a parenthesis is closed that was not opened at character 1"),
    ("*a", "there is nothing to repeat"),
    ("a**", "a repetition is repeated"),
    ("a{2,1}", "the wrong way round"),
    ("a{1001}", "a repetition is too long"),
    ("(a{500}){500}", "the expression is too large"),
    ("[a", "something is missing"),
    ("[b-a]", "a range is the wrong way round"),
    ("[[:word", ":] is missing"),
    ("[[:none:]]", "there is no [:none:]"),
    (r"\pL", "\\p is not understood"),
    (r"(a)\1", "\\1 is not understood"),
    (r"\x{110000}", "is no character"),
    ("(?=a)", "neither looks around"),
    ("(?<!a)", "neither looks around"),
    ("(?P=a)", "refers back"),
    ("(?x:a)", "there is no (?x"),
    ("a\\", "something is missing"),
    ("(" * 200 + ")" * 200, "too deep"),
]


@pytest.mark.parametrize(("expression", "sentence"), REFUSED)
def test_an_expression_is_refused(expression, sentence):
    with pytest.raises(InvalidInput) as caught:
        Regex.of(expression)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "expression", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "a*a*a*a*a*b", "(.*)(.*)(.*)b"]
)
def test_no_expression_takes_longer_than_its_text(expression):
    assert Regex.of(expression).match("a" * 3_000) is None


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
def test_what_python_matches_too_it_matches_alike(pieces, text):
    expression = "".join(atom + bar for atom, bar in pieces)
    wanted = re.fullmatch(expression, text)
    found = Regex.of(expression).match(text)
    assert found == ((text, *wanted.groups()) if wanted else None)
