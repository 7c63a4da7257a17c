"""Every reason that the program can give is in the closed list: alerts are written against it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fanout
from fanout.api.reasons import Reason

HOUSE = Path(fanout.__file__).parent
# Where a reason is given by its place among the arguments.
PLACES = {"Hold": 0, "Broken": 0, "_NoVariant": 0, "TargetFailure": 2, "_rule": 2, "_Rule": 2}
SPOKEN = {"Decision"}  # its `reason` is a person's sentence
# Its `Broken` is another one than that of expressions: a question without an answer has no reason.
UNREASONED = "fanout.variants.pending_inputs"
MODULES = sorted(HOUSE.rglob("*.py"))


def reasons(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every literal that is given as a reason."""
    places = {name: place for name, place in PLACES.items() if name not in unreasoned(module)}
    for call in ast.walk(module):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        given = [it.value for it in call.keywords if it.arg == "reason" and name not in SPOKEN]
        given += call.args[places[name] :][:1] if name in places else []
        for value in (node for expression in given for node in choices(expression)):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                yield value.lineno, value.value


def unreasoned(module: ast.Module) -> set[str]:
    """What the module calls things that are given no reason."""
    return {
        name.asname or name.name
        for line in ast.walk(module)
        if isinstance(line, ast.ImportFrom) and line.module == UNREASONED
        for name in line.names
    }


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
        f"{path.relative_to(HOUSE)}:{line}: {word}"
        for path in MODULES
        for line, word in reasons(ast.parse(path.read_text(encoding="utf-8")))
        if word not in known
    ]
    assert unknown == []


def test_the_test_finds_reasons_at_all():
    found = [word for path in MODULES for _, word in reasons(ast.parse(path.read_text()))]
    assert {"TagMoved", "PathTaken", "ExpressionError", "RemoteMoved", "DiskFull"} <= set(found)
