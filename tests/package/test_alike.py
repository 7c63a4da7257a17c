"""A text is read by what was learnt of others as it would be read alone."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fanout.package.parse_cache import read_cached
from fanout.package.yaml_nodes import parse_yaml

TEXT = """\
# a workload
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # the name
  namespace: shop
  labels: {site: eu, app: web}
  annotations:
    note: some words here
    quoted: 'x'
    other: "y z"
    block: |
      name: web
      - shop
    folded: >-
      text
      kind: Service
spec:
  replicas: 2
  nothing:
  args: [a,
    b: c
  ]
  containers:
  - name: main
    image: example.com/web:1.0
    args:
    - run
    - --fast
    ports: [{port: 80}]
  - image: side
    name: 'side'
---
# none
---
kind: Last
more: text
 that: goes
""".replace("more: text\n that: goes", "plain: text\n  that goes on\nlast: end")
WORDS = ["a", "shop", "edge-00001", "12", "1e3", "true", "null", "0x1f", "'5'", '"a: b"', "''",
         "x:y", "12:30", "a b", "1.0.0", "_", "a/b@c+d", "on", "2026-01-02", "web"]  # fmt: skip


def nodes_of(node):
    own = (node.kind, node.start, node.end, node.line, node.column, node.flow, node.anchored)
    below = [
        (name, key and nodes_of(key), nodes_of(child))
        for name, (key, child) in node.children.items()
    ]
    return (*own, node.weight, node.height, repr(node.data), below)


def told(reading):
    roots = [(root.index, root.start, root.end, nodes_of(root.node)) for root in reading.roots]
    return roots, [str(problem) for problem in reading.problems]


def exchanged(text, words):
    """The text with other words in some places where something like a word stands."""
    for place, word in words:
        found = list(re.finditer(r"(?<=[:-] )\S+", text))
        match = found[place % len(found)]
        text = text[: match.start()] + word + text[match.end() :]
    return text


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from(WORDS)), max_size=6))
@example([(2, "a-much-longer-name"), (20, "x")])
def test_other_words_are_read_as_they_stand(words):
    read_cached(TEXT, "")
    text = exchanged(TEXT, words)
    assert told(read_cached(text, "")) == told(parse_yaml(text, ""))


ALIKE = [
    ("a word in a literal block is no value",
     "a: |\n  b: c\n", "a: |\n  b: d\n"),
    ("a word that ends a folded text is none", "a: >-\n  b\n  c: d\n", "a: >-\n  b\n  c: e\n"),
    ("the first line of a text of two is none", "a: b\n  c\n", "a: d\n  c\n"),
    ("a word in flow style is none", "a: [b,\n  c: d\n  ]\n", "a: [b,\n  c: e\n  ]\n"),
    ("what is shared changes wherever it is",
     "a: &x\n  b: c\nd: *x\n", "a: &x\n  b: e\nd: *x\n"),
    ("what is merged changes wherever it is",
     "a:\n  <<:\n    b: c\n", "a:\n  <<:\n    b: d\n"),
    ("a tag is about its value", "a: !!str 1\n", "a: !!str 2\n"),
    ("a key can come twice", "a: b\na: c\n", "a: b\na: d\n"),
    ("a word becomes a number", "a: b\nc: d\n", "a: 12\nc: d\n"),
    ("a word at the end of the file", "a: b", "a: bcd"),
    ("line breaks of two characters", "a: b\r\nc: d\r\n", "a: bb\r\nc: dd\r\n"),
    ("documents behind the word move", "a: b\n---\nc: d\n", "a: longer\n---\nc: e\n"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [row[1:] for row in ALIKE], ids=[r[0] for r in ALIKE])
def test_texts_that_look_alike(first, second):
    read_cached(first, "")
    assert told(read_cached(second, "")) == told(parse_yaml(second, ""))
    assert told(read_cached(first, "")) == told(parse_yaml(first, ""))


def test_a_file_keeps_being_read_when_many_others_were():
    first = "kind: Thing\nname: web\n"
    for number in range(300):
        read_cached(f"kind: Thing{number}x\nkey{number}: web\n" + "# long\n" * 300, "")
        text = first.replace("web", f"w{number}")
        assert told(read_cached(text, "")) == told(parse_yaml(text, ""))
