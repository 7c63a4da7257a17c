"""Refused pushes on record: since when, and what counts as saying something new."""

from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest

from fanout.errors import Conflict, Denied, InvalidInput, Unavailable
from fanout.plan.push_refusals import is_refusal, note_refusal, refuses_force

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)

RESULTS = [
    ("a rule of the server", Denied("no", reason="PushRefused"), True),
    ("a ref in the way", InvalidInput("no", reason="RefNameClash"), True),
    ("a quota", Unavailable("no", reason="RemoteFailed"), True),
    ("an account that may only read", Denied("no", reason="RemoteDenied"), True),
    ("a deletion that is refused", Denied("no", reason="DeletionRefused"), False),
    ("a lost race", Conflict("no", reason="RemoteMoved"), False),
    ("no answer", Unavailable("no", reason="RemoteUnavailable"), False),
    ("no error", None, False),
]


@pytest.mark.parametrize(("_", "result", "expected"), RESULTS, ids=map(itemgetter(0), RESULTS))
def test_what_lasts_is_a_refusal(_, result, expected):
    assert is_refusal(result) is expected


WORDS = [
    ("(non-fast-forward)", True),
    ("you are not allowed to force push code to a protected branch", True),
    ("branch drafts/x is protected from force push", True),
    ("main is protected", False),
]


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_refused_force_is_told_by_the_words(words, expected):
    assert refuses_force(Denied(words, reason="PushRefused")) is expected


def refused(words: str) -> Denied:
    return Denied(words, reason="PushRefused")


def test_the_first_instant_stays_and_only_new_words_are_recorded():
    first = note_refusal(None, "edge#main", refused("commit 1234567 is not signed"), NOW)
    assert first.at == NOW
    same = note_refusal(first, "edge#main", refused("commit abcdef0 is not signed"), LATER)
    assert same is first
    other = note_refusal(first, "edge#main", refused("the quota is used up"), LATER)
    assert (other.at, other.message) == (NOW, "the quota is used up")
    moved = note_refusal(first, "other#main", refused("commit 1234567 is not signed"), LATER)
    assert moved.at == LATER
