"""What children learnt of expressions, kept beside the mirrors: a command need not start one again.

A child takes a third of a second to start, which is longer than most commands. The file may be
deleted at any time (`fanout.keeping`). Only what is simple is kept: all else is asked of a child in
any case.
"""

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fanout.keeping.files import read_kept, write_kept
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
        write_kept(self._path, json.dumps(self._known).encode(), _made_by())

    def _read(self) -> dict[str, Any]:
        if self._known is None:
            self._known = {} if self._path is None else _content(self._path)
        return self._known


def _content(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_kept(path, _made_by()) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _made_by() -> str:
    """They are fanout's outlines of celpy's trees."""
    return f"{version('fanout')} {version('cel-python')}"
