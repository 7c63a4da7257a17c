"""Laws of editing: the text says what the data says, and nothing else changed."""

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.package.field_edits import REMOVE, BlockedPath, Edit, same_json, with_value
from fanout.package.manifest import Manifest
from fanout.package.round_trip import edit_by_round_trip
from fanout.package.text_patch import detect_style

WORKLOAD = """\
# a workload: keep this
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app   # the name
  namespace: "placeholder"
  labels: # of the workload
    app: app
    # between
    'on': x
  annotations: {note: "a, b", other: 'c'}   # flow
spec:
  replicas: 2
  empty:
  nothing: ~
  list: []
  text: |
    one
      two

    three
  folded: >-
    some words
    more words

  last: |+
    kept

  containers:
  - name: main
    image: registry.example/app:1.0.0
    args: [a, "b", 3]
    env:
    - name: A
      value: "1"
    - {name: B, value: "2"} # in flow
  - name: side
    image: side
"""

TWO_INDENTS = """\
---
# four spaces, lists inside
kind: ConfigMap
data:
    key:   value
    multi: "a
      b"
    plain: some
      words   # c
    list:
      - x
      -   y
      - k: v
        w: z
---
---
{"kind": "Flow", "data": {"a": 1, "b": [1, 2, {"c": null}]}}
...
# end
---
kind: Anchored
base: &base {a: 1, b: 2}
same: *base
merged:
  <<: *base
  b: 3
tagged: !!str 12
"""

FILES = {
    "a workload": WORKLOAD,
    "without a last line break": WORKLOAD.rstrip(),
    "four spaces, several documents, anchors": TWO_INDENTS,
    "CRLF": WORKLOAD.replace("\n", "\r\n"),
    "CRLF, several documents": TWO_INDENTS.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + WORKLOAD,
    "mixed line breaks": WORKLOAD.replace("\n", "\r\n", 9),
    "odd characters": WORKLOAD.replace("keep this", "\N{GRINNING FACE} k\u00e4se").replace(
        '"a, b"', '"a,\u2028  b"'
    ),
}
JSON_FILES = [
    '{\n    "kind": "ConfigMap",\n    "data": {"a": "1"},\n    "list": [1, {"b": null}]\n}\n',
    '\ufeff{"a":[1,2,[3,{"b":{}}]],"c":{"d":1.50,"e":"\\u00e9"}}',
    '{ "a" : [ 1,\r\n  2 , {"name":"x" , "b": []},\r\n\t{"name":"y"}],\r\n"c":"é" }\r\n\r\n',
]

AWKWARD = [
    "", " ", "yes", "on", "Off", "y", "N", "~", "null", "12:30:45", "0o7", "0x1f", "1e3", ".5",
    "-", "- a", "a: b", "a #b", "#b", "2020-01-01", "=", "<<", "!tag", "&a", "*a", "%x", "@x",
    "`x", "1_0", "0b1", ".nan", "+.inf", "'", '"', "\\", "a\nb", "a\nb\n", "a\n\nb\n", "\n",
    "a\n\n", " a\nb", "a \nb", "\ta", "a\tb", "a\n\tb", "\x85", "a\u2028b", "\ufeff",
    "\N{GRINNING FACE}", "\x07", "\x7f", "[a]", "{a: b}", "a, b", "a:", ":a", "?", "? a", "---",
    "...", "--- a", "---\na\n", "a\n---\nb\n", "|", ">", "True", "123", "1.2.3", "10.0.0.1",
    "https://example.com/a?b=c#d", "registry:5000/a@sha256:12", "1e10", "12e03", "deadbee",
    "1234567", "a" * 200, "a\r\nb", "key: |\n  text\n  more\n", "{\n\"a\": 1\n}\n",
]  # fmt: skip

texts = st.sampled_from(AWKWARD) | st.text(max_size=12).filter(
    lambda t: not re.search("[\ud800-\udfff]", t)
)
scalars = (
    texts
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
)
keys = st.sampled_from(["a", "on", "a.b/c", "x y", "1", "", "key:", "~", "- k"]) | texts.filter(
    lambda t: len(t) < 100
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def paths_of(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from paths_of(child, (*path, key))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from paths_of(child, (*path, number))


@st.composite
def an_edit(draw, manifest):
    document = draw(st.sampled_from(manifest.documents))
    path = draw(st.sampled_from([p for p in paths_of(document.value) if p]))
    match draw(st.integers(0, 5)):
        case 0:
            return Edit(document.index, path)
        case 1 | 2:
            return Edit(document.index, path, draw(values))
        case 3:
            more = tuple(draw(st.lists(keys, min_size=1, max_size=3)))
            return Edit(document.index, (*path[:-1], *more), draw(values))
        case 4:
            return Edit(document.index, (*path, draw(keys)), draw(values))
        case _:
            return Edit(document.index, (*path, draw(st.integers(0, 3))), draw(values))


def data_of(manifest):
    return {document.index: document.value for document in manifest.documents}


def expected_of(manifest, edits):
    data = data_of(manifest)
    for edit in edits:
        data[edit.document] = with_value(data[edit.document], edit.path, edit.value)
    return {index: value for index, value in data.items() if value is not None}


@pytest.mark.parametrize("name", FILES)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_edited_file_reads_as_the_edited_data(name, data):
    manifest = Manifest.parse(FILES[name].encode(), "f.yaml")
    edits = data.draw(st.lists(an_edit(manifest), max_size=4))
    try:
        expected = expected_of(manifest, edits)
    except BlockedPath:
        with pytest.raises(InvalidInput):
            manifest.apply_edits_to_text(edits)
        return
    result = manifest.apply_edits_to_text(edits)
    assert same_json(data_of(Manifest.parse(result, "f.yaml")), expected)
    if same_json(expected, data_of(manifest)):
        assert manifest.apply_edits_to_text(edits) == manifest.apply_edits_to_text(edits)
    assert result.startswith(b"\xef\xbb\xbf") == manifest.data.startswith(b"\xef\xbb\xbf")


@given(st.sampled_from(JSON_FILES), st.data())
def test_an_edited_json_file_reads_as_the_edited_data(text, data):
    manifest = Manifest.parse(text.encode(), "f.json")
    edits = data.draw(st.lists(an_edit(manifest), max_size=3))
    try:
        expected = expected_of(manifest, edits)
    except BlockedPath:
        return
    result = manifest.apply_edits_to_text(edits)
    assert same_json(data_of(Manifest.parse(result, "f.json")), expected)
    if same_json(expected, data_of(manifest)):
        assert result == manifest.data


@given(values, values, st.sampled_from(["value", "missing", "item", "flow", "end"]), st.booleans())
@example("a", "on", "value", True)
@example("a\nb", "a\nb\n", "end", False)
@example({"a": "a\nb"}, {"a": "a\nb\n"}, "end", False)
def test_a_plan_is_right_for_all_values_of_its_kinds(first, second, where, closed):
    path = {
        "value": ("metadata", "name"),
        "missing": ("metadata", "x", "y"),
        "item": ("spec", "containers", 0, "env", 0, "value"),
        "flow": ("metadata", "annotations", "note"),
        "end": ("zz",),
    }[where]
    text = WORKLOAD if closed else WORKLOAD.rstrip()
    manifest = Manifest.parse(text.encode(), "f.yaml")
    for value in (first, second, first):
        edits = [Edit(0, path, value), Edit(0, ("spec", "replicas"), 7)]
        result = Manifest.parse(manifest.apply_edits_to_text(edits), "f.yaml")
        assert same_json(data_of(result), expected_of(manifest, edits))


simple = [
    ("metadata", "name"),
    ("metadata", "labels", "app"),
    ("metadata", "labels", "new"),
    ("metadata", "annotations", "note"),
    ("metadata", "annotations", "new"),
    ("spec", "replicas"),
    ("spec", "new", "er"),
    ("spec", "containers", 0, "image"),
    ("spec", "containers", 1, "image"),
]


@given(st.dictionaries(st.sampled_from(simple), scalars, min_size=1, max_size=4))
def test_the_text_patch_equals_the_round_trip_on_loaded_data(wanted):
    manifest = Manifest.parse(WORKLOAD.encode(), "f.yaml")
    edits = [Edit(0, path, value) for path, value in wanted.items()]
    slow = edit_by_round_trip(WORKLOAD, edits, detect_style(manifest.documents[0].root.node))
    patched = Manifest.parse(manifest.apply_edits_to_text(edits), "f.yaml")
    assert same_json(data_of(patched), data_of(Manifest.parse(slow.encode(), "f.yaml")))


@given(st.dictionaries(st.sampled_from(simple), texts, min_size=1, max_size=4))
def test_lines_that_no_edit_touches_stay_as_they_are(wanted):
    manifest = Manifest.parse(WORKLOAD.encode(), "f.yaml")
    edits = [Edit(0, path, value) for path, value in wanted.items()]
    touched = {manifest.documents[0].line_of(path) for path in wanted}
    kept = [line for n, line in enumerate(WORKLOAD.split("\n"), 1) if n not in touched]
    after = iter(manifest.apply_edits_to_text(edits).decode().split("\n"))
    assert all(any(line == other for other in after) for line in kept)


@pytest.mark.parametrize("name", FILES)
def test_no_edit_gives_the_same_bytes_object(name):
    data = FILES[name].encode()
    manifest = Manifest.parse(data, "f.yaml")
    assert manifest.apply_edits_to_text([]) is data
    nothing = [Edit(d.index, (p,), v) for d in manifest.documents for p, v in d.value.items()]
    assert manifest.apply_edits_to_text(nothing) is data
    assert (
        manifest.apply_edits_to_text([Edit(manifest.documents[0].index, ("no", "such"), REMOVE)])
        is data
    )
