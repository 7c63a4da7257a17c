"""Package paths and branch names that Git, file systems and refs can all carry.

A package's path becomes part of branch and tag names (design §5), so it must be valid
in a ref. A path that an expression yields is checked here too, before anything is named
after it.
"""

import re
from posixpath import normpath
from typing import Annotated
from unicodedata import normalize

from pydantic import AfterValidator, StringConstraints

from fanout.api.field_errors import InvalidValue

_DEVICE = re.compile(
    r"(?:^|/)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\xb9\xb2\xb3])"
    r" *(?:\.[^/]*)?(?:/|$)",
    re.IGNORECASE,
)


def find_reserved_name(path: str) -> str:
    """Return the first name in a path that Windows reserves for a device, or "".

    An extension does not help: `aux.yaml` is a device there too.
    """
    match = _DEVICE.search(path)
    return match[0].strip("/") if match else ""


def fold_path(path: str) -> str:
    """Return the path as a file system sees it that ignores case and Unicode forms."""
    if path.isascii():
        return path.lower()
    # Decomposed first: case folding of a composed letter can differ from that of its parts.
    return normalize("NFC", normalize("NFD", path).casefold())


_REF_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|@\{|\.\.")
_SIMPLE_PATH = re.compile(r"[a-z0-9][a-z0-9-]{0,79}(?:/[a-z0-9][a-z0-9-]{0,79}){0,2}")
_MAX_PATH_BYTES = 255


def _segment_problem(segment: str) -> str:
    """Return why a ref, file system or command line cannot carry this segment, or ""."""
    if segment in {"", ".", ".."}:
        return f"has the segment {segment!r}"
    if segment[0] in "-.":
        return f"has the segment {segment!r}, which begins with {segment[0]!r}"
    # In lower case, because on a file system that ignores case `.LOCK` names Git's lock file
    # too.
    if segment.lower().endswith((".", ".lock")) or segment == "@":
        return f"has the segment {segment!r}, which git refuses in the name of a branch"
    if match := _REF_FORBIDDEN.search(segment):
        return f"has {match[0]!r} in it, which git refuses in the name of a branch"
    return ""


def find_path_problem(path: str) -> str:
    """Return the reason why a package path is unusable, as half a sentence, or ""."""
    # Before the fast path below, which `con` and `aux` would pass.
    if reserved := find_reserved_name(path):
        return f"has the name {reserved!r}, which Windows reserves for a device"
    if _SIMPLE_PATH.fullmatch(path):  # fast path for most paths
        return ""
    if path.startswith("/") or path.endswith("/"):
        return "begins or ends with a slash"
    if len(path.encode("utf-8", "replace")) > _MAX_PATH_BYTES:
        return f"is longer than {_MAX_PATH_BYTES} bytes"
    if not path.isprintable():
        return "has characters that cannot be printed"
    if path.split("/", maxsplit=1)[0] == "_stages":
        return "begins with _stages, which is where the drafts of whole stages are"
    return next(filter(None, map(_segment_problem, path.split("/"))), "")


def check_path(path: str) -> str:
    """Return the path. Raises InvalidValue if no package may be there."""
    if problem := find_path_problem(path):
        raise InvalidValue(
            f"the path {path!r} {problem}", "write a relative path like team/monitoring"
        )
    return path


def check_directory(path: str) -> str:
    """Return the directory.

    "" is the root of the repository. Raises InvalidValue like `check_path`.
    """
    return check_path(path) if path else path


def normalize_inside(path: str) -> str:
    """Normalize a path relative to the directory that it starts in, as kpt does.

    Returns "" for a path that leads out of that directory, and for the directory itself.
    """
    normalized = normpath(path) if path else ""
    is_outside = normalized.startswith("/") or normalized.partition("/")[0] in ("..", ".")
    return "" if is_outside else normalized


def check_file(path: str) -> str:
    """Return the path of a file of a package.

    Raises InvalidValue if it leads out of the package.
    """
    if not normalize_inside(path) or not path.isprintable():
        raise InvalidValue(
            f"the path {path!r} leads out of the package", "name a file of the package"
        )
    return path  # unchanged, because it enters digests


def check_executable(path: str) -> str:
    """Return the path.

    Raises InvalidValue unless it is absolute: a relative one depends on the start.
    """
    if not path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        raise InvalidValue(
            f"{path!r} is no absolute path", "write it from the root: /usr/local/bin/x"
        )
    return path


def check_branch(name: str) -> str:
    """Return the branch name. Raises InvalidValue if Git would refuse it."""
    problem = next(filter(None, map(_segment_problem, name.split("/"))), "")
    if problem or name.startswith("refs/") or name == "HEAD":
        problem = problem or "is no short name"
        raise InvalidValue(
            f"the branch {name!r} {problem}", "write a branch's short name, like main"
        )
    return name


PackagePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(check_path)]
Directory = Annotated[str, AfterValidator(check_directory)]
PackageFile = Annotated[
    str, StringConstraints(min_length=1, max_length=_MAX_PATH_BYTES), AfterValidator(check_file)
]
Executable = Annotated[
    str, StringConstraints(min_length=1, max_length=4096), AfterValidator(check_executable)
]
Branch = Annotated[
    str, StringConstraints(min_length=1, max_length=_MAX_PATH_BYTES), AfterValidator(check_branch)
]
