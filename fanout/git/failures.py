"""What git said, as one of the error families: who reads it must know what to do about it."""

import re

from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Unavailable
from fanout.git.credentials import Access
from fanout.values import frozen, replace

LONGEST = 600  # characters of a remote's own words in a sentence


class DamagedMirrorError(Unavailable):
    """A mirror that cannot be used; whoever holds its lock drops it and makes it again."""


@frozen
class _Rule:
    pattern: re.Pattern[str]
    family: type[FanoutError]
    reason: str
    problem: str
    remedy: str = ""


def _rule(
    pattern: str, family: type[FanoutError], reason: str, problem: str, remedy: str = ""
) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), family, reason, problem, remedy)


_RIGHTS = "check the secret of the Repository and what its owner may do there"

_MOVED = _rule(
    r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
    r"|failed to lock|atomic transaction fail|fetch first",
    Conflict,
    "RemoteMoved",
    "the remote moved before the push came",
    "nothing was changed; the next pass observes it again",
)

# One that is at work lets go of it in a moment. One that was killed never does.
_LOCKED = _rule(
    r"unable to create '([^']*\.lock)': file exists",
    Conflict,
    "RemoteLocked",
    "another process holds a ref of the remote, or was killed and left its lock",
    "nothing was changed, and the next pass tries again; if no git is at work there, remove the"
    " file",
)

# What a remote refuses by words of its own, seen in the status of a pushed ref and beside it.
_REFUSED = _rule(r"", Denied, "PushRefused", "the remote refused the push", _RIGHTS)
_REFUSALS = (
    # First, whatever the hook goes on to say.
    replace(_REFUSED, pattern=re.compile("hook declined")),
    _rule(
        r"exists; cannot create|directory not empty|funny refname",
        InvalidInput,
        "RefNameClash",
        "the remote cannot have this branch or tag: another ref is in the way",
        "rename or delete the ref in the way",
    ),
    _rule(
        r"no space left|disk quota|read-only file system|unpacker error|internal server error",
        Unavailable,
        "RemoteFailed",
        "the remote could not store what was pushed",
    ),
    _rule(
        r"permission denied|insufficient permission", Denied, "PushDenied", "the push was refused"
    ),
    _MOVED,
    _REFUSED,
)

_RULES = (
    _rule(
        r"no space left on device|disk quota exceeded|out of diskspace|write error",
        Unavailable,
        "DiskFull",
        "the disk of the mirrors is full",
        "make room in the directory of the mirrors",
    ),
    _rule(
        r"authentication failed|could not read (username|password)|permission denied"
        r"|returned error: 40[13]|host key verification failed|access denied|dubious ownership"
        r"|invalid credentials|terminal prompts disabled",
        Denied,
        "RemoteDenied",
        "the remote did not let git in",
        _RIGHTS,
    ),
    _rule(
        r"mismatched algorithms|hash algorithm|object.format",
        InvalidInput,
        "ObjectFormatUnsupported",
        "the repository uses SHA-256 object names, which fanout cannot write",
        "use a repository in Git's SHA-1 format",
    ),
    _rule(
        r"transport '.*' not allowed|unable to find remote helper",
        InvalidInput,
        "UrlRefused",
        "git has no permission to use this protocol",
    ),
    _rule(
        r"does not support --atomic",
        InvalidInput,
        "AtomicPushUnsupported",
        "the remote takes no atomic pushes",
        "move the repository to a server that does",
    ),
    _rule(
        r"couldn't find remote ref|not our ref|request for unadvertised object",
        Conflict,
        "RemoteMoved",
        "the remote moved while it was being read",
        "the next pass observes it again",
    ),
    _rule(
        r"does not appear to be a git repository|repository '.*' (does not exist|not found)"
        r"|returned error: 404|repository not found|no such file or directory",
        Unavailable,
        "RemoteNotFound",
        "no repository is there, or the secret may not see it",
        "check spec.url and secretRef of the Repository",
    ),
)

# Of a remote on our own disks it is not marked as its words, and reads as if the mirror were ill.
_BROKEN = _rule(
    r"possible repository corruption on the remote side",
    Unavailable,
    "RemoteFailed",
    "the remote does not give what it lists",
    "let its owner look after the repository (git fsck)",
)
_UNSOUND = _rule(
    "",
    InvalidInput,
    "RemoteObjectsRefused",
    "git's checks refuse an object of the remote",
    "repair the repository's history",
)
_DAMAGED = _rule("", DamagedMirrorError, "MirrorDamaged", "the mirror cannot be used")
_UNREACHABLE = _rule("", Unavailable, "RemoteUnavailable", "the remote could not be reached")

_FSCK = re.compile(r"fsck error|: (error|warning) in \w+ [0-9a-f]{40}", re.IGNORECASE)
_DAMAGE = re.compile(
    r"not a git repository: '|bad object|corrupt|unable to (read|find) [0-9a-f]|missing (blob|tree|"
    r"commit)|object file .* is empty|inflate|bad config|packfile .* (cannot|does not|is )|"
    r"not a valid (commit|object|tree)|could not (read|parse) [0-9a-f]{40}|loose object|"
    r"unknown index file|bad signature|does not point to a valid object|can't (load|find) tree|"
    r"unexpected line in .*packed-refs|malformed|broken ref|not found: [0-9a-f]{40}",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"^!\t[^\t]*\t(.*)$", re.MULTILINE)
_OF_ANOTHER_REF = re.compile(r"atomic (push|transaction) fail")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\x1b\[[0-9;]*m")


def translate(stdout: str, stderr: str, access: Access | None) -> FanoutError:
    """The error for a git process that failed; `access` is None when no remote took part."""
    words = _remote_words(stderr)
    local = "\n".join(line for line in stderr.splitlines() if not line.startswith("remote:"))
    rejected = _REJECTED.findall(stdout)
    if rejected:
        return _rejection(rejected, words, access)
    if _BROKEN.pattern.search(stderr):
        return _error(_BROKEN, words or _telling_line(local), access)
    for rule in _RULES:
        if rule.pattern.search(local):
            return _error(rule, words or _telling_line(local), access)
    if access is not None and _FSCK.search(local):
        return _error(_UNSOUND, _telling_line(local), access)
    if access is None or _DAMAGE.search(local):
        return _error(_DAMAGED, _telling_line(local), access)
    return _error(_UNREACHABLE, words or _telling_line(local), access)


def _rejection(rejected: list[str], words: str, access: Access | None) -> FanoutError:
    """A push of which nothing was taken. The client's own refusals are lost races."""
    by_remote = [summary for summary in rejected if summary.startswith("[remote rejected]")]
    if not by_remote:
        return _error(_MOVED, rejected[0], access)
    own = [summary for summary in by_remote if not _OF_ANOTHER_REF.search(summary)] or by_remote
    reasons = " ".join(sorted(set(own)))
    if locked := _LOCKED.pattern.search(f"{reasons}\n{words}"):
        return _error(_LOCKED, locked[1], access)
    rule = next(rule for rule in _REFUSALS if rule.pattern.search(f"{reasons}\n{words}"))
    summary = own[0].removeprefix("[remote rejected] ")
    return _error(rule, f"{summary} {words}", access)


def _error(rule: _Rule, said: str, access: Access | None) -> FanoutError:
    said = _CONTROL.sub(" ", said).strip()
    # Before it is cut: half a secret is recognised by nobody.
    said = (access.redact(said) if access else said)[:LONGEST]
    return rule.family(
        f"{rule.problem}: {said}" if said else rule.problem,
        reason=rule.reason,
        remedy=rule.remedy,
        where=access.address.where if access else None,
    )


def _remote_words(stderr: str) -> str:
    """What the remote itself said, in one line."""
    lines = (
        line.removeprefix("remote:").strip()
        for line in stderr.splitlines()
        if line.startswith("remote:")
    )
    return " / ".join(line for line in lines if line)


def _telling_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (told or lines or ["git said nothing"])[0]
