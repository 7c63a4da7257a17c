"""Limits of a worker process: memory, processor time, wall time, files and processes.

A worker sets them for itself before its first request; only the wall time is the parent's
to enforce.
"""

import resource
from enum import StrEnum
from pathlib import Path

from fanout.values import Value

MAX_DESCRIPTORS = 16  # descriptors that may be open


class ExceededLimit(StrEnum):
    """Limit at which a worker or a program was ended; a label of a metric."""

    WALL_TIME = "wall_time"
    PROCESSOR_TIME = "processor_time"
    MEMORY = "memory"
    OUTPUT = "output"
    UNKNOWN = "unknown"  # a crash, or a signal from outside


class WorkerLimits(Value):
    """Limits of one expression over a chunk of rows. A text that exceeds one fails for all rows."""

    cpu: int = 2  # seconds of processor time
    memory: int = 256  # MiB of address space on top of an idle worker's
    wall_seconds: float = 10.0  # seconds, enforced by the parent
    processes: int = 2  # workers for one batch


def apply_limits(limits: WorkerLimits) -> None:
    """Limit memory, files, processes and core dumps to what an evaluation needs."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    memory = pages * resource.getpagesize() + (limits.memory << 20)
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NOFILE, MAX_DESCRIPTORS),
        # Set after the worker's own thread was started, which counts as a process.
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = _lower_limit(kind, limit)
        resource.setrlimit(kind, (allowed, allowed))


def _lower_limit(kind: int, limit: int) -> int:
    """Return the limit, or the hard limit of this process if that is lower."""
    hard = resource.getrlimit(kind)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def renew_cpu_limit(seconds: int) -> None:
    """Allow this much processor time from now on. The system counts a process's complete life."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = _lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
