"""Why a manifest is refused: all problems of a file at once, and the limits it must keep."""

from collections.abc import Sequence
from typing import Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where

BOM: Final = b"\xef\xbb\xbf"
MAX_FILE: Final = 16 << 20  # bytes of one manifest
MAX_OBJECTS: Final = 256 << 20  # bytes of a file of cluster objects
MAX_DEPTH: Final = 100  # the deepest schemas of CRDs have about 50 levels
MAX_EXPANDED: Final = 200_000  # nodes that aliases may add to one document


class InvalidManifest(InvalidInput):
    """A file that cannot be read as manifests; `problems` lists every fault that was found."""

    def __init__(self, problems: Sequence[InvalidInput]) -> None:
        unique = {(p.where, p.problem): p for p in problems}
        problems = [unique[key] for key in sorted(unique)]
        first = problems[0]
        super().__init__(
            first.problem, reason=Reason.INVALID_MANIFEST, remedy=first.remedy, where=first.where
        )
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """One line per problem."""
        return "\n".join(map(str, self.problems))

    def __reduce__(self) -> tuple[type["InvalidManifest"], tuple[tuple[InvalidInput, ...]]]:
        """Exceptions are copied by their constructor's arguments."""
        return InvalidManifest, (self.problems,)


def fault(file: str, line: int, problem: str, remedy: str) -> InvalidInput:
    """One problem of a file."""
    return InvalidInput(
        problem, reason=Reason.INVALID_MANIFEST, remedy=remedy, where=Where(file=file, line=line)
    )


def decode(data: bytes, file: str, limit: int) -> tuple[str, bool]:
    """The file's text without its byte order mark, and whether there was one.

    Raises InvalidManifest for a file that is too large, not UTF-8, or has NUL or half a surrogate.
    """
    if len(data) > limit:
        problem = f"the file has {len(data):,} bytes, more than {limit:,}"
        raise InvalidManifest([fault(file, 0, problem, "split it into several files")])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start + 1} is not UTF-8"
        raise InvalidManifest([fault(file, line, problem, "save the file as UTF-8")]) from None
    return (text[1:], True) if text.startswith("\ufeff") else (text, False)
