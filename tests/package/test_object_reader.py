"""The short way of reading: what it yields is what the reader with positions yields, or nothing."""

from operator import itemgetter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fanout.package.object_reader import NotPlainYaml, ScalarMemo, load_objects, read_plain
from fanout.package.yaml_nodes import InvalidManifest, parse_yaml

FILE = "objects.yaml"
NO_OBJECT = "is not a Kubernetes object"
OBJECT = """\
apiVersion: infra.example.com/v1
kind: Cluster
metadata:
  name: edge-00001
  labels: {monitoring: 'on', "tier": prod}
  annotations: {}
spec:
  # a comment, and an empty line

  url: https://git.example.com:8443/edge.git#main
  replicas: 2
  share: -0.5
  ready: yes
  nothing:
  regions: [eu, "us"]
  nodes:
  - name: node-0
    address: 10.0.0.1
  -   name: node-1
      ports:
      - 80
      - "443"
  zones:
    - a
    - {name: b}
  script: |
    #!/bin/sh
    set -e

      echo "done"

  line: |-
    one
  last: it's "quoted" inside
"""
READ = [
    ("all that programs write", OBJECT),
    ("nothing", "# only a comment\n\n"),
    ("a list in the column of its key, and a key behind it", "a:\n- b: 1\n- c\nd: e\n"),
    ("a key without a value before one that is less deep", "a:\n  b:\nc: 1\n"),
    ("a comment right behind a literal block", "a: |\n  b\n# c\nd: e\n"),
    ("text with very many blanks inside", f"a: b{' ' * 50_000}c\n"),
    ("letters of other scripts", "a: käse\nb: 検査\n"),
]
LEFT = [
    ("text on two lines", "a: b\n  c\n"),
    ("an item on two lines, which looks like a list", "- a\n  - b\n"),
    ("an item on two lines below a key", "k:\n- a\n  - b\n"),
    ("quoted text on two lines", "a: 'b\n\n  c'\n"),
    ("a mapping below a value", "a: b\n  c: d\n"),
    ("a column that nothing began at", "a:\n    b: 1\n  c: 2\n"),
    ("a list where a mapping is open", "a: 1\n- b\n"),
    ("a mapping where a list is open", "a:\n  - b\n  c: d\n"),
    ("a key that is there twice", "a: 1\nb: 2\n'a': 3\n"),
    ("a key that is there twice in braces", "a: {b: 1, b: 2}\n"),
    ("a key that is not a string", "on: 1\n"),
    ("a key that is not a string in braces", "a: {y: 1}\n"),
    ("an anchor", "a: &b c\n"),
    ("an alias", "a: *b\n"),
    ("a tag", "a: !!str 1\n"),
    ("a merge", "a:\n  <<: b\n"),
    ("a number that Kubernetes has not", "a: .inf\n"),
    ("a colon inside text", "a: b: c\n"),
    ("a colon at the end of text", "a: b:\n"),
    ("a comment behind a value", "a: b # c\n"),
    ("an escape", 'a: "\\u00e9"\n'),
    ("a quote within quotes", "a: 'it''s'\n"),
    ("text behind the end of quotes", "a: 'b' c\n"),
    ("a tab", "a:\tb\n"),
    ("another line break in a value", "a: b\x85c\n"),
    ("another line break in a comment", "a: b\n# c\u2028d: e\n"),
    ("a carriage return", "a: b\r\nc: d\r\n"),
    ("a folded block", "a: >\n  b\n"),
    ("a literal block that says its indentation", "a: |2\n   b\n"),
    ("a literal block that begins with an empty line", "a: |\n\n  b\n"),
    ("a literal block that begins deeper than it goes on", "a: |\n    b\n  c\n"),
    ("a literal block no deeper than its key", "- a: |\n  b\n"),
    ("a literal block with blanks alone on a line", "a: |\n  b\n    \n  c\n"),
    ("an empty literal block", "a: |\nb: c\n"),
    ("a list in a list", "a:\n- - b\n"),
    ("an item without a value", "a:\n-\n- b\n"),
    ("a collection in braces", "a: {b: {c: d}}\n"),
    ("braces over two lines", "a: {b: c,\n  d: e}\n"),
    ("a long key", f"{'k' * 1100}: v\n"),
    ("no line break at the end", "a: |\n  b"),
    ("the end of a document", "a: b\n...\n"),
    ("a single value", "a\n"),
    ("a list alone", "- a\n"),
    ("deeper than any schema", "".join(f"{' ' * n}k:\n" for n in range(105))),
]  # fmt: skip
INDENTS = ["", " ", "  ", "    ", "  - ", "- ", "-   ", "    - ", "- - "]
KEYS = [
    "a:",
    "b:",
    "on:",
    "'c':",
    '"d":',
    "e.f/g:",
    "1:",
    "<<:",
    "? a:",
    ".5:",
    "k k:",
    "a",
    "a:b:",
]
VALUES = [
    "", "x", "yes", "12", "0x1f", "1e3", "~", "null", "-1", "- x", "-", "x:", ":x", "x: y",
    "x #y", "x#y", "# x", "'x'", "'x''y'", '"x"', '"\\x41"', "'x", "' x '", "{}", "[]", "{a: 1}",
    "{a: 1, b: x}", "{a: 1, a: 2}", "{a: on, on: a}", "{a:1}", "{a: }", "[a, b]", "[a, ]",
    "[a: 1]", "[[]]", "['a, b', c]", "{'a: b': c}", '{"a": "b, c: d"}', "|", "|-", "|+", ">",
    "|2", "&a x", "*a", "!t x", "%x", "@x", "`x", "=", "<<", ".inf", ".", "...", "---", "?",
    "? x", "$x", "(x)", "x y", "x  y", "x ", "  x", "x,y", "x]", "~x", "+1", "1_000", "é",
    "x\u2028y", "\ufeffx", "x\ty", "\tx", "x\ry", "\x07", "😀", "//",
]  # fmt: skip
LINES = [
    "",
    " ",
    "   ",
    "# c",
    "  # c",
    "      # c",
    "  text",
    "    text",
    "---",
    "--- ",
    "--- a",
    "...",
]
lines = st.one_of(
    st.sampled_from(LINES),
    st.builds(
        lambda indent, key, value: f"{indent}{key} {value}",
        st.sampled_from(INDENTS),
        st.sampled_from(KEYS),
        st.sampled_from(VALUES),
    ),
    st.builds(
        "{}{}".format, st.sampled_from(INDENTS), st.sampled_from([*VALUES, *KEYS]).map(str.rstrip)
    ),
)
files = st.builds(
    lambda found, end: "\n".join(found) + end,
    st.lists(lines, max_size=7),
    st.sampled_from(["\n", ""]),
)


@pytest.mark.parametrize(("sentence", "text"), READ, ids=map(itemgetter(0), READ))
def test_plain_yaml_is_read_by_lines(sentence, text):
    assert read_plain(text, ScalarMemo()) == one(text)


@pytest.mark.parametrize(("sentence", "text"), LEFT, ids=map(itemgetter(0), LEFT))
def test_other_yaml_is_left_to_a_parser(sentence, text):
    with pytest.raises(NotPlainYaml):
        read_plain(text, ScalarMemo())
    assert answer(text) == answer_with_positions(text)


@given(files)
@example("a:\n- |\n  b\n")
@example("a: |\n  b\n \n    # c\n  d\n")
@example("- a:\n  - b\n")
def test_a_plain_document_is_what_the_reader_with_positions_reads(text):
    try:
        document = read_plain(text, ScalarMemo())
    except NotPlainYaml:
        return
    assert spelt(document) == spelt(one(text))


@given(files)
@example("a: 1\n---\n---\nb: 2\n---\n")
@example("a: |+\n  b\n\n---\nc: d\n")
@example("a: [b\n---\nc]\n")
@example("%YAML 1.1\n---\na: 1\n")
@example("a: &x 1\n---\nb: *x\n")
def test_a_file_is_what_the_reader_with_positions_reads(text):
    assert spelt(answer(text)) == spelt(answer_with_positions(text))


def test_objects_share_nothing_that_could_be_changed():
    texts = ScalarMemo()
    first, second = (read_plain("a: {b: c}\nd: [e]\n", texts) for _ in range(2))
    assert first["a"] is not second["a"]
    assert first["d"] is not second["d"]


def test_equal_texts_of_two_files_are_one_object():
    texts = ScalarMemo()
    first, second = (load_objects(f"a: some text\n{k}: 1\n".encode(), FILE, texts) for k in "bc")
    assert first[0]["a"] is second[0]["a"]


def one(text):
    """The data of the only document, with positions."""
    reading = parse_yaml(text, FILE)
    assert not reading.problems
    assert len(reading.roots) <= 1
    return reading.roots[0].node.data if reading.roots else None


def answer(text):
    """What the file declares, or what is wrong with it."""
    try:
        return load_objects(text.encode(), FILE)
    except InvalidManifest as error:
        return NO_OBJECT if NO_OBJECT in str(error) else str(error)


def answer_with_positions(text):
    reading = parse_yaml(text.removeprefix("\ufeff"), FILE)
    if reading.problems:
        return str(InvalidManifest(reading.problems))
    values = [root.node.data for root in reading.roots]
    return values if all(isinstance(value, dict) for value in values) else NO_OBJECT


def spelt(value):
    """1, 1.0 and true are equal to Python."""
    return repr(value)
