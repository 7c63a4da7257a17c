"""Limits as the answers of hosts tell them.

Hosts say how many calls they still take before an instant, and refuse those beyond: with 429, or
GitHub with 403, which is also its answer for a missing permission. Its secondary limits are not
announced, and may come without Retry-After.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from fanout.api.durations import parse_retry_after
from fanout.plan.pull_requests.call_limits import MINUTE
from fanout.values import Value, replace

_MAX_WAIT = 86400.0  # seconds
_REMAINING = ("x-ratelimit-remaining", "ratelimit-remaining")
_RESET = ("x-ratelimit-reset", "ratelimit-reset")
_POOL = "x-ratelimit-resource"
# Of a 403 for a missing permission, besides its words.
_PERMISSIONS = "x-accepted-github-permissions"
_WORDS = ("rate limit", "abuse detection")
_EARLIEST_INSTANT = 1e9  # seconds; a smaller number is a duration


class LimitRefusal(StrEnum):
    """Limit by which a host did not carry a call out."""

    POOL = "pool"  # all calls of a period are used up; calls of other pools are not concerned
    PACE = "pace"  # too many at a time, or too much content


class PoolCount(Value):
    """Calls of a pool that a host still takes in a period."""

    remaining: int
    reset: float  # end of the period by the host's clock, in seconds since 1970
    seconds: float  # from the answer until then


class LimitReport(Value):
    """Statement of an answer about limits. Seconds are from the answer on."""

    pool: str = ""  # that the call was counted in; "": not named
    count: PoolCount | None = None
    refusal: LimitRefusal | None = None
    wait_seconds: float | None = None  # after a refusal, or while the host is down


def read_limits(
    status: int, headers: Mapping[str, str], words: str, instant: datetime
) -> LimitReport:
    """Return what an answer says about limits.

    `headers`: names in lower case. `words`: the message in the body. `instant`: of the answer, by
    the host's clock.
    """
    remaining, reset = _read_number(headers, _REMAINING), _read_number(headers, _RESET)
    count = None
    if remaining is not None and reset is not None:
        now = instant.timestamp()
        reset += now if reset < _EARLIEST_INSTANT else 0.0
        # One more second: instants are whole ones.
        seconds = min(max(reset - now + 1, 0.0), _MAX_WAIT)
        count = PoolCount(int(remaining), reset, seconds)
    report = LimitReport(headers.get(_POOL, ""), count)
    retry_after = headers.get("retry-after", "")
    wait = parse_retry_after(retry_after, instant, MINUTE, _MAX_WAIT) if retry_after else None
    if status == 503:
        return replace(report, wait_seconds=wait)
    is_used_up = count is not None and not count.remaining and _PERMISSIONS not in headers
    is_limit = status == 429 or (
        status == 403
        and (wait is not None or is_used_up or any(it in words.lower() for it in _WORDS))
    )
    if not is_limit:
        return report
    if count is not None and is_used_up and wait is None:
        return replace(report, refusal=LimitRefusal.POOL, wait_seconds=count.seconds)
    return replace(report, refusal=LimitRefusal.PACE, wait_seconds=wait)


def _read_number(headers: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    """Return the first of the headers that is a number."""
    for name in names:
        text = headers.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 16:
            return float(text)
    return None
