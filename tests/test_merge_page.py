"""What docs/concepts/merge-conflicts.md shows is so: its packages are merged, its commands are run.

The commands on directories are run where the page's files are; those about a variant in a company
whose upstream has the page's `origin` and then its `upstream`, and whose site has its `local`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet

PAGE = Path(__file__).parent.parent / "docs" / "concepts" / "merge-conflicts.md"
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
NAMED = re.compile(r"`((?:origin|upstream|local)/[^`]+)`[^`]*\Z")
FILE = "deployment.yaml"
SIDES = ("origin", "upstream", "local")


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Language, what stands before it, and content of each block; one without a language fails."""
    end = 0
    for match in BLOCK.finditer(text):
        assert match[1] in ("yaml", "console"), f"nobody checks this block:\n{match[2]}"
        yield match[1], text[end : match.start()], match[2]
        end = match.end()


PARTS = list(blocks(PAGE.read_text(encoding="utf-8")))
FILES = {named[1]: text for _, before, text in PARTS if (named := NAMED.search(before))}
COMMANDS = [
    command.partition("\n")
    for language, _, text in PARTS
    if language == "console"
    for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
]
ABOUT_VARIANTS = ("fanout diff", "fanout resolve")


def pattern(output: str) -> str:
    """What is shown, as a pattern: a line `…` is any lines."""
    return "".join(
        r"(?:[^\n]*\n)*" if line == "…" else re.escape(f"{line}\n") for line in output.splitlines()
    )


def test_the_page_names_all_its_files():
    assert list(FILES) == [f"{side}/{FILE}" for side in SIDES]
    assert sum(language == "yaml" for language, _, _ in PARTS) == len(FILES)


def test_the_commands_on_directories_print_what_the_page_shows(tmp_path: Path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text, encoding="utf-8")
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for line, _, output in COMMANDS:
        if not line.startswith(ABOUT_VARIANTS):
            done = subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env={**os.environ, "PATH": search},
                text=True, check=False, capture_output=True,
            )  # fmt: skip
            assert done.returncode in (0, 3), done.stderr  # 3: there are conflicts
            assert re.fullmatch(pattern(output), done.stdout), f"{line}\n{done.stdout}"
            ran += 1
    assert ran == 2


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    origin, upstream, local = (FILES[f"{side}/{FILE}"] for side in SIDES)
    made.release("v2", {FILE: origin})
    made.settle()
    made.repos["edge"].commit("main", {f"sites/ams/{FILE}": local})
    made.release("v3", {FILE: upstream})
    made.later(minutes=1).sweep("--drafts-only")
    return made


def test_the_commands_about_a_variant_print_what_the_page_shows(fleet: Fleet):
    ran = 0
    for line, _, output in COMMANDS:
        if line.startswith(ABOUT_VARIANTS):
            words = shlex.split(line, comments=True)[1:]
            by = ["--by", "Ann <ann@example.com>"] if words[0] == "resolve" else []
            done = fleet.run(*words, *by)
            assert done.code == 0, done.err
            assert re.fullmatch(pattern(output), done.out) or by, f"{line}\n{done.out}"
            ran += 1
    assert ran == 5
    fleet.settle()
    published = fleet.repos["edge"].file("main", f"sites/ams/{FILE}")
    assert "replicas: 5 # three are too few here" in published
