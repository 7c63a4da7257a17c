"""Every command of docs/getting-started.md is run, in its order, and prints what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "getting-started.md"
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"`((?:work|policies)/[^`]+)`[^`]*\Z")


def parts(text):
    """What the page asks for: ("write", path, content) and ("run", command, output) in order."""
    end = 0
    for block in _BLOCK.finditer(text):
        language, content = block.groups()
        if language == "yaml":
            named = _FILE.search(text[end : block.start()])
            assert named, f"no file is named before:\n{content}"
            yield "write", named[1], content
        elif language == "console":
            for command in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                line, _, output = command.partition("\n")
                yield "run", line, output
        end = block.end()


def pattern(output):
    """What is shown, as a pattern: a line `…` is any lines, `…` within a line any text."""
    lines = [
        r"(?:[^\n]*\n)*" if line == "…" else re.escape(line).replace("…", r"[^\n]*") + r"\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


def test_the_page_does_what_it_says(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for what, subject, content in parts(PAGE.read_text(encoding="utf-8")):
        if what == "write":
            (tmp_path / subject).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / subject).write_text(content, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-c", subject],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{subject}\n{done.stdout}"
        assert re.fullmatch(pattern(content), done.stdout), f"{subject}\n{done.stdout}"
        ran += 1
    assert ran > 20
