"""One worker at a time for a mirror, whether a thread of this process or another process."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fanout.errors import Unavailable

_PAUSE = 0.02
_WIDTH = 20  # of what is written, so that nothing longer is left behind it


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock file; it is free again when the process ends, however it ends.

    Who holds it stands in it, for whoever waits. Raises Unavailable after `patience` seconds.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(file, time.monotonic() + patience, patience)
        with suppress(OSError):  # a full disk keeps nobody from looking
            os.pwrite(file, str(os.getpid()).ljust(_WIDTH).encode(), 0)
        yield
    finally:
        os.close(file)


def _wait_for(file: int, deadline: float, patience: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(file, _WIDTH, 0).decode(errors="replace").strip()
                raise Unavailable(
                    f"another process ({holder or 'unknown'}) has held the mirror for more than "
                    f"{patience:g} s",
                    reason="MirrorBusy",
                    remedy="let it finish, or give each process its own working directory",
                ) from None
            time.sleep(_PAUSE)
        else:
            return
