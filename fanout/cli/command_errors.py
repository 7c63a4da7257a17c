"""Errors of a command line: names that nothing has, and options that cannot be used."""

from fanout.errors import ErrorLocation, InvalidInput


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
