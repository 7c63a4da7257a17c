"""Judgment of hooks: what is read of them before and after the signature."""

import hmac
import json
import logging

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from fanout.errors import Denied
from fanout.ports import Credentials
from fanout.serve import hook_receiver
from fanout.serve.hook_receiver import Hook, HookOutcome, HookReceiver, parse_repository
from fanout.telemetry.metrics import EventCounters, EventName

HOST, SECRET = "git.example.com", "canary-of-the-webhook"
URLS = ["https://git.example.com/Platform/edge.git", "/srv/git/edge.git"]


class Secrets:
    """Secrets by name, which can be changed."""

    def __init__(self, **texts):
        self.texts = texts
        self.problem = ""  # why a secret that is missing cannot be read

    def __call__(self, name):
        if name not in self.texts:
            problem = self.problem or f"secret {name!r} was not found"
            raise Denied(problem, reason="SecretUnusable")
        return Credentials("git", self.texts[name])


def receiver(secrets=None, events=None):
    """A receiver of one host, whose loop has policies that use URLS."""
    return HookReceiver(
        {HOST: "hooks"},
        secrets or Secrets(hooks=SECRET),
        lambda is_repository: any(map(is_repository, URLS)),
        events or EventCounters(),
    )


def signed(body, secret=SECRET, host=HOST, **headers):
    signature = hmac.new(secret.encode(), body, "sha256").hexdigest()
    return Hook(host, [("x-gitea-signature", signature), *headers.items()], body)


def event(full_name):
    return json.dumps({"repository": {"full_name": full_name}}).encode()


BODIES = [
    ("an event of a repository", event("Platform/edge"), "Platform/edge"),
    ("an event of nothing", b"{}", None),
    ("no JSON", b"payload=%7B%7D", None),
    ("nothing", b"", None),
    ("bytes that are no text", b'{"repository": "\xff"}', None),
    ("a list", b"[]", None),
    ("a text as repository", b'{"repository": "Platform/edge"}', None),
    ("a number as name", b'{"repository": {"full_name": 1}}', None),
    ("a name without an owner", event("edge"), None),
    ("an empty name", event("Platform/"), None),
    ("a path", event("Platform/../edge"), None),
    ("a name that is too long", event("Platform/" + "e" * 256), None),
    ("lists in lists", b"[" * 500_000, None),
    ("objects in objects", b'{"repository":' * 70_000, None),
    ("a number that is too long", b'{"repository": ' + b"1" * 100_000 + b"}", None),
]


@pytest.mark.parametrize(("sentence", "body", "name"), BODIES, ids=[row[0] for row in BODIES])
def test_the_repository_of(sentence, body, name):
    repository = parse_repository(body)
    assert (repository and str(repository)) == name


URL_CASES = [
    ("https://git.example.com/Platform/edge.git", HookOutcome.QUEUED),
    ("https://git.example.com/platform/EDGE", HookOutcome.QUEUED),
    ("ssh://git@git.example.com:2222/Platform/edge.git", HookOutcome.QUEUED),
    ("git@git.example.com:Platform/edge.git", HookOutcome.QUEUED),
    ("https://git.example.com:3000/Platform/edge.git", HookOutcome.UNUSED),
    ("https://other.example.com/Platform/edge.git", HookOutcome.UNUSED),
    ("https://git.example.com/platform/edge-2.git", HookOutcome.UNUSED),
    ("/srv/git.example.com/Platform/edge.git", HookOutcome.UNUSED),
]


@pytest.mark.parametrize(("url", "outcome"), URL_CASES)
def test_a_repository_is_known_by_its_url(url, outcome, monkeypatch):
    monkeypatch.setitem(globals(), "URLS", [url])
    assert receiver().receive(signed(event("Platform/edge"))) == outcome


@given(
    body=st.one_of(st.binary(), st.just(event("Platform/edge")), st.just(b"[" * 10_000)),
    signatures=st.lists(st.text("0123456789abcdef", min_size=64, max_size=64), max_size=3),
)
def test_a_hook_is_not_parsed_before_its_signature_is_verified(body, signatures):
    def refuse(body):
        raise AssertionError("parsed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hook_receiver, "parse_repository", refuse)
        headers = [("x-gitea-signature", it) for it in signatures]
        outcome = receiver().receive(Hook(HOST, headers, body))
        expected = HookOutcome.WRONGLY_SIGNED if signatures else HookOutcome.UNSIGNED
        assert outcome == expected
        # The test would pass as well if nothing were ever parsed.
        assert receiver().receive(signed(body)) == HookOutcome.FAILED


def test_a_rotated_secret_counts_from_the_next_hook_on():
    secrets = Secrets(hooks="first")
    judge, body = receiver(secrets), event("Platform/edge")
    assert judge.receive(signed(body, "first")) == HookOutcome.QUEUED
    secrets.texts["hooks"] = "second"
    assert judge.receive(signed(body, "first")) == HookOutcome.WRONGLY_SIGNED
    assert judge.receive(signed(body, "second")) == HookOutcome.QUEUED
    del secrets.texts["hooks"]
    assert judge.receive(signed(body, "second")) == HookOutcome.FAILED


@pytest.mark.parametrize("secrets", [Secrets(), Secrets(hooks="")], ids=["missing", "empty"])
def test_a_secret_that_cannot_sign_is_refused_at_the_start(secrets):
    with pytest.raises(Denied, match="'hooks'"):
        receiver(secrets)


def test_a_receiver_remembers_a_bounded_number_of_problems(capsys):
    """Each problem is another text, as of a store of secrets that names its requests."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    secrets = Secrets(hooks=SECRET)
    judge, hook = receiver(secrets), signed(event("Platform/edge"))
    for number in [*range(3_000), 2_999, 0]:
        secrets.texts, secrets.problem = {}, f"request {number} failed"
        judge.receive(hook)
    log = capsys.readouterr().out
    assert log.count("A hook is refused") == 3_001  # the first one was forgotten by the end
    structlog.reset_defaults()


def test_outcomes_are_counted_and_each_problem_is_logged_once(capsys):
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    events = EventCounters()
    judge, body = receiver(events=events), event("Platform/edge")
    for _ in range(3):
        judge.receive(signed(body))
        judge.receive(signed(body, "wrong"))
        judge.receive(Hook(HOST, [], body))
        judge.receive(Hook("\nforged line", [], body))
    assert events.read(EventName.HOOK) == {
        ("queued",): 3,
        ("wrongly-signed",): 3,
        ("unsigned",): 3,
        ("unknown-host",): 3,
    }
    log = capsys.readouterr().out
    assert log.count("A hook is refused") == 2
    assert "forged line" not in log
    assert SECRET not in log
    assert SECRET not in repr(judge)
    structlog.reset_defaults()
