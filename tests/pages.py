"""Pages that tell of whole commands: what they ask for, in order, and doing it in a directory.

A block of `yaml` is written to the file that is named before it, a block of `console` is run line
by line and prints what is shown: a line `…` stands for any lines, `…` within a line for any text.
A command ends with 0, and a pass with 3 exactly where the page shows which variant has failed.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from preloaded import write_program

from fanout.cli.main import run_arguments
from fanout.cli.process_exit import ExitCode

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"`((?:work|policies)/[^`]+)`[^`]*\Z")
_OR_TRUE = " || true"
_PASS = re.compile(r"fanout (?:sweep|plan|retry|skip|promote|rollback)\b")
_FAILED = re.compile(r"^[\w-]+/[\w-]+: [^:\n]+: check [\w-]+ failed: ", re.MULTILINE)


def parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Return the page's steps: ("write", path, content) and ("run", command, output) in order."""
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


def pattern(output: str) -> str:
    """Return the shown output as a pattern."""
    lines = [
        r"(?:[^\n]*\n)*" if line == "…" else re.escape(line).replace("…", r"[^\n]*") + r"\n"
        for line in output.splitlines()
    ]
    return "".join(lines)


def write(root: Path, name: str, content: str) -> None:
    """A file that the page shows."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(content, encoding="utf-8")


def play(page: str, monkeypatch, before: Callable[[str], object] = lambda line: None) -> int:
    """Do what the page asks for in the working directory; answers how many commands were run.

    `before` is called with each command before it is run.

    `fanout` runs in this process, which is many times faster, `export` changes its environment, and
    everything else is bash's.
    """
    ran = 0
    # Explanations are shown as a terminal of 80 columns has them.
    monkeypatch.setenv("COLUMNS", "80")
    for what, subject, content in parts(page):
        if what == "write":
            write(Path.cwd(), subject, content)
        elif subject.startswith("export "):
            for setting in shlex.split(subject)[1:]:
                monkeypatch.setenv(*setting.split("=", 1))
        else:
            before(subject)
            code, printed = run_line(subject)
            output = f"{subject}\n{printed}"
            assert code == _code(subject, content) or subject.endswith(_OR_TRUE), (
                f"{code}: {output}"
            )
            assert re.fullmatch(pattern(content), printed), output
            ran += 1
    return ran


def play_in_shell(page: str, root: Path) -> int:
    """Run the page's commands in `root` with bash; return how many were run.

    Unlike `play`, every command is a process of its own.
    """
    with tempfile.TemporaryDirectory() as programs:
        write_program(Path(programs))
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        return _play_in_shell(page, root, {**os.environ, "PATH": path, "COLUMNS": "80"})


def _play_in_shell(page: str, root: Path, environment: dict[str, str]) -> int:
    ran = 0
    for what, subject, content in parts(page):
        if what == "write":
            write(root, subject, content)
            continue
        if subject.startswith("export "):
            environment |= dict(it.split("=", 1) for it in shlex.split(subject)[1:])
            continue
        done = subprocess.run(
            ["bash", "-c", subject],
            cwd=root,
            env=environment,
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"{subject}\n{done.stdout}"
        assert re.fullmatch(pattern(content), done.stdout), f"{subject}\n{done.stdout}"
        ran += 1
    return ran


def _code(line: str, shown: str) -> ExitCode:
    """Return the exit code of a command that prints this."""
    failed = _PASS.match(line) and _FAILED.search(shown)
    return ExitCode.SOME_FAILED if failed else ExitCode.OK


def run_line(line: str) -> tuple[int, str]:
    """Run one command line; `fanout` in this process. Return exit code and output."""
    if not line.startswith("fanout "):
        done = subprocess.run(
            ["bash", "-c", line],
            env=dict(os.environ),
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout
    errors = io.StringIO()
    with contextlib.redirect_stdout(errors), contextlib.redirect_stderr(errors):
        code = run_arguments(shlex.split(line.removesuffix(_OR_TRUE))[1:])
    return int(code), errors.getvalue()
