"""A listing that reads the ref files says what `git ls-remote` says, or leaves it to git."""

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanout.git.remote_listing import list_local

TAGGER = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def ls_remote(url: str) -> bytes:
    """What git lists."""
    words = ["git", "ls-remote", "--heads", "--tags", "--quiet", url]
    return subprocess.run(words, check=True, capture_output=True).stdout


def peel_in(bare):
    """A function that peels objects of a repository which is a complete mirror."""
    return lambda oid: bare.git("rev-parse", f"{oid}^{{}}")


def know_nothing(oid: str) -> str:
    raise KeyError(oid)


STEPS = {
    "a branch": lambda bare, n: bare.commit({"a": f"{n}\n"}, f"team/{n % 3}"),
    "a tag": lambda bare, n: bare.git("tag", "-f", f"light/v{n % 3}", "main"),
    "an annotated tag": lambda bare, n: bare.git(
        *TAGGER, "tag", "-f", "-a", "-m", "m", f"annotated/v{n % 3}", "main"
    ),
    "a tag of a tag": lambda bare, n: bare.git(
        *TAGGER, "tag", "-f", "-a", "-m", "m", f"twice-{n}", bare.refs().popitem()[0]
    ),
    "a file that is tagged": lambda bare, n: bare.git("tag", "-f", f"file-{n}", "main:README.md"),
    "a tag less": lambda bare, n: [
        bare.git("tag", "-d", it) for it in bare.git("tag").splitlines()[: n % 2 + 1]
    ],
    "notes": lambda bare, n: bare.git("update-ref", f"refs/notes/{n}", "main"),
    "refs are packed": lambda bare, n: bare.git("pack-refs", "--all"),
    "a commit": lambda bare, n: bare.commit({"README.md": f"{n}\n"}),
}


@pytest.fixture
def numbers():
    return count()


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_local_listing_equals_ls_remote_after_any_steps(new_bare, numbers, steps):
    bare = new_bare(f"listed-{next(numbers)}")
    bare.commit({"README.md": "hello\n"})
    for number, step in enumerate(steps):
        STEPS[step](bare, number)
    assert list_local(bare.url, peel_in(bare)) == ls_remote(bare.url)


PLAIN = {
    "no commit": lambda bare: bare.git("update-ref", "-d", "refs/heads/main"),
    "a name that is not UTF-8": lambda bare: shutil.copy(
        bare.path / "refs/heads/main", os.fsencode(bare.path) + b"/refs/heads/caf\xe9"
    ),
    "a ref that is being written": lambda bare: (bare.path / "refs/heads/x.lock").touch(),
    "a branch and a folder that was one": lambda bare: (bare.path / "refs/heads/empty").mkdir(),
    "a setting": lambda bare: bare.git("config", "receive.denyNonFastForwards", "true"),
}


@pytest.mark.parametrize("change", PLAIN.values(), ids=PLAIN)
def test_a_local_listing_equals_ls_remote(bare, change):
    change(bare)
    assert list_local(bare.url, know_nothing) == ls_remote(bare.url)


def test_a_clone_and_other_urls_are_listed_like_ls_remote(bare, tmp_path):
    clone = tmp_path / "a clone"
    bare.git("clone", "-q", bare.url, str(clone))
    for url in (f"file://{bare.url}", str(clone), f"{clone}/", str(clone / ".git")):
        assert list_local(url, know_nothing) == ls_remote(url) != b"", url


def write(path: str, text: str):
    """A change of a repository: the text of one of its files."""
    return lambda bare: (bare.path / path).write_text(text)


def replaced_by_link(bare):
    bare.path.rename(f"{bare.path}-moved")
    (bare.path.parent / "link").mkdir()
    (bare.path).mkdir()
    (bare.path / ".git").write_text(f"gitdir: {bare.path}-moved\n")


LEFT = {
    "refs are hidden": lambda bare: bare.git("config", "uploadpack.hiderefs", "refs/heads/x"),
    "refs are hidden from all": lambda bare: bare.git("config", "transfer.hideRefs", "refs/tags"),
    "settings elsewhere": lambda bare: bare.git("config", "include.path", "other"),
    "another format": lambda bare: bare.git("config", "extensions.preciousObjects", "true"),
    "an annotated tag that nobody knows": lambda bare: bare.git(
        *TAGGER, "tag", "-a", "-m", "m", "annotated", "main"
    ),
    "a branch that names another": lambda bare: bare.git(
        "symbolic-ref", "refs/heads/alias", "refs/heads/main"
    ),
    "a broken name": lambda bare: shutil.copy(
        bare.path / "refs/heads/main", bare.path / "refs/heads/a..b"
    ),
    "a name that ends with a dot": lambda bare: shutil.copy(
        bare.path / "refs/heads/main", bare.path / "refs/heads/end."
    ),
    "a folder that is named like a lock": lambda bare: [
        (bare.path / "refs/heads/a.lock").mkdir(),
        shutil.copy(bare.path / "refs/heads/main", bare.path / "refs/heads/a.lock/b"),
    ],
    "an id with more behind it": write("refs/heads/long", f"{40 * 'a'}\n{100 * 'b'}\n"),
    "a broken ref": write("refs/heads/broken", "nothing\n"),
    "an empty ref": write("refs/heads/empty", ""),
    "a pipe": lambda bare: os.mkfifo(bare.path / "refs/heads/pipe"),
    "packed refs without what is behind tags": lambda bare: [
        bare.git("pack-refs", "--all"),
        write("packed-refs", (bare.path / "packed-refs").read_text().partition("\n")[2])(bare),
    ],
    "broken packed refs": write(
        "packed-refs", "# pack-refs with: peeled fully-peeled sorted \nx\n"
    ),
    "no HEAD": lambda bare: (bare.path / "HEAD").unlink(),
    "a broken HEAD": write("HEAD", "main\n"),
    "no objects": lambda bare: shutil.rmtree(bare.path / "objects"),
    "no refs": lambda bare: shutil.rmtree(bare.path / "refs"),
    "no repository": lambda bare: shutil.rmtree(bare.path),
    "a file that names another place": replaced_by_link,
    "a part of another repository": write("commondir", "../other.git\n"),
}


@pytest.mark.parametrize("change", LEFT.values(), ids=LEFT)
def test_an_unusual_repository_is_left_to_git(bare, change):
    change(bare)
    assert list_local(bare.url, know_nothing) is None


@pytest.mark.parametrize("url", ["file://localhost{}", "file://{}%20", "file://{}?x", "{}.bundle"])
def test_names_that_are_left_to_git(bare, url):
    assert list_local(url.format(bare.url), know_nothing) is None


def test_the_repository_of_another_user_is_left_to_git(bare, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: Path(bare.path).stat().st_uid + 1)
    assert list_local(bare.url, know_nothing) is None


def test_no_branch_is_missing_while_refs_are_packed(bare):
    names = [f"refs/heads/{number}" for number in range(40)]
    head = bare.refs()["refs/heads/main"]
    deletions = "".join(f"delete {name}\n" for name in names).encode()
    creations = "".join(f"create {name} {head}\n" for name in names).encode()
    for _ in range(15):
        bare.git("update-ref", "--stdin", stdin=creations)
        packing = Thread(target=bare.git, args=("pack-refs", "--all"))
        packing.start()
        while packing.is_alive():
            listed = list_local(bare.url, know_nothing)
            assert listed is not None
            assert listed.count(b"\n") == len(names) + 1
        packing.join()
        bare.git("update-ref", "--stdin", stdin=deletions)
