"""Paths of packages: what git and a command line would trip over, and which overlap."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.package.package_limits import find_overlaps, find_package_path_problem

GOOD = [
    "monitoring", "team/monitoring", "a.b/c-d_e", "ä/ö", "site1/v2", "git", "x.git", "console",
    "com", "com10", "auxiliary/nul-1", "a.con",
]  # fmt: skip
BAD = [
    "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a..b", "-a", "a/-b", ".git",
    "a/.git/b", ".GIT", ".hidden", "a/.b", "a.", "a/b.", "a.lock", "a.LOCK/b", "a b", "a\tb",
    "a\nb", "a\\b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a@{b", "@", "a\x7f", "a\0b",
    "x" * 300, "a\u2028b", "a\ud800", "con", "a/NUL", "aux.d/b", "Com1", "lpt\u00b2",
]  # fmt: skip


@pytest.mark.parametrize("path", GOOD)
def test_good_paths(path):
    assert find_package_path_problem(path) is None


@pytest.mark.parametrize("path", BAD, ids=ascii)
def test_bad_paths(path):
    sentence = find_package_path_problem(path)
    assert sentence
    assert sentence.startswith("the path")


def test_git_takes_the_paths_that_we_take():
    for path in GOOD:
        subprocess.run(["git", "check-ref-format", f"refs/tags/{path}/v1"], check=True)


names = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join)


@given(st.lists(st.sampled_from(["a", "a/b", "a-b", "ab", "a/b/c", "b", "a.b/c"]) | names))
def test_overlaps_are_those_of_looking_at_every_pair(paths):
    def contains(outer, inner):
        return inner == outer or inner.startswith(f"{outer}/")

    pairs = find_overlaps(paths)
    assert all(contains(paths[one], paths[other]) and one != other for one, other in pairs)
    expected = {
        at
        for at, path in enumerate(paths)
        for other_at, other in enumerate(paths)
        if at != other_at and (contains(path, other) or contains(other, path))
    }
    assert {at for pair in pairs for at in pair} == expected


def test_a_path_is_paired_with_the_nearest_around_it():
    assert find_overlaps(["a/b/c", "a", "x", "a/b", "a"]) == [(1, 3), (1, 4), (3, 0)]
    assert find_overlaps(["", "a"]) == [(0, 1)]
    assert find_overlaps(["a", "a-b", "a.b", "ab"]) == []
