"""How values stand in the text, comments put there, and documents taken out of a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.package.manifest import Manifest
from fanout.package.value_spelling import ValueSpelling

TEXT = """# top
a: 1 # one
b: "x"   #two
nothing: # none
list: # all
- x # first
- z
flow: [p, q] # both
empty: []
lines: |
  some
map: {k: v}
mode: 0755
deep:
- - inner
anchor: &it word # named
alias: *it
tagged: !!str 12
last: 'it''s'"""


def spelled(text):
    return Manifest.parse(text.encode(), "a.yaml").documents[0].spellings()


SPELLINGS = [
    (("a",), ValueSpelling("1", False, "one", True)),
    (("b",), ValueSpelling("x", True, "two", True)),
    (("nothing",), ValueSpelling("", False, "none", True)),
    (("list",), ValueSpelling(None, False, "all", True)),
    (("list", 0), ValueSpelling("x", False, "first", True)),
    (("list", 1), ValueSpelling("z", False, "", True)),
    (("flow",), ValueSpelling(None, False, "both", True)),
    (("flow", 0), ValueSpelling("p", False, "", False)),
    (("empty",), ValueSpelling(None, False, "", True)),
    (("lines",), ValueSpelling("some\n", True, "", False)),
    (("map",), ValueSpelling(None, False, "", True)),
    (("map", "k"), ValueSpelling("v", False, "", False)),
    (("mode",), ValueSpelling("0755", False, "", True)),
    (("deep", 0), ValueSpelling(None, False, "", False)),
    (("deep", 0, 0), ValueSpelling("inner", False, "", True)),
    (("anchor",), ValueSpelling("word", True, "named", True)),
    (("tagged",), ValueSpelling("12", True, "", True)),
    (("last",), ValueSpelling("it's", True, "", True)),
]


@pytest.mark.parametrize(("path", "expected"), SPELLINGS, ids=lambda value: str(value)[:40])
def test_a_value_s_spelling(path, expected):
    assert spelled(TEXT)[path] == expected


def test_a_value_behind_an_alias_has_no_spelling():
    assert ("alias",) not in spelled(TEXT)


def test_json_has_no_spellings():
    assert Manifest.parse(b'{"a": 1}', "a.json").documents[0].spellings() == {}


PUT = [
    (("a",), "a: 1 # new\n"),
    (("b",), 'b: "x"   # new\n'),
    (("nothing",), "nothing: # new\n"),
    (("list",), "list: # new\n- x # first\n"),
    (("list", 1), "- z # new\nflow:"),
    (("flow",), "flow: [p, q] # new\n"),
    (("empty",), "empty: [] # new\n"),
    (("last",), "last: 'it''s' # new"),
]


@pytest.mark.parametrize(("path", "line"), PUT, ids=lambda value: str(value)[:40])
def test_a_comment_is_put_on_a_line(path, line):
    manifest = Manifest.parse(TEXT.encode(), "a.yaml")
    text = manifest.add_line_comments({0: {path: "new"}}).decode()
    assert line in text
    assert spelled(text)[path].comment == "new"
    assert Manifest.parse(text.encode(), "a.yaml").documents[0].value == manifest.documents[0].value


def test_comments_in_several_documents_with_their_own_line_breaks():
    manifest = Manifest.parse("\ufeffa: 1\r\n---\r\nb: 2\r\n".encode(), "a.yaml")
    text = manifest.add_line_comments({0: {("a",): "x"}, 1: {("b",): "y"}})
    assert text.decode() == "\ufeffa: 1 # x\r\n---\r\nb: 2 # y\r\n"


@given(st.dictionaries(st.sampled_from([path for path, _ in PUT]), st.text("abc #$", max_size=5)))
def test_comments_change_no_data(comments):
    manifest = Manifest.parse(TEXT.encode(), "a.yaml")
    reread = Manifest.parse(manifest.add_line_comments({0: comments}), "a.yaml")
    assert reread.documents[0].value == manifest.documents[0].value


FILE = "# top\na: 1\n---\n# second\nb: 2\n--- # third\nc: 3\n---\n\n---\n{d: 4}\n"
WITHOUT = [
    ({0}, "# second\nb: 2\n--- # third\nc: 3\n---\n\n---\n{d: 4}\n"),
    ({1}, "# top\na: 1\n--- # third\nc: 3\n---\n\n---\n{d: 4}\n"),
    ({2}, "# top\na: 1\n---\n# second\nb: 2\n---\n\n---\n{d: 4}\n"),
    ({4}, "# top\na: 1\n---\n# second\nb: 2\n--- # third\nc: 3\n"),
    ({0, 1, 2}, "{d: 4}\n"),
    ({1, 2, 4}, "# top\na: 1\n"),
    (set(), FILE),
    ({0, 1, 2, 4}, None),
]


@pytest.mark.parametrize(("removed", "expected"), WITHOUT, ids=lambda value: str(value)[:20])
def test_documents_are_taken_out(removed, expected):
    text = Manifest.parse(FILE.encode(), "a.yaml").remove_documents(removed)
    assert text == (expected if expected is None else expected.encode())


STARTS = [
    ("a marker before the first", "---\na: 1\n---\nb: 2\n", {0}, "---\nb: 2\n"),
    ("a directive", "%YAML 1.1\n---\na: 1\n---\nb: 2\n", {0}, "%YAML 1.1\n---\nb: 2\n"),
    ("an object on the marker's line", "--- {a: 1}\n--- {b: 2}\n", {0}, "--- {b: 2}\n"),
    ("an end marker", "a: 1\n...\n---\nb: 2\n", {0}, "b: 2\n"),
    ("no last line break", "a: 1\n---\nb: 2", {0}, "b: 2"),
    ("carriage returns", "a: 1\r\n---\r\nb: 2\r\n", {1}, "a: 1\r\n"),
]


@pytest.mark.parametrize(("before", "removed", "expected"), [row[1:] for row in STARTS],
                         ids=[row[0] for row in STARTS])  # fmt: skip
def test_text_around_removed_documents_stays(before, removed, expected):
    text = Manifest.parse(before.encode(), "a.yaml").remove_documents(removed)
    assert text is not None
    assert text.decode() == expected
