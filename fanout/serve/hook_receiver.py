"""Judgment of webhooks: the signature first, then the repository that the body names.

A hook only says where to look. What it tells beside the repository is not read, so one that is
replayed starts a pass that finds nothing new.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Self

import structlog

from fanout.errors import Denied, FanoutError, InvalidInput
from fanout.forge.signatures import find_signatures, is_signed
from fanout.plan.observation.observed_request import RepositoryName, locate_repository
from fanout.ports import Credentials
from fanout.telemetry.error_isolation import run_isolated
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.values import Value

MAX_BODY = 1024 * 1024  # bytes
MAX_NAME = 255  # characters of an owner or a repository, more than any forge allows

_MAX_REPORTED = 1_000  # problems that are not logged again; their texts vary
_log = structlog.get_logger()


class HookOutcome(StrEnum):
    """Outcome of a hook, as the metrics count it."""

    status: int  # of the response
    problem: str  # for the log; "": none, or that of the error

    def __new__(cls, value: str, status: int, problem: str = "") -> Self:
        """Build an outcome from its name, its status and its problem."""
        outcome = str.__new__(cls, value)
        outcome._value_, outcome.status, outcome.problem = value, status, problem
        return outcome

    QUEUED = "queued", 204
    UNUSED = "unused", 204  # no policy uses the repository
    # Signed, and names no repository.
    UNREADABLE = "unreadable", 204, "its body is not the JSON of an event of a repository"
    UNSIGNED = "unsigned", 401, "it has no signature; set the secret of the webhook on the host"
    WRONGLY_SIGNED = (
        "wrongly-signed",
        401,
        "it is signed with another secret than the one in webhookSecretRef",
    )
    UNKNOWN_HOST = "unknown-host", 404  # not in forges, or without webhookSecretRef
    TOO_LONG = "too-long", 413, "its body is longer than 1 MiB"
    COMPRESSED = "compressed", 415, "its body is compressed"
    CUT = "cut", 408  # the client left, or was too slow
    FAILED = "failed", 500  # an unusable secret, or an error of fanout's own


class Hook(Value):
    """Request of a forge as it arrived; nothing of it is trusted."""

    host: str  # as the path says it
    headers: Sequence[tuple[str, str]]  # names in lower case
    body: bytes | None  # None: longer than allowed


class HookReceiver:
    """Judge of hooks, which notifies the loop of repositories. Thread-safe but for its log."""

    def __init__(
        self,
        secret_names: Mapping[str, str],
        secrets: Callable[[str], Credentials],
        notify: Callable[[Callable[[str], bool]], bool],
        events: EventCounters,
    ) -> None:
        """Create a receiver for the hosts in `secret_names`, which has their secrets' names.

        `notify` gets a predicate of the repository's URLs, and returns whether any policy uses
        the repository. Raises Denied if a secret is unusable.
        """
        self._secret_names = secret_names
        self._secrets = secrets
        self._notify = notify
        self._events = events
        self._reported: set[tuple[str, str]] = set()
        for host in secret_names:
            self._secret(host)

    def receive(self, hook: Hook) -> HookOutcome:
        """Judge a hook, count it, and notify the loop if it may."""
        result = run_isolated(partial(self._judge, hook))
        outcome = HookOutcome.FAILED if isinstance(result, FanoutError) else result
        self.count(outcome)
        problem = str(result) if isinstance(result, FanoutError) else result.problem
        if hook.host in self._secret_names and problem:
            # Warned of once: anybody can send hooks, as many as they like.
            log = _log.debug if (hook.host, problem) in self._reported else _log.warning
            if len(self._reported) >= _MAX_REPORTED:
                self._reported.clear()
            self._reported.add((hook.host, problem))
            log("A hook is refused or of no use", host=hook.host, problem=problem)
        return outcome

    def count(self, outcome: HookOutcome) -> None:
        """Count a hook that was not judged, because it never arrived as a whole."""
        self._events.add(EventName.HOOK, outcome)

    def _judge(self, hook: Hook) -> HookOutcome:
        if hook.host not in self._secret_names:
            return HookOutcome.UNKNOWN_HOST
        # What would have to be unpacked may be a thousand times as long as it looks.
        if any(name == "content-encoding" and value != "identity" for name, value in hook.headers):
            return HookOutcome.COMPRESSED
        if hook.body is None:
            return HookOutcome.TOO_LONG
        signatures = find_signatures(hook.headers)
        if not signatures:
            return HookOutcome.UNSIGNED
        # Looked up for each hook, so that a rotated secret needs no restart.
        if not is_signed(hook.body, self._secret(hook.host), signatures):
            return HookOutcome.WRONGLY_SIGNED
        repository = parse_repository(hook.body)
        if repository is None:
            return HookOutcome.UNREADABLE
        is_used = self._notify(partial(is_repository_url, host=hook.host, repository=repository))
        return HookOutcome.QUEUED if is_used else HookOutcome.UNUSED

    def _secret(self, host: str) -> str:
        name = self._secret_names[host]
        secret = self._secrets(name).password
        if not secret:
            raise Denied(
                f"secret {name!r} has no text to sign with",
                reason="SecretUnusable",
                remedy=f"store the secret of the webhooks of {host} in it",
            )
        return secret


def parse_repository(body: bytes) -> RepositoryName | None:
    """Return the repository that a signed body names, or None if it names none."""
    try:
        event = json.loads(body)
    # RecursionError: brackets in brackets. Both encodings and numbers are a ValueError.
    except (ValueError, RecursionError):
        return None
    repository = event.get("repository") if isinstance(event, dict) else None
    full_name = repository.get("full_name") if isinstance(repository, dict) else None
    if not isinstance(full_name, str):
        return None
    owner, _, name = full_name.partition("/")
    usable = all(0 < len(it) <= MAX_NAME and "/" not in it for it in (owner, name))
    return RepositoryName(owner, name) if usable else None


def is_repository_url(url: str, host: str, repository: RepositoryName) -> bool:
    """Return whether a Git URL is that of a repository of a forge."""
    # Forges find a repository in any case of its letters. Most URLs are of others.
    if repository.name.casefold() not in url.casefold():
        return False
    try:
        url_host, name = locate_repository(url)
    except InvalidInput:  # a path, for one
        return False
    return (url_host, str(name).casefold()) == (host, str(repository).casefold())
