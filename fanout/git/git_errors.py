"""Translation of git's failures into errors with a problem and a remedy.

Rules map patterns in what git or a remote says to an error family and a reason. The first matching
rule wins, so their order matters.
"""

import re

from fanout.errors import Conflict, Denied, FanoutError, InvalidInput, Unavailable
from fanout.git.remote_access import RemoteAccess
from fanout.values import Value, replace

_MAX_QUOTE = 600  # characters of a remote's message in an error
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\x1b\[[0-9;]*m")


class _ErrorRule(Value):
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
        self,
        quote: str,
        access: RemoteAccess | None,
        refs: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
    ) -> FanoutError:
        """Build the error, with a quote of the message that the pattern matches."""
        # Redacted before it is cut: part of a secret would not be recognized.
        quote = _clean(quote, access)[:_MAX_QUOTE] if self.quotes else ""
        return self.family(
            f"{self.problem}: {quote}" if quote else self.problem,
            reason=self.reason,
            remedy=self.remedy,
            where=access.address.where if access else None,
            refs=refs,
            words=tuple(_clean(it, access) for it in words) if self.quotes else (),
        )


def _clean(quote: str, access: RemoteAccess | None) -> str:
    """Return a quoted text without control characters and secrets."""
    text = _CONTROL.sub(" ", quote).strip()
    return access.redact(text) if access else text


DISK_FULL = "the disk of the mirrors is full"
MIRRORS_REMEDY = "check the permissions and the free space of the directory of the mirrors"
FORMAT_UNSUPPORTED = "the repository uses SHA-256 objects, which fanout does not support"
FORMAT_REMEDY = "use a repository in the SHA-1 format"
_READ_AGAIN = "the next pass reads the repository again"


class DamagedMirrorError(Unavailable):
    """A mirror cannot be used; the holder of its lock deletes it and creates it again."""


def missing_object_error(oid: str) -> DamagedMirrorError:
    """Build the error for an object that the mirror lacks."""
    problem = f"object {oid} is not in the mirror"
    return DamagedMirrorError(problem, reason="ObjectMissing", remedy=_READ_AGAIN)


def _denied(pattern: str, problem: str, remedy: str) -> _ErrorRule:
    return _ErrorRule(pattern, Denied, "RemoteDenied", problem, remedy, quotes=False)


def _unavailable(pattern: str, problem: str, remedy: str, *, quotes: bool = True) -> _ErrorRule:
    return _ErrorRule(pattern, Unavailable, "RemoteUnavailable", problem, remedy, quotes)


_CHECK_PERMISSIONS = "check the secret of the Repository and the permissions of its account"
_NAME_CREDENTIALS = "create a secret with {} and name it in spec.secretRef of the Repository"
_HOST_KEY = (
    "verify the host key with the owner of the server, then add it to `known_hosts` in the"
    " directory of the secret in spec.secretRef; without a secret, to ~/.ssh/known_hosts of the"
    " user who runs fanout"
)
_PROMPT_DISABLED = r"could not read (username|password)|terminal prompts disabled|askpass response"

# Access without a secretRef.
_RULES_WITHOUT_SECRET = (
    _denied(
        rf"{_PROMPT_DISABLED}|authentication failed|returned error: 401|invalid credentials",
        "the server requires a user name and password (HTTP 401)",
        _NAME_CREDENTIALS.format("a token or user:password"),
    ),
    _denied(
        r"returned error: 403",
        "the server refuses access (HTTP 403)",
        _NAME_CREDENTIALS.format("a token or user:password"),
    ),
    _denied(
        r"permission denied \([\w,-]*publickey|too many authentication failures",
        "the SSH server accepts none of the available keys",
        _NAME_CREDENTIALS.format("a private key"),
    ),
)

# Authentication and connection failures of access with a secretRef.
_CONNECTION_RULES = (
    _denied(
        r"remote host identification has changed",
        "the host key of the SSH server differs from the known one",
        _HOST_KEY,
    ),
    _denied(
        r"host key verification failed|host key is known for",
        "the host key of the SSH server is unknown",
        _HOST_KEY,
    ),
    _denied(
        r"load key \"",
        "SSH cannot read the private key of the secret",
        "use a key in the OpenSSH format and without a passphrase in the secret in spec.secretRef",
    ),
    _denied(
        r"permission denied \([\w,-]*publickey|too many authentication failures",
        "the SSH server does not accept the private key of the secret",
        "add its public key to the server, or correct the secret in spec.secretRef",
    ),
    _denied(
        r"authentication failed|returned error: 401|invalid credentials",
        "the server does not accept the user name and password of the secret (HTTP 401)",
        "correct the secret in spec.secretRef; its token may have expired",
    ),
    _denied(
        _PROMPT_DISABLED,
        "the server requires a user name and password, and got none from the secret (HTTP 401)",
        "write a token or user:password to the secret in spec.secretRef; if the server redirects,"
        " set spec.url to the final address, because other hosts get no secret",
    ),
    _denied(
        r"returned error: 403",
        "the server refuses access (HTTP 403)",
        "give the account of the secret in spec.secretRef permission to read and push",
    ),
    _unavailable(
        r"could not resolve (host|proxy)|name or service not known|failure in name resolution",
        "the host name cannot be resolved (DNS)",
        "correct spec.url of the Repository, or DNS on this machine",
        quotes=False,
    ),
    _unavailable(
        r"ssl certificate|certificate (verif|has expired|is not trusted|problem)|self.signed cert"
        r"|no alternative certificate|gnutls_|ssl routines|ssl_(connect|error)|schannel",
        "the TLS certificate of the server cannot be verified",
        "add the certificate of its authority to `ca.crt` of the secret in spec.secretRef, or renew"
        " the certificate of the server",
    ),
    _unavailable(
        r"connection (refused|timed out|reset)|operation timed out|could(n't| not) connect"
        r"|failed to connect|no route to host|network is unreachable",
        "no server responds at this address",
        "check spec.url of the Repository, and that this machine can reach the server",
    ),
)

_RULES = (
    _ErrorRule(
        r"no space left on device|disk quota exceeded|out of diskspace|write error",
        Unavailable,
        "DiskFull",
        DISK_FULL,
        MIRRORS_REMEDY,
    ),
    *_CONNECTION_RULES,
    _ErrorRule(
        r"permission denied|access denied|dubious ownership",
        Denied,
        "RemoteDenied",
        "the remote denied access",
        _CHECK_PERMISSIONS,
    ),
    _ErrorRule(
        r"mismatched algorithms|hash algorithm|object.format",
        InvalidInput,
        "ObjectFormatUnsupported",
        FORMAT_UNSUPPORTED,
        FORMAT_REMEDY,
    ),
    _ErrorRule(
        r"transport '.*' not allowed|unable to find remote helper",
        InvalidInput,
        "UrlRefused",
        "git is not allowed to use this protocol",
    ),
    _ErrorRule(
        r"does not support --atomic",
        InvalidInput,
        "AtomicPushUnsupported",
        "the remote does not support atomic pushes",
        "move the repository to a server that does",
    ),
    _ErrorRule(
        r"couldn't find remote ref|not our ref|request for unadvertised object",
        Conflict,
        "RemoteMoved",
        "the remote changed during the fetch, or lacks an object that one of its refs names",
        f"{_READ_AGAIN}; if it stays so, run `git fsck` there and repair the ref",
    ),
    _ErrorRule(
        r"does not appear to be a git repository|repository '.*' (does not exist|not found)"
        r"|returned error: 404|repository not found|no such file or directory",
        Unavailable,
        "RemoteNotFound",
        "the repository does not exist, or the secret cannot see it",
        "check spec.url and secretRef of the Repository",
    ),
)

# A local remote's messages lack the `remote:` prefix and look like those of a damaged mirror.
_BROKEN = _ErrorRule(
    r"possible repository corruption on the remote side",
    Unavailable,
    "RemoteFailed",
    "the remote does not send the objects that it lists",
    "let its owner check the repository with `git fsck`",
)
_FSCK_REFUSED = _ErrorRule(
    "",
    InvalidInput,
    "RemoteObjectsRefused",
    "Git refuses an object of the remote",
    "repair the history of the repository, or name the object in spec.allowedObjects of the"
    " Repository",
)
_DAMAGED = _ErrorRule("", DamagedMirrorError, "MirrorDamaged", "the mirror cannot be used")
_UNREACHABLE = _ErrorRule("", Unavailable, "RemoteUnavailable", "the remote could not be reached")

_FSCK = re.compile(r"fsck error|: (error|warning) in \w+ [0-9a-f]{40}", re.IGNORECASE)
_DAMAGE_PATTERN = re.compile(
    r"not a git repository: '|bad object|corrupt|unable to (read|find) [0-9a-f]|missing (blob|tree|"
    r"commit)|object file .* is empty|inflate|bad config|packfile .* (cannot|does not|is )|"
    r"not a valid (commit|object|tree)|could not (read|parse) [0-9a-f]{40}|loose object|"
    r"unknown index file|bad signature|does not point to a valid object|can't (load|find) tree|"
    r"unexpected line in .*packed-refs|malformed|broken ref|not found: [0-9a-f]{40}|"
    r"unterminated line|multi-pack-index|commit-graph|index file .* is too small|"
    r"pack-objects died|bad shallow|index (unavailable|not opened)",
    re.IGNORECASE,
)


# ---- rejections of pushes: refusals of the remote, and races that the push lost ------------------

CHANGED_REMEDY = "nothing was changed; the next pass reads the repository again"
_MOVED = _ErrorRule(
    r"cannot lock ref|failed to update ref|incorrect old value|reference already exists"
    r"|failed to lock|atomic transaction fail|fetch first",
    Conflict,
    "RemoteMoved",
    "the remote changed before the push",
    CHANGED_REMEDY,
)
# A lock file. A running git removes it soon; a killed one never does.
_LOCKED = _ErrorRule(
    r"unable to create '([^']*\.lock)': file exists",
    Conflict,
    "RemoteLocked",
    "another git process locks a ref of the remote, or was killed and left its lock file",
    "nothing was changed, and the next pass tries again; if no git process runs on the server,"
    " remove the lock file",
)
# Refusals with the remote's own message, in the status of a pushed ref or on stderr.
_PUSH_REFUSED = _ErrorRule(
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
    _ErrorRule(
        r"deletion prohibited|denying ref deletion",
        Denied,
        "DeletionRefused",
        "the remote denies the deletion of draft branches",
        "allow it on the server (`git config receive.denyDeletes false`), or delete the branches by"
        " hand; nothing else is blocked",
        quotes=False,
    ),
    _ErrorRule(
        r"exists; cannot create|directory not empty|funny refname",
        InvalidInput,
        "RefNameClash",
        "the remote has a ref that prevents this branch or tag",
        "rename or delete that ref",
    ),
    _ErrorRule(
        r"no space left|disk quota|read-only file system|unpacker error|internal server error",
        Unavailable,
        "RemoteFailed",
        "the remote could not store the push",
    ),
    _ErrorRule(
        r"permission denied|insufficient permission",
        Denied,
        "PushDenied",
        "the remote denied the push",
    ),
    _MOVED,
    _PUSH_REFUSED,
)
# Ref and summary of each ref that was not pushed.
_REJECTED = re.compile(r"^!\t[^:\t]*:?([^\t]*)\t(.*)$", re.MULTILINE)
_CAUSED_BY_OTHER_REF = re.compile(r"atomic (push|transaction) fail")


def _build_rejection(
    rejected: list[tuple[str, str]], remote_lines: list[str], access: RemoteAccess | None
) -> FanoutError:
    """Build the error for a rejected push; refusals by the client itself are lost races."""
    by_remote = [it for it in rejected if it[1].startswith("[remote rejected]")]
    if not by_remote:
        return _MOVED.build_error(rejected[0][1], access)
    # In an atomic push one rejected ref makes the remote reject all others for that reason
    # alone; only the first cause is actionable.
    own = [it for it in by_remote if not _CAUSED_BY_OTHER_REF.search(it[1])] or by_remote
    own_summaries = [summary for _, summary in own]
    reasons, remote_message = " ".join(sorted(set(own_summaries))), " / ".join(remote_lines)
    if locked := _LOCKED.search(f"{reasons}\n{remote_message}"):
        return _LOCKED.build_error(locked[1], access)
    rule = next(rule for rule in _PUSH_RULES if rule.search(f"{reasons}\n{remote_message}"))
    summary = own_summaries[0].removeprefix("[remote rejected] ")
    refs = tuple(ref for ref, _ in own)
    # More lines than those that are quoted cannot be in the quote.
    words = (summary, *remote_lines)[:_MAX_QUOTE]
    return rule.build_error(f"{summary} {remote_message}", access, refs, words)


def translate_failure(stdout: str, stderr: str, access: RemoteAccess | None) -> FanoutError:
    """Build the error for a git process that failed; `access` is None if no remote was involved.

    The order of the checks matters: the status of a push is more specific than messages on stderr,
    and those of the remote more specific than the signs of a damaged mirror.
    """
    lines = stderr.splitlines()
    quoted = (it.removeprefix("remote:").strip() for it in lines if it.startswith("remote:"))
    remote_lines = [line for line in quoted if line]
    remote_message = " / ".join(remote_lines)
    local = "\n".join(line for line in lines if not line.startswith("remote:"))
    rejected = _REJECTED.findall(stdout)
    if rejected and "unpacker error" in stdout and _DAMAGE_PATTERN.search(local):
        return _DAMAGED.build_error(_main_line(local), access)  # the transfer was cut off
    if rejected:
        return _build_rejection(rejected, remote_lines, access)
    if _BROKEN.search(stderr):
        return _BROKEN.build_error(remote_message or _main_line(local), access)
    rules: tuple[_ErrorRule, ...] = _RULES
    if access and access.secret is None:
        rules = (*_RULES_WITHOUT_SECRET, *_RULES)
    for rule in rules:
        if rule.search(local):
            matching_lines = (line for line in local.splitlines() if rule.search(line))
            return rule.build_error(remote_message or next(matching_lines, local), access)
    if access is not None and _FSCK.search(local):
        return _FSCK_REFUSED.build_error(_main_line(local), access)
    if access is None or _DAMAGE_PATTERN.search(local):
        return _DAMAGED.build_error(_main_line(local), access)
    return _UNREACHABLE.build_error(remote_message or _main_line(local), access)


def broken_remote(error: DamagedMirrorError, access: RemoteAccess) -> FanoutError:
    """Build the error of a remote whose mirror is damaged again right after its creation."""
    return _BROKEN.build_error(error.problem, access)


def _main_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (errors or lines or ["git printed no message"])[0]
