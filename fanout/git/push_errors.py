"""Rejections of pushes: refusals of the remote, and races that the push lost.

The first matching rule wins, so their order matters.
"""

import re

from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Unavailable
from fanout.git.error_rules import MAX_QUOTE, ErrorRule, build_error
from fanout.git.remote_access import RemoteAccess
from fanout.values import replace

CHANGED_REMEDY = "nothing was changed; the next pass reads the repository again"
_MOVED = ErrorRule(
    r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
    r"|failed to lock|atomic transaction fail|fetch first",
    Conflict,
    "RemoteMoved",
    "the remote changed before the push",
    CHANGED_REMEDY,
)
# A lock file. A running git removes it soon; a killed one never does.
_LOCKED = ErrorRule(
    r"unable to create '([^']*\.lock)': file exists",
    Conflict,
    "RemoteLocked",
    "another git process locks a ref of the remote, or was killed and left its lock file",
    "nothing was changed, and the next pass tries again; if no git process runs on the server,"
    " remove the lock file",
)
# Refusals with the remote's own message, in the status of a pushed ref or on stderr.
_PUSH_REFUSED = ErrorRule(
    r"",
    Denied,
    "PushRefused",
    "the remote refused the push",
    "let the administrators of the server change the rule, or allow the account of fanout what it"
    " forbids",
)
_PUSH_RULES = (
    # First: the hook's message may match other rules.
    replace(_PUSH_REFUSED, pattern="hook declined"),
    ErrorRule(
        r"deletion prohibited|denying ref deletion",
        Denied,
        "DeletionRefused",
        "the remote denies the deletion of draft branches",
        "allow it on the server (`git config receive.denyDeletes false`), or delete the branches by"
        " hand; nothing else is blocked",
        quotes=False,
    ),
    ErrorRule(
        r"exists; cannot create|directory not empty|funny refname",
        InvalidInput,
        "RefNameClash",
        "the remote has a ref that prevents this branch or tag",
        "rename or delete that ref",
    ),
    ErrorRule(
        r"no space left|disk quota|read-only file system|unpacker error|internal server error",
        Unavailable,
        "RemoteFailed",
        "the remote could not store the push",
    ),
    ErrorRule(
        r"permission denied|insufficient permission",
        Denied,
        "PushDenied",
        "the remote denied the push",
    ),
    _MOVED,
    _PUSH_REFUSED,
)
# Ref and summary of each ref that was not pushed.
REJECTED = re.compile(r"^!\t[^:\t]*:?([^\t]*)\t(.*)$", re.MULTILINE)
_CAUSED_BY_OTHER_REF = re.compile(r"atomic (push|transaction) fail")


def build_rejection(
    rejected: list[tuple[str, str]], remote_lines: list[str], access: RemoteAccess | None
) -> FanoutError:
    """Build the error for a rejected push; refusals by the client itself are lost races."""
    by_remote = [it for it in rejected if it[1].startswith("[remote rejected]")]
    if not by_remote:
        return build_error(_MOVED, rejected[0][1], access)
    # In an atomic push one rejected ref makes the remote reject all others for that reason
    # alone; only the first cause is actionable.
    own = [it for it in by_remote if not _CAUSED_BY_OTHER_REF.search(it[1])] or by_remote
    own_summaries = [summary for _, summary in own]
    reasons, remote_message = " ".join(sorted(set(own_summaries))), " / ".join(remote_lines)
    if locked := _LOCKED.search(f"{reasons}\n{remote_message}"):
        return build_error(_LOCKED, locked[1], access)
    rule = next(rule for rule in _PUSH_RULES if rule.search(f"{reasons}\n{remote_message}"))
    summary = own_summaries[0].removeprefix("[remote rejected] ")
    refs = tuple(ref for ref, _ in own)
    # More lines than those that are quoted cannot be in the quote.
    words = (summary, *remote_lines)[:MAX_QUOTE]
    return build_error(rule, f"{summary} {remote_message}", access, refs, words)
