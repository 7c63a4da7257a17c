"""Paths of packages and names of branches that Git, the file system and our refs can all carry.

A package's path becomes part of branch and tag names (design §5), so it must be valid in a ref.
What an expression yields for a path is checked here too, before anything is named after it.
"""

import re
from posixpath import normpath
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from fanout.api.faults import BadValue
from fanout.api.names import reserved_name

_REF_BREAKERS = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|@\{|\.\.")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,79}(?:/[a-z0-9][a-z0-9-]{0,79}){0,2}")
_LONGEST = 255


def _segment_problem(segment: str) -> str:
    """Why a ref, a file system or a command line would trip over this segment; "" if nothing."""
    if segment in {"", ".", ".."}:
        return f"has the segment {segment!r}"
    if segment[0] in "-.":
        return f"has the segment {segment!r}, which begins with {segment[0]!r}"
    if segment.lower().endswith((".", ".lock")) or segment == "@":
        return f"has the segment {segment!r}, which git refuses in the name of a branch"
    if found := _REF_BREAKERS.search(segment):
        return f"has {found[0]!r} in it, which git refuses in the name of a branch"
    return ""


def path_problem(path: str) -> str:
    """What is wrong with a package's path, as half a sentence; "" when it can be used."""
    if reserved := reserved_name(path):
        return f"has the name {reserved!r}, which Windows reserves for a device"
    if _PLAIN.fullmatch(path):  # as most are: short, and nothing else that could be refused
        return ""
    if path.startswith("/") or path.endswith("/"):
        return "begins or ends with a slash"
    if len(path.encode("utf-8", "replace")) > _LONGEST:
        return f"is longer than {_LONGEST} bytes"
    if not path.isprintable():
        return "has characters that cannot be printed"
    if path.split("/", maxsplit=1)[0] == "_stages":
        return "begins with _stages, which is where the drafts of whole stages are"
    return next(filter(None, map(_segment_problem, path.split("/"))), "")


def check_path(path: str) -> str:
    """The path itself. Raises BadValue when no package may be there."""
    if problem := path_problem(path):
        raise BadValue(f"the path {path!r} {problem}", "write a relative path like team/monitoring")
    return path


def check_directory(path: str) -> str:
    """As `check_path`, but "" is the root of the repository."""
    return check_path(path) if path else path


def path_inside(path: str) -> str:
    """The path without `.` and `..`, relative to the directory that it begins in.

    "" when it leads out of that directory, or names the directory itself. That is what kpt accepts.
    """
    shortest = normpath(path) if path else ""
    leaves = shortest.startswith("/") or shortest.partition("/")[0] in ("..", ".")
    return "" if leaves else shortest


def check_file(path: str) -> str:
    """The path of a file of a package itself. Raises BadValue when it leads out of the package."""
    if not path_inside(path) or not path.isprintable():
        raise BadValue(f"the path {path!r} leads out of the package", "name a file of the package")
    return path  # as it is written: it enters digests


def check_executable(path: str) -> str:
    """The path itself. Raises BadValue where it would depend on where fanout is started."""
    if not path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        raise BadValue(f"{path!r} is no absolute path", "write it from the root: /usr/local/bin/x")
    return path


def check_branch(name: str) -> str:
    """The branch's name itself. Raises BadValue when git would refuse it."""
    problem = next(filter(None, map(_segment_problem, name.split("/"))), "")
    if problem or name.startswith("refs/") or name == "HEAD":
        problem = problem or "is no short name"
        raise BadValue(f"the branch {name!r} {problem}", "write a branch's short name, like main")
    return name


PackagePath = Annotated[str, StringConstraints(min_length=1), AfterValidator(check_path)]
Directory = Annotated[str, AfterValidator(check_directory)]
PackageFile = Annotated[
    str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(check_file)
]
Executable = Annotated[
    str, StringConstraints(min_length=1, max_length=4096), AfterValidator(check_executable)
]
Branch = Annotated[
    str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(check_branch)
]
