"""Installation of fanout for a benchmark, with runs of its commands in processes of their own."""

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
from benchmarks.processes import Run, run_timed

_REPOSITORY = Path(__file__).resolve().parent.parent
_SETTINGS = {
    "FANOUT_FILES": "policies",
    "FANOUT_STATE_DIR": "state",
    "FANOUT_NOW": inputs.NOW,
    "PYTHONPATH": str(_REPOSITORY),
}
# Entries of the state directory that a cold run keeps; all others are caches.
_NOT_CACHED = ("mirrors", "records.git")


@dataclass(frozen=True, slots=True)
class Sweep:
    """Costs of one sweep."""

    seconds: float
    peak: int  # bytes of memory of fanout and all its descendants
    costs: Costs
    exit_seconds: float  # for output and the end of the process
    sent: int  # bytes by which the object stores of the remotes grew
    actions: int


class Installation:
    """Repositories, objects and the state directory of fanout, below one directory."""

    def __init__(self, directory: Path, size: Size, url: str = "", draft_per: str = "Auto") -> None:
        """Create the state that is the same for all repetitions.

        `url` is the one at which `directory` is served, or "" to use the paths of repositories.
        """
        self.directory, self.size, self._draft_per = directory, size, draft_per
        self.seed, self.remotes = directory / "seed.git", directory / inputs.REMOTES
        self.policies, self._upstream = directory / "policies", directory / inputs.UPSTREAM
        self._base_url = url or str(directory)
        self._planned = directory / "planned"
        shutil.rmtree(directory, ignore_errors=True)
        inputs.make_seed(self.seed)
        self.reset(mirrors=False)
        self._run("plan", "--drafts-only", allowed=1)  # 1: changes are pending
        (self.directory / "state").rename(self._planned)

    @property
    def repositories(self) -> list[Path]:
        """Repositories that a pass lists: upstream, records and downstream."""
        return [self._upstream, self.directory / "state" / "records.git", *self.remotes.iterdir()]

    def reset(self, *, mirrors: bool, cold: bool = False) -> None:
        """Restore the state before the first sweep: no record, no draft, upstream at v1.

        `mirrors` keeps the state directory of an earlier `fanout plan`, `cold` removes all of it
        except the mirrors and the records.
        """
        state = self.directory / "state"
        for path in (self._upstream, state):
            shutil.rmtree(path, ignore_errors=True)
        if mirrors:
            shutil.copytree(self._planned, state)
        if cold:
            _remove_caches(state)
        inputs.make_upstream(self._upstream)
        self._revision = 1
        inputs.copy_seed(self.seed, self.remotes, self.size.repositories)
        inputs.write_objects(self.policies, self.size, self._base_url, self._draft_per)

    def change(self, targets: range, retention: str) -> None:
        """Change the objects that are injected into the variants of some targets."""
        changed = dict.fromkeys(targets, retention)
        for number in self.size.by_repository(targets):
            inputs.write_clusters(self.policies, self.size, number, changed)

    def release(self) -> None:
        """Release the next upstream revision."""
        self._revision += 1
        inputs.release(self._upstream, self._revision)

    def edit(self) -> None:
        """Commit edits to a tenth of the published packages."""
        edits.commit_edits(self.remotes, self.size)

    def sweep(self, *, publish: bool = False) -> Sweep:
        """Run `fanout sweep -v`. Raises RuntimeError if an action failed."""
        before = self._stored_bytes()
        run = self._run("sweep", "-v", *([] if publish else ["--drafts-only"]))
        costs = read_costs(run.stderr.splitlines())
        # The last line is as "8 released, 8 published", or "nothing to do".
        actions = sum(map(int, re.findall(r"\d+", run.stdout.splitlines()[-1])))
        sent = self._stored_bytes() - before
        return Sweep(run.seconds, run.peak, costs, run.exit_seconds, sent, actions)

    def processor_seconds(self, *arguments: str) -> float:
        """Return the processor time of a reading command and all its descendants.

        The snapshot of a pass without work is removed, as `fanout plan` evaluates nothing with it.
        """
        shutil.rmtree(self.directory / "state" / "rest", ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._run(*arguments, allowed=1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def second_pass(self, *, changed: bool = False) -> Sweep:
        """Measure the second pass of a process; `changed` changes objects between the two.

        Raises RuntimeError if the pass had a problem.
        """
        size, result_file = self.size, self.directory / "result.json"
        options = [f"--change={size.targets},{size.repositories},{size.files}"] * changed
        before = self._stored_bytes()
        run = self._start("-m", "benchmarks.second_pass", str(result_file), *options)
        result: dict[str, Any] = json.loads(result_file.read_text())
        if problems := result["problems"]:
            raise RuntimeError(f"{len(problems)} problems, the first: {problems[0]}")
        costs = read_costs(result["costs"])
        sent = self._stored_bytes() - before
        return Sweep(result["seconds"], run.peak, costs, 0.0, sent, result["actions"])

    def _run(self, *arguments: str, allowed: int = 0) -> Run:
        return self._start("-m", "fanout", *arguments, allowed=allowed)

    def _start(self, *arguments: str, allowed: int = 0) -> Run:
        return run_timed([sys.executable, *arguments], self.directory, _SETTINGS, allowed)

    def _stored_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.remotes.glob("*/objects/*/*"))


def _remove_caches(state: Path) -> None:
    for path in state.iterdir():
        if path.name in _NOT_CACHED:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
