"""Facts about the Python files of the project; each is parsed once in a process.

Tests of sizes, names, imports and docstrings share the facts and not the trees, which would take
half a gigabyte. They are one group of pytest-xdist (`ONE_PROCESS`), so that one worker parses.
"""

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fanout"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
SHORT_BODY = 6  # lines of a private function that goes inline where it is used once
ONE_PROCESS = pytest.mark.xdist_group("sources")


@dataclass(frozen=True)
class FunctionSize:
    """A function with its first line and its lines of code."""

    name: str
    line: int
    size: int


@dataclass
class SourceFile:
    """Facts about one file. Sizes count lines that hold code.

    Blank lines, full-line comments and docstrings are not counted: explaining costs nothing.
    """

    size: int = 0
    functions: list[FunctionSize] = field(default_factory=list)
    docstrings: list[tuple[int, str]] = field(default_factory=list)  # line and text, also of fields
    has_docstring: bool = False
    public_classes: list[str] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)  # variables and attributes, by uses
    short_helpers: list[str] = field(default_factory=list)  # private, used once, few lines
    local_imports: list[int] = field(default_factory=list)  # lines of imports inside functions
    root_imports: list[int] = field(default_factory=list)  # lines that import `fanout` itself


def name_of(path: Path) -> str:
    """Return the path of a file from the root of the project."""
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def read_source(path: Path) -> SourceFile:
    """Return the facts about a file."""
    text = text_of(path)
    lines = text.splitlines()
    code = [bool(line.strip()) and not line.lstrip().startswith("#") for line in lines]
    source = SourceFile()
    functions: list[Function] = []
    bodies: list[list[ast.stmt]] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(ast.parse(text, filename=name_of(path))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                source.names[name] += 1
            case ast.Import() | ast.ImportFrom():
                imports.append(node)
            case ast.Module():
                source.has_docstring = bool(ast.get_docstring(node))
                source.public_classes = [
                    it.name
                    for it in node.body
                    if isinstance(it, ast.ClassDef) and not it.name.startswith("_")
                ]
                bodies = [node.body, *(it.body for it in node.body if isinstance(it, ast.ClassDef))]
                _take_docstrings(node, source, code)
            case ast.ClassDef():
                _take_docstrings(node, source, code)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions.append(node)
                _take_docstrings(node, source, code)
    source.size = sum(code)
    source.functions = [
        FunctionSize(it.name, it.lineno, sum(code[it.lineno - 1 : it.end_lineno]))
        for it in functions
    ]
    source.short_helpers = [
        it.name
        for body in bodies
        for it in body
        if isinstance(it, ast.FunctionDef)
        and re.match("_[^_]", it.name)
        and not it.decorator_list
        and source.names[it.name] == 1
        and _body_size(it) <= SHORT_BODY
    ]
    source.root_imports = [it.lineno for it in imports if _imports_root(it)]
    source.local_imports = [
        it.lineno
        for it in imports
        if any(outer.lineno < it.lineno <= (outer.end_lineno or 0) for outer in functions)
    ]
    return source


def _take_docstrings(
    node: ast.Module | ast.ClassDef | Function, source: SourceFile, code: list[bool]
) -> None:
    """Add the texts of a body; lines of a docstring cease to be lines of code."""
    for place, statement in enumerate(node.body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str(text))):
                source.docstrings.append((statement.lineno, text))
                if place == 0:
                    span = range(statement.lineno - 1, statement.end_lineno or statement.lineno)
                    code[span.start : span.stop] = [False] * len(span)


def _body_size(function: ast.FunctionDef) -> int:
    """Count the lines of a body with blank lines and comments, without its docstring."""
    body = function.body[bool(ast.get_docstring(function)) :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _imports_root(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "fanout" for alias in node.names)
    return bool(node.level) or node.module == "fanout"
