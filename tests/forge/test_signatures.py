"""Signatures of hooks, against the known answer of RFC 4231."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.forge.signatures import find_signatures, is_signed

# Test case 2 of RFC 4231.
BODY, SECRET = b"what do ya want for nothing?", "Jefe"
SIGNATURE = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
HEADERS = [
    ("Gitea's", [("x-gitea-signature", SIGNATURE)], True),
    ("Forgejo's", [("X-Gogs-Signature", "x"), ("X-Forgejo-Signature", SIGNATURE)], True),
    ("GitHub's", [("X-Hub-Signature-256", f"sha256={SIGNATURE}")], True),
    ("one of two", [("x-gitea-signature", "x"), ("x-forgejo-signature", SIGNATURE)], True),
    ("GitHub's with another algorithm", [("x-hub-signature-256", f"sha1={SIGNATURE}")], False),
    ("GitHub's without its algorithm", [("x-hub-signature-256", SIGNATURE)], False),
    ("Gitea's with an algorithm", [("x-gitea-signature", f"sha256={SIGNATURE}")], False),
    ("the first half", [("x-gitea-signature", SIGNATURE[:32])], False),
    ("nothing", [("x-gitea-signature", "")], False),
    ("a digit outside ASCII", [("x-gitea-signature", SIGNATURE[:-1] + "३")], False),
    ("a header that signs nothing", [("authorization", SIGNATURE)], False),
    ("no header", [], False),
]


@pytest.mark.parametrize(("sentence", "headers", "signed"), HEADERS, ids=[it[0] for it in HEADERS])
def test_a_body_is_signed_by(sentence, headers, signed):
    assert is_signed(BODY, SECRET, find_signatures(headers)) is signed


@given(body=st.binary(), secret=st.text(min_size=1), other=st.text(min_size=1), more=st.binary())
def test_only_this_body_and_this_secret_have_the_signature(body, secret, other, more):
    signature = hmac.new(secret.encode(), body, "sha256").hexdigest()
    assert is_signed(body, secret, [signature])
    assert is_signed(body + more, secret, [signature]) is (more == b"")
    # HMAC fills a key with zeros and shortens a long one: such keys are the same.
    if secret.rstrip("\0") != other.rstrip("\0") and max(map(len, (secret, other))) < 16:
        assert not is_signed(body, other, [signature])


def test_an_empty_secret_signs_no_hook():
    with pytest.raises(ValueError, match="empty"):
        is_signed(BODY, "", [hmac.new(b"", BODY, "sha256").hexdigest()])
