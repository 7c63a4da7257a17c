"""Sentences and remedies of the errors of Git and of mirrors; failures of git are in `git_errors`.

Errors that only a bug of fanout can cause are worded where they are raised.
"""

from collections.abc import Iterable

from fanout.control_characters import escape_unprintable

BRANCH_REMEDY = "push a first commit to it, or correct spec.branch of the Repository"
BUSY_REMEDY = "wait for that process, or give each process its own --state-dir"
CHANGED_REMEDY = "nothing was changed; the next pass reads the repository again"
DIRECTORY_REMEDY = "check the permissions and the free space of the directory"
DISK_FULL = "the disk of the mirrors is full"
EMPTY_URL = "the URL is empty"
EQUAL_PUSH_REMEDY = "nothing is lost; the next pass reads the repository again"
FORMAT_REMEDY = "use a repository in the SHA-1 format"
FORMAT_UNSUPPORTED = "the repository uses SHA-256 objects, which fanout does not support"
GIT_MISSING = "git is not in PATH"
HANGING_REMEDY = "check that the server responds; fanout asks it again by itself, later and later"
MIRROR_MISSING = "the mirror is missing"
MIRROR_REMEDY = "the next pass creates it again"
MIRRORS_REMEDY = "check the permissions and the free space of the directory of the mirrors"
NUL_IN_MESSAGE = "the commit message has a NUL character"
READ_AGAIN = "the next pass reads the repository again"
REF_NAME_REMEDY = "use package paths and names without spaces, '..' and the characters ~^:?*[\\"
ROOT_DIRECTORY = "the root directory"
CREDENTIALS_REMEDY = "create the secret, or correct spec.secretRef of the Repository"
SIGNATURE_REMEDY = "use a name and an address without < > and control characters"
SUBMODULE_REMEDY = "commit its files instead"
TIMEOUT_REMEDY = "check that the server responds; the next pass tries again"
UNSENT_REMEDY = f"{READ_AGAIN}; if it stays so, run `git fsck` there and repair the ref"
UNPARSED_REMEDY = "replace it by a commit whose author, committer and dates git accepts"
TREE_PATH_REMEDY = "use a relative path without '..' and '.git'"


def describe_timeout(seconds: float) -> str:
    """Describe a git process that was ended."""
    return f"git did not finish within {seconds:g} s"


def describe_hanging_remote(seconds: float) -> str:
    """Describe a remote that is not waited for any more."""
    return f"the server has not answered within {seconds:.0f} s; nothing else waits for it"


def describe_busy_mirror(holder: str, seconds: float) -> str:
    """Describe a mirror that another process holds."""
    return f"process {holder or 'unknown'} has held the mirror for more than {seconds:g} s"


def describe_uncreated(path: object, error: object) -> str:
    """Describe a directory in which no repository can be created."""
    return f"cannot create a repository at {path}: {error}"


def describe_unwritable_mirror(error: object) -> str:
    """Describe a mirror that cannot be written."""
    return f"cannot write a mirror: {error}"


def describe_damaged_mirror(error: object) -> str:
    """Describe a mirror that cannot be read."""
    return f"the mirror is damaged: {error}"


def describe_missing_object(oid: str) -> str:
    """Describe an object that the mirror lacks."""
    return f"object {oid} is not in the mirror"


def describe_unsent_object(oid: str) -> str:
    """Describe an object that the remote lists and did not send."""
    return f"the remote lists {oid} but did not send it"


def describe_large_object(oid: str, size: int, limit: int) -> str:
    """Describe an object that is too large to be read."""
    return f"object {oid} has {size:,} bytes, more than {limit:,}"


def describe_large_directory(path: str) -> str:
    """Describe a directory that is too large to be read."""
    return f"{path or ROOT_DIRECTORY} has too many entries"


def describe_unreadable_name(directory: str, name: bytes) -> str:
    """Describe a file name that is not text."""
    place = escape_unprintable(directory) or ROOT_DIRECTORY
    return f"a file name in {place} is not valid UTF-8: {name!r}"


def describe_entry(path: str, kind: str) -> str:
    """Describe a path that is not a directory; `kind` has its article."""
    return f"{escape_unprintable(path)} is {kind}"


def describe_wrong_object(oid: str, actual: str | None, expected: str) -> str:
    """Describe an object of another type than expected."""
    return f"{oid} is a {actual}, not a {expected}"


def describe_unparsed_commit(subject: str, reason: str) -> str:
    """Describe a commit that somebody pushed and that is not as git writes commits."""
    return f"{subject} cannot be read: {reason}"


def describe_invalid_ref(ref: str) -> str:
    """Describe a name that Git refuses."""
    return f"{ref!r} is not a valid branch or tag name"


def describe_invalid_path(path: str) -> str:
    """Describe a path that Git refuses."""
    return f"{path!r} is not a valid Git path"


def describe_blocked_path(path: str, name: str) -> str:
    """Describe a path with a file in the place of a directory."""
    return f"{path} cannot be a directory: {escape_unprintable(name)} is a file"


def describe_missing_branch(branch: str) -> str:
    """Describe a repository without its branch."""
    return f"branch {branch} does not exist"


def describe_baseless_draft(branch: str) -> str:
    """Describe a draft in a repository without its branch."""
    return f"draft {branch} has no base: the branch of the repository does not exist"


def describe_moved_ref(ref: str, actual: str, expected: str) -> str:
    """Describe a ref that changed after it was read."""
    return f"{ref} is at {actual or 'nothing'}, expected {expected or 'nothing'}"


def describe_equal_push(ref: str) -> str:
    """Describe a ref that another process moved to the same commit first."""
    return f"another process wrote the same to {ref} at the same time"


def describe_invalid_signature(name: str, email: str) -> str:
    """Describe an author whom Git refuses."""
    return f"{name!r} <{email}> cannot be the author of a commit"


def describe_invalid_date(seconds: int) -> str:
    """Describe a date that Git refuses."""
    return f"{seconds} cannot be the date of a commit"


def describe_missing_secret(name: str) -> str:
    """Describe a secret that does not exist."""
    return f"secret {name!r} was not found"


def describe_refused_protocol(protocol: str) -> str:
    """Describe a URL whose protocol is not allowed."""
    return f"the protocol {protocol} is not allowed"


def format_protocol_remedy(allowed: Iterable[str]) -> str:
    """Format the protocols that are allowed."""
    return f"use one of {', '.join(allowed)}, or allow it in the FanoutConfiguration"
