"""Judgment of hooks: what is read of them before and after the signature."""

import hmac
import json
import logging
from base64 import b64encode
from datetime import UTC, datetime

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.fanout_configuration import ForgeProgram
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


# ---- other programs ----------------------------------------------------------------------------


def receiver_of(program, urls, secret=SECRET):
    """A receiver of one host that runs this program; its clock stands still."""
    return HookReceiver(
        {HOST: "hooks"},
        Secrets(hooks=secret),
        lambda is_repository: any(map(is_repository, urls)),
        EventCounters(),
        {HOST: program},
        lambda: datetime(2026, 12, 1, tzinfo=UTC),
    )


def signed_as_github(event_name, body):
    signature = hmac.new(SECRET.encode(), body, "sha256").hexdigest()
    headers = [("x-hub-signature-256", f"sha256={signature}"), ("x-github-event", event_name)]
    return Hook(HOST, headers, body)


@pytest.mark.parametrize(
    ("event_name", "body", "outcome"),
    [
        ("pull_request", event("Platform/edge"), HookOutcome.QUEUED),
        ("ping", event("Platform/edge"), HookOutcome.QUEUED),
        ("ping", b'{"hook": {"type": "Organization"}}', HookOutcome.UNUSED),
        ("installation", b'{"action": "suspend"}', HookOutcome.UNUSED),
        ("pull_request", b"{}", HookOutcome.UNREADABLE),
    ],
)
def test_a_hook_of_github(event_name, body, outcome):
    judge = receiver_of(ForgeProgram.GITHUB, URLS)
    assert judge.receive(signed_as_github(event_name, body)) == outcome


PROJECT = json.dumps({"project": {"path_with_namespace": "group/sub/site"}}).encode()


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("https://git.example.com/group/sub/site.git", HookOutcome.QUEUED),
        ("git@git.example.com:Group/Sub/Site.git", HookOutcome.QUEUED),
        ("https://git.example.com/group/other/site.git", HookOutcome.UNUSED),
        ("https://git.example.com/group/site.git", HookOutcome.UNUSED),
    ],
)
def test_a_hook_of_gitlab_names_a_project_in_groups(url, outcome):
    hook = Hook(HOST, [("x-gitlab-token", SECRET)], PROJECT)
    assert receiver_of(ForgeProgram.GITLAB, [url]).receive(hook) == outcome
    wrong = Hook(HOST, [("x-gitlab-token", "other")], PROJECT)
    assert receiver_of(ForgeProgram.GITLAB, [url]).receive(wrong) == HookOutcome.WRONGLY_SIGNED


def test_an_old_hook_of_gitlab_is_refused():
    key = b64encode(b"key of the webhook").decode()
    judge = receiver_of(ForgeProgram.GITLAB, URLS, f"whsec_{key}")
    instant = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
    outcomes = []
    for sent in (instant, instant - 400):
        text = f"id.{sent}.".encode() + PROJECT
        digest = b64encode(hmac.digest(b"key of the webhook", text, "sha256")).decode()
        headers = [
            ("webhook-id", "id"),
            ("webhook-timestamp", str(sent)),
            ("webhook-signature", f"v1,{digest}"),
        ]
        outcomes.append(judge.receive(Hook(HOST, headers, PROJECT)))
    assert outcomes == [HookOutcome.UNUSED, HookOutcome.OUTDATED]
    assert HookOutcome.OUTDATED.status == 401


def test_a_signing_token_that_is_none_is_refused_at_the_start():
    with pytest.raises(Denied, match="'hooks' begins like a signing token and is none"):
        receiver_of(ForgeProgram.GITLAB, URLS, "whsec_!")
