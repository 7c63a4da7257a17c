"""A process that makes two passes, as `fanout run` does, and leaves behind what the second cost."""

import argparse
import gc
import json
import os
import time
from pathlib import Path

from benchmarks.inputs import Size, write_clusters
from fanout.cli.main import GC_THRESHOLD
from fanout.cli.settings import resolve_settings
from fanout.cli.startup import format_costs, open_program
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode


def main() -> None:
    """Seconds, costs, what was done and what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--change", metavar="TARGETS,REPOSITORIES,FILES", default="")
    said = parser.parse_args()
    gc.set_threshold(GC_THRESHOLD)  # as the program does
    settings = resolve_settings({}, os.environ)
    mode = PassMode(publish=False)
    with open_program(settings, long_running=True) as program:
        program.sweep(mode)
        if said.change:
            _change(settings.files[0], Size(*map(int, said.change.split(","))))
        program.world.counters.reset()
        begin = time.perf_counter()
        report = program.sweep(mode)
        seconds = time.perf_counter() - begin
        found = {
            "seconds": seconds,
            "costs": list(format_costs(program.world.counters)),
            "done": sum(outcome.is_done for outcome in report.outcomes),
            "troubles": _troubles(report),
        }
    said.result.write_text(json.dumps(found))


def _change(policies: Path, size: Size) -> None:
    """Change the objects that are injected into the variants of one repository."""
    write_clusters(policies, size, 0, dict.fromkeys(size.in_one(), "60d"))


def _troubles(report: PassReport) -> list[str]:
    """Return the faults of the run, one sentence each."""
    found = [outcome.problem for outcome in report.failed_outcomes]
    for item in report.pass_plan.policies:
        found += [failure.problem for failure in item.failures]
        found += [str(case.render_failure) for case in item.variants if case.render_failure]
        found += [str(item.error)] if item.error else []
    return found


if __name__ == "__main__":
    main()
