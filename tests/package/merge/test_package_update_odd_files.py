"""Files that are unusual in every way YAML allows: the merge reads, keeps and writes them."""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.package.field_edits import same_json
from fanout.package.manifest import Manifest
from fanout.package.merge.merge_conflicts import ConflictChoices
from fanout.package.merge.package_update import merge_packages

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
OTHER = "apiVersion: v1\nkind: X\nmetadata: {name: z}\n"
BODIES = [
    "",
    "a: &x\n  k: v\nb: *x\nc: 1\n",
    "a: &x\n  k: w\nb: *x\nc: 1\n",
    "a: &x\n  k: v\nb:\n  <<: *x\n  z: 1\nc: 2\n",
    "base: &b {k: v}\na:\n  <<: *b\n  q: 1\nc: 1\n",
    "l:\n-\n  a: 1\n- b\n",
    "l:\n- - a\n  - b\n- - c\n",
    "l:\n- a: 1\n  b: 2\n- c: 3\n",
    "? complex\n: v\nc: 2\n",
    "a: |+\n  x\n\n\nb: 1\n",
    "a: >-\n  x\n  y\nb: 2\n",
    "a: 'multi\n  line'\nb: 3\n",
    "a: {b: [1, {c: 2}], # x\n    d: 3}\nz: 1\n",
    "a: {b: [1, {c: 5}]}\nz: 1\n",
    "1: x\ntrue: y\n",
    "a:\nb:\nc: ~\n",
    "a: [\n  x, # one\n  y,\n]\nc: 4\n",
    "data:\n  f: |\n    # not a comment\n    --- x\n    end\n",
    'data:\n  f: |\n    # not a comment\n    --- y\n    end\n  g: "a\\nb"\n',
    'a: "x"   \nb: y\t\n',
    "a: !!str 1\nc: 3\n",
    f"long: {'x' * 5000}\n",
    "l: []\nm: {}\n",
    "l:\n- 1\n# tail in list\n\n# next\nm: 1\n",
    "l:\n  - 1\n\n  - 2\n\n\nm: 1 \n# end\n",
    "k-x: on\n'q: r': 0755\n\"s\": 3\n",
]
KEYS = {body: set(re.findall(r"^[?'\"]?\w+", body, re.MULTILINE)) for body in BODIES}
WRAPS = [
    lambda text: text,
    lambda text: f"---\n{text}",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: f"\ufeff{text}",
    lambda text: text.rstrip("\n"),
    lambda text: f"# c\n---\n{text}---\n---\n{OTHER}",
    lambda text: f"%YAML 1.1\n---\n{text}...\n",
    lambda text: text.replace("\n", "\r\n", 2),
]


@st.composite
def sides(draw):
    """Three versions of a file; half of the time they have something in common."""
    bodies = [draw(st.sampled_from(BODIES)) for _ in range(3)]
    if draw(st.booleans()):
        common = draw(st.sampled_from(BODIES))
        whole = {body for body in bodies if KEYS[body] & KEYS[common]}
        bodies = [b if b in whole or draw(st.booleans()) else b + common for b in bodies]
    wrap = draw(st.sampled_from(WRAPS))
    wraps = [draw(st.sampled_from([wrap, wrap, *WRAPS])) for _ in range(3)]
    texts = [wrap(HEAD + body) for wrap, body in zip(wraps, bodies, strict=True)]
    return [{"a.yaml": ("100644", text.encode())} for text in texts]


def values(files):
    documents = Manifest.parse(files["a.yaml"][1], "a.yaml").documents
    return [document.value for document in documents]


@given(sides())
def test_the_result_of_odd_files_reads_and_merging_again_changes_no_value(three):
    origin, upstream, local = three
    result = merge_packages(origin, upstream, local)
    assert all("the comment" in note for note in result.notes)
    again = merge_packages(origin, upstream, result.files)
    assert same_json(values(again.files), values(result.files))


JSON = """\ufeff{ "apiVersion":"v1", "kind" : "ConfigMap",
      "metadata": {"name":"a"},\r
  "data": {"one":"1",   "two":"2"}, "list": [ 1,2 ] }

"""


def test_a_document_without_its_last_line_break_stays_before_the_marker_behind_it():
    origin, upstream = f"{HEAD}x: 1 # why\n", f"{HEAD}x: 2 # why"
    local = f"{origin}---\n"
    files = [{"a.yaml": ("100644", text.encode())} for text in (origin, upstream, local)]
    assert merge_packages(*files).files["a.yaml"][1].decode() == f"{upstream}\n---\n"


def test_a_merged_json_file_changes_where_upstream_changed_it_and_nowhere_else():
    def file(text):
        return {"a.json": ("100644", text.encode())}

    local = JSON.replace('"1"', '"here"')
    upstream = JSON.replace(" ", "").replace('"2"', '"there"').replace("1,2", "1,2,3")
    result = merge_packages(file(JSON), file(upstream), file(local))
    expected = local.replace('"2"', '"there"').replace("1,2", "1,2,3")
    assert result.files["a.json"][1].decode() == expected
    assert not result.conflicts


AS_JSON = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": %d, "y": %d}\n'
AS_YAML = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nx: %d\ny: %d\n"
MOVES = [
    ("upstream moves an object to JSON", ("a.yaml", AS_YAML), ("a.json", AS_JSON), ("a.yaml", AS_YAML), "a.json"),
    ("upstream moves an object to YAML", ("a.json", AS_JSON), ("a.yaml", AS_YAML), ("a.json", AS_JSON), "a.yaml"),
    ("an object is moved to YAML here", ("a.json", AS_JSON), ("a.json", AS_JSON), ("a.yaml", AS_YAML), "a.yaml"),
    ("an object is moved to JSON here", ("a.yaml", AS_YAML), ("a.yaml", AS_YAML), ("a.json", AS_JSON), "a.json"),
]  # fmt: skip


@pytest.mark.parametrize(
    "values", [((1, 1), (2, 1), (1, 3)), ((1, 1), (2, 1), (1, 1)), ((1, 1), (1, 1), (1, 3))]
)
@pytest.mark.parametrize(
    ("origin", "upstream", "local", "path"), [r[1:] for r in MOVES], ids=[r[0] for r in MOVES]
)
def test_an_object_that_changes_its_file_s_language_is_written_in_that(
    origin, upstream, local, path, values
):
    sides = [
        {name: ("100644", (text % it).encode())}
        for (name, text), it in zip((origin, upstream, local), values, strict=True)
    ]
    text = (AS_JSON if path.endswith(".json") else AS_YAML) % (values[1][0], values[2][1])
    result = merge_packages(*sides)
    assert (result.files, result.conflicts) == ({path: ("100644", text.encode())}, ())


def test_line_breaks_of_a_plain_file_that_changed_here_stay_and_the_lines_merge():
    sides = ("a\nb\nc\n", "A\nb\nc\n", "a\r\nb\r\nC\r\n")
    o, u, mine = ({"r.md": ("100644", text.encode())} for text in sides)
    wanted = {"r.md": ("100644", b"A\r\nb\r\nC\r\n")}
    for one, other in ((u, mine), (mine, u)):
        result = merge_packages(o, one, other)
        assert (result.files, result.conflicts) == (wanted, ())


def test_keys_that_are_no_texts_to_yaml_merge_by_what_they_are_called():
    text = HEAD + "m: {{1: {}, true: b, 0755: {}}}\n"
    o, u, mine, wanted = (
        {"a.yaml": ("100644", text.format(*it).encode())} for it in ("aa", "xa", "ay", "xy")
    )
    result = merge_packages(o, u, mine)
    assert (result.files, result.conflicts) == (wanted, ())


FILE, DIRECTORY = {"d": ("100644", b"file")}, {f"d/{n}": ("100644", b"inside") for n in "ab"}


@pytest.mark.parametrize(("theirs", "ours"), [(FILE, DIRECTORY), (DIRECTORY, FILE)])
def test_a_person_chooses_between_a_file_and_a_directory_of_one_name(theirs, ours):
    result = merge_packages({}, theirs, ours)
    assert result.files == theirs
    choices = ConflictChoices({conflict.key: ConflictWinner.LOCAL for conflict in result.conflicts})
    chosen = merge_packages({}, theirs, ours, choices)
    assert chosen.files == ours
    assert all(conflict.is_decided for conflict in chosen.conflicts)
