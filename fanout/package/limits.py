"""Limits of a package's size. An administrator sets them as `packageLimits`.

Everything that reads, renders or merges a package counts against the same limits while it works.
Whoever counts afterwards has loaded first what it wants to refuse.
"""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.values import frozen

LONGEST_PATH = 4096  # bytes of a file's path inside a package, as on Linux


@frozen
class SizeLimits:
    """How big a package may be."""

    files: int = 1_000  # also the number of directories
    size: int = 16 * 1024 * 1024  # bytes of all files together
    depth: int = 100  # directories inside each other
    file_size: int = 16 * 1024 * 1024  # bytes of one file

    def check_file(self, path: str, size: int) -> None:
        """Raise InvalidInput when a file of so many bytes is too large."""
        if size > self.file_size:
            problem = f"the file has {size:,} bytes, more than {self.file_size:,}"
            remedy = "split the file, or take it out"
            raise exceeded(problem, "fileBytes", path, remedy)

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Raise InvalidInput when files of these sizes, by path, are too many or too large."""
        if len(sizes) > self.files:
            raise exceeded(f"has {len(sizes):,} files, more than {self.files:,}", "files")
        total = 0
        for path, size in sizes.items():
            self.check_file(path, size)
            total += size
        if total > self.size:
            raise exceeded(f"has {total:,} bytes, more than {self.size:,}", "bytes")

    def check_path(self, path: str, directories: int) -> None:
        """Raise InvalidInput for a path that is too long or in too many directories."""
        if directories > self.depth:
            # The end of such a path tells nothing, and a message must not grow with it.
            problem = f"is in more than {self.depth:,} directories"
            raise exceeded(problem, "depth", shortened(path), "nest the directories less deeply")
        if len(path) > LONGEST_PATH:
            raise InvalidInput(
                f"the path has more than {LONGEST_PATH:,} characters",
                reason=Reason.LIMIT_EXCEEDED,
                remedy="give the file and its directories shorter names",
                where=Where(file=shortened(path)),
            )

    def too_many(self, kind: str = "files") -> InvalidInput:
        """The error for a package whose walk ended at this number of files or directories."""
        return exceeded(f"has more than {self.files:,} {kind}", "files")


DEFAULT_SIZES = SizeLimits()


def exceeded(
    problem: str, limit: str, file: str = "", remedy: str = "split the package"
) -> InvalidInput:
    """The error for what exceeds the limit of this name."""
    return InvalidInput(
        problem,
        reason=Reason.LIMIT_EXCEEDED,
        remedy=f"{remedy}, or raise packageLimits.{limit} in the FanoutConfiguration",
        where=Where(file=file),
    )


def shortened(path: str, most: int = 80) -> str:
    """The path, or its beginning when it is long."""
    return path if len(path) <= most else f"{path[:most]}..."


def in_package(error: InvalidInput, package: str) -> InvalidInput:
    """The error with the name of the package that it is about, before the file if there is one."""
    file = f"{package}/{error.where.file}" if error.where.file else package
    where = Where(error.where.object, error.where.field, file, error.where.line)
    return InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=where)


def sizes_of(files: Mapping[str, tuple[str, bytes]]) -> dict[str, int]:
    """The size of each file, by path."""
    return {path: len(data) for path, (_, data) in files.items()}
