"""Every reason that the program can give is in the closed list: alerts are written against it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from source_files import MODULES, ONE_PROCESS, PACKAGE, text_of

from fanout.api.reasons import Reason

pytestmark = ONE_PROCESS
# Where a reason is given by its place among the arguments.
PLACES = {
    "ExpressionFailure": 0,
    "Hold": 0,
    "RefusedError": 0,
    "TargetFailure": 2,
    "TemplateFailure": 0,
    "_ErrorRule": 2,
}
SPOKEN = {"Decision"}  # its `reason` is a person's sentence


@cache
def calls(path: Path) -> list[ast.Call]:
    """Return the calls in a module."""
    return [it for it in ast.walk(ast.parse(text_of(path))) if isinstance(it, ast.Call)]


def reasons(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that is given as a reason."""
    for call in calls(path):
        name = callee(call)
        given = [it.value for it in call.keywords if it.arg == "reason" and name not in SPOKEN]
        given += call.args[PLACES[name] :][:1] if name in PLACES else []
        for value in (node for expression in given for node in choices(expression)):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                yield value.lineno, value.value


def callee(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def choices(expression: ast.expr) -> Iterator[ast.expr]:
    """What an expression may yield, as far as it says so itself."""
    if isinstance(expression, ast.IfExp):
        yield from choices(expression.body)
        yield from choices(expression.orelse)
    else:
        yield expression


def test_every_reason_is_on_the_list():
    listed = {reason.value for reason in Reason}
    unknown = [
        f"{path.relative_to(PACKAGE)}:{line}: {word}"
        for path in MODULES
        for line, word in reasons(path)
        if word not in listed
    ]
    assert unknown == []


def test_the_test_finds_reasons_at_all():
    words = [word for path in MODULES for _, word in reasons(path)]
    assert {"TagMoved", "ExpressionError", "RemoteMoved", "DiskFull"} <= set(words)


def test_every_listed_callee_with_a_reason_argument_is_called():
    callees = {callee(call) for path in MODULES for call in calls(path)}
    assert PLACES.keys() - callees == set()
