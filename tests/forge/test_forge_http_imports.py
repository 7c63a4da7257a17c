"""Calls to forges are made in one place, and what they need is loaded where there is a forge."""

import ast
import subprocess
import sys
from pathlib import Path

import fanout

PACKAGE = Path(fanout.__file__).parent
LOADED = "import sys, {}; print(*sorted({{'httpx2', 'httpcore2'}} & sys.modules.keys()))"


def imports(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in names}


def test_a_single_module_of_the_package_makes_connections():
    users = [
        path.stem for path in (PACKAGE / "forge").glob("*.py") if {"httpx2", "ssl"} & imports(path)
    ]
    assert users == ["forge_http"]


def loaded_with(*modules: str) -> str:
    code = LOADED.format(", ".join(modules))
    return subprocess.run(
        [sys.executable, "-c", code], text=True, capture_output=True, check=True
    ).stdout.strip()


def test_a_program_without_a_forge_loads_no_client():
    assert loaded_with("fanout.cli.main", "fanout.cli.startup", "fanout.ports") == ""
    assert loaded_with("fanout.forge.governor", "fanout.reconcile.reconciler") == ""


def test_the_client_is_what_loads_it():
    """The test before would pass if the names were wrong."""
    assert loaded_with("fanout.forge.forge_hosts") == "httpcore2 httpx2"
