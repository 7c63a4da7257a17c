"""The sentences about Git and mirrors, as people read them."""

from operator import itemgetter

import pytest

from fanout.git import git_wording as wording

SENTENCES = [
    (wording.describe_timeout(3.0), "git did not finish within 3 s"),
    (wording.describe_busy_mirror("42", 120.0),
     "process 42 has held the mirror for more than 120 s"),
    (wording.describe_uncreated("/r", "denied"), "cannot create a repository at /r: denied"),
    (wording.describe_unwritable_mirror("denied"), "cannot write a mirror: denied"),
    (wording.describe_damaged_mirror("bad"), "the mirror is damaged: bad"),
    (wording.describe_missing_object("abab"), "object abab is not in the mirror"),
    (wording.describe_unsent_object("abab"), "the remote lists abab but did not send it"),
    (wording.describe_large_object("abab", 2048, 1024),
     "object abab has 2,048 bytes, more than 1,024"),
    (wording.describe_large_directory(""), "the root directory has too many entries"),
    (wording.describe_large_directory("apps"), "apps has too many entries"),
    (wording.describe_unreadable_name("", b"\xff"),
     r"a file name in the root directory is not valid UTF-8: b'\xff'"),
    (wording.describe_entry("apps", "a symlink"), "apps is a symlink"),
    (wording.describe_wrong_object("abab", "commit", "file"), "abab is a commit, not a file"),
    (wording.describe_invalid_ref("a b"), "'a b' is not a valid branch or tag name"),
    (wording.describe_invalid_path("../a"), "'../a' is not a valid Git path"),
    (wording.describe_blocked_path("apps/web", "apps"),
     "apps/web cannot be a directory: apps is a file"),
    (wording.describe_missing_branch("main"), "branch main does not exist"),
    (wording.describe_baseless_draft("drafts/x"),
     "draft drafts/x has no base: the branch of the repository does not exist"),
    (wording.describe_moved_ref("refs/heads/main", "", "abab"),
     "refs/heads/main is at nothing, expected abab"),
    (wording.describe_invalid_signature("", "a@b"), "'' <a@b> cannot be the author of a commit"),
    (wording.describe_invalid_date(-1), "-1 cannot be the date of a commit"),
    (wording.describe_missing_secret("a"), "secret 'a' was not found"),
    (wording.describe_refused_protocol("ftp"), "the protocol ftp is not allowed"),
    (wording.format_protocol_remedy(["https", "ssh"]),
     "use one of https, ssh, or allow it in the FanoutConfiguration"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
