"""No secret survives redaction, and what is no secret does."""

from base64 import b64encode
from operator import itemgetter
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.telemetry.redaction import REDACTED, Redactor

SHOWN = [
    (
        "user and password of a URL go",
        "push to https://bot:hunter22@git.example.com/a.git failed",
        "push to https://***@git.example.com/a.git failed",
    ),
    (
        "a token as the user of a URL goes",
        "https://ghp_123456@github.com/o/r",
        "https://***@github.com/o/r",
    ),
    (
        "a password with an unescaped at sign goes whole",
        "https://bot:p@ss@git.example.com/a",
        "https://***@git.example.com/a",
    ),
    (
        "two URLs on one line",
        "http://a:b@x/1 http://c:d@y/2",
        "http://***@x/1 http://***@y/2",
    ),
    ("ssh's user stays", "ssh://git@example.com/a.git", "ssh://git@example.com/a.git"),
    ("ssh's password goes", "ssh://git:pw@example.com/a", "ssh://***@example.com/a"),
    ("an scp-like address stays", "git@example.com:o/r.git", "git@example.com:o/r.git"),
    ("an at sign in a path stays", "https://example.com/@scope/x", "https://example.com/@scope/x"),
    ("a mail address stays", "Jo <jo@example.com>", "Jo <jo@example.com>"),
    ("a Bearer header", "Authorization: Bearer abc.def", "Authorization: Bearer ***"),
    ("a Basic header", "authorization: basic Zm9v", "authorization: basic ***"),
    ("a header given to git", "http.extraHeader=Authorization: x1", None),
    ("a header without a scheme", "PRIVATE-TOKEN: glpat-1", "PRIVATE-TOKEN: ***"),
    (
        "a header in a printed mapping",
        "{'Authorization': 'token abcd', 'Accept': 'json'}",
        "{'Authorization': 'token ***', 'Accept': 'json'}",
    ),
    ("a token in a query", "GET /x?private_token=abc&page=2", "GET /x?private_token=***&page=2"),
    ("an ordinary sentence", "released 3 of 12 variants", "released 3 of 12 variants"),
]


@pytest.mark.parametrize(("sentence", "text", "shown"), SHOWN, ids=map(itemgetter(0), SHOWN))
def test_text(sentence, text, shown):
    expected = shown if shown is not None else text.replace("x1", REDACTED)
    assert Redactor().redact_text(text) == expected


def test_a_registered_secret_is_not_shown_in_any_of_its_forms():
    redactor = Redactor()
    redactor.register("p/ss w&rd", username="bot")
    basic = b64encode(b"bot:p/ss w&rd").decode()
    for form in ("p/ss w&rd", quote("p/ss w&rd", safe=""), basic):
        assert redactor.redact_text(f"before {form} after") == "before *** after"


def test_of_two_secrets_that_begin_alike_nothing_is_left():
    redactor = Redactor()
    redactor.register("abcd")
    redactor.register("abcd-efgh")
    assert redactor.redact_text("x abcd-efgh y") == "x *** y"


def test_a_forgotten_secret_leaves_the_others_redacted():
    redactor = Redactor()
    redactor.register("token-1", "user")
    redactor.register("token-2", "user")
    redactor.forget("token-1", "user")
    basic = [b64encode(f"user:token-{it}".encode()).decode() for it in (1, 2)]
    assert redactor.redact_text(f"token-1 {basic[0]}") == f"token-1 {basic[0]}"
    assert redactor.redact_text(f"token-2 {basic[1]}") == f"{REDACTED} {REDACTED}"
    redactor.forget("token-2", "user")
    redactor.forget("token-2", "user")
    assert redactor.redact_text("token-2") == "token-2"


def test_a_registered_secret_of_few_characters_does_not_star_out_everything():
    redactor = Redactor()
    redactor.register("a")
    assert redactor.redact_text("a variant") == "a variant"


def test_values_are_redacted_at_any_depth():
    redactor = Redactor()
    redactor.register("s3cret-token")
    value = {
        "urls": ["https://u:p@h/x", ("s3cret-token",)],
        "password": "anything",
        "error": ValueError("cannot use s3cret-token"),
        "raw": b"s3cret-token",
        "count": 3,
        "none": None,
    }
    assert redactor.redact_value(value) == {
        "urls": ["https://***@h/x", ["***"]],
        "password": "***",
        "error": "cannot use ***",
        "raw": "***",
        "count": 3,
        "none": None,
    }


@given(
    secret=st.text(min_size=4, max_size=20).filter(lambda text: not set(text) <= {"*"}),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
def test_no_text_shows_a_registered_secret(secret, before, after):
    redactor = Redactor()
    redactor.register(secret)
    shown = redactor.redact_text(f"{before}{secret}{after}")
    # What stands around the stars may by chance spell the secret together with them.
    assert all(secret not in part for part in shown.split(REDACTED))
