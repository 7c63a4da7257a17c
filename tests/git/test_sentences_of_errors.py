"""Errors of refs, paths, commits and mirrors, as people read them."""

import os
from pathlib import Path

import pytest

from fanout.errors import FanoutError
from fanout.git.git_errors import missing_object_error
from fanout.git.mirror import create_bare, file_lock
from fanout.git.mirror_reader import open_mirror
from fanout.git.mirror_refs import check_ref
from fanout.git.object_writer import encode_message, encode_signature
from fanout.git.remote_access import parse_address
from fanout.git.tree_editor import check_path, path_blocked
from fanout.plan.observation.repository_state import CommitIdentity

MISSING_MIRROR = Path("/nowhere/m.git")


def open_missing_mirror() -> None:
    with open_mirror(MISSING_MIRROR):
        pass


REFUSALS = [
    (lambda: check_ref("a b"), "'a b' is not a valid branch or tag name"),
    (lambda: check_path("../a"), "'../a' is not a valid Git path"),
    (lambda: encode_signature(CommitIdentity("", "a@b"), 0),
     "'' <a@b> cannot be the author of a commit"),
    (lambda: encode_signature(CommitIdentity("Ann", "a@b"), -1),
     "-1 cannot be the date of a commit"),
    (lambda: encode_message("a\0b"), "the commit message has a NUL character"),
    (lambda: parse_address("ssh://host/r", ("https", "http")),
     "the protocol ssh is not allowed"),
    (lambda: parse_address("", ("https",)), "the URL is empty"),
    (open_missing_mirror, "the mirror is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "sentence"), REFUSALS, ids=[it[1] for it in REFUSALS])
def test_a_refusal_names_its_subject(refused, sentence):
    with pytest.raises(FanoutError) as error:
        refused()
    assert error.value.problem == sentence


def test_errors_that_are_built_name_their_subject():
    blocked = path_blocked("apps/web", b"apps")
    assert blocked.problem == "apps/web cannot be a directory: apps is a file"
    assert missing_object_error("abab").problem == "object abab is not in the mirror"


def test_the_remedy_of_a_protocol_lists_those_that_are_allowed():
    with pytest.raises(FanoutError) as error:
        parse_address("ssh://host/r", ("ftp", "https"))
    assert error.value.remedy == "use one of ftp, https, or allow it in the FanoutConfiguration"


def test_a_directory_without_room_for_a_repository_is_named(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FanoutError) as error:
        create_bare(file / "r")
    assert error.value.problem.startswith(f"cannot create a repository at {file / 'r'}: ")


def test_a_lock_names_the_process_that_holds_it(tmp_path):
    path = tmp_path / "m.lock"
    with file_lock(path, 1.0), pytest.raises(FanoutError) as error, file_lock(path, 0.0):
        pass
    holder = f"process {os.getpid()} has held the mirror for more than 0 s"
    assert error.value.problem == holder
