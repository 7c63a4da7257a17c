"""Exit of the process: errors of a command line, exit codes, and the end without freeing memory.

Scripts and pipelines rely on the codes. docs/reference/exit-codes.md has the numbers.
Where several apply, the first of these counts: an error of fanout or of its use, invalid input,
failures (what failed is never hidden), no effect.
"""

import atexit
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import NoReturn

from fanout.errors import Conflict, ErrorLocation, InvalidInput, LimitExceeded, Stopped


class ExitCode(IntEnum):
    """Exit code of `fanout`; the values are documented and stable."""

    OK = 0
    ERROR = 1
    INVALID = 2
    SOME_FAILED = 3
    NO_EFFECT = 4
    INTERRUPTED = 130  # 128 + SIGINT, as shells count
    BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader of the output is gone


EXIT_CHANGES = 2  # only with --detailed-exitcode, as in Terraform: changes and no error

EXIT_CODE_HELP = {
    ExitCode.OK: "done, or nothing to do",
    ExitCode.ERROR: "an error: a wrong flag or name, a server that did not answer or denied "
    "access, or a bug in fanout",
    ExitCode.INVALID: "invalid input: objects, files, packages or scenarios with errors",
    ExitCode.SOME_FAILED: "some policies, targets or variants failed or need a person; the others"
    " were processed",
    ExitCode.NO_EFFECT: "no effect: an approval that does not count, a promotion that publishes"
    " nothing, an outdated plan",
    ExitCode.INTERRUPTED: "interrupted",
}

# Reasons as text, so that `fanout --help` loads no lower layer; a test compares them with the enum.
# Errors in the command line, not in files.
USAGE_REASONS = frozenset(
    {
        "InvalidSetting",
        "InvalidTime",
        "NoFiles",
        "NoObjectId",
        "NotFound",
        "NotInStage",
        "RecordsNotConfigured",
        "TargetGone",
        "UnknownKind",
    }
)
# The command is valid but has no effect in the present state.
NO_EFFECT_REASONS = frozenset(
    {
        "EditedDownstream",
        "NeverPublished",
        "NoDraft",
        "NothingToDo",
        "Pinned",
        "PlanOutdated",
        "WindowClosed",
        "WouldGoBack",
        "WrongRevision",
    }
)


def not_found(problem: str, remedy: str) -> InvalidInput:
    """Build the error for a name that nothing, or not exactly one thing, has."""
    return InvalidInput(problem, reason="NotFound", remedy=remedy)


def nothing_to_do(problem: str, remedy: str) -> InvalidInput:
    """Build the error for a command that has no effect in the present state."""
    return InvalidInput(problem, reason="NothingToDo", remedy=remedy)


def invalid_setting(problem: str, remedy: str, flag: str = "") -> InvalidInput:
    """Build the error for a value of an option; `flag` is the option with its dashes."""
    where = ErrorLocation(field=flag)
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy, where=where)


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error that ended a command.

    An unreachable server, a lost race and a bug share code 1: the input is not at fault. A stopped
    policy exits like its sweep. An expression that exceeds its limits is an invalid object.
    """
    match error:
        case InvalidInput(reason=reason) | Conflict(reason=reason) if reason in NO_EFFECT_REASONS:
            return ExitCode.NO_EFFECT
        case InvalidInput(reason=reason) if reason in USAGE_REASONS:
            return ExitCode.ERROR
        case InvalidInput() | LimitExceeded():
            return ExitCode.INVALID
        case Stopped():
            return ExitCode.SOME_FAILED
        case _:
            return ExitCode.ERROR


def exit_code_after(failures: int, *, effect: bool) -> ExitCode:
    """Return the exit code of a verb that recorded a decision and ran its pass.

    `failures`: number of variants that need a person. `effect`: whether anything happened.
    """
    if failures:
        return ExitCode.SOME_FAILED
    return ExitCode.OK if effect else ExitCode.NO_EFFECT


def detailed_exit_code(code: ExitCode, *, changes: bool) -> int:
    """Return the --detailed-exitcode code: 0 no changes, 2 changes, 1 any error."""
    if code is not ExitCode.OK:
        return ExitCode.ERROR
    return EXIT_CHANGES if changes else ExitCode.OK


def exit_with(work: Callable[[], int]) -> NoReturn:
    """Run the work and exit with the code that it returns, without freeing objects.

    After a pass over 10,000 targets, freeing every object takes the interpreter half a second.
    Files and children are closed by then, and the operating system reclaims the memory at once.

    Threads are joined and `atexit` handlers run as usual. If the work raises, or its output cannot
    be flushed, the interpreter exits in its normal way.
    """
    status: int | None = None

    def exit_now() -> None:
        if status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return  # the interpreter flushes again and reports the error
        os._exit(status)

    # Registered before the work: atexit runs handlers in reverse order, so this one runs last.
    atexit.register(exit_now)
    status = work()
    sys.exit(status)
