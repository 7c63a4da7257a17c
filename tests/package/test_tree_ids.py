"""Ids of trees and files, against git itself."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanout.package.tree_ids import TreeEntry, blob_id, tree_id

ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}


def git(repository, *arguments, data=b""):
    run = subprocess.run(
        ["git", *arguments],
        cwd=repository,
        env=ENVIRONMENT,
        input=data,
        capture_output=True,
        check=True,
    )
    return run.stdout.decode().strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "r.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], env=ENVIRONMENT, check=True)
    return path


segments = st.sampled_from(
    ["a", "a.b", "a-b", "a0", "ab", "b", "ä", "\N{GRINNING FACE}", "A", " x"]
)
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)
modes = st.sampled_from(["100644", "100755", "120000"])
files = st.dictionaries(
    paths, st.tuples(modes, st.sampled_from([b"", b"x\n", b"\0\xff"])), max_size=8
)


def without_clashes(entries):
    return {
        path: entry
        for path, entry in entries.items()
        if not any(other.startswith(f"{path}/") for other in entries)
    }


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files.map(without_clashes))
def test_a_tree_has_the_id_that_git_gives_it(repository, entries):
    ours = {path: TreeEntry(mode, blob_id(data)) for path, (mode, data) in entries.items()}
    index = repository / "index.test"
    index.unlink(missing_ok=True)
    rows = "".join(f"{entry.mode} {entry.oid}\t{path}\0" for path, entry in ours.items())
    env = {**ENVIRONMENT, "GIT_INDEX_FILE": str(index)}
    for command, data in (
        (["update-index", "-z", "--index-info"], rows.encode()),
        (["write-tree", "--missing-ok"], b""),
    ):
        run = subprocess.run(
            ["git", *command], cwd=repository, env=env, input=data, capture_output=True, check=True
        )
    assert tree_id(ours) == run.stdout.decode().strip()


@pytest.mark.parametrize("data", [b"", b"a\n", b"\0" * 1000, "ä".encode()])
def test_a_file_has_the_id_that_git_gives_it(repository, data):
    assert blob_id(data) == git(repository, "hash-object", "--stdin", data=data)


def test_the_empty_tree_is_git_s():
    assert tree_id({}) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_path_that_is_a_file_and_a_directory_is_refused():
    entry = TreeEntry("100644", blob_id(b""))
    with pytest.raises(ValueError, match="a is a file and a directory"):
        tree_id({"a": entry, "a/b": entry})
