"""How an edited file looks: the cases a maintainer would dispute in a pull request."""

from operator import itemgetter

import pytest

from fanout.errors import InvalidInput
from fanout.package.field_edits import REMOVE, BlockedPath, Edit, ValueEditor, are_independent
from fanout.package.manifest import Manifest


def edited(text, *changes, file="f.yaml"):
    return (
        Manifest.parse(text.encode(), file)
        .apply_edits_to_text([Edit(0, path, value) for path, value in changes])
        .decode()
    )


MERGED = "a: &x # src\n  k:  1 # one\n  l: 3\nb:\n  <<: *x\n  j:   2 # two\nc:   4\n"
LOOKS = [
    (
        "a comment behind a value stays",
        "a: 1 # one\nb: 2\n",
        [(("a",), 5)],
        "a: 5 # one\nb: 2\n",
    ),
    (
        "a new key comes behind the others of its mapping",
        "a:\n  b: 1\n# about c\nc: 2\n",
        [(("a", "x"), "v")],
        "a:\n  b: 1\n  x: v\n# about c\nc: 2\n",
    ),
    (
        "several edits make one new parent",
        "a: 1\n",
        [(("m", "x"), "1"), (("m", "w", "z"), True)],
        'a: 1\nm:\n  x: "1"\n  w:\n    z: true\n',
    ),
    (
        "new keys in a mapping and in the one around it, both at their end",
        "a:\n  b:\n    c: 1\n",
        [(("a", "x"), 1), (("a", "b", "w"), 2)],
        "a:\n  b:\n    c: 1\n    w: 2\n  x: 1\n",
    ),
    ("null becomes a mapping", "a:\nb: ~\n", [(("a", "x"), 1)], "a:\n  x: 1\nb: ~\n"),
    ("an empty mapping opens", "a: {} # c\n", [(("a", "x"), 1)], "a: # c\n  x: 1\n"),
    ("flow style stays", "a: {b: 1}\n", [(("a", "x"), "u:v")], 'a: {b: 1, x: "u:v"}\n'),
    ("a flow list grows", "a: [1,\n  2, ]\n", [(("a", 2), 3)], "a: [1,\n  2, 3 ]\n"),
    ("a block list grows", "a:\n- 1\nb: 2\n", [(("a", 1), {"x": 1, "w": 2})],
     "a:\n- 1\n- x: 1\n  w: 2\nb: 2\n"),
    ("two elements at once", "a:\n  - 1\n", [(("a", 1), 2), (("a", 2), 3)],
     "a:\n  - 1\n  - 2\n  - 3\n"),
    ("a removed key takes its line", "a: 1\nb: 2 # b\nc: 3\n", [(("b",), REMOVE)], "a: 1\nc: 3\n"),
    ("the last removed key leaves an empty mapping", "a:\n  b: 1\nc: 2\n", [(("a", "b"), REMOVE)],
     "a: {}\nc: 2\n"),
    ("a removed element", "a:\n- x: 1\n  y: 2\n- z: 3\n", [(("a", 0), REMOVE)], "a:\n- z: 3\n"),
    ("removed in flow style", "a: {b: 1, c: 2, d: 3}\n", [(("a", "b"), REMOVE)],
     "a: {c: 2, d: 3}\n"),
    ("the last one in flow style", "a: [1, 2]\n", [(("a", 1), REMOVE)], "a: [1]\n"),
    ("text of several lines is a literal block", "a: 1\nb: 2\n", [(("a",), "x\ny: z\n")],
     "a: |\n  x\n  y: z\nb: 2\n"),
    ("and without its last line break", "a:\n  b: 1\n", [(("a", "c"), "x\n\n  y")],
     "a:\n  b: 1\n  c: |-\n    x\n\n      y\n"),
    ("a literal block becomes a line", "a: |\n  x\n  y\n\nb: 2\n", [(("a",), "z")],
     "a: z\n\nb: 2\n"),
    ("a block becomes text", "a: # c\n  b: 1\nd: 2\n", [(("a",), "x")], "a: x # c\nd: 2\n"),
    ("text becomes a block", "a: x # c\nd: 2\n", [(("a",), {"b": [1]})],
     "a: # c\n  b:\n  - 1\nd: 2\n"),
    ("indentation is the file's own", "a:\n    b:\n      - 1\n", [(("a", "c"), {"d": [1]})],
     "a:\n    b:\n      - 1\n    c:\n        d:\n          - 1\n"),
    ("what Kubernetes would read otherwise is quoted", "a: 1\n",
     [(("a",), "on"), (("b",), "12:30:45"), (("c",), "1e3"), (("d",), "v1.2"), (("e",), "a b")],
     'a: "on"\nb: "12:30:45"\nc: "1e3"\nd: v1.2\ne: a b\n'),
    ("CRLF stays CRLF", "a: 1\r\nb:\r\n  c: 2\r\n", [(("b", "d"), "x\ny\n")],
     "a: 1\r\nb:\r\n  c: 2\r\n  d: |\r\n    x\r\n    y\r\n"),
    ("a file without a last line break", "a: 1", [(("b",), 2)], "a: 1\nb: 2"),
    ("a key is found by its text", "a: {on: 1}\n", [(("a", "on"), 2)], "a: {on: 2}\n"),
    ("and stays where all is written anew", "a: &x\n  on: 1\nb: *x\nc: {b: *x}\n",
     [(("b", "on"), {"y": 2}), (("b", "no"), 3)],
     'a: &x\n  on: 1\nb:\n  "on":\n    "y": 2\n  "no": 3\nc: {b: *x}\n'),
    ("a key like a boolean is quoted", "a: 1\n", [(("on",), 2)], 'a: 1\n"on": 2\n'),
    ("a tab after the colon", "a:\t1\n", [(("a",), 2)], "a:\t2\n"),
    ("an alias is replaced where it is", "a: &x 1\nb: *x\n", [(("b",), 2)], "a: &x 1\nb: 2\n"),
    ("a shared mapping changes in one place only", "a: &x {k: 1} # c\nb: *x\n", [(("b", "k"), 2)],
     "a: &x {k: 1} # c\nb:\n  k: 2\n"),
    ("a merged key is overridden", "a: &x {k: 1}\nb:\n  <<: *x\n  j: 2\n", [(("b", "k"), 3)],
     "a: &x {k: 1}\nb:\n  <<: *x\n  j: 2\n  k: 3\n"),
    ("a merged key that gets what its source gets is not written out", MERGED,
     [(("a", "k"), 2), (("b", "k"), 2)], MERGED.replace("k:  1", "k:  2")),
    ("nor is one of several", MERGED, [(("a", "k"), 2), (("a", "l"), 5), (("b", "k"), 2),
     (("b", "l"), 6)],
     MERGED.replace("k:  1", "k:  2").replace("l: 3", "l: 5").replace("two\n", "two\n  l: 6\n")),
    ("a merged key keeps what its source alone loses", MERGED, [(("a", "k"), 2)],
     MERGED.replace("k:  1", "k:  2").replace("two\n", "two\n  k: 1\n")),
    ("nor does it get what its source gets anew", MERGED, [(("a", "m"), 2)],
     MERGED.replace("l: 3\n", "l: 3\n  m: 2\n").replace("  <<: *x\n", "")
     .replace("two\n", "two\n  k: 1\n  l: 3\n")),
    ("a merged key goes where it is merged", MERGED, [(("b", "k"), REMOVE)],
     MERGED.replace("  <<: *x\n", "").replace("two\n", "two\n  l: 3\n")),
    ("a mapping that is nothing but merged", "a: &x {k: 1} # c\nb:\n  <<: *x\n",
     [(("b", "k"), REMOVE)], "a: &x {k: 1} # c\nb: {}\n"),
    ("a mapping that is merged as a whole", "a: &x # x\n  k: {i: 1, j: 2}\nb: # b\n  <<: *x\n",
     [(("b", "k", "i"), 3)],
     "a: &x # x\n  k: {i: 1, j: 2}\nb: # b\n  <<: *x\n  k:\n    i: 3\n    j: 2\n"),
    ("an alias follows its anchor", "a: &x # x\n  k:  1 # one\nb:   *x\n",
     [(("a", "k"), 2), (("b", "k"), 2)], "a: &x # x\n  k:  2 # one\nb:   *x\n"),
    ("an alias does not follow where it must not", "a: &x # x\n  k:  1 # one\nb: *x\nc:   1\n",
     [(("a", "k"), 2)], "a: &x # x\n  k:  2 # one\nb:\n  k: 1\nc:   1\n"),
    ("the first key of an element", "a:\n- x: 1\n  y: 2 # c\n", [(("a", 0, "x"), REMOVE)],
     "a:\n- y: 2 # c\n"),
    ("the document behind a marker", "--- # one\na: 1\n...\n", [(("a",), 2)],
     "--- # one\na: 2\n...\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "before", "changes", "after"), LOOKS, ids=map(itemgetter(0), LOOKS)
)
def test_an_edit_changes_only_its_lines(sentence, before, changes, after):
    assert edited(before, *changes) == after


JSON_LOOKS = [
    ("four spaces", '{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "b": "\\ud83d\\ude00"\n}\n'),
    ("tabs", '{\n\t"a": "é"\n}', '{\n\t"a": "é",\n\t"b": "😀"\n}'),
    ("one line", '{"a": 1}\n', '{"a": 1, "b": "\\ud83d\\ude00"}\n'),
    ("packed", '{"a":1}', '{"a":1,"b":"\\ud83d\\ude00"}'),
    ("CRLF", '{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "b": "\\ud83d\\ude00"\r\n}\r\n'),
]


@pytest.mark.parametrize(
    ("sentence", "before", "after"), JSON_LOOKS, ids=map(itemgetter(0), JSON_LOOKS)
)
def test_a_json_file_keeps_its_layout(sentence, before, after):
    assert edited(before, (("b",), "😀"), file="f.json") == after
    assert edited(before, (("b",), REMOVE), file="f.json") == before


ODD = """{ "kind" :"Pod",
   "spec": {"ports": [ 80,81 , 82], "args": ["a",
      "b"], "empty":{}},
        "list": [
    {"name": "a",   "size": 1},
    {"name":"b",
     "size":2} ], "n": 1.0e3, "t": "\\u00e9\\/" }

"""
KEPT = [
    ("a value", [(("spec", "args", 0), "z")], [('["a",', '["z",')]),
    ("an element behind", [(("spec", "ports", 3), 83)], [("82]", "82,83]")]),
    ("an element goes", [(("spec", "ports", 0), REMOVE)], [("80,81", "81")]),
    ("the last element goes", [(("spec", "ports", 2), REMOVE)], [("81 , 82", "81")]),
    ("a field behind", [(("spec", "new"), [1, {"b": 2}])],
     [('"empty":{}', '"empty":{}, "new" :[1,{"b" :2}]')]),
    ("a field goes", [(("kind",), REMOVE)], [('"kind" :"Pod",\n   ', "")]),
    ("the last field goes", [(("t",), REMOVE)], [(', "t": "\\u00e9\\/"', "")]),
    ("an element in front", [(("list",), [{"name": "z"}, {"name": "a", "size": 1},
     {"name": "b", "size": 3}])],
     [('    {"name": "a"', '    {\n        "name" :"z"\n    },\n    {"name": "a"'),
      (":2}", ":3}")]),
    ("what was empty", [(("spec", "empty", "a"), 1)], [('"empty":{}', '"empty":{"a" :1}')]),
    ("text for a list", [(("list",), "x")], [(ODD[ODD.index("[\n    {"):ODD.index(', "n"')],
     '"x"')]),
    ("nothing", [(("n",), 1000.0), (("t",), "é/")], []),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "changes", "new"), KEPT, ids=map(itemgetter(0), KEPT))
def test_of_a_json_file_all_other_bytes_are_kept(sentence, changes, new):
    expected = ODD
    for before, after in new:
        assert expected.count(before) == 1
        expected = expected.replace(before, after)
    assert edited(ODD, *changes, file="f.json") == expected


def test_other_documents_stay_byte_for_byte_when_one_takes_the_slow_way():
    head = "---\n# one\na:   &x   {k:   1}\nb: [ *x ]   # odd   spacing\n"
    slow = "---\na: &y\n    k: 1\nb: *y\n"
    tail = "# end\n---   # three\nc: 'x'\n---\n"
    manifest = Manifest.parse((head + slow + tail).encode(), "f.yaml")
    after = manifest.apply_edits_to_text([Edit(1, ("a", "k"), 2)]).decode()
    assert after.startswith(head)
    assert after.endswith(tail)
    assert [d.value for d in Manifest.parse(after.encode(), "f").documents][1] == {
        "a": {"k": 2},
        "b": {"k": 1},
    }


BLOCKED = [
    ("a path through text", ("a", "x", "y"), "2: a.x: a is not a mapping"),
    ("a path through a number in a list", ("b", 0, "y"), "4: b[0].y: b[0] is not a mapping"),
    ("a position in a mapping", ("c", 0), "6: c[0]: c is not a list"),
    ("a position behind the next one", ("b", 5), "3: b[5]: b has 1 elements, no [5]"),
]


@pytest.mark.parametrize(("sentence", "path", "expected"), BLOCKED, ids=map(itemgetter(0), BLOCKED))
def test_a_path_that_is_blocked_is_reported_with_its_line(sentence, path, expected):
    manifest = Manifest.parse(b"# c\na: text\nb:\n- 1\n\nc: {x: 1}\n", "f.yaml")
    for _ in range(2):
        with pytest.raises(InvalidInput) as caught:
            manifest.apply_edits_to_text([Edit(0, path, 1)])
        problem = str(caught.value)
        assert problem.startswith("f.yaml:")
        assert expected.split(": ")[0] == str(caught.value.where.line)
        assert expected.partition(": ")[2].split(": ")[1] in problem


@pytest.mark.parametrize(
    "value", ["\ud83d", float("inf"), {1: 2}, {"a": object()}, {"k" * 1100: 1}]
)
def test_a_value_outside_json_is_refused(value):
    manifest = Manifest.parse(b"a: 1\n", "f.yaml")
    with pytest.raises(InvalidInput):
        manifest.apply_edits_to_text([Edit(0, ("a",), value)])


def test_an_edit_that_makes_the_file_too_deep_is_refused():
    value = 1
    for _ in range(150):
        value = {"a": value}
    with pytest.raises(InvalidInput, match="levels deep"):
        Manifest.parse(b"a: 1\n", "f.yaml").apply_edits_to_text([Edit(0, ("a",), value)])


def test_edits_in_each_other_s_way_go_in_their_order():
    text = "a: {b: 1}\nl:\n- 1\n- 2\n- 3\n"
    assert edited(text, (("a",), {"c": 1}), (("a", "d"), 2)).startswith("a:")
    after = edited(text, (("l", 0), REMOVE), (("l", 0), "x"))
    assert Manifest.parse(after.encode(), "f").documents[0].value["l"] == ["x", 3]
    assert not are_independent([Edit(0, ("l", 0)), Edit(0, ("l", 2), 1)])
    assert not are_independent([Edit(0, ("a",), 1), Edit(0, ("a", "b"), 1)])
    assert are_independent([Edit(0, ("a",), 1), Edit(1, ("a", "b"), 1), Edit(0, ("ab",), 1)])


def test_the_same_shape_with_a_value_that_is_there_already():
    manifest = Manifest.parse(b"a: 'x'\nb: 1\n", "f.yaml")
    assert (
        manifest.apply_edits_to_text([Edit(0, ("a",), "z"), Edit(0, ("b",), 2)]) == b"a: z\nb: 2\n"
    )
    assert (
        manifest.apply_edits_to_text([Edit(0, ("a",), "x"), Edit(0, ("b",), 2)])
        == b"a: 'x'\nb: 2\n"
    )
    assert (
        manifest.apply_edits_to_text([Edit(0, ("a",), "z"), Edit(0, ("b",), True)])
        == b"a: z\nb: true\n"
    )


def test_a_value_that_was_read_does_not_change():
    original = {"list": [1, {"a": 1}], "b": None}
    value = ValueEditor(original)
    value.set(("list", 0), 2)
    first = value.value
    value.set(("list", 1, "a"), 2)
    value.set(("list", 2), 3)
    value.set(("b", "c", 0), 4)
    second = value.value
    value.set(("list", 1, "a"), REMOVE)
    value.set(("b", "x"), REMOVE)
    with pytest.raises(BlockedPath):
        value.set(("new", 0, "a", 1), 5)
    assert original == {"list": [1, {"a": 1}], "b": None}
    assert first == {"list": [2, {"a": 1}], "b": None}
    assert second == {"list": [2, {"a": 2}, 3], "b": {"c": [4]}}
    assert value.value == {"list": [2, {}, 3], "b": {"c": [4]}}


def test_a_value_that_is_set_stays_as_it_is():
    given = {"a": 1}
    value = ValueEditor({})
    value.set(("x",), given)
    value.set(("x", "a"), 2)
    value.set(("y",), given)
    assert (given, value.value) == ({"a": 1}, {"x": {"a": 2}, "y": {"a": 1}})
