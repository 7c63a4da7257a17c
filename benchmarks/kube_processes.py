"""Costs of the first fan-out by `fanout run` of files and by `fanout controller` of a cluster.

Both commands have the same defaults and repositories, the same number of drafts in a round
(`draftsPerRound`), an empty records repository, and no cache. The controller also writes all
statuses; its memory is measured after that.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.kube_fleet import KubeFleet
from benchmarks.kube_latency import Controller, run_process
from benchmarks.rows import Row, at_most

_PUSH_RATIO, _MEMORY_RATIO = 1.3, 1.6
_INTERVAL = 5.0  # seconds between two measurements of processor time
_IDLE = 0.05  # share of processor time below which a process is idle


@dataclass(frozen=True, slots=True)
class _Costs:
    """Resources that a process used for the fan-out."""

    push: float  # seconds from the start to the last push
    processor: float  # seconds of processor time until the last push
    resident: int  # MB when the process is idle
    peak: int  # MB


def measure_processes(fleet: KubeFleet) -> Iterator[Row]:
    """Yield the costs of both processes, and their ratios."""
    files = _measure(fleet, "files", ["run", "-f", str(fleet.directory / "policies")])
    cluster = _measure(fleet, "cluster", ["controller", *fleet.options])
    for name, it in (("files", files), ("cluster", cluster)):
        yield Row(f"process-of-{name}/last-push", round(it.push, 2), "s")
        yield Row(f"process-of-{name}/processor-at-last-push", round(it.processor, 2), "s")
        yield Row(f"process-of-{name}/resident", it.resident, "MB")
        yield Row(f"process-of-{name}/peak", it.peak, "MB")
    yield at_most("process/last-push-to-files/clock", cluster.push / files.push, _PUSH_RATIO)
    ratio = cluster.processor / files.processor
    yield at_most("process/last-push-to-files/processor", ratio, _PUSH_RATIO)
    yield at_most("process/resident-to-files", cluster.resident / files.resident, _MEMORY_RATIO)
    yield at_most("process/peak-to-files", cluster.peak / files.peak, _MEMORY_RATIO)


def _measure(fleet: KubeFleet, kind: str, arguments: Sequence[str]) -> _Costs:
    with run_process(fleet, f"process-{kind}", arguments) as process:
        start = datetime.now(UTC)
        process.wait(lambda: len(process.drafts()) >= fleet.size.targets)
        processor = process.processor()
        push = (process.drafts()[-1] - start).total_seconds()
        _await_idle(process)
        return _Costs(push, processor, process.resident(), process.memory())


def _await_idle(process: Controller) -> None:
    """Wait until the process uses hardly any processor time, so all statuses are written."""
    before = process.processor()
    while True:
        time.sleep(_INTERVAL)
        after = process.processor()
        if after - before < _IDLE * _INTERVAL:
            return
        before = after
