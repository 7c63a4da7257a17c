"""Rules that translate what git or a remote says into an error with a problem and a remedy."""

import re

from fanout.errors import FanoutError
from fanout.git.remote_access import RemoteAccess
from fanout.values import Value

MAX_QUOTE = 600  # characters of a remote's message in an error
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\x1b\[[0-9;]*m")


class ErrorRule(Value):
    """Pattern in a message, and the error that it means."""

    pattern: str  # the case of letters is ignored
    family: type[FanoutError]
    reason: str
    problem: str
    remedy: str = ""
    quotes: bool = True  # False: git's message names internal helpers only

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a message."""
        return re.search(self.pattern, text, re.IGNORECASE)


def build_error(
    rule: ErrorRule,
    quote: str,
    access: RemoteAccess | None,
    refs: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
) -> FanoutError:
    """Build the error of a rule, with a quote of the message that it matches."""
    # Redacted before it is cut: part of a secret would not be recognized.
    quote = _clean(quote, access)[:MAX_QUOTE] if rule.quotes else ""
    return rule.family(
        f"{rule.problem}: {quote}" if quote else rule.problem,
        reason=rule.reason,
        remedy=rule.remedy,
        where=access.address.where if access else None,
        refs=refs,
        words=tuple(_clean(it, access) for it in words) if rule.quotes else (),
    )


def _clean(quote: str, access: RemoteAccess | None) -> str:
    """Return a quoted text without control characters and secrets."""
    text = _CONTROL.sub(" ", quote).strip()
    return access.redact(text) if access else text
