"""One worker at a time for a mirror, whether a thread of this process or another process."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fanout.errors import Unavailable

_PAUSE = 0.02


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock file; it is free again when the process ends, however it ends.

    Raises Unavailable after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"another process has held the mirror for more than {patience:g} s",
                        reason="MirrorBusy",
                        remedy="let it finish, or give each process its own working directory",
                    ) from None
                time.sleep(_PAUSE)
        yield
