"""Exit statuses of the command line: one closed table, which scripts and pipelines rely on.

The numbers and their order are the design's (§11). Where several hold, the first of these counts:
an error of fanout or of its use, invalid input, failures (what failed is never hidden), no effect.
"""

from enum import IntEnum

from fanout.errors import Conflict, InvalidInput, LimitExceeded, Stopped


class ExitCode(IntEnum):
    """Every status that `fanout` exits with; the values are documented and stable."""

    OK = 0
    ERROR = 1
    INVALID = 2
    SOME_FAILED = 3
    NO_EFFECT = 4
    INTERRUPTED = 130  # 128 + SIGINT, as shells count
    BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader of the output is gone


CHANGES = 2  # with --detailed-exitcode alone, as Terraform's: no error, and there are changes

MEANING = {
    ExitCode.OK: "done, or nothing to do",
    ExitCode.ERROR: "an error of fanout or of its use: a wrong flag or name, a server that did not"
    " answer or denied access, a bug",
    ExitCode.INVALID: "invalid input: objects, files, packages or scenarios with errors",
    ExitCode.SOME_FAILED: "some policies, targets or variants failed, or are held by something that"
    " a person must mend; the others were served",
    ExitCode.NO_EFFECT: "nothing had the effect that was asked for: an approval that does not"
    " count, a promotion that nothing follows, an outdated plan",
    ExitCode.INTERRUPTED: "interrupted",
}

# Reasons as words, so that `fanout --help` loads no layer below; a test compares them with theirs.
# What was typed is wrong, not what is in files.
USE = frozenset(
    {
        "InvalidSetting",
        "InvalidTime",
        "NoFiles",
        "NoObjectId",
        "NotFound",
        "NotInStage",
        "TargetGone",
        "UnknownKind",
    }
)
# The command is right, and as things stand it can change nothing.
WITHOUT_EFFECT = frozenset(
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


def exit_code_of(error: BaseException) -> ExitCode:
    """The status for an error that ended a command.

    A server that did not answer, a lost race and a bug are one status: nothing is wrong with the
    input. A stopped policy exits as a sweep of it does. An expression that exceeded its limits is
    an invalid object.
    """
    match error:
        case InvalidInput(reason=reason) | Conflict(reason=reason) if reason in WITHOUT_EFFECT:
            return ExitCode.NO_EFFECT
        case InvalidInput(reason=reason) if reason in USE:
            return ExitCode.ERROR
        case InvalidInput() | LimitExceeded():
            return ExitCode.INVALID
        case Stopped():
            return ExitCode.SOME_FAILED
        case _:
            return ExitCode.ERROR


def exit_code_after(failures: int, *, effect: bool) -> ExitCode:
    """The status of a verb that decided something and ran the pass that acts on it."""
    if failures:
        return ExitCode.SOME_FAILED
    return ExitCode.OK if effect else ExitCode.NO_EFFECT


def detailed(code: ExitCode, *, changes: bool) -> int:
    """The status with --detailed-exitcode: 0 no changes, 2 changes, 1 for everything else."""
    if code is not ExitCode.OK:
        return ExitCode.ERROR
    return CHANGES if changes else ExitCode.OK
