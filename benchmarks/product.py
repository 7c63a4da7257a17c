"""Runs of a fanout sweep in its own process, with their costs."""

import json
import re
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import edits, inputs
from benchmarks.costs import Costs, read_costs
from benchmarks.inputs import Size
from benchmarks.processes import Run, timed

_REPOSITORY = Path(__file__).resolve().parent.parent
_SETTINGS = {
    "FANOUT_FILES": "policies",
    "FANOUT_STATE_DIR": "state",
    "FANOUT_NOW": inputs.NOW,
    "PYTHONPATH": str(_REPOSITORY),
}
# What stays in the state directory when all that may be thrown away goes, but for mirrors.
_LASTING = ("mirrors", "records.git")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Costs of one sweep."""

    seconds: float
    peak: int  # bytes of memory, of fanout and all processes below it
    costs: Costs
    leaving: float  # seconds of telling what was done and ending the process
    sent: int  # bytes by which the remotes' object stores grew
    done: int  # actions


class Installation:
    """Repositories, objects and fanout's own state, below one directory."""

    def __init__(self, place: Path, size: Size, url: str = "", drafts: str = "Auto") -> None:
        """Make what stays the same through all repetitions.

        `url` is where `place` is served; without one the repositories are named by their paths.
        `drafts` is `draftPer` of the policy.
        """
        self.place, self.size, self._drafts = place, size, drafts
        self.seed, self.remotes = place / "seed.git", place / inputs.REMOTES
        self.policies, self._upstream = place / "policies", place / inputs.UPSTREAM
        self._above = url or str(place)
        self._planned = place / "planned"
        shutil.rmtree(place, ignore_errors=True)
        inputs.make_seed(self.seed)
        self.reset(mirrors=False)
        self._run("plan", "--drafts-only", allowed=1)  # 1: there is something to do
        (self.place / "state").rename(self._planned)

    @property
    def repositories(self) -> list[Path]:
        """Return the remotes that a pass lists: upstream, records and downstream."""
        return [self._upstream, self.place / "state" / "records.git", *self.remotes.iterdir()]

    def reset(self, *, mirrors: bool, cold: bool = False) -> None:
        """As before the first sweep: no record, no draft, upstream at v1.

        With `mirrors` somebody has looked at a plan before, so the repositories were fetched; with
        `cold` what else was kept then is gone.
        """
        state = self.place / "state"
        for path in (self._upstream, state):
            shutil.rmtree(path, ignore_errors=True)
        if mirrors:
            shutil.copytree(self._planned, state)
        if cold:
            _forget(state)
        inputs.make_upstream(self._upstream)
        self._revision = 1
        inputs.copy_seed(self.seed, self.remotes, self.size.repositories)
        inputs.write_objects(self.policies, self.size, self._above, self._drafts)

    def change(self, targets: range, retention: str) -> None:
        """Change the objects that are injected into these targets' variants."""
        changed = dict.fromkeys(targets, retention)
        for number in sorted({self.size.repository(target) for target in targets}):
            inputs.write_clusters(self.policies, self.size, number, changed)

    def release(self) -> None:
        """Upstream's next revision."""
        self._revision += 1
        inputs.release(self._upstream, self._revision)

    def edit(self) -> None:
        """A person changes a tenth of the published packages."""
        edits.make(self.remotes, self.size)

    def sweep(self, *, publish: bool = False) -> Sweep:
        """`fanout sweep`, which tells with -v what it cost.

        Raises RuntimeError when anything was not done.
        """
        before = self._stored()
        run = self._run("sweep", "-v", *([] if publish else ["--drafts-only"]))
        costs = read_costs(run.err.splitlines())
        return Sweep(
            run.seconds, run.peak, costs, run.leaving, self._stored() - before, _done(run.out)
        )

    def processor_seconds(self, *arguments: str) -> float:
        """Processor time of a command that only reads, with all processes that it starts.

        The snapshot of a pass without work goes before: with it `fanout plan` evaluates nothing.
        """
        shutil.rmtree(self.place / "state" / "rest", ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._run(*arguments, allowed=1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def second_pass(self, *, changed: bool = False) -> Sweep:
        """The second pass of one process; with `changed`, objects changed between the two.

        Raises RuntimeError when anything was not done.
        """
        size, result = self.size, self.place / "result.json"
        shape = [f"--change={size.targets},{size.repositories},{size.files}"] * changed
        before = self._stored()
        run = self._start("-m", "benchmarks.driver", str(result), *shape)
        told: dict[str, Any] = json.loads(result.read_text())
        if told["troubles"]:
            raise RuntimeError(f"{len(told['troubles'])} went wrong, as: {told['troubles'][0]}")
        costs = read_costs(told["costs"])
        sent = self._stored() - before
        return Sweep(told["seconds"], run.peak, costs, 0.0, sent, told["done"])

    def _run(self, *arguments: str, allowed: int = 0) -> Run:
        return self._start("-m", "fanout", *arguments, allowed=allowed)

    def _start(self, *arguments: str, allowed: int = 0) -> Run:
        return timed([sys.executable, *arguments], self.place, _SETTINGS, allowed)

    def _stored(self) -> int:
        return sum(path.stat().st_size for path in self.remotes.glob("*/objects/*/*"))


def _done(out: str) -> int:
    """Actions, by the last line of a sweep: "8 released, 8 published", "nothing to do"."""
    return sum(map(int, re.findall(r"\d+", out.splitlines()[-1])))


def _forget(state: Path) -> None:
    for path in state.iterdir():
        if path.name in _LASTING:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
