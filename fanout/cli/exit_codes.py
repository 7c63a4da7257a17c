"""What the exit status of `fanout` says; scripts and CI rely on it.

The numbers are kubectl's and click's where those have one: `kubectl diff` leaves with 1 when it
found differences, click with 2 for a wrong command line. Where 1 and 3 both hold, it is 3: what
failed is never hidden behind something to do.
"""

from enum import IntEnum

from fanout.errors import (
    Conflict,
    Denied,
    FanoutError,
    InvalidInput,
    LimitExceeded,
    Stopped,
    Unavailable,
    Waiting,
)


class ExitCode(IntEnum):
    """Every status that `fanout` leaves with; the values are documented and stable."""

    OK = 0  # done, or nothing to do
    DIFFERENCES = 1  # only diff, plan, explain and package: differences, conflicts, or a gate holds
    INVALID = 2  # wrong command line, a name that nothing has, or invalid objects
    SOME_FAILED = 3  # some targets failed; the others were served
    UNAVAILABLE = 4  # a repository or server did not answer, refused us, or was faster
    BUG = 5  # a rule of fanout's own is broken
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # the reader of our output went away


MEANING = {
    ExitCode.OK: "done, or nothing to do",
    ExitCode.DIFFERENCES: "something to do (plan), differences or conflicts (diff, package), a"
    " gate holds (explain), or something is not as expected (test)",
    ExitCode.INVALID: "wrong usage, a name that nothing has, or invalid objects",
    ExitCode.SOME_FAILED: "some policies, targets or variants failed, the others were served; wins"
    " over 1",
    ExitCode.UNAVAILABLE: "nothing was done: a repository or server is unavailable or denied"
    " access, somebody else was faster, or a saved plan is out of date",
    ExitCode.BUG: "a bug in fanout",
    ExitCode.INTERRUPTED: "interrupted",
}

_FAMILIES: tuple[tuple[tuple[type[FanoutError], ...], ExitCode], ...] = (
    ((InvalidInput, LimitExceeded), ExitCode.INVALID),
    ((Stopped,), ExitCode.SOME_FAILED),
    ((Unavailable, Denied, Conflict, Waiting), ExitCode.UNAVAILABLE),
)


def exit_code_of(error: BaseException) -> ExitCode:
    """The status for an error that ended a command; what is not foreseen is a bug.

    A lost race and a world that is not ready count as unavailable: the same command may succeed
    later. A policy that is stopped leaves as a sweep of it does. An expression that exceeded its
    limits is an invalid object: it will not.
    """
    for families, code in _FAMILIES:
        if isinstance(error, families):
            return code
    return ExitCode.BUG
