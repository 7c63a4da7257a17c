"""Comments of this side that go with what they are about are told of, each with file and line."""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

import pytest

from fanout.package.merge.package_update import merge_packages

HEAD = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n"
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n"

# origin, upstream, local, notes
ROWS = [
    ("a comment behind a field that upstream removed",
     {"a.yaml": HEAD + "x: 1\ny: 1\n"}, {"a.yaml": HEAD + "y: 1\n"}, {"a.yaml": HEAD + "x: 1 # mine\ny: 2\n"},
     ['a.yaml:5: the comment "# mine" was removed with Thing/a: x']),
    ("a comment inside an element that upstream removed",
     {"a.yaml": POD + "  - name: one\n  - name: two\n    image: x\n"}, {"a.yaml": POD + "  - name: one\n"},
     {"a.yaml": POD + "  - name: one\n  - name: two\n    # because\n    image: x\n"},
     ['a.yaml:9: the comment "# because" was removed with Pod/web: spec.containers[1].image']),
    ("a comment inside a map that upstream made a scalar",
     {"a.yaml": HEAD + "m:\n  x: 1\n"}, {"a.yaml": HEAD + "m: 1\n"}, {"a.yaml": HEAD + "m:\n  x: 1 # mine\n"},
     ['a.yaml:6: the comment "# mine" was removed with Thing/a: m.x']),
    ("a comment in an object that upstream removed",
     {"a.yaml": HEAD, "b.yaml": OTHER}, {"b.yaml": OTHER}, {"a.yaml": f"# ours, ask Ann\n{HEAD}", "b.yaml": OTHER},
     ['a.yaml:1: the comment "# ours, ask Ann" was removed with Thing/a']),
    ("a comment above the marker of a file that is gone",
     {"a.yaml": f"---\n{HEAD}", "b.yaml": OTHER}, {"b.yaml": OTHER},
     {"a.yaml": f"# ours\n---\n{HEAD}", "b.yaml": OTHER}, ['a.yaml:1: the comment "# ours" was removed with the file']),
    ("a comment in a value that lost a conflict",
     {"a.yaml": HEAD + "x: 1\n"}, {"a.yaml": HEAD + "y: 1\n"}, {"a.yaml": HEAD + "x: 2 # mine\n"},
     ['a.yaml:5: the comment "# mine" was removed with Thing/a: x']),
    ("of two that say the same the one in the file that is gone",
     {"a.yaml": HEAD + "x: 1\n", "b.yaml": OTHER}, {"a.yaml": HEAD + "x: 2\n"},
     {"a.yaml": HEAD + "x: 1 # mine\n", "b.yaml": OTHER + "y: 1 # mine\n".replace("y: 1", "")},
     ['b.yaml:5: the comment "# mine" was removed with ConfigMap/b']),
    ("in a file with windows line breaks",
     {"a.yaml": HEAD + "x: 1\ny: 1\n"}, {"a.yaml": HEAD + "y: 1\n"},
     {"a.yaml": (HEAD + "x: 1 # mine\ny: 2\n").replace("\n", "\r\n")},
     ['a.yaml:5: the comment "# mine" was removed with Thing/a: x']),
    ("a comment that upstream wrote goes without a word",
     {"a.yaml": HEAD + "x: 1 # theirs\ny: 1\n"}, {"a.yaml": HEAD + "y: 1\n"},
     {"a.yaml": HEAD + "x: 1 # theirs\ny: 2\n"}, []),
    ("a comment that stays is no news",
     {"a.yaml": HEAD + "x: 1\ny: 1\n"}, {"a.yaml": HEAD + "x: 2\ny: 1\n"},
     {"a.yaml": HEAD + "# mine\nx: 1 # ours\ny: 1\n"}, []),
    ("a comment that moves to another file with its object is no news",
     {"a.yaml": HEAD + "x: 1\n"}, {"new.yaml": HEAD + "x: 1\n"}, {"a.yaml": HEAD + "# mine\nx: 1 # ours\n"}, []),
    ("what only looks like a comment is a value",
     {"a.yaml": HEAD + "x: a\ny: 1\n"}, {"a.yaml": HEAD + "y: 1\n"},
     {"a.yaml": HEAD + "x: a\nt: |\n  # text\ns: 'a # b'\ny: 1\n"}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "upstream", "local", "notes"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_lost_local_comments_are_noted(origin, upstream, local, notes):
    sides = (
        {path: ("100644", text.encode()) for path, text in side.items()}
        for side in (origin, upstream, local)
    )
    assert list(merge_packages(*sides).notes) == notes
