"""Program that makes one first fan-out of files or of a cluster, and prints its costs as JSON.

`benchmarks.kube_status` runs it in a process of its own, as memory and processor time are measured.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from benchmarks import inputs
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.controller.loop_health import LoopObserver, ScheduledPass
from fanout.controller.run_loop import LoopDependencies, RunLoop
from fanout.controller.status_thread import StatusThread
from fanout.errors import FanoutError
from fanout.kube.api_connection import open_connection
from fanout.kube.status_writer import ApiStatusWriter
from fanout.plan.actions import ActionKind
from fanout.reconcile.execution.plan_execution import run_pass

_DRAFTS = 1_000  # of a round, as in `fanout run`
_TIMEOUT = 1_800.0  # seconds


class _DraftObserver:
    """Observer of the loop that measures until the last draft is pushed."""

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
            usage = getrusage(RUSAGE_SELF)
            self.processor = usage.ru_utime + usage.ru_stime
        if self.drafts >= self.targets:
            self.done.set()


def main() -> None:
    """Make the fan-out, and print seconds and megabytes as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kube_fan_out", description=__doc__)
    parser.add_argument("kind", choices=("files", "cluster"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("targets", type=int)
    parser.add_argument("kubeconfig", type=Path)
    options = parser.parse_args()
    is_cluster = options.kind == "cluster"
    records = options.directory / f"records-{options.kind}.git"
    settings = Settings(
        files=() if is_cluster else (options.directory / "policies",),
        context="admin" if is_cluster else "",
        kubeconfig=options.kubeconfig if is_cluster else None,
        state_dir=options.directory / f"state-{options.kind}",
        records=str(records),
        new_records=True,
        now_override=datetime.fromisoformat(inputs.NOW),
        is_controller=is_cluster,
    )
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(records)], check=True)
    observer = _DraftObserver(options.targets)
    observers: list[LoopObserver] = [observer]
    start = time.monotonic()
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
        observer.done.wait(_TIMEOUT)
        statuses_written = observer.pushed
        while thread is not None and not thread.is_idle:
            time.sleep(0.1)
            statuses_written = time.monotonic()
        loop.stop()
        runner.join()
    result = {
        "push": observer.pushed - start,
        "statuses": statuses_written - observer.pushed,
        "memory": getrusage(RUSAGE_SELF).ru_maxrss / 1024,
        "processor": observer.processor,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
