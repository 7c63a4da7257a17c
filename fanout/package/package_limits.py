"""Limits of packages: their size, and paths that are safe in refs and portable.

Reading, rendering and merging count against the limits while they work: counting
afterwards would already have loaded what is to be refused.

A package's path is part of branch and tag names, so git's rules for refs hold for it (see
git-check-ref-format), and those of fanout: no `..`, no leading dash, nothing that a file system or
a command line could take for something else. File names must mean the same on every system: a
clone on Windows or macOS has one file where two names differ in case or Unicode form alone, and
Windows takes some names for devices and drops dots and spaces at their end.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.api.text_fields import find_path_problem, find_reserved_name, fold_path
from fanout.control_characters import escape_unprintable
from fanout.errors import ErrorLocation, InvalidInput
from fanout.values import Value

MAX_PATH_LENGTH = 4096  # bytes of a file's path inside a package, as on Linux


class SizeLimits(Value):
    """Largest size of a package."""

    files: int = 1_000  # also the number of directories
    size: int = 16 * 1024 * 1024  # bytes of all files together
    depth: int = 100  # directories inside each other
    file_size: int = 16 * 1024 * 1024  # bytes of one file
    values: int = 150_000  # YAML and JSON values of all files together

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Raise InvalidInput if files (bytes by path) are too many or too large."""
        if len(sizes) > self.files:
            problem = f"has {len(sizes):,} files, more than {self.files:,}"
            raise limit_exceeded_error(problem, "files")
        for path, size in sizes.items():
            if size > self.file_size:
                problem = f"the file has {size:,} bytes, more than {self.file_size:,}"
                remedy = "split the file, or remove it"
                raise limit_exceeded_error(problem, "fileBytes", path, remedy)
        if (total := sum(sizes.values())) > self.size:
            raise limit_exceeded_error(f"has {total:,} bytes, more than {self.size:,}", "bytes")

    def check_path(self, path: str, directories: int) -> None:
        """Raise InvalidInput for a path that is too long or nested in too many directories."""
        if directories > self.depth:
            # The end of such a path tells nothing, and a message must not grow with it.
            problem = f"is nested in more than {self.depth:,} directories"
            raise limit_exceeded_error(problem, "depth", shorten_path(path), "reduce the nesting")
        if len(path) > MAX_PATH_LENGTH:
            raise InvalidInput(
                f"the path has more than {MAX_PATH_LENGTH:,} characters",
                reason=Reason.LIMIT_EXCEEDED,
                remedy="shorten the names of the file and its directories",
                where=ErrorLocation(file=shorten_path(path)),
            )

    # The walk stops at the limit, so the real number is unknown and the message cannot name it.
    def too_many_error(self, kind: str = "files") -> InvalidInput:
        """Build the error for a walk that stopped at the limit of files or directories."""
        return limit_exceeded_error(f"has more than {self.files:,} {kind}", "files")


DEFAULT_SIZES = SizeLimits()


class ValueCounter:
    """Number of YAML and JSON values in the files of one package, against its limit.

    Scalars, mappings and lists are values; keys are not. Every value takes some hundred
    bytes of memory, so the bytes of a file do not limit what parsing it takes.
    """

    __slots__ = ("count", "limit")

    def __init__(self, limit: int = DEFAULT_SIZES.values) -> None:
        """Start with no values; `limit` is the largest number that is accepted."""
        self.count = 0
        self.limit = limit

    def add(self, number: int, file: str) -> None:
        """Count the values of one file. Raises InvalidInput if the limit is exceeded."""
        self.count += number
        if self.count > self.limit:
            raise self.limit_error(file)

    def limit_error(self, file: str) -> InvalidInput:
        """Build the error for the file in which the limit is exceeded."""
        problem = f"the package has more than {self.limit:,} YAML values"
        return limit_exceeded_error(problem, "values", file)


def limit_exceeded_error(
    problem: str, limit: str, file: str = "", remedy: str = "split the package"
) -> InvalidInput:
    """Build the error for a package that exceeds the limit of this name."""
    return InvalidInput(
        problem,
        reason=Reason.LIMIT_EXCEEDED,
        remedy=f"{remedy}, or raise packageLimits.{limit} in the FanoutConfiguration",
        where=ErrorLocation(file=file),
    )


def shorten_path(path: str) -> str:
    """Return the path, or its beginning if it is longer than 80 characters."""
    return path if len(path) <= 80 else f"{path[:80]}..."


def add_package(error: InvalidInput, package: str) -> InvalidInput:
    """Return the error with the name of its package in front of its file."""
    file = f"{package}/{error.where.file}" if error.where.file else package
    where = ErrorLocation(error.where.object, error.where.field, file, error.where.line)
    return InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=where)


def file_sizes(files: Mapping[str, tuple[object, bytes]]) -> dict[str, int]:
    """Return the size of each file in bytes, by path."""
    return {path: len(data) for path, (_, data) in files.items()}


def find_package_path_problem(path: str) -> str | None:
    """Return the problem of a package's path, or of a ref below `refs/heads/`, or None.

    Slashes separate components; none may stand at either end.
    """
    if not path:
        return "the path is empty"
    if problem := find_path_problem(path):
        return f"the path {path!r} {problem}"
    return None


def find_overlaps(paths: Iterable[str]) -> list[tuple[int, int]]:
    """Return pairs of positions of which the second path equals or is inside the first.

    A path inside others is paired with its nearest parent, a repeated path with its first
    occurrence. So the paths without overlaps are exactly those in no pair. Sorted.
    """
    pairs: list[tuple[int, int]] = []
    # what contains the present path, outermost first
    enclosing: list[tuple[Sequence[str], int]] = []
    for parts, position in sorted(
        # Sorted by components, everything inside a path directly follows it: `a/b` sorts
        # before `a-b`, which it would not as text.
        (path.split("/") if path else [], position)
        for position, path in enumerate(paths)
    ):
        while enclosing and parts[: len(enclosing[-1][0])] != enclosing[-1][0]:
            enclosing.pop()
        if enclosing:
            pairs.append((enclosing[-1][1], position))
        if not enclosing or enclosing[-1][0] != parts:
            enclosing.append((parts, position))
    return sorted(pairs)


def find_unportable_files(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that some system cannot store, and the reason as half a sentence."""
    files = sorted(paths)
    for path in files:
        ending = next((it for it in path.split("/") if it.endswith((".", " "))), None)
        if reserved := find_reserved_name(path):
            yield path, f"has the name {reserved!r}, which is reserved on Windows"
        elif ending is not None:
            yield path, f"has the name {ending!r}, which ends with a dot or a space"
    names = [fold_path(path) for path in files]
    for first, second in find_overlaps(names):
        later, earlier = sorted((files[first], files[second]), reverse=True)
        if names[first] == names[second]:
            yield later, f"differs from {escape_unprintable(earlier)} only in case or Unicode form"
        else:
            inside = escape_unprintable(files[second])
            yield files[first], f"is a file, and {inside} is inside it if case is ignored"
