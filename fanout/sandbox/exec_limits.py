"""Wrapper program that sets resource limits and then executes a function's executable.

The limits are set here and not in fanout's own process, which has threads, and before
the program runs, not after. Memory is limited by what is written to (RLIMIT_DATA):
programs in Go and Java reserve far more than they use.
"""

import os
import resource
import sys

_MAX_DESCRIPTORS = 256


def exec_with_limits(cpu: int, memory: int, size: int, command: list[str]) -> None:
    """Set limits (seconds, bytes of memory and of one file) and execute the command."""
    for kind, limit in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        # A lower hard limit of the caller stays: raising it would need privileges and fail.
        hard = resource.getrlimit(kind)[1]
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))
    os.execv(command[0], command)  # noqa: S606 - an administrator allowed it


if __name__ == "__main__":
    cpu, memory, size, *command = sys.argv[1:]
    exec_with_limits(int(cpu), int(memory), int(size), command)
