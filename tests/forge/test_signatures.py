"""Signatures of hooks, against the known answers of RFC 4231, GitHub and Standard Webhooks."""

import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.fanout_configuration import ForgeProgram
from fanout.forge.signatures import (
    SignatureState,
    check_signature,
    find_signatures,
    has_signature,
    is_signed,
)

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


# ---- by program --------------------------------------------------------------------------------

GITEA, GITHUB, GITLAB = ForgeProgram.GITEA, ForgeProgram.GITHUB, ForgeProgram.GITLAB
VALID, MISSING, WRONG = SignatureState.VALID, SignatureState.MISSING, SignatureState.WRONG
# The example of GitHub's page about validating webhooks.
HELLO, EVERYBODY = b"Hello, World!", "It's a Secret to Everybody"
HUB = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
# The example of the specification of Standard Webhooks.
PAYLOAD = b'{"test": 2432232314}'
SIGNING_TOKEN = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
SENT = datetime.fromtimestamp(1614265330, UTC)
ANOTHER = f"v1,{'A' * 43}="
HUB_HEADER = {"X-Hub-Signature-256": f"sha256={HUB}"}
TWO_SIGNATURES = {"webhook-signature": f"{ANOTHER} {STANDARD['webhook-signature']}"}
CHECKS = [
    ("GitHub's own", GITHUB, HELLO, EVERYBODY, HUB_HEADER, VALID),
    ("GitHub's of another secret", GITHUB, HELLO, "other", HUB_HEADER, WRONG),
    ("GitHub's of another body", GITHUB, b"Hello", EVERYBODY, HUB_HEADER, WRONG),
    ("SHA-1 alone", GITHUB, HELLO, EVERYBODY, {"x-hub-signature": "sha1=0"}, MISSING),
    ("Gitea's on GitHub", GITHUB, HELLO, EVERYBODY, {"x-gitea-signature": HUB}, MISSING),
    ("GitHub's on Gitea", GITEA, HELLO, EVERYBODY, HUB_HEADER, VALID),
    ("GitLab's token", GITLAB, b"{}", "plain", {"X-Gitlab-Token": "plain"}, VALID),
    ("another token", GITLAB, b"{}", "plain", {"x-gitlab-token": "plain2"}, WRONG),
    ("a token outside ASCII", GITLAB, b"{}", "plain", {"x-gitlab-token": "pl\u00e4in"}, WRONG),
    ("an empty token", GITLAB, b"{}", "", {"x-gitlab-token": ""}, WRONG),
    ("no token", GITLAB, b"{}", "plain", {}, MISSING),
    ("GitHub's on GitLab", GITLAB, HELLO, EVERYBODY, HUB_HEADER, MISSING),
    ("GitLab's signature", GITLAB, PAYLOAD, SIGNING_TOKEN, STANDARD, VALID),
    ("one of two", GITLAB, PAYLOAD, SIGNING_TOKEN, {**STANDARD, **TWO_SIGNATURES}, VALID),
    ("another body", GITLAB, PAYLOAD + b" ", SIGNING_TOKEN, STANDARD, WRONG),
    ("another id", GITLAB, PAYLOAD, SIGNING_TOKEN, {**STANDARD, "webhook-id": "msg_2"}, WRONG),
    (
        "another instant",
        GITLAB,
        PAYLOAD,
        SIGNING_TOKEN,
        {**STANDARD, "webhook-timestamp": "1614265331"},
        WRONG,
    ),
    (
        "the signing token sent as a token",
        GITLAB,
        PAYLOAD,
        SIGNING_TOKEN,
        {"x-gitlab-token": SIGNING_TOKEN},
        MISSING,
    ),
    ("a signature where a token is expected", GITLAB, PAYLOAD, "plain", STANDARD, MISSING),
]


@pytest.mark.parametrize(
    ("sentence", "program", "body", "secret", "headers", "state"),
    CHECKS,
    ids=[it[0] for it in CHECKS],
)
def test_a_hook_of_a_program(sentence, program, body, secret, headers, state):
    assert check_signature(program, list(headers.items()), body, secret, SENT) is state


@pytest.mark.parametrize(
    ("seconds", "state"),
    [(299, VALID), (-299, VALID), (301, SignatureState.OUTDATED), (-301, SignatureState.OUTDATED)],
)
def test_a_signature_of_gitlab_counts_for_five_minutes(seconds, state):
    now = datetime.fromtimestamp(SENT.timestamp() + seconds, UTC)
    headers = list(STANDARD.items())
    assert check_signature(GITLAB, headers, PAYLOAD, SIGNING_TOKEN, now) is state
    assert check_signature(GITLAB, headers, b"", SIGNING_TOKEN, now) is WRONG


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!", "whsec_ab"])
def test_a_signing_token_that_is_none_signs_nothing(secret):
    with pytest.raises(ValueError):
        check_signature(GITLAB, list(STANDARD.items()), PAYLOAD, secret, SENT)


def test_a_hook_without_any_signature_needs_no_secret():
    headers = [*HUB_HEADER.items()]
    assert [has_signature(it, headers) for it in (GITEA, GITHUB, GITLAB)] == [True, True, False]
    assert has_signature(GITLAB, [("X-Gitlab-Token", "x")])
    assert has_signature(GITLAB, list(STANDARD.items()))
    assert not has_signature(GITHUB, [("x-gitea-signature", HUB)])
