"""First fan-out by two processes that stay: `fanout run` of files, `fanout controller` of objects.

Both are the real commands with their defaults: the same repositories, the same number of drafts in
a round (`draftsPerRound`), an empty records repository, and no cache. The controller writes all
statuses besides; its memory is measured after they are written.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.kube_latency import Controller, Fleet, controller_line, run_process
from benchmarks.rows import Row, at_most

_PUSH_RATIO, _MEMORY_RATIO = 1.3, 1.6
_QUIET = 5.0  # seconds in which a process uses hardly any processor
_IDLE = 0.05  # seconds of processor in that time


@dataclass(frozen=True, slots=True)
class _Spent:
    """Resources that a process spent on the fan-out."""

    push: float  # seconds from its start to the last push
    processor: float  # seconds of processor up to the last push
    resident: int  # MB, when nothing is left to be done
    peak: int  # MB


def measure_processes(world: Fleet) -> Iterator[Row]:
    """Yield the costs of both processes, and the ratios that have a bar."""
    files, cluster = (_measure(world, it) for it in ("files", "cluster"))
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


def _measure(world: Fleet, kind: str) -> _Spent:
    with run_process(world, f"process-{kind}", _line(world, kind)) as process:
        begin = datetime.now(UTC)
        process.wait(lambda: len(process.drafts()) >= world.size.targets)
        processor = process.processor()
        push = (process.drafts()[-1] - begin).total_seconds()
        _await_quiet(process)
        return _Spent(push, processor, process.resident(), process.memory())


def _await_quiet(process: Controller) -> None:
    """Wait until the process does nothing any more: all statuses are written."""
    before = process.processor()
    while True:
        time.sleep(_QUIET)
        after = process.processor()
        if after - before < _IDLE * _QUIET:
            return
        before = after


def _line(world: Fleet, kind: str) -> list[str]:
    return (
        ["run", "-f", str(world.place / "policies")] if kind == "files" else controller_line(world)
    )
