"""Costs of statuses: a first fan-out with and without them, and the same bodies written by hand.

`python -m benchmarks.kube_status` runs one fan-out in a process of its own, for `benchmarks.kube`.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any, Protocol

from benchmarks import inputs
from benchmarks.inputs import Size
from benchmarks.rows import Row, at_most
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.controller.loop_health import LoopObserver, ScheduledPass
from fanout.controller.run_loop import LoopDependencies, RunLoop
from fanout.controller.status_thread import StatusThread
from fanout.errors import FanoutError
from fanout.kube.api_connection import APPLY_TYPE, ApiConnection, open_connection
from fanout.kube.status_writer import ApiStatusWriter
from fanout.plan.actions import ActionKind
from fanout.reconcile.execution.plan_execution import run_pass

_CONNECTIONS, _DRAFTS = 8, 1_000  # drafts of a round, as in a process that stays
_PUSH_RATIO, _WRITE_RATIO, _MEMORY_RATIO, _WRITES = 1.3, 1.5, 1.6, 2.0
_VARIANTS = f"/apis/fanout.dev/v1alpha1/namespaces/{inputs.NAMESPACE}/packagevariants"
_PATIENCE = 1_800.0  # seconds


class Fleet(Protocol):
    """A fleet in files and in an API server, as `benchmarks.kube` makes it."""

    @property
    def place(self) -> Path:
        """Directory of the files."""

    @property
    def size(self) -> Size:
        """Number of targets and repositories."""

    @property
    def server(self) -> Any:
        """The API server."""

    @property
    def minutes(self) -> float:
        """Time for which heartbeats are played."""

    def clear(self) -> None:
        """Delete all drafts and variants, and what they left in the repositories."""


def measure_statuses(world: Fleet) -> Iterator[Row]:
    """Yield the costs of a fan-out with statuses, against one without and against raw writes."""
    files = _fan_out(world, "files")
    before = _count_writes(world)
    cluster = _fan_out(world, "cluster")
    writes = (_count_writes(world) - before) / world.size.targets
    connection = open_connection(world.server.kubeconfig, "admin")
    raw = _write_again(connection)
    for name, it in (("files", files), ("cluster", cluster)):
        yield Row(f"fan-out-of-{name}/last-push", round(it["push"], 2), "s")
        yield Row(f"fan-out-of-{name}/processor", round(it["processor"], 2), "s")
        yield Row(f"fan-out-of-{name}/memory", round(it["memory"]), "MB")
    yield Row("statuses/all-there", round(cluster["shown"], 2), "s")
    yield Row("statuses/raw-writes", round(raw, 2), "s")
    yield at_most("statuses/writes-of-a-variant", writes, _WRITES)
    for kind in ("push", "processor"):
        ratio = cluster[kind] / files[kind]
        yield at_most(f"statuses/last-push-to-files/{kind}", ratio, _PUSH_RATIO)
    yield at_most("statuses/to-raw-writes", cluster["shown"] / raw, _WRITE_RATIO)
    yield at_most("statuses/memory-to-files", cluster["memory"] / files["memory"], _MEMORY_RATIO)


def _count_writes(world: Fleet) -> int:
    total = 0.0
    for line in world.server.kubectl("get", "--raw", "/metrics").stdout.splitlines():
        if line.startswith("apiserver_request_total{") and 'resource="packagevariants"' in line:
            labels, _, number = line.rpartition(" ")
            verbs = ("APPLY", "PATCH", "PUT", "POST", "DELETE")
            total += float(number) if any(f'verb="{it}"' in labels for it in verbs) else 0
    return int(total)


def _fan_out(world: Fleet, kind: str) -> dict[str, float]:
    """Run the first fan-out of all targets in a new process, into repositories without drafts."""
    world.clear()
    line = [sys.executable, "-m", "benchmarks.kube_status", kind, str(world.place)]
    line += [str(world.size.targets), str(world.server.kubeconfig)]
    done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _write_again(connection: ApiConnection) -> float:
    """Delete all variants, and write the same bodies over as many connections; return seconds."""
    items = connection.get(_VARIANTS)["items"]
    bodies = []
    for item in items:
        meta = {key: item["metadata"][key] for key in ("name", "namespace", "labels")}
        head = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}
        named = {**head, "metadata": {key: meta[key] for key in ("name", "namespace")}}
        bodies.append(({**head, "spec": item["spec"]}, {**named, "status": item["status"]}))
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        names = [it["metadata"]["name"] for it in items]
        list(threads.map(lambda it: connection.send("DELETE", f"{_VARIANTS}/{it}"), names))

    def write(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
        path = f"{_VARIANTS}/{pair[0]['metadata']['name']}"
        query = "?fieldManager=fanout&force=true"
        connection.send("PATCH", path + query, pair[0], APPLY_TYPE)
        connection.send("PATCH", f"{path}/status{query}", pair[1], APPLY_TYPE)

    begin = time.monotonic()
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        pending = iter(bodies)
        while batch := list(islice(pending, 500)):
            list(threads.map(write, batch))
    return time.monotonic() - begin


# ---- one fan-out ---------------------------------------------------------------------------------


class _Stopwatch:
    """Observer of the loop that knows when the last draft was pushed."""

    def __init__(self, targets: int) -> None:
        self.drafts, self.targets = 0, targets
        self.done = threading.Event()
        self.pushed = self.processor = 0.0

    def begin_round(self, waits: Any, declared: Any) -> None:
        """Do nothing."""

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Count the drafts of the round."""
        if failure is not None:
            print(failure, file=sys.stderr)
        outcomes = made_pass.report.outcomes if made_pass is not None else ()
        number = sum(it.is_done and it.action.kind is ActionKind.WRITE_DRAFT for it in outcomes)
        if number:
            self.drafts += number
            self.pushed = time.monotonic()
            spent = getrusage(RUSAGE_SELF)
            self.processor = spent.ru_utime + spent.ru_stime
        if self.drafts >= self.targets:
            self.done.set()


def main() -> None:
    """Make a fan-out, and print seconds and megabytes as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kube_status", description=__doc__)
    parser.add_argument("kind", choices=("files", "cluster"))
    parser.add_argument("place", type=Path)
    parser.add_argument("targets", type=int)
    parser.add_argument("kubeconfig", type=Path)
    options = parser.parse_args()
    is_cluster = options.kind == "cluster"
    settings = Settings(
        files=() if is_cluster else (options.place / "policies",),
        context="admin" if is_cluster else "",
        kubeconfig=options.kubeconfig if is_cluster else None,
        state_dir=options.place / f"state-{options.kind}",
        records=str(options.place / f"records-{options.kind}.git"),
        new_records=True,
        now_override=datetime.fromisoformat(inputs.NOW),
        is_controller=is_cluster,
    )
    records = options.place / f"records-{options.kind}.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(records)], check=True)
    watch = _Stopwatch(options.targets)
    observers: list[LoopObserver] = [watch]
    begin = time.monotonic()
    with open_program(settings, long_running=True) as program, ExitStack() as stack:

        def run(declared: Any, now: datetime, mode: Any) -> Any:
            return run_pass(program.world, program.reconciler, declared, now, mode)

        thread = None
        if is_cluster:
            writer = ApiStatusWriter(open_connection(options.kubeconfig, "admin"), "benchmark")
            thread = StatusThread(writer)
            observers.append(thread)
            stack.enter_context(thread.run())
        dependencies = LoopDependencies(
            program.inventory,
            program.reconciler.find_concerned,
            run,
            program.sweeps,
            settings.now,
            observers,
        )
        loop = RunLoop(dependencies, timedelta(hours=1), drafts_per_round=_DRAFTS)
        runner = threading.Thread(target=loop.run)
        runner.start()
        watch.done.wait(_PATIENCE)
        shown = watch.pushed
        while thread is not None and not thread.is_idle:
            time.sleep(0.1)
            shown = time.monotonic()
        loop.stop()
        runner.join()
    result = {
        "push": watch.pushed - begin,
        "shown": shown - watch.pushed,
        "memory": getrusage(RUSAGE_SELF).ru_maxrss / 1024,
        "processor": watch.processor,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
