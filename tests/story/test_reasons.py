"""Every reason that the program can give is in the closed list: alerts are written against it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fanout
from fanout.api.reasons import Reason

PACKAGE = Path(fanout.__file__).parent
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
MODULES = sorted(PACKAGE.rglob("*.py"))


def reasons(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that is given as a reason."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
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
    known = {reason.value for reason in Reason}
    unknown = [
        f"{path.relative_to(PACKAGE)}:{line}: {word}"
        for path in MODULES
        for line, word in reasons(ast.parse(path.read_text(encoding="utf-8")))
        if word not in known
    ]
    assert unknown == []


def test_the_test_finds_reasons_at_all():
    found = [word for path in MODULES for _, word in reasons(ast.parse(path.read_text()))]
    assert {"TagMoved", "ExpressionError", "RemoteMoved", "DiskFull"} <= set(found)


def test_whatever_takes_a_reason_by_its_place_is_still_called_so():
    calls = {
        callee(call)
        for path in MODULES
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
    }
    assert PLACES.keys() - calls == set()
