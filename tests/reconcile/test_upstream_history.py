"""Upstream's commits between two revisions, compared with those that git finds."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pygit2
import pytest

from fanout.git.mirror_reader import open_mirror
from fanout.reconcile.pull_requests import upstream_history
from fanout.reconcile.pull_requests.upstream_history import CommitSpan, read_span

BEGIN = 1_700_000_000


class History:
    """A bare repository whose commits are made one by one, named by their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repository = pygit2.init_repository(str(path), bare=True)
        self.commits: list[str] = []

    def commit(
        self, parents: Sequence[int], app: int, other: int = 0, at: int | None = None
    ) -> int:
        """Commit the package `app` and another one with these contents, on top of others."""
        root = self.repository.TreeBuilder()
        for name, content in (("app", app), ("other", other)):
            directory = self.repository.TreeBuilder()
            blob = self.repository.create_blob(str(content).encode())
            directory.insert("file", blob, pygit2.enums.FileMode.BLOB)
            root.insert(name, directory.write(), pygit2.enums.FileMode.TREE)
        number = len(self.commits)
        person = pygit2.Signature("Ann", "ann@example.com", BEGIN + (number if at is None else at))
        oid = self.repository.create_commit(
            None,
            person,
            person,
            f"commit {number}\n\nfixes #1\n",
            root.write(),
            [pygit2.Oid(hex=self.commits[it]) for it in parents],
        )
        self.commits.append(str(oid))
        return number

    def read(self, old: int, new: int, path: str = "app") -> CommitSpan:
        with open_mirror(self.path) as reader:
            return read_span(reader, path, self.commits[old], self.commits[new])

    def numbers(self, span: CommitSpan) -> list[int]:
        return [self.commits.index(it.oid) for it in span.commits]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "upstream.git")


# Commits as (parents, content of the package, content of another), then old, new, and what is read.
SHAPES = [
    ("a line", [([], 0, 0), ([0], 1, 0), ([1], 2, 0)], 0, 2, [2, 1], False),
    ("other packages", [([], 0, 0), ([0], 0, 1), ([1], 1, 1), ([2], 1, 2)], 0, 3, [2], False),
    ("nothing of it", [([], 0, 0), ([0], 0, 1)], 0, 1, [], False),
    ("back", [([], 0, 0), ([0], 1, 0), ([1], 2, 0)], 2, 0, [2, 1], True),
    ("the same", [([], 0, 0)], 0, 0, [], False),
    (
        "a merge of a branch counts by its commits",
        [([], 0, 0), ([0], 0, 1), ([0], 1, 0), ([1, 2], 1, 1)],
        0,
        3,
        [2],
        False,
    ),
    (
        "a merge that is like no parent",
        [([], 0, 0), ([0], 1, 0), ([0], 2, 0), ([1, 2], 3, 0)],
        1,
        3,
        [3, 2],
        False,
    ),
    (
        "release branches",
        [([], 0, 0), ([0], 1, 0), ([1], 2, 0), ([0], 3, 0), ([3], 4, 0)],
        2,
        4,
        [4, 3],
        False,
    ),
    ("another beginning", [([], 0, 0), ([], 1, 0), ([1], 2, 0)], 0, 2, [2, 1], False),
]


@pytest.mark.parametrize(("name", "commits", "old", "new", "expected", "is_backward"), SHAPES)
def test_commits_between(history: History, name, commits, old, new, expected, is_backward):
    for parents, app, other in commits:
        history.commit(parents, app, other)
    span = history.read(old, new)
    assert history.numbers(span) == expected, name
    assert (span.is_backward, span.is_cut) == (is_backward, False)


@pytest.mark.parametrize("seed", range(12))
def test_commits_are_those_that_git_finds(history: History, seed: int):
    """In a random history, with clocks that go wrong in some of them."""
    chance = random.Random(seed)
    contents: list[tuple[int, int]] = []
    for number in range(40):
        earlier = range(max(0, number - 8), number)
        parents = chance.sample(earlier, min(len(earlier), chance.choice([1, 1, 1, 2, 3])))
        app = chance.choice([contents[parents[0]][0] if parents else 0, chance.randrange(3)])
        contents.append((app, number))
        history.commit(parents, *contents[-1], at=number + chance.choice([0, 0, seed % 3]))
    for _ in range(20):
        old, new = chance.sample(range(40), 2)
        names = [history.commits[new], f"^{history.commits[old]}"]
        command = ["git", "-C", str(history.path), "rev-list", "--parents", *names]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        expected = set()
        for line in listed.splitlines():
            commit, *parents = [history.commits.index(it) for it in line.split()]
            before = [contents[it][0] for it in parents]
            if not before or contents[commit][0] not in before:
                expected.add(commit)
        span = history.read(old, new)
        if listed:
            assert set(history.numbers(span)) == expected
        else:
            assert span.is_backward is bool(span.commits)


def test_a_long_history_is_cut(history: History, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upstream_history, "_MAX_READ", 10)
    for number in range(30):
        history.commit([number - 1] if number else [], number)
    span = history.read(0, 29)
    assert span.is_cut
    assert history.numbers(span)[:3] == [29, 28, 27]
    assert len(span.commits) < 12


def test_the_beginning_of_a_history_may_be_missing(history: History):
    for number in range(4):
        history.commit([number - 1] if number else [], number)
    lost = history.commits[1]
    (history.path / "objects" / lost[:2] / lost[2:]).unlink()
    assert history.numbers(history.read(2, 3)) == [3]


def test_a_package_at_the_root(history: History):
    history.commit([], 0)
    history.commit([0], 0, 1)
    assert history.numbers(history.read(0, 1, path="")) == [1]
