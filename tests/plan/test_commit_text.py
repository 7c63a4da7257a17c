"""Words of others in messages of commits, which mention, close and command nothing there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from request_contents import HOSTILE_NAMES

from fanout.plan.commit_text import disarm_references, restore_references

# `|` is where the text is taken apart.
TEXTS = [
    ("a mention", "see @ann", "see @|ann"),
    ("a team", "sites/@acme/team", "sites/@|acme/team"),
    ("a mention in brackets", "(@ann)", "(@|ann)"),
    ("an issue", "fixes #12, closes: #3", "fixes #|12, closes: #|3"),
    ("of another repository", "resolves ada/other#1", "resolves ada/other#|1"),
    ("a merge request", "see !7", "see !|7"),
    ("GitLab's others", "&1 %2 ~3 $4", "&|1 %|2 ~|3 $|4"),
    ("GitHub's other form", "fixes GH-12 and gh-3", "fixes GH-|12 and gh-|3"),
    (
        "an address of an issue",
        "closes https://github.com/a/b/issues/1",
        "closes https://github.com/a/b/issues/|1",
    ),
    ("of a request", "http://x/a/b/pulls/7, /pull/8", "http://x/a/b/pulls/|7, /pull/|8"),
    ("of a merge request", "x/-/merge_requests/7", "x/-/merge_requests/|7"),
    ("no checks", "[skip ci] [ci skip] [no ci]", "[|skip ci] [|ci skip] [|no ci]"),
    ("no actions", "[Skip Actions]", "[|Skip Actions]"),
    ("no checks of Azure", "***NO_CI***", "***|NO_CI***"),
    ("ordinary words", "Update sites/edge-1 at v1.2.0: a@b.example, 5 # x", None),
    ("a list", "* sites/ams: 3 stands [city]", None),
    ("a heading", "# x", None),
    ("an image", "registry.example.com/web:1.2@sha256:00ff", None),
]


@pytest.mark.parametrize(("description", "text", "expected"), TEXTS)
def test_text(description, text, expected):
    disarmed = disarm_references(text)
    assert disarmed == (expected or text).replace("|", "\N{WORD JOINER}")
    assert disarm_references(disarmed) == disarmed
    assert restore_references(disarmed) == text


@given(st.lists(st.sampled_from([*HOSTILE_NAMES.values(), "[", "#", "@", "1", "skip", "a"])))
def test_every_text_is_restored(parts):
    text = "".join(parts)
    assert restore_references(disarm_references(text)) == text
    assert disarm_references(disarm_references(text)) == disarm_references(text)
