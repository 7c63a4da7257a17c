"""Objects, files and packages three ways: a row for each rule of docs/concepts/merge.md."""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

import pytest

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import ConflictCause, ConflictChoices
from fanout.package.merge.package_update import merge_packages


def thing(name, value=1, kind="ConfigMap", more=""):
    head = f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"
    return f"{head}data:\n  value: {value}\n{more}"


def items(*things):
    lines = ["apiVersion: v1", "kind: List", "items:"]
    for text in things:
        first, *rest = text.strip().split("\n")
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return "\n".join(lines) + "\n"


def kptfile(name="x", more=""):
    return f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n{more}"


def package(files):
    return {
        path: ("100644", text if isinstance(text, bytes) else text.encode())
        for path, text in files.items()
    }


def merge(origin, upstream, local, **options):
    """The files of the result, and its conflicts as `place: cause, winner`."""
    result = merge_packages(*map(package, (origin, upstream, local)), **options)
    files = {path: data.decode(errors="replace") for path, (_, data) in result.files.items()}
    conflicts = [
        f"{' '.join(p for p in (c.where.object or c.where.file, c.where.field) if p)}: {c.cause}, {c.winner}"
        for c in result.conflicts
    ]
    return files, conflicts


A, B, C = thing("a"), thing("b"), thing("c")
A2, A3 = thing("a", 2), thing("a", 3)

ODD_JSON = """\
{   "apiVersion": "v1",  "kind": "X",
    "metadata": { "name": "a", "labels": {} },

    "p": %s, "q" :%s,  "list": ["a",
                        "b" ], "numbers": [1.50, 1e3], "text": "\\u00e9é\\/"
}"""
JSON_LIST = """\
{"apiVersion": "v1", "kind": "List",
 "items": [
   {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "p":%s},

   { "apiVersion": "v1", "kind": "X", "metadata": {"name": "b"}, "q":  %s }
 ]}
"""

# origin, upstream, local, result, conflicts
OBJECTS = [
    ("an object only here stays", {"a.yaml": A}, {"a.yaml": A2}, {"a.yaml": A, "b.yaml": B},
     {"a.yaml": A2, "b.yaml": B}, []),
    ("an object added upstream is added", {"a.yaml": A}, {"a.yaml": A, "b.yaml": B}, {"a.yaml": A3},
     {"a.yaml": A3, "b.yaml": B}, []),
    ("an object deleted on both sides is gone", {"a.yaml": A, "b.yaml": B}, {"a.yaml": A2},
     {"a.yaml": A}, {"a.yaml": A2}, []),
    ("an object deleted upstream goes", {"a.yaml": A, "b.yaml": B}, {"a.yaml": A},
     {"a.yaml": A2, "b.yaml": B}, {"a.yaml": A2}, []),
    ("an object deleted upstream goes, though a comment changed locally",
     {"a.yaml": A, "b.yaml": B}, {"a.yaml": A}, {"a.yaml": A2, "b.yaml": "# mine\n" + B},
     {"a.yaml": A2}, []),
    ("an object deleted upstream and edited here stays", {"a.yaml": A, "b.yaml": B}, {"b.yaml": B},
     {"a.yaml": A2, "b.yaml": B}, {"a.yaml": A2, "b.yaml": B},
     ["ConfigMap/a: changed here, deleted there, local"]),
    ("an object deleted here stays deleted", {"a.yaml": A, "b.yaml": B},
     {"a.yaml": A, "b.yaml": thing("b", 2)}, {"b.yaml": B}, {"b.yaml": thing("b", 2)}, []),
    ("an object deleted here and changed there stays deleted", {"a.yaml": A, "b.yaml": B},
     {"a.yaml": A2, "b.yaml": B}, {"b.yaml": B}, {"b.yaml": B},
     ["ConfigMap/a: deleted here, changed there, local"]),
    ("an object that both added alike stands there once, where it is here", {"b.yaml": B},
     {"b.yaml": B, "up.yaml": A}, {"b.yaml": B, "mine.yaml": A}, {"b.yaml": B, "mine.yaml": A}, []),
    ("an object that both added differently stands there once, and is a conflict", {"b.yaml": B},
     {"b.yaml": B, "up.yaml": A2}, {"b.yaml": B, "mine.yaml": A3},
     {"b.yaml": B, "mine.yaml": A2}, ["ConfigMap/a data.value: both added, upstream"]),
    ("an object that upstream moves to another file moves with the edits here",
     {"a.yaml": A}, {"new.yaml": A}, {"a.yaml": A2}, {"new.yaml": A2}, []),
    ("an object that upstream moves and changes merges where it comes to stand",
     {"a.yaml": A}, {"new.yaml": thing("a", 2)}, {"a.yaml": thing("a", more="  mine: 1\n")},
     {"new.yaml": thing("a", 2, more="  mine: 1\n")}, []),
    ("an object that was moved here stays where it was moved to",
     {"a.yaml": A}, {"a.yaml": A2}, {"mine.yaml": A}, {"mine.yaml": A2}, []),
    ("an object that both moved stays where it is here",
     {"a.yaml": A}, {"up.yaml": A2}, {"mine.yaml": A}, {"mine.yaml": A2}, []),
    ("a new name is another object: the old one goes, the new one comes",
     {"a.yaml": A}, {"a.yaml": B}, {"a.yaml": A, "c.yaml": C}, {"a.yaml": B, "c.yaml": C}, []),
    ("kpt-merge says whose object it is that was renamed here", {"a.yaml": A}, {"a.yaml": A2},
     {"a.yaml": A.replace("metadata:", "metadata: # kpt-merge: /a").replace("name: a", "name: z")},
     {"a.yaml": A2.replace("metadata:", "metadata: # kpt-merge: /a").replace("name: a", "name: z")},
     []),
    ("two objects of one identity are told apart by their place",
     {"a.yaml": f"{A}---\n{A2}"}, {"a.yaml": f"{thing('a', 9)}---\n{A2}"}, {"a.yaml": f"{A}---\n{A3}"},
     {"a.yaml": f"{thing('a', 9)}---\n{A3}"}, []),
    ("one name in two kinds is two objects", {"a.yaml": A},
     {"a.yaml": A, "s.yaml": thing("a", kind="Secret")}, {"a.yaml": A2},
     {"a.yaml": A2, "s.yaml": thing("a", kind="Secret")}, []),
    ("a new version of the same kind is the same object", {"a.yaml": A.replace("v1", "x/v1")},
     {"a.yaml": A.replace("v1", "x/v2")}, {"a.yaml": A2.replace("v1", "x/v1")},
     {"a.yaml": A2.replace("v1", "x/v2")}, []),
]  # fmt: skip

DOCUMENTS = [
    ("a document added upstream stands behind what precedes it there",
     {"a.yaml": f"{A}---\n{C}"}, {"a.yaml": f"{A}---\n{B}---\n{C}"}, {"a.yaml": f"{A2}---\n{C}"},
     {"a.yaml": f"{A2}---\n{B}---\n{C}"}, []),
    ("a document added upstream in front stands in front",
     {"a.yaml": C}, {"a.yaml": f"{B}---\n{C}"}, {"a.yaml": thing("c", 5)},
     {"a.yaml": f"{B}---\n{thing('c', 5)}"}, []),
    ("a document that goes takes its marker along",
     {"a.yaml": f"---\n{A}---\n{B}---\n{C}"}, {"a.yaml": f"---\n{A}---\n{C}"},
     {"a.yaml": f"---\n{A2}---\n{B}---\n{C}"}, {"a.yaml": f"---\n{A2}---\n{C}"}, []),
    ("markers, comments on them and empty documents of the local file stay",
     {"a.yaml": f"# top\n--- # one\n{A}---\n---\n{B}"},
     {"a.yaml": f"# top\n--- # one\n{A}---\n---\n{thing('b', 2)}"},
     {"a.yaml": f"# top\n--- # one\n{A2}---\n---\n{B}"},
     {"a.yaml": f"# top\n--- # one\n{A2}---\n---\n{thing('b', 2)}"}, []),
    ("a comment above the first marker arrives", {"a.yaml": f"# old\n---\n{A}"},
     {"a.yaml": f"# new\n---\n{A}"}, {"a.yaml": f"# old\n---\n{A2}"}, {"a.yaml": f"# new\n---\n{A2}"},
     []),
    ("a file without a last line break takes a document",
     {"a.yaml": A.rstrip()}, {"a.yaml": f"{A}---\n{B}"}, {"a.yaml": A2.rstrip()},
     {"a.yaml": f"{A2}---\n{B}"}, []),
    ("windows line breaks stay windows line breaks", {"a.yaml": A.replace("\n", "\r\n")},
     {"a.yaml": (A + "  up: 1\n").replace("\n", "\r\n")}, {"a.yaml": A2.replace("\n", "\r\n")},
     {"a.yaml": (A2 + "  up: 1\n").replace("\n", "\r\n")}, []),
    ("line breaks that were changed here stay so", {"a.yaml": A}, {"a.yaml": A + "  up: 1\n"},
     {"a.yaml": A2.replace("\n", "\r\n")}, {"a.yaml": (A2 + "  up: 1\n").replace("\n", "\r\n")}, []),
    ("a byte order mark stays", {"a.yaml": "\ufeff" + A}, {"a.yaml": "\ufeff" + A + "  up: 1\n"},
     {"a.yaml": "\ufeff" + A2}, {"a.yaml": "\ufeff" + A2 + "  up: 1\n"}, []),
    ("values without a kind merge as fields too", {"v.yaml": "a: 1\nb: 1\n"},
     {"v.yaml": "a: 2\nb: 1\n"}, {"v.yaml": "a: 1\nb: 3\n"}, {"v.yaml": "a: 2\nb: 3\n"}, []),
    ("a manifest that cannot be read merges as text",
     {"t.yaml": "a: {{ x }}\nb: [\nc: 1\n"}, {"t.yaml": "a: {{ y }}\nb: [\nc: 1\n"},
     {"t.yaml": "a: {{ x }}\nb: [\nc: 2\n"}, {"t.yaml": "a: {{ y }}\nb: [\nc: 2\n"}, []),
    ("json manifests are objects",
     {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "p": 1, "q": 1}\n'},
     {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "p": 2, "q": 1}\n'},
     {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "p": 1, "q": 3}\n'},
     {"a.json": '{"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "p": 2, "q": 3}\n'}, []),
    ("a json manifest keeps its layout and the spelling of its numbers and texts",
     {"a.json": ODD_JSON % ("1", "1")}, {"a.json": ODD_JSON % ("2", "1")},
     {"a.json": ODD_JSON % ("1", "3")}, {"a.json": ODD_JSON % ("2", "3")}, []),
    ("the items of a List in json are objects, and keep their layout",
     {"l.json": JSON_LIST % ("1", "1")}, {"l.json": JSON_LIST % ("2", "1")},
     {"l.json": JSON_LIST % ("1", "3")}, {"l.json": JSON_LIST % ("2", "3")}, []),
    ("json that is no object merges as text", {"d.json": '{\n "a": 1,\n "x": 0,\n "b": 1\n}\n'},
     {"d.json": '{\n "a": 2,\n "x": 0,\n "b": 1\n}\n'}, {"d.json": '{\n "a": 1,\n "x": 0,\n "b": 3\n}\n'},
     {"d.json": '{\n "a": 2,\n "x": 0,\n "b": 3\n}\n'}, []),
    ("the items of a List are objects", {"l.yaml": items(A, B)}, {"l.yaml": items(A2, B)},
     {"l.yaml": items(B, A, C)}, {"l.yaml": items(B, A2, C)}, []),
    ("an item deleted upstream and edited here stays, as objects do", {"l.yaml": items(A, B)},
     {"l.yaml": items(B)}, {"l.yaml": items(A2, B)}, {"l.yaml": items(A2, B)},
     ["ConfigMap/a: changed here, deleted there, local"]),
    ("an item that upstream takes out of the List leaves it with the edits here",
     {"l.yaml": items(A, B)}, {"l.yaml": items(B), "a.yaml": A}, {"l.yaml": items(A2, B)},
     {"l.yaml": items(B), "a.yaml": A2}, []),
    ("a List goes with its last item", {"l.yaml": items(A), "b.yaml": B}, {"b.yaml": B, "a.yaml": A},
     {"l.yaml": items(A2), "b.yaml": B}, {"b.yaml": B, "a.yaml": A2}, []),
]  # fmt: skip

FILES = [
    ("a plain file changed upstream arrives", {"r.md": "a\n", "x": "1"}, {"r.md": "b\n", "x": "1"},
     {"r.md": "a\n", "x": "2"}, {"r.md": "b\n", "x": "2"}, []),
    ("lines of a plain file merge where they do not touch", {"r.md": "a\nb\nc\n"},
     {"r.md": "A\nb\nc\n"}, {"r.md": "a\nb\nC\n"}, {"r.md": "A\nb\nC\n"}, []),
    ("lines that touch are a conflict of the file, and upstream wins", {"r.md": "a\nb\n"},
     {"r.md": "A\nb\n"}, {"r.md": "a\nB\n"}, {"r.md": "A\nb\n"}, ["r.md: both changed, upstream"]),
    ("a plain file that both added differently is a conflict", {"x": "1"}, {"x": "1", "r": "up\n"},
     {"x": "1", "r": "me\n"}, {"x": "1", "r": "up\n"}, ["r: both added, upstream"]),
    ("a plain file deleted here stays deleted", {"r": "a", "x": "1"}, {"r": "a", "x": "2"},
     {"x": "1"}, {"x": "2"}, []),
    ("a plain file deleted here and changed there stays deleted", {"r": "a", "x": "1"},
     {"r": "b", "x": "1"}, {"x": "1"}, {"x": "1"}, ["r: deleted here, changed there, local"]),
    ("a plain file deleted upstream goes", {"r": "a", "x": "1"}, {"x": "1"}, {"r": "a", "x": "2"},
     {"x": "2"}, []),
    ("a plain file deleted upstream and changed here stays", {"r": "a", "x": "1"}, {"x": "1"},
     {"r": "b", "x": "1"}, {"r": "b", "x": "1"}, ["r: changed here, deleted there, local"]),
    ("a new name that differs by case alone is a new name", {"R.md": "a", "x": "1"},
     {"r.md": "a", "x": "1"}, {"R.md": "a", "x": "2"}, {"r.md": "a", "x": "2"}, []),
    ("a file upstream takes the place of a directory here, as a conflict", {"x": "1"},
     {"x": "1", "d": "file"}, {"x": "1", "d/f": "mine"}, {"x": "1", "d": "file"},
     ["d/f: both added, upstream"]),
    ("a directory upstream takes the place of a file here, as a conflict", {"x": "1"},
     {"x": "1", "d/f": "theirs"}, {"x": "1", "d": "mine"}, {"x": "1", "d/f": "theirs"},
     ["d: both added, upstream"]),
    ("a file that became a directory upstream stays with a change here", {"x": "1", "d": "a"},
     {"x": "2", "d/f": "theirs", "d/g": "theirs"}, {"x": "1", "d": "mine"}, {"x": "2", "d": "mine"},
     ["d: changed here, deleted there, local"]),
    ("a directory that became a file upstream stays with a change here",
     {"x": "1", "d/f": "a", "d/g": "a"}, {"x": "2", "d": "theirs"}, {"x": "1", "d/f": "mine", "d/g": "a"},
     {"x": "2", "d/f": "mine"}, ["d/f: changed here, deleted there, local"]),
    ("a file that became a directory upstream goes without a change here", {"x": "1", "d": "a"},
     {"x": "1", "d/f": "theirs"}, {"x": "2", "d": "a"}, {"x": "2", "d/f": "theirs"}, []),
    ("a manifest that became a directory upstream stays with a change here", {"d.yaml": A},
     {"d.yaml/b.yaml": B}, {"d.yaml": A2}, {"d.yaml": A2}, ["ConfigMap/a: changed here, deleted there, local"]),
    ("a manifest that became a directory upstream keeps objects added here", {"d.yaml": A},
     {"d.yaml/a.yaml": A}, {"d.yaml": f"{A}---\n{B}"}, {"d.yaml": f"{A}---\n{B}"},
     ["d.yaml: changed here, deleted there, local"]),
    ("a subpackage that was a file upstream leaves the file changed here", {"x": "1", "d": "a"},
     {"x": "1", "d/Kptfile": kptfile(), "d/a.yaml": A}, {"x": "1", "d": "mine"}, {"x": "1", "d": "mine"},
     ["d: changed here, deleted there, local"]),
    ("a manifest that upstream emptied is upstream's beside an edit here", {"a.yaml": A, "b.yaml": B},
     {"a.yaml": "", "b.yaml": B}, {"a.yaml": A, "b.yaml": thing("b", 2)}, {"a.yaml": "", "b.yaml": thing("b", 2)}, []),
    ("a manifest of which upstream left comments is upstream's beside an edit here", {"a.yaml": A, "b.yaml": B},
     {"a.yaml": "# none\n", "b.yaml": B}, {"a.yaml": A, "b.yaml": thing("b", 2)},
     {"a.yaml": "# none\n", "b.yaml": thing("b", 2)}, []),
    ("what upstream wrote between documents is upstream's beside an edit here",
     {"a.yaml": f"{A}---\n{B}", "b.yaml": C}, {"a.yaml": f"# new\n---\n{A2}\n--- # other\n{B}\n...\n"},
     {"a.yaml": f"{A}---\n{B}", "b.yaml": thing("c", 2)},
     {"a.yaml": f"# new\n---\n{A2}\n--- # other\n{B}\n...\n", "b.yaml": thing("c", 2)},
     ["ConfigMap/c: changed here, deleted there, local"]),
]  # fmt: skip

K, K2 = kptfile("s"), kptfile("s", "info:\n  site: x\n")
ROOT = {"Kptfile": kptfile()}
SUBPACKAGES = [
    ("no/yes/yes, alike: it stays", {**ROOT, "x": "1"}, {**ROOT, "x": "1", "s/Kptfile": K},
     {**ROOT, "x": "2", "s/Kptfile": K}, {**ROOT, "x": "2", "s/Kptfile": K}, []),
    ("no/yes/yes, different: the local one stays, as a conflict", ROOT,
     {**ROOT, "s/Kptfile": K, "s/a.yaml": A}, {**ROOT, "s/Kptfile": K2, "s/b.yaml": B},
     {**ROOT, "s/Kptfile": K2, "s/b.yaml": B}, ["s: both added, local"]),
    ("no/no/yes: it is copied in", {**ROOT, "x": "1"}, {**ROOT, "x": "1", "s/Kptfile": K},
     {**ROOT, "x": "2"}, {**ROOT, "x": "2", "s/Kptfile": K}, []),
    ("no/yes/no: it is kept", {**ROOT, "x": "1"}, {**ROOT, "x": "2"},
     {**ROOT, "x": "1", "s/Kptfile": K}, {**ROOT, "x": "2", "s/Kptfile": K}, []),
    ("yes/no/no: nothing", {**ROOT, "x": "1", "s/Kptfile": K}, {**ROOT, "x": "2"},
     {**ROOT, "x": "1"}, {**ROOT, "x": "2"}, []),
    ("yes/no/yes: it stays deleted, with all that upstream adds to it",
     {**ROOT, "s/Kptfile": K}, {**ROOT, "s/Kptfile": K, "s/a.yaml": A}, {**ROOT, "x": "1"},
     {**ROOT, "x": "1"}, ["s: deleted here, changed there, local"]),
    ("yes/yes/no, untouched: it goes", {**ROOT, "x": "1", "s/Kptfile": K, "s/a.yaml": A},
     {**ROOT, "x": "1"}, {**ROOT, "x": "2", "s/Kptfile": K, "s/a.yaml": A}, {**ROOT, "x": "2"}, []),
    ("yes/yes/no, edited: it stays whole, as a conflict",
     {**ROOT, "s/Kptfile": K, "s/a.yaml": A, "s/b.yaml": B}, ROOT,
     {**ROOT, "s/Kptfile": K, "s/a.yaml": A2, "s/b.yaml": B},
     {**ROOT, "s/Kptfile": K, "s/a.yaml": A2, "s/b.yaml": B},
     ["s: changed here, deleted there, local"]),
    ("yes/yes/yes: they merge", {**ROOT, "s/Kptfile": K, "s/a.yaml": A},
     {**ROOT, "s/Kptfile": K2, "s/a.yaml": A}, {**ROOT, "s/Kptfile": K, "s/a.yaml": A2},
     {**ROOT, "s/Kptfile": K2, "s/a.yaml": A2}, []),
    ("one object may stand in several packages", {**ROOT, "a.yaml": A, "s/Kptfile": K, "s/a.yaml": A},
     {**ROOT, "a.yaml": A2, "s/Kptfile": K, "s/a.yaml": A},
     {**ROOT, "a.yaml": A, "s/Kptfile": K, "s/a.yaml": A3},
     {**ROOT, "a.yaml": A2, "s/Kptfile": K, "s/a.yaml": A3}, []),
]  # fmt: skip

ROWS = OBJECTS + DOCUMENTS + FILES + SUBPACKAGES


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "files", "conflicts"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_packages(origin, upstream, local, files, conflicts):
    assert merge(origin, upstream, local) == (files, conflicts)


def web(namespace, replicas=2):
    line = f"  namespace: {namespace}\n" if namespace else ""
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n{line}"
        f"spec:\n  replicas: {replicas}\n"
    )


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "files", "conflicts"),
    [
        pytest.param({"a.yaml": web("n1")}, {"a.yaml": web("n2")}, {"a.yaml": web("n1", 5)},
                     {"a.yaml": web("n2", 5)}, 0, id="a new namespace takes the edits along"),
        pytest.param({"a.yaml": web("")}, {"a.yaml": web("n2")}, {"a.yaml": web("", 5)},
                     {"a.yaml": web("n2", 5)}, 0, id="so does a first one"),
        pytest.param({"a.yaml": web("n1")}, {"a.yaml": web("n1", 3)}, {"a.yaml": web("n3")},
                     {"a.yaml": web("n3", 3)}, 0, id="one given here gets upstream's changes"),
        pytest.param({"a.yaml": web("n1")}, {"a.yaml": web("n2")}, {"a.yaml": web("n3")},
                     {"a.yaml": web("n2")}, 1, id="two new ones are a conflict of that field"),
        pytest.param({"a.yaml": web("n1")}, {"a.yaml": web("n2", 3)}, {"a.yaml": web("n2", 5)},
                     {"a.yaml": web("n2", 3)}, 1, id="the same new one is no conflict by itself"),
        pytest.param({"a.yaml": web("n1")}, {"b.yaml": web("n2")}, {"a.yaml": web("n1", 5)},
                     {"b.yaml": web("n2", 5)}, 0, id="with another file at once"),
        pytest.param({"a.yaml": web("n1")}, {"a.yaml": web("n2")},
                     {"a.yaml": web("n1", 5), "b.yaml": web("n2", 7)},
                     {"a.yaml": web("n1", 5), "b.yaml": web("n2")}, 2,
                     id="where somebody has one in that namespace they are two"),
    ],
)  # fmt: skip
def test_namespaces(origin, upstream, local, files, conflicts):
    result = merge_packages(*map(package, (origin, upstream, local)))
    assert result.files == package(files)
    assert len(result.conflicts) == conflicts


def test_two_objects_that_change_their_namespaces_at_once_are_not_guessed_at():
    origin = package({"a.yaml": web("n1"), "b.yaml": web("n2")})
    upstream = package({"a.yaml": web("n3"), "b.yaml": web("n4")})
    result = merge_packages(
        origin, upstream, package({"a.yaml": web("n1", 5), "b.yaml": web("n2")})
    )
    assert [conflict.cause for conflict in result.conflicts] == [ConflictCause.DELETED_THERE]


def test_binary_files_are_one_value():
    sides = [{"x": b"\0a\nb\nc\n"}, {"x": b"\0A\nb\nc\n"}, {"x": b"\0a\nb\nC\n"}]
    assert merge(*sides) == ({"x": "\0A\nb\nc\n"}, ["x: both changed, upstream"])


def test_modes_merge_like_everything_else():
    def side(mode, text):
        return {"run.sh": (mode, text)}

    merged = merge_packages(side("100644", b"a"), side("100755", b"a"), side("100644", b"b"))
    assert merged.files == side("100755", b"b")
    merged = merge_packages(side("100644", b"a"), side("100644", b"b"), side("100755", b"a"))
    assert merged.files == side("100755", b"b")


def test_links_are_refused_by_name():
    with pytest.raises(InvalidInput, match="link"):
        merge_packages({}, {"link": ("120000", b"/etc")}, {})


def test_a_conflict_says_where_what_and_who_won():
    head = {"x.yaml": thing("z")}
    result = merge_packages(
        *(package({**head, "d/a.yaml": f"{B}---\n{text}"}) for text in (A, A2, A3))
    )
    [conflict] = result.conflicts
    assert (conflict.where.file, conflict.where.line) == ("d/a.yaml", 13)
    assert (conflict.where.object, conflict.where.field) == ("ConfigMap/a", "data.value")
    assert (conflict.origin, conflict.upstream, conflict.local) == (1, 2, 3)
    assert (conflict.cause, conflict.winner) == (
        ConflictCause.BOTH_CHANGED,
        ConflictWinner.UPSTREAM,
    )
    assert str(conflict) == (
        "d/a.yaml:13: ConfigMap/a: data.value: both changed "
        "(base 1, upstream 2, local 3); upstream won"
    )


@pytest.mark.parametrize(
    ("text", "lines"), [(ODD_JSON, [4, 4]), (JSON_LIST, [3, 5])], ids=["an object", "a List"]
)
def test_conflicts_in_json_have_lines_too(text, lines):
    sides = (package({"a.json": text % values}) for values in (("1", "1"), ("2", "2"), ("3", "3")))
    assert [conflict.where.line for conflict in merge_packages(*sides).conflicts] == lines


def test_a_deleted_file_is_missing_in_its_conflict():
    result = merge_packages(*map(package, ({"r": "a"}, {"r": "b"}, {})))
    [conflict] = result.conflicts
    assert (conflict.origin, conflict.upstream, conflict.local) == (b"a", b"b", MISSING)


def test_a_choice_decides_a_conflict_by_its_key():
    sides = [package({"a.yaml": text}) for text in (A, A2, A3)]
    [open_conflict] = merge_packages(*sides).conflicts
    result = merge_packages(*sides, ConflictChoices({open_conflict.key: ConflictWinner.LOCAL}))
    assert result.files == sides[2]
    assert [(c.winner, c.is_decided) for c in result.conflicts] == [(ConflictWinner.LOCAL, True)]


@pytest.mark.parametrize(
    ("side", "winner"), [(ConflictWinner.UPSTREAM, "U"), (ConflictWinner.LOCAL, "L")]
)
def test_of_texts_and_lists_the_winner_has_only_what_both_changed(side, winner):
    def files(one, three, four):
        lines = [f"one={one}", "two=2", f"three={three}", "x", f"four={four}"]
        block = "".join(f"    {line}\n" for line in lines)
        head = "kind: X\nmetadata: {name: "
        return package({
            "a.yaml": f"{head}a}}\ndata:\n  app.conf: |\n{block}",
            "b.yaml": f"{head}b}}\nargs: [{', '.join(lines)}]\n",
            "c.txt": "".join(f"{line}\n" for line in lines),
        })  # fmt: skip

    sides = files("1", "3", "4"), files("U", "3", "44"), files("L", "33", "4")
    disputes = merge_packages(*sides).conflicts
    assert len(disputes) == 3
    result = merge_packages(*sides, ConflictChoices({conflict.key: side for conflict in disputes}))
    assert result.files == files(winner, "33", "44")


def test_a_conflict_of_long_texts_shows_the_lines_that_differ():
    sides = [package({"c.txt": f"a\nb\n{word}\nz\n"}) for word in "cde"]
    [conflict] = merge_packages(*sides).conflicts
    assert str(conflict) == (
        'c.txt: both changed (from line 3 of it: base "c\\n", upstream "d\\n", local "e\\n");'
        " upstream won"
    )


def test_a_choice_brings_back_what_was_deleted_here():
    sides = [
        package({"a.yaml": A, "x": "1"}),
        package({"a.yaml": A2, "x": "1"}),
        package({"x": "1"}),
    ]
    [conflict] = merge_packages(*sides).conflicts
    result = merge_packages(*sides, ConflictChoices({conflict.key: ConflictWinner.UPSTREAM}))
    assert result.files == sides[1]


def test_notes_name_what_is_there_twice_and_what_cannot_be_read():
    origin = package({"a.yaml": A, "b.yaml": A, "t.yaml": "{{ x }}: [\n"})
    upstream = package({"a.yaml": A2, "b.yaml": A, "t.yaml": "{{ y }}: [\n"})
    result = merge_packages(
        origin, upstream, package({"a.yaml": A, "b.yaml": A3, "t.yaml": "z: [\n"})
    )
    assert [note.split(";")[0] for note in result.notes] == [
        "t.yaml: not readable as YAML (origin)",
        "a.yaml: ConfigMap/a is declared twice, also in b.yaml",
    ]
