"""Sentences about mirrors, trees and changes, word for word, on real repositories."""

from functools import partial

import pygit2
import pytest
from drafted_packages import draft_fields

from fanout.errors import FanoutError
from fanout.git.mirror_reader import open_mirror
from fanout.git.mirror_store import MirrorStore
from fanout.git.push import check_change
from fanout.package.package_limits import SizeLimits
from fanout.plan.observation.repository_state import BranchUpdate, RepositoryChange
from fanout.telemetry.metrics import Counters


@pytest.fixture
def reader(bare):
    """The bare repository, read as a mirror with files of at most 1,024 bytes."""
    with open_mirror(bare.path, SizeLimits(file_size=1024)) as opened:
        yield opened


def refusal(function, *arguments):
    with pytest.raises(FanoutError) as error:
        function(*arguments)
    return error.value.problem


def test_a_commit_read_as_a_file_is_named_with_both_kinds(bare, reader):
    head = bare.git("rev-parse", "main")
    assert refusal(reader.blob, head) == f"{head} is a commit, not a file"


def test_a_file_above_the_limit_is_named_with_both_sizes(bare, reader):
    blob = bare.git("hash-object", "-w", "--stdin", stdin=b"x" * 2048)
    assert refusal(reader.blob, blob) == f"object {blob} has 2,048 bytes, more than 1,024"


NAMES = [
    (b"\xff", r"a file name in the root directory is not valid UTF-8: b'\xff'"),
    (b"apps/\xff", r"a file name in apps/ is not valid UTF-8: b'\xff'"),
]


@pytest.mark.parametrize(("path", "sentence"), NAMES)
def test_a_name_that_is_no_text_is_named_with_its_directory(bare, reader, path, sentence):
    lines = [b"commit refs/heads/odd", b"committer A <a@b> 1 +0000", b"data 0"]
    lines += [b"M 100644 inline " + path, b"data 0", b""]
    bare.git("fast-import", "--quiet", stdin=b"\n".join(lines))
    tree = bare.git("rev-parse", "odd^{tree}")
    assert refusal(reader.files, tree) == sentence


def test_a_damaged_mirror_is_named_with_the_damage(bare):
    def read():
        with open_mirror(bare.path):
            raise pygit2.GitError("bad object")

    assert refusal(read) == "the mirror is damaged: bad object"


def test_a_directory_of_mirrors_that_is_a_file(tmp_path):
    place = tmp_path / "mirrors"
    place.write_text("")
    options = {"install": "default", "secrets": lambda *_: None, "counters": Counters()}
    sentence = refusal(lambda: MirrorStore(place, **options))
    assert sentence.startswith("cannot write a mirror: [Errno 17] File exists: ")


def test_a_commit_that_the_remote_lists_and_does_not_send(bare, downstream, monkeypatch):
    monkeypatch.setattr(downstream.store._git, "run", lambda *_, **__: b"")
    head = bare.git("rev-parse", "main")
    assert refusal(downstream.look) == (
        "the remote does not send the objects that it lists: the remote lists"
        f" {head} but did not send it"
    )


def test_a_draft_without_a_branch_below_it(bare, downstream):
    draft = downstream.draft("apps/web", {}, base="")
    stage = BranchUpdate("refs/heads/drafts/default/_stages/x", "", ())
    expected = "draft drafts/default/{} has no base: the branch of the repository does not exist"
    for fields, name in (
        (draft_fields([draft]), "apps/web/policy"),
        ({"branches": (stage,)}, "_stages/x"),
    ):
        change = RepositoryChange(
            remote=bare.remote, identity=downstream.identity, expected={}, **fields
        )
        assert refusal(check_change, change, downstream.under) == expected.format(name)


def test_a_ref_that_another_writer_moved(bare, downstream):
    head, new = downstream.look().refs[downstream.main], "refs/tags/sites/ams/v1"
    for expected, sentence in (
        ({downstream.main: "", new: ""}, f"refs/heads/main is at {head}, expected nothing"),
        ({downstream.main: head, new: head}, f"{new} is at nothing, expected {head}"),
    ):
        change = partial(downstream.change, expected=expected, tags={new: head})
        assert refusal(change) == sentence


def test_a_root_directory_with_too_many_entries(bare, reader, monkeypatch):
    monkeypatch.setattr("fanout.git.mirror_reader._MAX_DIRECTORY_SIZE", 1)
    state = reader.paths(bare.git("rev-parse", "main"), ["apps"])["apps"]
    assert state.problem == "the root directory has too many entries"
