"""Refused pushes on record: since when, and what counts as saying something new."""

from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest

from fanout.errors import Conflict, Denied, InvalidInput, Unavailable
from fanout.plan.push_refusals import is_refusal, note_refusal, refuses_force, word_refusal

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
def test_a_lasting_failure_is_a_refusal(_, result, expected):
    assert is_refusal(result) is expected


WORDS = [
    ("(non-fast-forward)", True),
    ("you are not allowed to force push code to a protected branch", True),
    ("branch drafts/x is protected from force push", True),
    ("main is protected", False),
]


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_refused_force_is_reported_by_the_words(words, expected):
    assert refuses_force(Denied(words, reason="PushRefused")) is expected


# By namespace: the places of packages, and what is in names of branches.
NAMES = {
    "abe": frozenset({"sites", "sites/ams", "abe/web", "abe.web"}),
    "zed": frozenset({"sites/ber", "sites/ams/inner", "zed/web", "zed.web"}),
}
LINES = [
    ("words about nothing of fanout", "commits must be signed by zed", True, True),
    ("a branch of one", "drafts/default/sites/ams/web is forbidden", True, False),
    ("a branch of the other", "(refs/heads/drafts/default/sites/ber/web)", False, True),
    ("both", "sites/ams sites/ber", False, False),
    ("a path inside one of the other", "sites/ams/inner/a.yaml is too large", False, True),
    ("a path inside one's own", "sites/ams/a.yaml is too large", True, False),
    ("a tag", "refs/tags/sites/ber/v1: reserved", False, True),
    ("a stage draft", "refs/heads/drafts/default/_stages/abe.web/dev", True, False),
    ("a policy", "'zed/web' may not push", False, True),
    ("a longer name", "kites/berlin-zed.webs is not yours", True, True),
]


@pytest.mark.parametrize(("_", "line", "abe", "zed"), LINES, ids=map(itemgetter(0), LINES))
def test_words_about_others_are_hidden(_, line, abe, zed):
    lines = ("(hook declined)", line, "ask us")
    error = Denied(f"refused: {' '.join(lines)}", reason="PushRefused", remedy="ask", words=lines)
    for namespace, expected in (("abe", abe), ("zed", zed)):
        hidden = (
            "refused: (hook declined) / ask us / its other words are about objects of other"
            " namespaces; administrators find them in the log; ask"
        )
        sentence = word_refusal(error, NAMES, namespace)
        assert sentence == (str(error) if expected else hidden)


def refused(words: str) -> str:
    return str(Denied(words, reason="PushRefused"))


def test_the_first_instant_stays_and_only_new_words_are_recorded():
    first = note_refusal(None, "edge#main", refused("commit 1234567 is not signed"), NOW)
    assert first.at == NOW
    same = note_refusal(first, "edge#main", refused("commit abcdef0 is not signed"), LATER)
    assert same is first
    other = note_refusal(first, "edge#main", refused("the quota is used up"), LATER)
    assert (other.at, other.message) == (NOW, "the quota is used up")
    moved = note_refusal(first, "other#main", refused("commit 1234567 is not signed"), LATER)
    assert moved.at == LATER
