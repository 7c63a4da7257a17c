"""Trees edited in process have the ids git would give them, and git can read what was written."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.git.mirror import create_bare
from fanout.git.mirror_reader import open_mirror
from fanout.git.object_writer import encode_commit
from fanout.git.pack import COMMIT, TREE, PackWriter
from fanout.git.tree_editor import TreeEditor
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.plan.observation.repository_state import CommitIdentity

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
BLOB = "1" * 40

names = st.sampled_from(["a", "a.b", "a-", "a0", "b", "é", "z z"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
edits = st.lists(st.tuples(paths, st.none() | st.integers(0, 3)), max_size=12)


def leaf(number):
    """A package of one file, as files and as git's bytes."""
    oid = blob_id(b"%d" % number)
    return {"f": TreeEntry("100644", oid)}, b"100644 f\0" + bytes.fromhex(oid)


def without(files, path):
    return {name: e for name, e in files.items() if not name.startswith(f"{path}/")}


@settings(max_examples=150)
@given(st.lists(edits, min_size=1, max_size=4))
def test_an_edited_tree_is_the_tree_of_its_files(tmp_path_factory, rounds):
    mirror = tmp_path_factory.mktemp("mirror") / "m.git"
    create_bare(mirror)
    pack = PackWriter(mirror)
    written = {pack.add(TREE, leaf(number)[1]).hex(): leaf(number)[1] for number in range(4)}
    packages = {tree_id(leaf(number)[0]): leaf(number)[0] for number in range(4)}
    trees = list(packages)
    editor = TreeEditor("", written.__getitem__)
    files = {}
    for edit in rounds:
        for path, number in edit:
            files = without(files, path)
            if number is None:
                editor.remove_directory(path)
            else:
                editor.put(path, trees[number])
                files |= {f"{path}/{name}": e for name, e in packages[trees[number]].items()}
        assert editor.write(pack).hex() == (tree_id(files) if files else EMPTY)


def fsck(mirror, commit):
    (mirror / "refs" / "heads" / "main").write_text(f"{commit}\n")
    done = subprocess.run(
        ["git", "fsck", "--strict", "--full"], cwd=mirror, capture_output=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_git_reads_a_hundred_and_twenty_versions_of_a_wide_directory(tmp_path):
    """More than a chain of differences may be long, so chains begin anew."""
    mirror = tmp_path / "m.git"
    create_bare(mirror)
    pack = PackWriter(mirror)
    who = CommitIdentity("fanout", "fanout@localhost")
    empty = pack.add(TREE, b"").hex()
    editor = TreeEditor("", lambda _: b"")
    head, roots = "", []
    for version in range(120):
        for number in range(7):
            name = f"pkgs/p{(version * 7 + number) * 7919 % 400:03}"
            editor.remove_directory(name) if version % 9 == 8 else editor.put(name, empty)
        roots.append(editor.write(pack).hex())
        data = encode_commit(roots[-1], (head,) if head else (), who, version, "Publish\n")
        head = pack.add(COMMIT, data).hex()
    whole = sum(len(piece) for piece in pack._pieces)
    pack.finish()
    status, output = fsck(mirror, head)
    # Empty directories inside others are the one thing that is odd about this tree.
    assert (status, b"error" in output) == (0, False), output
    assert whole < 200_000
    with open_mirror(mirror) as reader:
        assert reader.commit(head).tree == roots[-1]
        assert all(reader.raw_tree(root) for root in roots)


@pytest.mark.parametrize("rows", [0, 1, 60, 62, 600, 8000])
def test_entries_of_any_size_are_read_back(tmp_path, rows):
    """Sizes take one byte of the entry's head, two, three."""
    mirror = tmp_path / "m.git"
    create_bare(mirror)
    pack = PackWriter(mirror)
    data = b"".join(b"100644 f%05d\0%s" % (row, bytes.fromhex(BLOB)) for row in range(rows))
    oid = pack.add(TREE, data)
    assert pack.finish() == 1
    with open_mirror(mirror) as reader:
        assert reader.raw_tree(oid.hex()) == data


def test_directories_of_very_old_commits_are_understood(tmp_path):
    """Some tools once wrote the mode of a directory with a leading zero."""
    mirror = tmp_path / "m.git"
    create_bare(mirror)
    pack = PackWriter(mirror)
    inner = b"100644 f\0" + bytes.fromhex(BLOB)
    inner_id = pack.add(TREE, inner)
    old = b"040000 d\0" + inner_id
    trees = {"old": old, inner_id.hex(): inner}
    editor = TreeEditor("", lambda oid: trees[oid])
    editor._root = type(editor._root)(b"x" * 20, old)
    editor.put("d/e", inner_id.hex())
    files = {"d/f": TreeEntry("100644", BLOB), "d/e/f": TreeEntry("100644", BLOB)}
    assert editor.write(pack).hex() == tree_id(files)


@pytest.mark.parametrize("path", ["f", "f/x", "d/g", "d/g/x/y"])
def test_a_file_is_never_replaced_by_a_package(tmp_path, path):
    mirror = tmp_path / "m.git"
    create_bare(mirror)
    pack = PackWriter(mirror)
    inner = b"100644 g\0" + bytes.fromhex(BLOB)
    inner_id = pack.add(TREE, inner)
    root = b"40000 d\0" + inner_id + b"100755 f\0" + bytes.fromhex(BLOB)
    trees = {pack.add(TREE, root).hex(): root, inner_id.hex(): inner}
    editor = TreeEditor(next(iter(trees)), trees.__getitem__)
    with pytest.raises(InvalidInput, match="is a file"):
        editor.put(path, inner_id.hex())


def test_an_empty_write_leaves_no_pack(tmp_path):
    mirror = tmp_path / "m.git"
    create_bare(mirror)
    assert PackWriter(mirror).finish() == 0
    assert not list((mirror / "objects" / "pack").iterdir())
