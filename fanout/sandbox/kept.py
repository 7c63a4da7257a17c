"""What children learnt of expressions, kept beside the mirrors: a command need not start one again.

A child takes a third of a second to start, which is longer than most commands. The file may be
deleted at any time; one that is not as it was written, or was written by another version, is not
there. Only what is simple is kept: everything else is asked of a child in any case.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fanout.sandbox.crew import Learnt

MOST = 4096  # expressions; beyond it the file begins anew


class KeptOutlines:
    """Outlines of expressions in one file; several processes may use it, the last one wins."""

    def __init__(self, path: Path | None) -> None:
        """None: nothing is kept."""
        self._path = path
        self._known: dict[str, Any] | None = None

    def find(self, texts: Iterable[str]) -> dict[str, Learnt]:
        """What is known of the texts."""
        known = self._read()
        return {
            text: Learnt(known[text]["reads"], known[text]["outline"])
            for text in texts
            if text in known
        }

    def keep(self, learnt: Mapping[str, Learnt]) -> None:
        """Add to the file. That it cannot be written is no fault: the next command asks again."""
        if self._path is None or not learnt:
            return
        new = {text: {"reads": it.reads, "outline": it.outline} for text, it in learnt.items()}
        known = self._read()
        self._known = known | new if len(known) + len(new) <= MOST else new
        body = json.dumps(self._known, sort_keys=True)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(f"{_digest(body)}\n{body}", encoding="ascii")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        if self._known is None:
            self._known = {} if self._path is None else _content(self._path)
        return self._known


def _content(path: Path) -> dict[str, Any]:
    try:
        digest, _, body = path.read_text(encoding="ascii").partition("\n")
        if digest == _digest(body):
            found = json.loads(body)
            return found if isinstance(found, dict) else {}
    except (OSError, ValueError, RecursionError):
        pass
    return {}


def _digest(body: str) -> str:
    """Of the outlines and of who made them: fanout's outlines of celpy's trees."""
    made_by = f"{version('fanout')} {version('cel-python')}"
    return hashlib.sha256(f"{made_by}\n{body}".encode()).hexdigest()
