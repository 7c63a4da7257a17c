"""The last refusal of a push to the records repository, for commands that only read.

Nothing can be written there, and whether a server takes a push shows only a push. So whoever meets
a refusal keeps it in a file of the state directory until a push goes through.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.values import write_json

_FORMAT = "refusal of records, 1"


class RecordRefusals:
    """The last refusal of one records repository; `path` None: known to this process alone."""

    def __init__(self, path: Path | None = None) -> None:
        """Use the file, which may be deleted at any time."""
        self._path = path
        self._problem = ""

    @classmethod
    def of_repository(cls, directory: Path, url: str) -> "RecordRefusals":
        """Return the refusal of the repository at a URL; `directory` has those of all."""
        return cls(directory / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json")

    def read(self) -> str:
        """Return the words of the last push if it was refused, else ""."""
        if self._path is None:
            return self._problem
        return read_cache_value(self._path, _FORMAT, str) or ""

    def note(self, problem: str) -> None:
        """Keep the words of a refusal."""
        self._problem = problem
        if self._path is not None:
            write_cache_file(self._path, write_json(problem), _FORMAT)

    def clear(self) -> None:
        """Forget the refusal: a push went through."""
        self._problem = ""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
