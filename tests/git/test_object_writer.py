"""The object writer and `git fast-import`: for any change the same ids, or the same refusal."""

import shutil
import subprocess

import pytest
from drafted_packages import PackageDraft, draft_fields
from fast_import import FastImport
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanout.errors import FanoutError
from fanout.git.mirror import create_bare
from fanout.git.mirror_reader import open_mirror
from fanout.git.object_writer import ObjectWriter
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.plan.commit_statement import PackageStatement, PublicationStatement
from fanout.plan.observation.repository_state import (
    BranchCommit,
    BranchUpdate,
    CommitIdentity,
    FileCommit,
    MergedDraft,
    PublicationMerge,
    Remote,
    RepositoryChange,
    VendorCommit,
)
from fanout.reconcile.observation.repository_observer import (
    NO_STATEMENTS,
    read_statement_index,
)
from fanout.values import replace

WHO = CommitIdentity("fanout", "fanout@localhost")
MAIN = "refs/heads/main"
WIDE = [f"wide/p{number:02}" for number in range(60)]
THERE = {
    **{f"{path}/f": b"%d" % number for number, path in enumerate(WIDE)},
    "README": b"hello\n",
    "a/b/c/f": b"deep\n",
    "a/file": b"in the way\n",
}


class Base:
    """A mirror with two commits on main, and what is in it."""

    def __init__(self, directory):
        self.mirror = directory / "base.git"
        create_bare(self.mirror)
        first = self._write("", THERE)
        self.head = self._write(first, {"wide/p61/f": b"one more\n"})
        self.commits = [first, self.head]
        with open_mirror(self.mirror) as reader:
            root = reader.commit(self.head).tree
            states = reader.paths(self.head, ["a", "a/b", *WIDE[:3]])
        self.trees = [root, *(state.tree for state in states.values())]

    def _write(self, parent, files):
        commit = FileCommit(
            ref=MAIN,
            parent=parent,
            content_by_path=files,
            dropped_paths=(),
            message="Base\n",
            timestamp=1,
        )
        change = RepositoryChange(remote=Remote("x"), identity=WHO, expected={}, files=(commit,))
        return ObjectWriter().write(self.mirror, change).refs[MAIN]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return Base(tmp_path_factory.mktemp("base"))


names = st.sampled_from(["a", "b", "a.b", "a-", "é", "z z", 'q"', "back\\slash", "new\nline"])
inner = st.lists(names, min_size=1, max_size=3).map("/".join)
free = st.one_of(st.just(""), inner, st.sampled_from([*WIDE[::7], "wide/p305"]))
blocked = st.sampled_from(["README", "README/x", "a/file/x", "a//b", ".git"])
modes = st.sampled_from(["100644", "100755", "120000"])
contents = st.binary(max_size=8) | st.sampled_from(
    [b"".join(b"line %d\n" % n for n in range(60)), b"line 0\nother\n" * 40]
)
packages = st.dictionaries(inner, st.tuples(modes, contents), min_size=1, max_size=4).filter(
    lambda files: (
        not any(one != two and f"{two}/".startswith(f"{one}/") for one in files for two in files)
    )
)
messages = st.sampled_from(["", "Words\n", "no newline", "ümläut\n\nBody: x\n"])
times = st.integers(0, 2_000_000_000)


def publication_merges(commits, places, trees):
    merged = st.builds(
        MergedDraft,
        commit=commits,
        path=places,
        tree=trees,
        tag=st.uuids().map(lambda it: f"refs/tags/{it}"),
    )
    drops = st.lists(places, max_size=3).map(tuple)
    return st.builds(
        PublicationMerge, st.lists(merged, max_size=20).map(tuple), messages, times, drops
    )


def stage_drafts(places, trees, commits):
    each = st.builds(
        BranchCommit,
        trees_by_path=st.dictionaries(places, trees, max_size=4),
        dropped_paths=st.lists(places, max_size=3).map(tuple),
        message=messages,
        timestamp=times,
        more_parents=st.lists(commits, max_size=1).map(tuple),
    )
    ref = st.just("refs/heads/drafts/_stages/a.b/prod")
    chain = st.lists(each, min_size=1, max_size=3).map(tuple)
    return st.builds(BranchUpdate, ref, commits, chain)


@st.composite
def changes(draw, base):
    places = draw(st.sampled_from([free, free, free | blocked]))
    made = draw(st.lists(packages, max_size=4))
    blobs = {blob_id(data): data for files in made for _, data in files.values()}
    entries = [
        {path: TreeEntry(mode, blob_id(data)) for path, (mode, data) in files.items()}
        for files in made
    ]
    trees = [tree_id(each) for each in entries]
    commits = st.sampled_from(base.commits)
    drafts = tuple(
        PackageDraft(
            ref=f"refs/heads/drafts/{number}",
            base=draw(commits),
            path=draw(places),
            entries=each,
            tree=trees[number],
            message=draw(messages),
            timestamp=draw(times),
            more_parents=tuple(draw(st.lists(commits, max_size=2))),
        )
        for number, each in enumerate(entries)
    )
    some = st.sampled_from([*base.trees, *trees])
    vendor = VendorCommit(
        ref="refs/heads/vendor",
        parent=draw(commits | st.just("")),
        trees_by_path=draw(st.dictionaries(places, some, max_size=4)),
        dropped_paths=draw(st.lists(places, max_size=3).map(tuple)),
        message=draw(messages),
        timestamp=draw(times),
    )
    files = FileCommit(
        ref="refs/heads/records",
        parent=draw(commits | st.just("")),
        content_by_path=draw(st.dictionaries(places.filter(bool), contents, max_size=4)),
        dropped_paths=draw(st.lists(places.filter(bool), max_size=3).map(tuple)),
        message=draw(messages),
        timestamp=draw(times),
    )
    written = draft_fields(drafts)
    return RepositoryChange(
        remote=Remote("x"),
        identity=WHO,
        expected={MAIN: base.head},
        blobs=blobs,
        trees=written["trees"],
        branches=(
            *written["branches"],
            *draw(st.just(()) | st.tuples(stage_drafts(places, some, commits))),
        ),
        branch=MAIN,
        merges=tuple(draw(st.lists(publication_merges(commits, places, some), max_size=2))),
        vendor=draw(st.none() | st.just(vendor)),
        files=draw(st.sampled_from([(), (files,)])),
    )


def git(mirror, *words):
    done = subprocess.run(["git", *words], cwd=mirror, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def outcome(writer, mirror, change):
    try:
        return writer.write(mirror, change).refs
    except FanoutError as error:
        return type(error), error.reason, str(error)


def sound(mirror, refs, *options):
    """Everything that the refs lead to is as git wants it, and indexes are what git would make.

    Options are those of `git index-pack`.
    """
    lines = "".join(f"{oid} {ref}\n" for ref, oid in sorted(refs.items()))
    (mirror / "packed-refs").write_text(f"# pack-refs with: sorted \n{lines}")
    status, output = git(mirror, "fsck", "--strict", "--full", "--no-dangling")
    problems = [line for line in output.splitlines() if not line.startswith("notice: ")]
    assert (status, problems) == (0, [])
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        assert git(mirror, "verify-pack", str(pack)) == (0, "")
        again = mirror / "again.idx"
        again.unlink(missing_ok=True)
        status, output = git(mirror, "index-pack", *options, "-o", str(again), str(pack))
        assert status == 0, output
        assert again.read_bytes() == pack.with_suffix(".idx").read_bytes()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_object_writer_and_git_write_the_same(base, tmp_path_factory, data):
    change = data.draw(changes(base))
    outcomes = []
    directory = tmp_path_factory.mktemp("writers")
    for writer in (ObjectWriter(), FastImport()):
        shutil.copytree(base.mirror, directory / "m.git")
        outcomes.append(outcome(writer, directory / "m.git", change))
        if isinstance(outcomes[-1], dict):
            sound(directory / "m.git", outcomes[-1])
        shutil.rmtree(directory / "m.git")
    assert outcomes[0] == outcomes[1]


def forty(base):
    """Forty drafts of a wide directory, and their publication."""
    blobs, drafts = {}, []
    for number in range(40):
        files = {"Kptfile": b"name: %d\n" % number * 9, "same": b"same\n" * 40}
        blobs |= {blob_id(data): data for data in files.values()}
        entries = {path: TreeEntry("100644", blob_id(data)) for path, data in files.items()}
        ref, path = f"refs/heads/drafts/{number}", f"wide/new-{number}"
        message = f"Draft {number}\n\nFanout-Variant: {number}\nFanout-Stage: prod\n"
        drafts.append(
            PackageDraft(
                ref=ref,
                base=base.head,
                path=path,
                entries=entries,
                tree=tree_id(entries),
                message=message,
                timestamp=5,
            )
        )
    put = {f"drafts/{draft.path}": draft.tree for draft in drafts}
    vendor = VendorCommit(
        ref="refs/heads/vendor",
        parent="",
        trees_by_path=put,
        dropped_paths=(),
        message="Render\n",
        timestamp=5,
    )
    return RepositoryChange(
        remote=Remote("x"),
        identity=WHO,
        expected={MAIN: base.head},
        blobs=blobs,
        **draft_fields(drafts),
        vendor=vendor,
    )


def test_drafts_of_a_wide_directory_are_small(base, tmp_path):
    """Each is what it differs in from the first; the directory's 60 rows are there once."""
    shutil.copytree(base.mirror, tmp_path / "m.git")
    before = {path.name for path in (tmp_path / "m.git/objects/pack").iterdir()}
    written = ObjectWriter().write(tmp_path / "m.git", forty(base))
    (pack,) = (
        path for path in (tmp_path / "m.git/objects/pack").glob("*.pack") if path.name not in before
    )
    assert pack.stat().st_size < 40 * 700
    assert written.count > 40 * 5
    sound(tmp_path / "m.git", written.refs)


@pytest.mark.parametrize("limit", [100, 4_000, 14_000, 1 << 20])
def test_large_offsets_are_indexed_as_git_does_it(base, tmp_path, limit, monkeypatch):
    """Offsets above the limit stand in the table of 64-bit offsets; git reads them there."""
    monkeypatch.setattr("fanout.git.pack.LARGE_OFFSET", limit + 1)
    for name in ("large", "git"):
        shutil.copytree(base.mirror, tmp_path / name)
    for pack in (tmp_path / "large/objects/pack").glob("*.pack"):
        git(tmp_path / "large", "index-pack", f"--index-version=2,{limit}", str(pack))
    written = ObjectWriter().write(tmp_path / "large", forty(base))
    by_git = FastImport().write(tmp_path / "git", forty(base))
    assert written.refs == by_git.refs
    sound(tmp_path / "large", written.refs, f"--index-version=2,{limit}")


def test_objects_at_large_offsets_are_read(base, tmp_path, monkeypatch):
    monkeypatch.setattr("fanout.git.pack.LARGE_OFFSET", 4_000)
    shutil.copytree(base.mirror, tmp_path / "m.git")
    change = forty(base)
    refs = ObjectWriter().write(tmp_path / "m.git", change).refs
    with open_mirror(tmp_path / "m.git") as reader:
        for update, stored in zip(change.branches, change.trees, strict=True):
            [path] = update.commits[0].trees_by_path
            state = reader.paths(refs[update.ref], [path])[path]
            assert (state.tree, reader.entries(state.tree)) == (stored.tree, stored.entries)


def test_a_repeated_write_yields_the_same_pack(base, tmp_path):
    """A push that failed is tried again: the mirror does not grow by it."""
    shutil.copytree(base.mirror, tmp_path / "m.git")
    counts = []
    for _ in range(3):
        ObjectWriter().write(tmp_path / "m.git", forty(base))
        counts.append(len(list((tmp_path / "m.git/objects/pack").iterdir())))
    assert counts[1] == counts[2]


def state_publication(number):
    """A statement about the publication of a package with a path of 200 bytes."""
    trailers = PackageStatement(
        install="default",
        policy="default/web",
        variant=f"web-{number}",
        stage="dev",
        revision="v1",
        commit="c" * 40,
        digest="d" * 40,
        onto="none",
        tree="e" * 40,
        rendered="f" * 40,
    )
    path = f"{'deep/' * 39}{number:05}"
    return PublicationStatement(path=path, number=1, merge="a" * 40, trailers=trailers)


def test_more_statements_than_one_readable_commit_holds(base, tmp_path):
    shutil.copytree(base.mirror, tmp_path / "m.git")
    ref, head, statement_index = "refs/heads/vendor", "", NO_STATEMENTS
    statements = [state_publication(number) for number in range(8_000)]
    for stated in (statements, [replace(statements[0], number=2)]):
        vendor = VendorCommit(
            ref=ref,
            parent=head,
            trees_by_path={"published/a": base.trees[1]},
            message="Keep the pristine renderings\n",
            timestamp=5,
            statements=tuple(stated),
            last_statements=statement_index.newest_commit,
        )
        change = RepositoryChange(remote=Remote("x"), identity=WHO, expected={}, vendor=vendor)
        head = ObjectWriter().write(tmp_path / "m.git", change).refs[ref]
        with open_mirror(tmp_path / "m.git") as reader:
            statement_index = read_statement_index(reader, head, statement_index)
            assert statement_index == read_statement_index(reader, head, NO_STATEMENTS)
            assert reader.paths(head, ["published/a"])["published/a"].tree == base.trees[1]
        sound(tmp_path / "m.git", {ref: head})
    assert statement_index.by_path == {it.path: it for it in [*statements, *stated]}


def test_used_numbers_of_many_paths_are_read_back_from_the_vendor_branch(base, tmp_path):
    shutil.copytree(base.mirror, tmp_path / "m.git")
    ref, head, statement_index = "refs/heads/vendor", "", NO_STATEMENTS
    used = {f"{'deep/' * 39}{number:05}": number for number in range(1, 10_001)}
    for numbers in (used, {next(iter(used)): 7}):
        vendor = VendorCommit(
            ref=ref,
            parent=head,
            trees_by_path={},
            message="Keep the pristine renderings\n",
            timestamp=5,
            used_numbers=numbers,
            last_statements=statement_index.newest_commit,
        )
        change = RepositoryChange(remote=Remote("x"), identity=WHO, expected={}, vendor=vendor)
        head = ObjectWriter().write(tmp_path / "m.git", change).refs[ref]
        with open_mirror(tmp_path / "m.git") as reader:
            statement_index = read_statement_index(reader, head, statement_index)
            assert statement_index == read_statement_index(reader, head, NO_STATEMENTS)
        sound(tmp_path / "m.git", {ref: head})
    assert statement_index.used_numbers == {**used, next(iter(used)): 7}
