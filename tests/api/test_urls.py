"""Paths, branches and URLs: what may come in from a policy, an expression or a Repository."""

import pytest

from fanout.api.field_errors import InvalidValue
from fanout.api.promotion_policy import matches_name_pattern
from fanout.api.text_fields import check_branch, check_directory, check_path
from fanout.api.urls import GitProtocol, check_url, parse_protocol

GOOD_PATHS = ["monitoring", "team/monitoring", "a.b/c_d-e", "stages", "a/_Stages", "ünï/x", "v1"]
BAD_PATHS = [
    "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", ".git", "a/.git/b", "-a", "a/-b",
    ".a", "a.", "a.lock", "a.LOCK/b", "a..b", "a b", "a\tb", "a\nb", "a\x00b", "a:b", "a?b", "a*b",
    "a[b",
    "a\\b", "a~b", "a^b", "a@{b", "@", "a/@/b", "_stages/x", "_removals/x", "x" * 256,
    "_stages", "_Stages/x", "_STAGES", "_Removals/x", "_\u017ftages/x",
    "a\u200bb", "a\u202eb",
]  # fmt: skip
GOOD_URLS = [
    ("/srv/git/edge.git", GitProtocol.FILE),
    ("repositories/edge.git", GitProtocol.FILE),
    ("../edge.git", GitProtocol.FILE),
    ("file:///srv/git/edge.git", GitProtocol.FILE),
    ("http://git.example.com/edge.git", GitProtocol.HTTP),
    ("https://git.example.com:8443/edge.git", GitProtocol.HTTPS),
    ("ssh://git@git.example.com:2222/edge.git", GitProtocol.SSH),
    ("git@git.example.com:team/edge.git", GitProtocol.SSH),
    ("git.example.com:team/edge.git", GitProtocol.SSH),
    ("git@[::1]:edge.git", GitProtocol.SSH),
]
BAD_URLS = [
    "-oProxyCommand=id", "--upload-pack=id", "ext::sh -c id", "ext::sh%20-c%20id", "fd::3",
    "git://git.example.com/edge.git", "ftp://git.example.com/edge.git", "javascript://x",
    "https://me:secret@git.example.com/x.git", "https://token@git.example.com/x.git",
    "ssh://git:secret@git.example.com/x.git", "ssh://-oProxyCommand=id/x", "-x@host:path",
    "ssh://-x@host/path", "git@-host:path", "git@host:-path", "https:///x.git", "file://host/x.git",
    "file://", "https://git.example.com/a b", "https://git.example.com/\x00", "https://host:port/x",
    "https://[::1/x.git", "me:secret@git.example.com:x.git",
]  # fmt: skip


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_a_path_that_can_be_used(path):
    assert check_path(path) == path


@pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
def test_a_path_that_cannot_be_used(path):
    with pytest.raises(InvalidValue):
        check_path(path)


def test_the_root_is_a_directory_and_no_package():
    assert check_directory("") == ""
    with pytest.raises(InvalidValue):
        check_directory("../x")


@pytest.mark.parametrize("name", ["main", "release/1.2", "_stages"])
def test_a_branch_that_can_be_used(name):
    assert check_branch(name) == name


@pytest.mark.parametrize("name", ["", "-x", "a..b/..", "refs/heads/main", "HEAD", "a b", "a.lock"])
def test_a_branch_that_cannot_be_used(name):
    with pytest.raises(InvalidValue):
        check_branch(name)


@pytest.mark.parametrize(("url", "protocol"), GOOD_URLS)
def test_an_allowed_url_is_accepted(url, protocol):
    assert check_url(url) == url
    assert parse_protocol(url) is protocol


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_forbidden_url_is_refused(url):
    with pytest.raises(InvalidValue) as caught:
        check_url(url)
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "anything", True),
        ("staging-*", "staging-eu", True),
        ("staging-*", "prod", False),
        ("*-eu", "staging-eu", True),
        ("prod", "prod-eu", False),
        ("a*c*e", "abcde", True),
        ("a*a", "a", False),
        ("a*b*b", "ab", False),
        ("*b*b*", "abcb", True),
        ("*ab*ba", "abba", True),
        ("*ab*ba", "aba", False),
        ("**", "", True),
    ],
)
def test_patterns_of_names(pattern, name, fits):
    assert matches_name_pattern(pattern, name) is fits
