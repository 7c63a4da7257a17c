"""Facts about the Python files of the project; each is parsed once in a process.

Tests of sizes, names, imports and docstrings share the facts and not the trees, which would take
half a gigabyte. They are one group of pytest-xdist (`ONE_PROCESS`), so that one worker parses.
"""

import ast
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fanout"
MODULES = sorted(PACKAGE.rglob("*.py"))
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
    names: set[str] = field(default_factory=set)  # variables and attributes
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
    imports: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(ast.parse(text, filename=name_of(path))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                source.names.add(name)
            case ast.Import() | ast.ImportFrom():
                imports.append(node)
            case ast.Module():
                source.has_docstring = bool(ast.get_docstring(node))
                source.public_classes = [
                    it.name
                    for it in node.body
                    if isinstance(it, ast.ClassDef) and not it.name.startswith("_")
                ]
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


def _imports_root(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == "fanout" for alias in node.names)
    return bool(node.level) or node.module == "fanout"
