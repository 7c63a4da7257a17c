"""Remotes with very many refs, with odd ones, and with less in them than they say."""

import subprocess
import sys
import textwrap

import pytest
from http_git import serving

from fanout.errors import Conflict, Denied, Unavailable
from fanout.git.mirror_refs import read_listed_refs
from fanout.plan.observation.repository_state import RefListing, RefListingRequest, Remote

MANY = 100_000
BIGGEST = 250  # MB for the whole process, which has 50 before it looks

PROGRAM = """
    import re, sys
    from pathlib import Path
    from fanout.git.mirror_store import MirrorStore
    from fanout.plan.observation.repository_state import RefListingRequest, Remote
    from fanout.telemetry.metrics import Counters
    counters = Counters()
    store = MirrorStore(Path(sys.argv[1]), install="x", counters=counters, secrets=lambda *_: None)
    look = RefListingRequest(Remote(sys.argv[2]), ("refs/heads/*",))
    counts = [len(store.list_refs([look])[sys.argv[2]].refs) for _ in range(2)]
    # getrusage would tell of the process that started this one as well
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    print(*counts, counters.read()["git_processes"], peak)
"""


def test_a_hundred_thousand_refs_are_listed_and_kept(bare, tmp_path):
    """In a process of its own, so that its memory can be seen."""
    head = bare.refs()["refs/heads/main"]
    name = "drafts/default/apps/monitoring-cluster-%06d/platform-monitoring-cluster-%06d-0123456789"
    lines = [f"{head} refs/heads/{name % (one, one)}\n" for one in range(MANY - 1)]
    bare.git("pack-refs", "--all")
    (bare.path / "packed-refs").write_text("".join([*lines, f"{head} refs/heads/main\n"]))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "mirrors"), bare.url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    first, again, processes, peak = map(int, done.stdout.split())
    assert (first, again) == (MANY, MANY)
    assert processes == 3  # a listing and a fetch, and a listing
    assert peak < BIGGEST
    assert len(read_listed_refs(next((tmp_path / "mirrors").glob("*.git")))) == MANY


def beside(bare):
    """Refs that are neither branches nor tags, and a HEAD that leads nowhere."""
    bare.git("update-ref", "refs/pull/1/head", "main")
    bare.git("update-ref", "refs/notes/commits", "main")
    bare.git("symbolic-ref", "HEAD", "refs/heads/nowhere")


def hidden(bare):
    bare.commit({"a": "1\n"}, branch="secret")
    bare.git("tag", "secret/v1", "main")
    bare.git("config", "--add", "transfer.hideRefs", "refs/heads/secret")
    bare.git("config", "--add", "transfer.hideRefs", "refs/tags/secret")


def symbolic(bare):
    bare.git("symbolic-ref", "refs/heads/also", "refs/heads/main")


def of_other_things(bare):
    bare.git("tag", "of-a-tree", "main^{tree}")
    bare.git("tag", "-a", "-m", "m", "of-a-file", "main:README.md")


def oddly_named(bare):
    """A line separator of Unicode, an accent, and bytes that are no UTF-8."""
    for name in ("a\u2028b", "\u00e9\u0085", "plus+and'quote"):
        bare.git("update-ref", f"refs/heads/{name}", "main")
    subprocess.run(
        [b"git", b"update-ref", b"refs/heads/\xff\xfe", b"main"], cwd=bare.path, check=True
    )


ODD = [
    ("refs beside branches and tags are not listed", beside, {"main"}),
    ("refs that the server hides are not listed", hidden, {"main"}),
    ("a branch that is another one's name is a branch", symbolic, {"main", "also"}),
    ("tags may name trees and files", of_other_things, {"main", "of-a-tree", "of-a-file"}),
    (
        "names are read as they are",
        oddly_named,
        {"main", "a\u2028b", "\u00e9\u0085", "plus+and'quote", "\\xff\\xfe"},
    ),
]


@pytest.mark.parametrize(("make", "names"), [row[1:] for row in ODD], ids=[row[0] for row in ODD])
def test_odd_refs(downstream, make, names):
    make(downstream.bare)
    for _ in range(2):
        listed = downstream.look().refs
        assert {ref.split("/", 2)[2] for ref in listed} == names
    readable = {ref for ref in listed if "\\" not in ref}
    assert (
        set(read_listed_refs(next(downstream.store._mirrors.directory.glob("*.git")))) == readable
    )
    with downstream.store.reader(downstream.bare.remote) as reader:
        assert all(reader.has(listed[ref]) for ref in readable)
    written = downstream.write({"one": downstream.package("one")}).refs[downstream.ref("one")]
    assert downstream.bare.git("rev-parse", downstream.ref("one")) == written


def test_a_branch_that_is_hidden_is_in_the_way_of_a_push_and_stays(downstream):
    package = downstream.package("one")
    draft = downstream.draft("one", package, downstream.look().refs[downstream.main])
    theirs = downstream.bare.commit({"a": "1\n"}, branch=draft.ref.removeprefix("refs/heads/"))
    downstream.bare.git("config", "--add", "transfer.hideRefs", draft.ref)
    with pytest.raises((Conflict, Denied)):
        downstream.change(
            expected={draft.ref: ""}, blobs=downstream.blobs(package), drafts=(draft,)
        )
    assert downstream.bare.refs()[draft.ref] == theirs


@pytest.fixture
def old_host(tmp_path, bare, downstream_of, store):
    """The repository on a host that knows nothing of protocol 2."""
    with serving(tmp_path) as server:
        server.old = True
        machine = downstream_of(store, bare)
        bare.url = server.url("remote.git")
        bare.remote = Remote(bare.url)
        yield machine, server


def test_a_host_of_the_old_protocol_is_listed_read_and_written(old_host):
    machine, _ = old_host
    machine.bare.git("tag", "-a", "-m", "m", "annotated/v1", "main")
    machine.bare.git("update-ref", "refs/pull/1/head", "main")
    machine.write({"one": machine.package("one")})
    machine.bare.commit({"README.md": "new\n"})
    machine.publish(["one"])
    assert "refs/tags/one/v1" in machine.bare.refs()
    machine.bare.check()


def test_a_commit_that_an_old_host_no_longer_lists_is_a_conflict(old_host):
    """It gives only what it lists at that moment; the next pass sees that."""
    machine, server = old_host
    machine.look()
    machine.bare.commit({"README.md": "sooner\n"})
    acts = iter([lambda: None, lambda: machine.bare.commit({"README.md": "later\n"})])
    server.before = lambda path: "?service=" in path and next(acts, int)()
    with pytest.raises(Conflict, match="during the fetch"):
        machine.look()
    assert machine.look().refs == machine.bare.refs()


def lose(bare, name):
    """Take away one object of the repository; all that it has is a file of its own then."""
    packs = bare.path / "objects" / "pack"
    for pack in list(packs.glob("*.pack")):
        data = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.unlink()
        bare.git("unpack-objects", "-q", stdin=data)
    oid = bare.git("rev-parse", name)
    (bare.path / "objects" / oid[:2] / oid[2:]).unlink()


@pytest.mark.parametrize("lost", ["main^{tree}", "main:README.md", "main~1"])
@pytest.mark.parametrize("far", [False, True], ids=["on disk", "over HTTP"])
def test_a_remote_that_has_less_than_it_lists_fails_alone(
    store, bare, new_bare, tmp_path, counters, far, lost
):
    bare.commit({"README.md": "new\n"})
    whole = new_bare("whole")
    whole.commit({"a": "1\n"})
    lose(bare, lost)
    with serving(tmp_path) as server:
        urls = [server.url(it.path.name) if far else it.url for it in (bare, whole)]
        answers = store.list_refs(
            [RefListingRequest(Remote(url), ("refs/heads/*",)) for url in urls]
        )
    assert answers[urls[1]] == RefListing(whole.refs())
    failure = answers[urls[0]]
    assert isinstance(failure, Unavailable)
    assert failure.reason == "RemoteFailed"
    assert str(failure).startswith(f"{urls[0]}: ")
    assert counters.read()["fetches"] == 2  # the mirrors are not to blame, and not made again


def test_a_tag_whose_commit_was_lost_is_fetched_once_the_commit_is_back(bare, downstream):
    """One process lists twice, and no ref of the remote has moved in between."""
    tree = bare.git("rev-parse", "main^{tree}")
    person = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    commit = bare.git(*person, "commit-tree", "-m", "lost", tree)
    bare.git("update-ref", "refs/tags/web/v2", commit)
    file = bare.path / "objects" / commit[:2] / commit[2:]
    kept = file.rename(bare.path / "kept")
    assert set(downstream.look("refs/heads/*", "refs/tags/*").unfetched) == {"refs/tags/web/v2"}
    kept.rename(file)
    listing = downstream.look("refs/heads/*", "refs/tags/*")
    assert (listing.unfetched, listing.refs["refs/tags/web/v2"]) == ({}, commit)
