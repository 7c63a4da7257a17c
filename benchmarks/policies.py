"""Cost of passes over many policies, and over one large policy, in a process that stays.

Run as `python -m benchmarks.policies`. Measured is the processor time of fanout's own process, which
other work on the machine disturbs least; git is counted by its listings and pushes.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks import inputs
from benchmarks.__main__ import directory
from benchmarks.inputs import FEW, Size
from fanout.cli.main import GC_THRESHOLD
from fanout.cli.settings import resolve_settings
from fanout.cli.startup import Program, format_costs, open_program
from fanout.cli.verbs.run import _build_dependencies as build_dependencies
from fanout.errors import FanoutError
from fanout.reconcile.pass_scope import PassMode
from fanout.schedule.loop_health import ScheduledPass
from fanout.schedule.run_loop import RunLoop

_REPOSITORIES = 100
_IDLE = 60.0  # seconds until the loop must have served a change
EACH = 10  # targets of one of many policies


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one pass: own processor time in seconds, and what it counted."""

    name: str
    seconds: float
    listings: int
    pushes: int
    judged: int


class Measure:
    """Observer of the loop that knows when a round ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.failure: FanoutError | None = None

    def begin_round(self, waits: object) -> None:
        """Nothing is measured before the end."""

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Take note of the end of a round with a pass."""
        self.failure = failure
        if made_pass is not None or failure is not None:
            self.ended.set()


def write_world(place: Path, policies: int, targets: int) -> None:
    """Repositories and objects of `policies` policies with `targets` targets each."""
    size = Size(policies * targets, _REPOSITORIES, FEW)
    inputs.make_upstream(place / inputs.UPSTREAM)
    inputs.make_seed(place / "seed.git")
    inputs.copy_seed(place / "seed.git", place / inputs.REMOTES, size.repositories)
    inputs.write_objects(place / "policies", size, str(place))
    for path in (place / "policies").glob("clusters-*.yaml"):
        path.unlink()
    text = (place / "policies" / "policy.yaml").read_text().split("---\n")[0]
    (place / "policies" / "policy.yaml").unlink()
    for number in range(policies):
        team = f"team-{number:04d}"
        policy = text.replace("name: monitoring", f"name: {team}", 1).replace(
            'monitoring: "on"', f"monitoring: {team}"
        )
        (place / "policies" / f"{team}.yaml").write_text(policy)
    chunk = max(targets, EACH) if policies > 1 else targets // _REPOSITORIES
    for start in range(0, size.targets, chunk):
        write_targets(place, size, range(start, start + chunk), targets)


def write_targets(
    place: Path, size: Size, rows: range, targets: int, retention: str = "", region: str = ""
) -> None:
    """Write the file with the objects of some targets.

    `retention` is put into the ConfigMap of the first one, `region` into its Cluster.
    """
    documents = []
    for target in rows:
        kept = {target: retention} if retention and target == rows[0] else {}
        cluster, settings = inputs._objects(target, size, kept)
        if region and target == rows[0]:
            cluster = cluster.replace("region: region-", f"region: {region}-", 1)
        documents += [
            cluster.replace("monitoring: 'on'", f"monitoring: team-{target // targets:04d}"),
            settings,
        ]
    (place / "policies" / f"objects-{rows[0]:05d}.yaml").write_text("---\n".join(documents))


@contextmanager
def running(loop: RunLoop) -> Iterator[None]:
    """Run the loop on another thread while open."""
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield
    finally:
        loop.stop()
        thread.join()


def measure_world(place: Path, policies: int, targets: int) -> list[Cost]:
    """Costs of the passes over one world."""
    gc.set_threshold(GC_THRESHOLD)  # as the program does
    size = Size(policies * targets, _REPOSITORIES, FEW)
    environment = {
        "FANOUT_FILES": str(place / "policies"),
        "FANOUT_STATE_DIR": str(place / "state"),
    }
    costs: list[Cost] = []
    with open_program(resolve_settings({}, environment), long_running=True) as program:
        counters = program.world.counters

        def take(name: str, begin: float) -> None:
            seconds, counts = time.process_time() - begin, counters.read()
            costs.append(
                Cost(name, seconds, counts["listings"], counts["pushes"], counts["judged"])
            )
            print(f"{costs[-1]}\n  " + "\n  ".join(format_costs(counters)), file=sys.stderr)
            counters.reset()

        counters.reset()
        begin = time.process_time()
        program.sweep(PassMode())
        take("first", begin)
        observer = Measure()
        loop = RunLoop(build_dependencies(program, [observer]), timedelta(hours=1))
        with running(loop):
            _await_round(observer)
            time.sleep(1)
            take("second", time.process_time())
            rows = range(targets if policies > 1 else size.targets // _REPOSITORIES)
            for name, change in (
                ("injected object", {"retention": "77d"}),
                ("injected object again", {"retention": "78d"}),
                ("target object", {"retention": "78d", "region": "other"}),
            ):
                counters.reset()
                observer.ended.clear()
                begin = time.process_time()
                write_targets(place, size, rows, targets, **change)
                _await_round(observer)
                take(name, begin)
                observer.ended.clear()
                _await_round(observer)  # follow-up
                take(f"{name}: follow-up", time.process_time())
    return costs


def _await_round(observer: Measure) -> None:
    if not observer.ended.wait(_IDLE):
        raise RuntimeError("the loop made no pass")
    if observer.failure is not None:
        raise observer.failure


def main() -> int:
    """Print the costs of both worlds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--targets", type=int, default=10_000, metavar="N")
    parser.add_argument("--world", choices=["many", "one"])
    said = parser.parse_args()
    worlds = {"many": (said.targets // EACH, EACH), "one": (1, said.targets)}
    if said.world:
        policies, targets = worlds[said.world]
        place = Path(
            tempfile.mkdtemp(
                prefix="fanout-bench-", dir=directory([Size(said.targets, _REPOSITORIES, FEW)])
            )
        )
        try:
            write_world(place, policies, targets)
            print(json.dumps([asdict(it) for it in measure_world(place, policies, targets)]))
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return 0
    for name in worlds:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.policies",
                "--world",
                name,
                f"--targets={said.targets}",
            ],
            check=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
