"""Directories are read as packages, and written as a whole or not at all."""

import os

import pytest
from cli.packages import put, state

from fanout.cli.input.package_directory import read_files, scan_directory, write_files
from fanout.errors import Conflict, InvalidInput, Unavailable
from fanout.variants.render_model import RenderLimits

BEFORE = {
    "a": ("100644", b"a\n"),
    "b/c": ("100755", b"c\n"),
    "b/gone": ("100644", b"gone\n"),
    "d": ("100644", b"d\n"),
}
AFTER = {
    "a": ("100644", b"A\n"),
    "b/c": ("100644", b"c\n"),
    "d": ("100644", b"d\n"),
    "new/e": ("100755", b"e\n"),
    "z": ("100644", b"z\n"),
}


@pytest.fixture
def package(tmp_path):
    return put(tmp_path / "package", {"a": "a\n", "b/c*": "c\n", "b/gone": "gone\n", "d": "d\n"})


def test_a_directory_is_files_by_path_with_modes_and_without_git(package):
    put(package, {".git/config": "x", "b/.git": "gitdir: elsewhere\n", ".hidden": "h"})
    (package / "empty").mkdir()
    assert read_files(package) == {**BEFORE, ".hidden": ("100644", b"h")}


def test_written_files_are_read_back(package):
    write_files(package, BEFORE, AFTER)
    assert read_files(package) == AFTER


def test_a_new_directory_is_made_with_those_around_it(tmp_path):
    write_files(tmp_path / "x" / "y", {}, AFTER)
    assert read_files(tmp_path / "x" / "y") == AFTER


def test_an_empty_package_is_an_empty_directory(tmp_path):
    write_files(tmp_path / "x", {}, {})
    assert state(tmp_path) == {"x": None}


LIMITS = [
    ("at the limits", RenderLimits(files=4, size=11), []),
    ("one file too many", RenderLimits(files=3, size=11), ["has more than 3 files"]),
    ("one byte too many", RenderLimits(files=4, size=10), ["has more than 10 bytes"]),
    ("a file of that size", RenderLimits(file_size=5), []),
    ("a file too large", RenderLimits(file_size=4), ["the file has more than 4 bytes"]),
    ("as deep", RenderLimits(depth=1), []),
    ("too deep", RenderLimits(depth=0), ["is nested in 0 directories"]),
]


@pytest.mark.parametrize(("limits", "faults"), [r[1:] for r in LIMITS], ids=[r[0] for r in LIMITS])
def test_a_package_has_limits(package, limits, faults):
    assert [fault.problem for fault in scan_directory(package, limits)[1]] == faults


def test_every_file_that_may_not_be_there_is_named(package):
    (package / "b" / "link").symlink_to("c")
    (package / "e").symlink_to("/etc/passwd")
    os.mkfifo(package / "pipe")
    files, faults = scan_directory(package)
    assert files == BEFORE
    assert [fault.where.file for fault in faults] == [
        str(package / name) for name in ("b/link", "e", "pipe")
    ]
    with pytest.raises(InvalidInput, match="b/link: is a symbolic link"):
        read_files(package)


def test_directories_are_nested_only_so_deeply(package):
    put(package, {"/".join(["x"] * 100 + ["a"]): "a", "/".join(["y"] * 101 + ["a"]): "a"})
    (fault,) = scan_directory(package)[1]
    assert fault.where.file.endswith("/y/y")
    assert fault.problem == "is nested in 100 directories"


def blocked(package):
    """A directory, of which nothing is known, stands where a file is to go."""
    put(package / "z", {".git/config": "x"})


def changed(package):
    (package / "d").write_text("other\n")
    (package / "a").write_text("somebody's\n")


def deleted(package):
    (package / "b" / "gone").unlink()


def appeared(package):
    (package / "z").write_text("somebody's\n")


def appeared_as_a_link(package):
    (package / "z").symlink_to("nowhere")


FAILURES = [
    ("a directory is in the way of the last file", blocked, Unavailable),
    ("somebody changed a file meanwhile", changed, Conflict),
    ("somebody deleted a file meanwhile", deleted, Conflict),
    ("somebody made a file meanwhile", appeared, Conflict),
    ("somebody made a link meanwhile", appeared_as_a_link, Conflict),
]


@pytest.mark.parametrize(
    ("happens", "error"), [r[1:] for r in FAILURES], ids=[r[0] for r in FAILURES]
)
def test_a_failed_write_leaves_the_package_as_before(package, happens, error):
    happens(package)
    before = [(path, path.lstat().st_mode) for path in sorted(package.rglob("*"))]
    content = read_texts(package)
    with pytest.raises(error):
        write_files(package, BEFORE, AFTER)
    assert [(path, path.lstat().st_mode) for path in sorted(package.rglob("*"))] == before
    assert read_texts(package) == content


def read_texts(package):
    return {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}


def test_a_directory_that_could_not_be_filled_is_not_left_behind(tmp_path):
    put(tmp_path, {"file": "x"})
    with pytest.raises(Unavailable, match="cannot be written"):
        write_files(tmp_path / "new" / "package", {}, {"x" * 300: ("100644", b"")})
    assert state(tmp_path) == {"file": b"x"}
    with pytest.raises(Unavailable, match=r"file"):
        write_files(tmp_path / "file" / "package", {}, AFTER)
    assert state(tmp_path) == {"file": b"x"}
