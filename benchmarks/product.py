"""Lets fanout sweep in a process of its own, and says what that took."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import inputs
from benchmarks.inputs import Size
from benchmarks.processes import Run, timed

_REPOSITORY = Path(__file__).resolve().parent.parent
_SETTINGS = {
    "FANOUT_FILES": "policies",
    "FANOUT_STATE_DIR": "state",
    "FANOUT_NOW": inputs.NOW,
    "PYTHONPATH": str(_REPOSITORY),
}


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one sweep took."""

    seconds: float
    peak: int  # bytes of memory, of fanout and all processes below it
    counts: Mapping[str, int]
    sent: int  # bytes by which the remotes' object stores grew
    done: int  # actions


class Installation:
    """Repositories, objects and fanout's own state, below one directory."""

    def __init__(self, place: Path, size: Size) -> None:
        """Make what stays the same through all repetitions."""
        self.place, self.size = place, size
        self.seed, self.remotes = place / "seed.git", place / "remotes"
        self.policies, self._upstream = place / "policies", place / "blueprints.git"
        self._planned = place / "planned"
        shutil.rmtree(place, ignore_errors=True)
        inputs.make_seed(self.seed)
        self.reset(mirrors=False)
        self._run("-m", "fanout", "plan", "--drafts-only", allowed=1)  # 1: there is something to do
        (self.place / "state").rename(self._planned)

    def reset(self, *, mirrors: bool) -> None:
        """As before the first sweep: no record, no draft, upstream at v1.

        With `mirrors` somebody has looked at a plan before, so the repositories were fetched.
        """
        state = self.place / "state"
        for path in (self._upstream, state):
            shutil.rmtree(path, ignore_errors=True)
        if mirrors:
            shutil.copytree(self._planned, state)
        inputs.make_upstream(self._upstream)
        self._revision = 1
        inputs.copy_seed(self.seed, self.remotes, self.size.repositories)
        inputs.write_objects(self.policies, self.size, self._upstream, self.remotes)

    def change(self, targets: range, retention: str) -> None:
        """Other content for what is injected into these targets' variants."""
        changed = dict.fromkeys(targets, retention)
        for number in sorted({self.size.repository(target) for target in targets}):
            inputs.write_clusters(self.policies, self.size, number, changed)

    def release(self) -> None:
        """Upstream's next revision."""
        self._revision += 1
        inputs.release(self._upstream, self._revision)

    def command(self) -> float:
        """Seconds of `fanout sweep --drafts-only`."""
        return self._run("-m", "fanout", "sweep", "--drafts-only").seconds

    def sweep(self, *, publish: bool = False, running: bool = False) -> Sweep:
        """One sweep of a fresh process; with `running` the second one of a process.

        Raises RuntimeError when anything was not done.
        """
        result = self.place / "result.json"
        options = ["--publish"] * publish + ["--passes=2"] * running
        before = self._stored()
        run = self._run("-m", "benchmarks.driver", str(result), *options)
        last: dict[str, Any] = json.loads(result.read_text())[-1]
        if last["troubles"]:
            raise RuntimeError(f"{len(last['troubles'])} went wrong, as: {last['troubles'][0]}")
        seconds = last["seconds"] if running else run.seconds
        sent = self._stored() - before
        return Sweep(seconds, run.peak, last["counts"], sent, last["done"])

    def _run(self, *arguments: str, allowed: int = 0) -> Run:
        return timed([sys.executable, *arguments], self.place, _SETTINGS, allowed)

    def _stored(self) -> int:
        return sum(path.stat().st_size for path in self.remotes.glob("*/objects/*/*"))
