"""Packages are measured while they are walked, and before any content is read."""

import subprocess
import sys

import pygit2
import pytest
from hostile import PACKAGES, Hostile

from fanout.errors import InvalidInput
from fanout.git.mirror_reader import MirrorReader
from fanout.package.package_limits import DEFAULT_SIZES, SizeLimits


@pytest.fixture
def hostile(tmp_path):
    pygit2.init_repository(str(tmp_path / "x.git"), bare=True)
    return Hostile(tmp_path / "x.git")


def reader(hostile: Hostile, limits: SizeLimits = DEFAULT_SIZES) -> MirrorReader:
    return MirrorReader(hostile.repo, limits)


@pytest.mark.parametrize(("make", "limit", "words"), [r[1:] for r in PACKAGES],
                         ids=[r[0] for r in PACKAGES])  # fmt: skip
def test_a_package_is_refused_by_its_limit(hostile, make, limit, words):
    tree = make(hostile)
    with pytest.raises(InvalidInput) as caught:
        reader(hostile).files(tree)
    assert caught.value.reason == "LimitExceeded"
    assert words in str(caught.value)
    assert f"packageLimits.{limit}" in caught.value.remedy or not limit


def test_no_content_is_read_of_a_package_that_is_too_large(hostile, monkeypatch):
    tree = hostile.one_file_of_many_names()
    read, original = [], MirrorReader._read

    def recorded(self, oid, kind, *rest, **more):
        read.append(kind)
        return original(self, oid, kind, *rest, **more)

    monkeypatch.setattr(MirrorReader, "_read", recorded)
    with pytest.raises(InvalidInput):
        reader(hostile).files(tree)
    assert set(read) == {int(pygit2.enums.ObjectType.TREE)}


LIMITS = [
    ("as many files", SizeLimits(files=3), ""),
    ("one file too many", SizeLimits(files=2), "has more than 2 files"),
    ("as many bytes", SizeLimits(size=30), ""),
    ("one byte too many", SizeLimits(size=29), "has 30 bytes, more than 29"),
    ("a file of that size", SizeLimits(file_size=10), ""),
    ("a file too large", SizeLimits(file_size=9), "a.yaml: the file has 10 bytes, more than 9"),
    ("as deep", SizeLimits(depth=2), ""),
    ("too deep", SizeLimits(depth=1), "d/e: is nested in more than 1 directories"),
]


@pytest.mark.parametrize(("limits", "words"), [r[1:] for r in LIMITS], ids=[r[0] for r in LIMITS])
def test_a_package_may_be_as_large_as_its_limits(hostile, limits, words):
    oid = hostile.blob(b"0123456789")
    inner = hostile.tree({"e/": hostile.tree({"c.yaml": oid})})
    tree = hostile.tree({"a.yaml": oid, "b.yaml": oid, "d/": inner})
    try:
        problem = ""
        assert [*reader(hostile, limits).files(tree)] == ["a.yaml", "b.yaml", "d/e/c.yaml"]
    except InvalidInput as error:
        problem = str(error)
    assert words in problem
    assert bool(words) == bool(problem)


def test_a_single_file_is_found_without_a_walk(hostile):
    tree = hostile.doubling()
    entry = reader(hostile).entry(tree, "Kptfile")
    assert entry is not None
    assert entry.oid == hostile.kptfile
    assert reader(hostile).entry(tree, "x") is None


def test_a_large_directory_is_the_problem_of_the_paths_below_it_alone(hostile, monkeypatch):
    monkeypatch.setattr("fanout.git.mirror_reader._MAX_DIRECTORY_SIZE", 1 << 20)
    commit = hostile.commit("refs/heads/main", "sites/large", hostile.large_directory())
    hostile.commit("refs/heads/main", "sites/ams", hostile.tree({"Kptfile": hostile.kptfile}))
    head = str(hostile.repo.references["refs/heads/main"].target)
    assert commit != head
    states = reader(hostile).paths(head, ["sites/ams", "sites/large", "sites/large/x", "sites/ber"])
    assert states["sites/ams"].tree
    assert states["sites/large"].tree
    assert states["sites/ber"].tree is None
    assert "sites/large has too many entries" in states["sites/large/x"].problem


def test_a_commit_of_many_megabytes_is_not_read(hostile):
    tree = hostile.tree({"Kptfile": hostile.kptfile})
    commit = hostile.commit("refs/heads/main", "a", tree, "m" * 5_000_000)
    with pytest.raises(InvalidInput, match="bytes, more than") as caught:
        reader(hostile).commit(commit)
    assert caught.value.reason == "LimitExceeded"


MEASURE = """
import resource, sys
from pathlib import Path
from fanout.errors import InvalidInput
from fanout.git.mirror_reader import open_mirror
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open_mirror(Path(sys.argv[1])) as reader:
    for tree in sys.argv[2:]:
        try:
            reader.files(tree)
        except InvalidInput as error:
            assert error.reason == "LimitExceeded", error
        else:
            raise AssertionError(tree)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_refused_packages_take_no_memory(hostile):
    trees = [make(hostile) for _, make, _, _ in PACKAGES]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(hostile.path), *trees],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert int(done.stdout) < 30_000  # KiB
