"""Command lines that are killed: one after the other, each before the n-th thing it does."""

import atexit
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from companies import copy_tree
from diagonal import choose, running_story
from fleet import Fleet

import fanout

DRIVER = Path(__file__).parent / "story" / "kill_driver.py"
# One repository after the other, so that the n-th effect is the same in every run.
CONFIG = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\nconcurrency: 1\n"


@dataclass
class Killer:
    """A killer of command lines of a company."""

    fleet: Fleet

    def run(self, last: int, *args: str) -> tuple[int, int]:
        """A command line that is killed before effect `last` (0: never); its status and effects."""
        root = self.fleet.root
        line = [
            *args, "-f", str(root / "policies"), "--now", self.fleet.now.isoformat(),
            "--state-dir", str(root / "state"), "--config", str(root / "config.yaml"),
        ]  # fmt: skip
        driver = start_driver()
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.write(json.dumps([last, dict(os.environ), line]) + "\n")
        driver.stdin.flush()
        status, effects = json.loads(driver.stdout.readline())
        return status, effects

    def everywhere(self, line: list[str], outcome: Callable[[], object], expected: int = 0) -> int:
        """Kill the line before its effects and run it again: all come to one outcome.

        Before each of them in `make soak-story`, else before a diagonal of them and the last.

        `expected` is what the line exits with when it is not killed.

        A world that is on disk byte for byte as one before it goes on as that one did: most kills
        before a mere look leave such a one. Answers how many effects the line has.
        """
        root = self.fleet.root
        kept = root.with_name(f"{root.name}-kept")
        copy_tree(str(root), str(kept))
        status, effects = self.run(0, *line)
        assert status == expected
        seen = {content(root)}
        wanted = outcome()
        for last in (*choose(range(1, effects), running_story()), effects):
            shutil.rmtree(root)
            copy_tree(str(kept), str(root))
            assert self.run(last, *line) == (-signal.SIGKILL, 0)
            at_the_end = last == effects  # the caller looks at what it has come to
            if is_new(content(root), seen) or at_the_end:
                again, _ = self.run(0, *line)
                assert again == expected, f"killed before effect {last}"
                if is_new(content(root), seen) or at_the_end:
                    assert outcome() == wanted, f"killed before effect {last}"
                    for repo in self.fleet.repos.values():
                        repo.fsck()
        shutil.rmtree(kept)  # the next line of this company has another beginning
        return effects


def is_new(state: str, seen: set[str]) -> bool:
    """Was it not seen before? From now on it was."""
    new = state not in seen
    seen.add(state)
    return new


def content(root: Path) -> str:
    """A digest of all that is below a directory, but for the process that had a lock."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        digest.update(f"{path.relative_to(root)}\0{path.lstat().st_mode}\0".encode())
        if path.is_file() and path.suffix != ".lock":
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def start_driver() -> "subprocess.Popen[str]":
    """Start the process whose children are killed; it ends with its input."""
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER)],
        env={**os.environ, "PYTHONPATH": str(Path(fanout.__file__).parent.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(driver.communicate)
    return driver


def killer(fleet: Fleet) -> Killer:
    """A killer of command lines of this company."""
    (fleet.root / "config.yaml").write_text(CONFIG)
    return Killer(fleet)
