"""Judgment of webhooks: the signature first, then the repository that the body names.

A hook only says where to look. What it tells beside the repository is not read, so one that is
replayed starts a pass that finds nothing new.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Self

import structlog

from fanout.api.fanout_configuration import ForgeProgram
from fanout.errors import Denied, FanoutError, InvalidInput
from fanout.forge.hook_events import find_event, needs_repository, read_repository
from fanout.forge.signatures import SignatureState, check_signature, has_signature
from fanout.plan.observation.observed_request import RepositoryName, locate_repository
from fanout.ports import Credentials
from fanout.telemetry.error_isolation import run_isolated
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.values import Value

MAX_BODY = 1024 * 1024  # bytes

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
    OUTDATED = (
        "outdated",
        401,
        "it was signed more than five minutes ago; check the clocks of both machines",
    )
    UNKNOWN_HOST = "unknown-host", 404  # not in forges, or without webhookSecretRef
    TOO_LONG = "too-long", 413, "its body is longer than 1 MiB"
    COMPRESSED = "compressed", 415, "its body is compressed"
    CUT = "cut", 408  # the client left, or was too slow
    FAILED = "failed", 500  # an unusable secret, or an error of fanout's own


_OUTCOMES = {
    SignatureState.MISSING: HookOutcome.UNSIGNED,
    SignatureState.WRONG: HookOutcome.WRONGLY_SIGNED,
    SignatureState.OUTDATED: HookOutcome.OUTDATED,
}


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
        programs: Mapping[str, ForgeProgram] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Create a receiver for the hosts in `secret_names`, which has their secrets' names.

        `notify` gets a predicate of the repository's URLs, and returns whether any policy uses
        the repository. `programs` has what each host runs; default: Gitea. Raises Denied if a
        secret is unusable.
        """
        self._secret_names = secret_names
        self._secrets = secrets
        self._notify = notify
        self._events = events
        self._programs = programs or {}
        self._clock = clock
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
        program = self._programs.get(hook.host, ForgeProgram.GITEA)
        if not has_signature(program, hook.headers):
            return HookOutcome.UNSIGNED
        # Looked up for each hook, so that a rotated secret needs no restart.
        secret = self._secret(hook.host)
        state = check_signature(program, hook.headers, hook.body, secret, self._clock())
        if state is not SignatureState.VALID:
            return _OUTCOMES[state]
        repository = parse_repository(hook.body, program)
        if repository is None:
            event = find_event(program, hook.headers)
            return (
                HookOutcome.UNREADABLE if needs_repository(program, event) else HookOutcome.UNUSED
            )
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
        try:
            # Of nothing: only the secret matters.
            program = self._programs.get(host, ForgeProgram.GITEA)
            check_signature(program, [], b"", secret, self._clock())
        except ValueError:
            raise Denied(
                f"secret {name!r} begins like a signing token and is none",
                reason="SecretUnusable",
                remedy=f"store the signing token of the webhooks of {host} in it",
            ) from None
        return secret


def parse_repository(
    body: bytes, program: ForgeProgram = ForgeProgram.GITEA
) -> RepositoryName | None:
    """Return the repository that a signed body names, or None if it names none."""
    return read_repository(program, body)


def is_repository_url(url: str, host: str, repository: RepositoryName) -> bool:
    """Return whether a Git URL is that of a repository of a forge."""
    # Forges find a repository in any case of its letters. Most URLs are of others.
    if repository.name.casefold() not in url.casefold():
        return False
    try:
        url_host, name = locate_repository(url)
    except InvalidInput:  # a path, for one
        return False
    # A URL of a group within groups is located by the last of them.
    path, located = str(repository).casefold(), str(name).casefold()
    return url_host == host and (path == located or path.endswith(f"/{located}"))
