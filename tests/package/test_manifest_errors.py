"""What bad YAML and JSON get: every fault with its line and what to do."""

from operator import itemgetter

import pytest

from fanout.package.manifest import Manifest
from fanout.package.object_reader import load_objects
from fanout.package.yaml_nodes import MAX_FILE, InvalidManifest

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)
CHAIN = "k0: &k0 [1]\n" + "".join(f"k{n}: &k{n} [*k{n - 1}]\n" for n in range(1, 200))

FAULTS = [
    ("a byte that is not UTF-8 is found on its line", b"a: 1\nb: \xff\n", ["2: byte 9 is not"]),
    ("UTF-16 is not UTF-8", "a: 1".encode("utf-16"), ["1: byte 1 is not UTF-8"]),
    ("a tab as indentation", b"a:\n\tb: 1\n", ["2: a tab"]),
    ("a key that occurs twice", b"a: 1\nb: 2\na: 3\n", ["3: the key a is already on line 1"]),
    ("keys that Kubernetes reads as one", b"on: 1\n'true': 2\n", ["2: the key true is already"]),
    ("two names of one boolean", b"on: 1\nYes: 2\n", ["2: the key Yes is already on line 1"]),
    ("a character that YAML does not have", "a: 1\né: 2\nb: \0\n".encode(), ["3: YAML syntax"]),
    ("a key twice in flow style", b"{a: 1,\n a: 2}\n", ["2: the key a is already on line 1"]),
    ("a tag that makes Python objects", b"a: !!python/object:os.x y\n", ["1: the tag !!python"]),
    ("a tag of somebody's own", b"a: 1\nb: !Ref x\n", ["2: the tag !Ref is not allowed"]),
    ("a tag on a mapping", b"a: !!set {x, y}\n", ["1: the tag !!set is not allowed"]),
    ("a tag that does not fit its value", b"a: !!int x\n", ["1: 'x' is not a valid !!int"]),
    (
        "a number that JSON has not",
        b"a: .inf\nb: .nan\n",
        ["1: Kubernetes does not support", "2: Kubernetes"],
    ),
    ("a key that is null", b"~: 1\n", ["1: a mapping has a key that is not a string"]),
    ("a key that is a list", b"? [a]\n: 1\n", ["1: a mapping has a key that is not a string"]),
    (
        "a template's braces without quotes",
        b"a: 1\nb: {{ x }}\n",
        [("2: {{ without quotes is a mapping")],
    ),
    (
        "text behind quotes",
        b"a:\n  b: 'x' + y\n  c: 1\n",
        ["2: YAML syntax: text after the closing quote"],
    ),
    ("text behind quotes in flow style", b'{a: "x" + y, c: 1}\n', ["1: YAML syntax: text after"]),
    ("an alias without its anchor", b"a: *b\n", ["1: the alias *b has no anchor"]),
    ("an alias inside its own anchor", b"a: &b [*b]\n", ["1: the alias *b is inside"]),
    ("a merge of no mapping", b"<<: 1\n", ["1: << merges a value that is not a mapping"]),
    ("aliases of aliases", BOMB.encode(), ["6: aliases make the document larger"]),
    ("a chain of aliases", CHAIN.encode(), ["100: aliases make the document more than 100"]),
    ("10,000 brackets", b"[" * 10_000, ["1: more than 100 levels deep"]),
    ("10,000 dashes", b"- " * 10_000 + b"a", ["1: more than 100 levels deep"]),
    ("a bracket that is not closed", b"a: [1\nb: 2\n", ["2: YAML syntax"]),
    (
        "faults in all documents, told in the order of their lines",
        b"a: 1\n b: 2\n---\nc: [1\n---\nd: 1\nd: 2\n--- *x\n---\n\te: 1\n",
        ["2: YAML syntax", "5: YAML syntax", "7: the key d", "8: the alias *x", "10: a tab"],
    ),
    ("a control character", b"a: \x07\n", ["YAML syntax"]),
]


@pytest.mark.parametrize(("sentence", "data", "expected"), FAULTS, ids=map(itemgetter(0), FAULTS))
@pytest.mark.parametrize("read", [Manifest.parse, load_objects])
def test_a_fault_is_reported_with_its_line(read, sentence, data, expected):
    with pytest.raises(InvalidManifest) as caught:
        read(data, "dir/file.yaml")
    problems = [str(problem) for problem in caught.value.problems]
    assert len(problems) == len(expected)
    for line, start in zip(problems, expected, strict=True):
        assert line.startswith("dir/file.yaml:")
        assert start in line
        assert "; " in line
    assert str(caught.value).splitlines() == problems


JSON_FAULTS = [
    ("a comma too many", '{\n"a": 1,\n}', "[23]: JSON syntax"),  # Python 3.13 points at the comma
    ("a key twice", '{"a": 1,\n "a": 2}', "2: the key a is already on line 1"),
    ("not a number", '{"a": NaN}', "NaN is not JSON"),
    ("a number too large", '{"a": 1e999}', "a number is too large"),
    ("half of a surrogate pair", '{"a": "\\ud83d"}', "half of a surrogate pair"),
    ("too deep", "[" * 200 + "]" * 200, "more than 100 levels deep"),
    ("much too deep", "[" * 100_000, "more than 100 levels deep"),
]


@pytest.mark.parametrize(
    ("sentence", "text", "expected"), JSON_FAULTS, ids=map(itemgetter(0), JSON_FAULTS)
)
@pytest.mark.parametrize("read", [Manifest.parse, load_objects])
def test_a_fault_of_a_json_file_is_reported(read, sentence, text, expected):
    with pytest.raises(InvalidManifest, match=expected):
        read(text.encode(), "file.json")


def test_a_file_that_is_too_large_is_not_read():
    with pytest.raises(InvalidManifest, match="more than 16,777,216"):
        Manifest.parse(b"#" * (MAX_FILE + 1), "f.yaml")


READ = [
    ("dates stay text", "a: 2020-01-01\nb: 2020-01-01T00:00:00Z", {"a": "2020-01-01"}),
    ("sexagesimal numbers are text", "a: 12:30:45\nb: 1:30.5", {"a": "12:30:45", "b": "1:30.5"}),
    ("booleans are those of YAML 1.1", "a: yes\nb: Off\nc: y\nd: n", {"a": True, "d": False}),
    ("keys are text", "1: a\ntrue: b\n1.50: c\n0755: d\n1e3: e\n0x1F: f",
     {"1": "a", "true": "b", "1.50": "c", "0755": "d", "1e3": "e", "0x1F": "f"}),
    ("octal, hexadecimal and binary", "a: 0o17\nb: 017\nc: 0x1F\nd: 0b11\ne: -0x1",
     {"a": 15, "b": 15, "c": 31, "d": 3, "e": -1}),
    ("keys that YAML 1.1 has for booleans are text", "y: 1\nno: 2\n'on': 3",
     {"y": 1, "no": 2, "on": 3}),
    ("in one line too", "a: {on: 1, n: y}\n? yes\n: 2", {"a": {"on": 1, "n": True}, "yes": 2}),
    ("behind an anchor too", "&k on: 1\n!!bool no: 2", {"on": 1, "no": 2}),
    ("numbers with underscores", "a: 1_000\nb: 1_0.5", {"a": 1000, "b": 10.5}),
    ("exponents need no point", "a: 1e3\nb: 1e400\nc: .5\nd: 08",
     {"a": 1000.0, "b": "1e400", "c": 0.5, "d": 8.0}),
    ("quoted is text", "a: '1'\nb: \"yes\"\nc: !!str 1\nd: ! 1",
     {"a": "1", "b": "yes", "c": "1", "d": "1"}),
    ("merge keys give what is not there", "b: &b {x: 1, w: 2}\na:\n  <<: *b\n  w: 3",
     {"a": {"x": 1, "w": 3}}),
    ("of several merged the first wins", "b: &b {x: 1}\nc: &c {x: 2, z: 3}\na: {<<: [*b, *c]}",
     {"a": {"x": 1, "z": 3}}),
    ("a merge key in quotes is a key", "a: {'<<': 1}", {"a": {"<<": 1}}),
    ("a byte order mark is not a string", "\ufeffa: 1", {"a": 1}),
    ("a value that looks like a merge key", "a: <<", {"a": "<<"}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "text", "expected"), READ, ids=map(itemgetter(0), READ))
def test_data_is_what_kubernetes_sees(sentence, text, expected):
    [document] = Manifest.parse(text.encode(), "f.yaml").documents
    values = {key: document.value[key] for key in expected}
    assert values == expected
    assert list(map(type, values.values())) == list(map(type, expected.values()))
    assert load_objects(text.encode(), "f.yaml") == [document.value]


def test_empty_documents_keep_their_place():
    text = b"---\n# nothing\n---\na: 1\n---\n~\n---\n\n---\nb: 2\n...\n"
    manifest = Manifest.parse(text, "f.yaml")
    assert [(d.index, d.value) for d in manifest.documents] == [(1, {"a": 1}), (4, {"b": 2})]
    assert Manifest.parse(b"", "f.yaml").documents == ()
    assert Manifest.parse(b" \n", "f.json").documents == ()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 3),
        (("a",), 3),
        (("a", "b"), 4),
        (("a", "b", 1), 6),
        (("a", "b", 1, "no"), 6),
        (("a", "no", "such"), 3),
        (("z",), 9),
        (("x",), 8),
        (("x", "b", 0), 5),
    ],
)
def test_the_line_of_a_path_is_that_of_the_deepest_value_there(path, line):
    text = b"---\n# c\na: &a\n  b:\n  - 1\n  - 2\n\nx: *a\nz:\n  1\n"
    [document] = Manifest.parse(text, "f.yaml").documents
    assert document.line_of(path) == line


@pytest.mark.parametrize(
    ("path", "line"),
    [((), 2), (("a",), 3), (("a", 1), 4), (("a", 1, "b"), 5), (("a", 1, "no"), 4), (("c",), 7)],
)
def test_lines_of_a_json_file(path, line):
    text = b'\n{\n "a": [1,\n {\n "b": {}}\n],\n "c" : "x\\"y"}'
    [document] = Manifest.parse(text, "f.json").documents
    assert document.line_of(path) == line


def test_lists_of_objects_are_their_items():
    listed = b"kind: List\nitems:\n- {kind: A}\n- {kind: B}\n---\nkind: C\nitems: 1\n"
    assert [o["kind"] for o in load_objects(listed, "f.yaml")] == ["A", "B", "C"]
    with pytest.raises(InvalidManifest, match="a str is not a Kubernetes object"):
        load_objects(b"a: 1\n---\nhello\n", "f.yaml")
