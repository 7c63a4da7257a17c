"""What a look answers, what it costs, and what the mirror knows afterwards."""

import subprocess
import sys
import textwrap

import pytest

from fanout.errors import Conflict, FanoutError, InvalidInput, Unavailable
from fanout.git.mirror_refs import read_listed_refs
from fanout.plan.observation.repository_state import (
    FileCommit,
    PathState,
    RefListing,
    RefListingRequest,
    Remote,
)


def mirror_of(downstream):
    return next(downstream.store._mirrors.directory.glob("*.git"))


def test_a_listing_has_all_branches_and_tags_with_annotated_tags_peeled(downstream):
    bare = downstream.bare
    head = bare.refs()[downstream.main]
    bare.git("tag", "light/v1", "main")
    bare.git("tag", "-a", "-m", "first", "annotated/v1", "main")
    bare.git("tag", "-a", "-m", "of a tag", "twice/v1", "annotated/v1")
    bare.git("update-ref", "refs/notes/n", "main")
    expected = {
        "refs/heads/main": head,
        "refs/tags/light/v1": head,
        "refs/tags/annotated/v1": head,
        "refs/tags/twice/v1": head,
    }
    assert downstream.look().refs == expected
    assert downstream.look("refs/heads/main").refs == expected
    assert read_listed_refs(mirror_of(downstream)) == {
        ref: oid for ref, oid in bare.refs().items() if "notes" not in ref
    }


def test_an_empty_repository_is_an_empty_listing(downstream_of, store, new_bare):
    assert downstream_of(store, new_bare("empty")).look().refs == {}


def test_only_listed_branches_are_fetched(downstream):
    bare = downstream.bare
    other = bare.commit({"big": "x\n"}, branch="other")
    assert downstream.look("refs/heads/main", "refs/heads/absent").refs["refs/heads/other"] == other
    with downstream.store.reader(bare.remote) as reader:
        assert reader.has(bare.refs()[downstream.main])
        assert not reader.has(other)
    assert set(read_listed_refs(mirror_of(downstream))) == {downstream.main}


def test_a_narrower_listing_forgets_no_unmoved_ref(downstream):
    bare = downstream.bare
    bare.commit({"a": "1\n"}, branch="still")
    bare.commit({"a": "1\n"}, branch="moves")
    bare.commit({"a": "1\n"}, branch="goes")
    downstream.look()
    bare.commit({"a": "2\n"}, branch="moves")
    bare.git("update-ref", "-d", "refs/heads/goes")
    downstream.look(downstream.main)
    assert set(read_listed_refs(mirror_of(downstream))) == {downstream.main, "refs/heads/still"}


def test_branches_that_change_places_with_directories_are_followed(downstream):
    bare = downstream.bare
    bare.commit({"a": "1\n"}, branch="x")
    downstream.look()
    bare.git("update-ref", "-d", "refs/heads/x")
    bare.commit({"a": "2\n"}, branch="x/y")
    assert "refs/heads/x/y" in downstream.look().refs
    assert set(read_listed_refs(mirror_of(downstream))) == {downstream.main, "refs/heads/x/y"}


def test_an_unchanged_listing_is_the_one_of_before(downstream):
    first = downstream.look()
    assert downstream.look() is first
    assert downstream.look(downstream.main) is not first  # other refs are asked for
    downstream.bare.commit({"README.md": "new\n"})
    assert downstream.look().refs == downstream.bare.refs()


def test_a_listing_is_not_kept_where_another_process_has_worked_on_the_mirror(
    downstream, downstream_of, make_store
):
    """It pushed, and somebody took it back: the remote says the same as before."""
    first = downstream.look()
    other = downstream_of(make_store(), downstream.bare)
    other.write({"one": other.package("one")})
    for ref in set(downstream.bare.refs()) - set(first.refs):
        downstream.bare.git("update-ref", "-d", ref)
    assert downstream.look() == first
    assert read_listed_refs(mirror_of(downstream)) == first.refs


def test_each_pass_has_bounded_costs(downstream, counters):
    def cost():
        counts = counters.read()
        counters.reset()
        return tuple(counts[name] for name in ("git_processes", "listings", "fetches", "pushes"))

    downstream.look()
    assert cost() == (1, 1, 1, 0)
    downstream.look()
    assert cost() == (0, 1, 0, 0)
    downstream.write({"one": downstream.package("one"), "two": downstream.package("two")})
    assert cost() == (1, 1, 0, 1)
    downstream.publish(["one", "two"])
    assert cost() == (2, 1, 0, 2)
    downstream.look()
    assert cost() == (0, 1, 0, 0)
    downstream.bare.commit({"README.md": "new\n"})
    downstream.write({"one": downstream.package("uno")})
    assert cost() == (2, 1, 1, 1)


def test_counts_of_what_was_written(downstream, counters):
    downstream.write({"one": downstream.package("one")})
    counts = counters.read()
    assert counts["refs_pushed"] == 2
    assert counts["objects_written"] == 3 + 4 + 1 + 3  # files, their trees and root, two commits


def before_the_fetch(downstream, do):
    """Let somebody else act between the listing and the fetch."""
    git = downstream.store._git
    run = git.run

    def slow(mirror, arguments, *rest, **more):
        if arguments[0] == "fetch":
            git.run = run
            do()
        return run(mirror, arguments, *rest, **more)

    git.run = slow


def test_a_listing_is_of_one_moment_whatever_moves_before_the_fetch(downstream):
    bare = downstream.bare
    bare.commit({"a": "1\n"}, branch="goes")
    downstream.look()
    listed = {**bare.refs(), downstream.main: bare.commit({"README.md": "sooner\n"})}

    def move():
        bare.commit({"README.md": "later\n"})
        bare.commit({"a": "1\n"}, branch="comes")
        bare.git("update-ref", "-d", "refs/heads/goes")

    before_the_fetch(downstream, move)
    assert downstream.look().refs == listed
    assert read_listed_refs(mirror_of(downstream)) == listed
    assert downstream.look().refs == bare.refs()


def test_a_branch_deleted_before_the_fetch_is_a_conflict(downstream):
    bare = downstream.bare
    bare.commit({"a": "1\n"}, branch="goes")

    def remove():
        bare.git("update-ref", "-d", "refs/heads/goes")
        bare.git("gc", "--quiet", "--prune=now")

    before_the_fetch(downstream, remove)
    with pytest.raises(Conflict, match="during the fetch"):
        downstream.look("refs/heads/goes")
    assert downstream.look().refs == bare.refs()


def test_a_hundred_listings_at_a_time_answer_each_url(store, new_bare):
    bares = [new_bare(f"r{number}") for number in range(12)]
    for number, bare in enumerate(bares):
        bare.commit({"n": f"{number}\n"})
    answers = store.list_refs(
        [RefListingRequest(bare.remote, ("refs/heads/main",)) for bare in bares]
    )
    assert answers == {bare.url: RefListing(bare.refs()) for bare in bares}


def test_listings_of_one_repository_are_made_as_one(store, bare, counters):
    bare.commit({"a": "1\n"}, branch="other")
    keeps = ("refs/heads/main", "refs/heads/other")
    assert store.list_refs([RefListingRequest(bare.remote, (keep,)) for keep in keeps]) == {
        bare.url: RefListing(bare.refs())
    }
    assert counters.read()["listings"] == 1
    with store.reader(bare.remote) as reader:
        assert all(map(reader.has, bare.refs().values()))


PATHS = [
    ("a directory", "apps/web", True, ""),
    ("the root", "", True, ""),
    ("nothing there", "apps/none/at/all", False, ""),
    ("a file", "README.md", False, "README.md is a file"),
    ("a file on the way", "README.md/x/y", False, "README.md is a file"),
    ("a symlink on the way", "link/x", False, "link is a symlink"),
    ("a submodule", "module", False, "module is a submodule"),
]


@pytest.fixture
def furnished(downstream):
    stream = b"commit refs/heads/main\ncommitter A <a@b> 1699000000 +0000\ndata 5\nm\xc3\xa4 \n\n"
    stream += b"M 100644 inline apps/web/d/file\ndata 1\nx\nM 100644 inline README.md\ndata 1\nx\n"
    stream += b"M 120000 inline link\ndata 4\napps\nM 160000 %s module\n" % (b"1" * 40)
    downstream.bare.git("fast-import", "--quiet", "--force", stdin=stream)
    downstream.look()
    return downstream


@pytest.mark.parametrize(
    ("path", "exists", "problem"), [row[1:] for row in PATHS], ids=[row[0] for row in PATHS]
)
def test_a_path_has_its_object_or_a_problem(furnished, path, exists, problem):
    head = furnished.bare.refs()[furnished.main]
    with furnished.store.reader(furnished.bare.remote) as reader:
        state = reader.paths(head, [path])[path]
    expected = furnished.bare.git("rev-parse", f"main:{path}") if exists else None
    assert state == PathState(expected, problem)


def test_reading_objects(furnished):
    head = furnished.bare.refs()[furnished.main]
    with furnished.store.reader(furnished.bare.remote) as reader:
        commit = reader.commit(head)
        assert (commit.committer, commit.timestamp, commit.parents) == ("A <a@b>", 1699000000, ())
        assert commit.message == "mä \n"
        tree = reader.paths(head, ["apps"])["apps"].tree
        entries = reader.entries(tree)
        assert list(entries) == ["web/d/file"]
        assert reader.blob(entries["web/d/file"].oid) == b"x"
        assert not reader.has("2" * 40)
        for read in (reader.commit, reader.blob, reader.entries):
            with pytest.raises(Unavailable, match="not in the mirror"):
                read("2" * 40)
        with pytest.raises(InvalidInput, match="module is a submodule"):
            reader.entries(commit.tree)
        with pytest.raises(InvalidInput, match="is a commit, not a file"):
            reader.blob(head)


def test_a_commit_contains_itself_and_what_came_before(downstream):
    first = downstream.bare.refs()[downstream.main]
    second = downstream.bare.commit({"a": "2\n"})
    side = downstream.bare.commit({"a": "3\n"}, branch="side")
    downstream.look()
    with downstream.store.reader(downstream.bare.remote) as reader:
        assert reader.contains(second, first)
        assert reader.contains(second, second)
        assert not reader.contains(first, second)
        assert not reader.contains(second, side)
        assert not reader.contains(second, "3" * 40)
        assert not reader.contains("", first)


def test_without_git_the_command_that_needs_it_says_so(tmp_path, bare):
    code = f"""
        from pathlib import Path
        from fanout.git.mirror_store import MirrorStore
        from fanout.plan.observation.repository_state import RefListingRequest, Remote
        from fanout.telemetry.metrics import Counters
        store = MirrorStore(Path({str(tmp_path / "m")!r}), install="x", counters=Counters(),
                            secrets=lambda *_: None)
        request = RefListingRequest(Remote({bare.url!r}), ("refs/heads/*",))
        print(*store.list_refs([request]).values())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "git is not in PATH; install git" in done.stdout, done.stderr


def test_objects_that_git_refuses_are_not_taken_over(downstream):
    """A tree with a directory of Git; nothing of it reaches another repository through us."""
    bare = downstream.bare
    entry = f"040000 tree {bare.git('rev-parse', 'main^{tree}')}\t.git\n"
    tree = bare.git("mktree", stdin=entry.encode())
    bad = bare.git("commit-tree", "-m", "bad", tree)
    bare.git("update-ref", "refs/heads/bad", bad)
    with pytest.raises(InvalidInput) as caught:
        downstream.look()
    assert caught.value.reason == "RemoteObjectsRefused"
    assert downstream.look(downstream.main).refs["refs/heads/bad"] == bad


@pytest.mark.parametrize(
    "pattern", ["*", "refs/*", "refs/notes/*", "main", "--all", "refs/heads/a b"]
)
def test_a_listing_asks_for_branches_and_tags_alone(downstream, pattern):
    with pytest.raises(InvalidInput):
        downstream.look(pattern)


def test_an_answer_that_is_an_error_is_of_a_family(store, tmp_path):
    file = tmp_path / "file"
    file.write_text("no repository\n")
    answer = store.list_refs([RefListingRequest(Remote(str(file)), ("refs/heads/*",))])[str(file)]
    assert isinstance(answer, FanoutError)
    assert isinstance(answer, Unavailable)


HOUR = 3600.0
KEPT = ("refs/heads/*",)


def look_again(downstream, *keep, max_age=HOUR):
    request = RefListingRequest(downstream.bare.remote, keep or ("refs/heads/*",))
    return downstream.store.list_refs([request], max_age)[downstream.bare.url]


def test_a_recent_listing_is_answered_without_asking_the_remote(downstream):
    before = downstream.look("refs/heads/*", downstream.main)
    head = downstream.bare.commit({"a": "1\n"})
    assert look_again(downstream) is before
    assert look_again(downstream, downstream.main) is before
    assert look_again(downstream, max_age=0.0).refs[downstream.main] == head


def test_a_listing_of_other_refs_or_of_another_mirror_does_not_serve(downstream):
    before = downstream.look(downstream.main)
    other = downstream.bare.commit({"a": "1\n"}, branch="other")
    assert look_again(downstream).refs["refs/heads/other"] == other
    (mirror_of(downstream) / "packed-refs").unlink()
    assert look_again(downstream) is not before


def test_a_recent_listing_has_what_was_pushed_since(downstream):
    written = downstream.write({"sites/a": {"f.txt": "1\n"}})
    assert look_again(downstream, *KEPT).refs == downstream.bare.refs()
    assert written.refs.items() <= downstream.bare.refs().items()


def test_after_a_push_that_failed_the_remote_is_asked(downstream):
    downstream.write({"sites/a": {"f.txt": "1\n"}})
    head = downstream.bare.commit({"a": "1\n"})
    files = FileCommit(
        ref=downstream.main,
        parent=look_again(downstream, *KEPT).refs[downstream.main],
        content_by_path={"b": b"2\n"},
        dropped_paths=(),
        message="b",
        timestamp=downstream.when,
    )
    with pytest.raises(Conflict):
        downstream.change(files=(files,), expected={downstream.main: files.parent})
    assert look_again(downstream, *KEPT).refs[downstream.main] == head
