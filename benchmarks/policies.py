"""Cost of passes over many policies, and over one large policy, in a process that stays.

Run as `python -m benchmarks.policies`. Measured is the processor time of fanout's own process,
which other work on the machine disturbs least; git is counted by its listings and pushes.
"""

import argparse
import gc
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from queue import Queue

from benchmarks import inputs
from benchmarks.__main__ import directory
from benchmarks.inputs import FEW, Size
from benchmarks.table import aligned
from fanout.cli.continuous_operation import build_dependencies
from fanout.cli.main import GC_THRESHOLD
from fanout.cli.settings import resolve_settings
from fanout.cli.startup import Program, open_program
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.pass_scope import PassMode
from fanout.schedule.loop_health import ScheduledPass
from fanout.schedule.run_loop import RunLoop
from fanout.values import replace

_REPOSITORIES = 100
_PATIENCE = 120.0  # seconds for a round
EACH = 10  # targets of each of many policies


@dataclass(frozen=True, slots=True)
class World:
    """Policies with as many targets each, in a directory."""

    place: Path
    policies: int
    targets: int

    @property
    def size(self) -> Size:
        """Size of the world."""
        return Size(self.policies * self.targets, _REPOSITORIES, FEW)

    @property
    def first_file(self) -> range:
        """Targets whose objects are in the first file."""
        return range(self.targets if self.policies > 1 else self.size.targets // _REPOSITORIES)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one pass: own processor time in seconds, and what it counted.

    `files` is the time of reading files since the pass before, which is not in `seconds`.
    """

    name: str
    files: float
    seconds: float
    listings: int
    pushes: int
    judged: int


class CostObserver:
    """Observer of the loop that measures from the end of one pass to the end of the next."""

    def __init__(self, program: Program) -> None:
        self.costs: Queue[Cost | FanoutError] = Queue()
        self._counters = program.world.counters
        self._begin = time.process_time()
        self._inventory, self._reading = program.inventory, 0.0

    def read(self) -> DeclaredObjects:
        """Read the declared objects, as the inventory of the loop."""
        begin = time.process_time()
        declared = self._inventory.read()
        self._reading += time.process_time() - begin
        return declared

    def begin_round(self, waits: Sequence[float], declared: DeclaredObjects) -> None:
        """Ignore the beginning: files are read before it."""

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Take note of what the pass cost."""
        if failure is not None:
            self.costs.put(failure)
        elif made_pass is not None:
            self.costs.put(self.take())

    def take(self) -> Cost:
        """Return the cost since the last call, and begin anew."""
        counts, seconds = self._counters.read(), time.process_time() - self._begin - self._reading
        cost = Cost(
            "", self._reading, seconds, counts["listings"], counts["pushes"], counts["judged"]
        )
        self._counters.reset()
        self._begin, self._reading = time.process_time(), 0.0
        return cost

    def wait(self) -> Cost:
        """Return the cost of the next pass. Raises the error of a round that failed."""
        cost = self.costs.get(timeout=_PATIENCE)
        if isinstance(cost, FanoutError):
            raise cost
        return cost


def write_world(world: World) -> None:
    """Repositories, policies and objects: a file for each policy, or for each repository."""
    place, size, policies = world.place, world.size, world.place / "policies"
    inputs.make_upstream(place / inputs.UPSTREAM)
    inputs.make_seed(place / "seed.git")
    inputs.copy_seed(place / "seed.git", place / inputs.REMOTES, size.repositories)
    inputs.write_objects(policies, size, str(place))
    for path in policies.glob("clusters-*.yaml"):
        path.unlink()
    text, promotion = (policies / "policy.yaml").read_text().split("---\n")
    # Nothing is automatic: drafts are what is measured.
    (policies / "promotion.yaml").write_text(promotion.partition("  autoPromotion")[0])
    (policies / "policy.yaml").unlink()
    for number in range(world.policies):
        named = text.replace("name: monitoring", f"name: {_team(number)}", 1)
        chosen = named.replace('monitoring: "on"', f"monitoring: {_team(number)}")
        (policies / f"{_team(number)}.yaml").write_text(chosen)
    step = len(world.first_file)
    for start in range(0, size.targets, step):
        write_targets(world, range(start, start + step))


def write_targets(world: World, rows: range, retention: str = "", region: str = "") -> None:
    """Write the file with the objects of some targets.

    `retention` is put into the ConfigMap of the first one, `region` into its Cluster.
    """
    documents = []
    for target in rows:
        is_changed = target == rows[0]
        kept = {target: retention} if retention and is_changed else {}
        cluster, settings = inputs.target_objects(target, world.size, kept)
        if region and is_changed:
            cluster = cluster.replace("region: region-", f"region: {region}-", 1)
        team = _team(target // world.targets)
        documents += [cluster.replace("monitoring: 'on'", f"monitoring: {team}"), settings]
    path = world.place / "policies" / f"objects-{rows[0]:05d}.yaml"
    path.write_text("---\n".join(documents))


def _team(number: int) -> str:
    return f"team-{number:04d}"


@contextmanager
def _running(loop: RunLoop) -> Iterator[None]:
    """Run the loop on another thread while open."""
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield
    finally:
        loop.stop()
        thread.join()


def measure_world(world: World) -> Iterator[Cost]:
    """Yield the costs of a first pass, and of what follows changes of one object."""
    gc.set_threshold(GC_THRESHOLD)  # as the program does
    environment = {
        "FANOUT_FILES": str(world.place / "policies"),
        "FANOUT_STATE_DIR": str(world.place / "state"),
    }
    with open_program(resolve_settings({}, environment), long_running=True) as program:
        observer = CostObserver(program)
        declared = observer.read()
        run_pass(program.world, program.reconciler, declared, program.settings.now(), PassMode())
        yield _named("first", observer.take())
        dependencies = replace(build_dependencies(program, [observer]), inventory=observer)
        loop = RunLoop(dependencies, timedelta(hours=1))
        with _running(loop):
            yield _named("second", observer.wait())
            for name, retention, region in (
                ("injected object changed", "77d", ""),
                ("injected object changed again", "78d", ""),
                ("target changed", "78d", "other"),
            ):
                observer.take()
                write_targets(world, world.first_file, retention, region)
                yield _named(name, observer.wait())
                yield _named("follow-up", observer.wait())


def _named(name: str, cost: Cost) -> Cost:
    return Cost(name, cost.files, cost.seconds, cost.listings, cost.pushes, cost.judged)


def main() -> int:
    """Print the costs of both worlds, each measured in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--targets", type=int, default=10_000, metavar="N")
    parser.add_argument("--world", metavar="POLICIES", type=int, help="measure one world only")
    said = parser.parse_args()
    if said.world is None:
        for policies in (1, said.targets // EACH):
            command = [sys.executable, "-m", "benchmarks.policies"]
            command += ["--world", str(policies), "--targets", str(said.targets)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            rows = json.loads(done.stdout.splitlines()[-1])
            print(f"{policies} policies, {said.targets} targets, {_REPOSITORIES} repositories")
            print(aligned([tuple(rows[0]), *(_cells(it) for it in rows)]))
        return 0
    at = directory([Size(said.targets, _REPOSITORIES, FEW)])
    place = Path(tempfile.mkdtemp(prefix="fanout-bench-", dir=at))
    try:
        world = World(place, said.world, said.targets // said.world)
        write_world(world)
        print(json.dumps([asdict(it) for it in measure_world(world)]))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    return tuple(f"{it:.2f}" if isinstance(it, float) else str(it) for it in row.values())


if __name__ == "__main__":
    sys.exit(main())
