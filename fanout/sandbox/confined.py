"""Becomes another program, with less: started between fanout and a function's executable.

The limits are set here and not in fanout's own process, which has threads, and before the program
runs, not after. Memory is limited by what is written to (RLIMIT_DATA): programs in Go and Java
reserve far more than they use.
"""

import os
import resource
import sys

_DESCRIPTORS = 256


def main(cpu: int, memory: int, size: int, command: list[str]) -> None:
    """Set limits (seconds, bytes, bytes of one file) and run the command in place of this one."""
    for kind, most in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_NOFILE, _DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))
    os.execv(command[0], command)  # noqa: S606 - an administrator allowed it


if __name__ == "__main__":
    cpu, memory, size, *command = sys.argv[1:]
    main(int(cpu), int(memory), int(size), command)
