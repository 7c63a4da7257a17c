"""Program that makes two passes in one process, as `fanout run` does, and measures the second."""

import argparse
import gc
import json
import os
import time
from pathlib import Path

from benchmarks.inputs import Size, write_clusters
from fanout.cli.diagnostics import format_costs
from fanout.cli.main import GC_THRESHOLD
from fanout.cli.settings import resolve_settings
from fanout.cli.startup import open_program
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode


def main() -> None:
    """Write seconds, costs, number of actions and problems of the second pass as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--change", metavar="TARGETS,REPOSITORIES,FILES", default="")
    options = parser.parse_args()
    gc.set_threshold(GC_THRESHOLD)  # as the program does
    settings = resolve_settings({}, os.environ)
    mode = PassMode(publish=False)
    with open_program(settings, long_running=True) as program:
        program.sweep(mode)
        if options.change:
            _change_objects(settings.files[0], Size(*map(int, options.change.split(","))))
        program.world.counters.reset()
        start = time.perf_counter()
        report = program.sweep(mode)
        seconds = time.perf_counter() - start
        result = {
            "seconds": seconds,
            "costs": list(format_costs(program.world.counters)),
            "actions": sum(outcome.is_done for outcome in report.outcomes),
            "problems": _list_problems(report),
        }
    options.result.write_text(json.dumps(result))


def _change_objects(policies: Path, size: Size) -> None:
    """Change the objects that are injected into the variants of one repository."""
    write_clusters(policies, size, 0, dict.fromkeys(size.in_one(), "60d"))


def _list_problems(report: PassReport) -> list[str]:
    """Return the problems of a pass, one sentence each."""
    problems = [outcome.problem for outcome in report.failed_outcomes]
    for item in report.pass_plan.policies:
        problems += [failure.problem for failure in item.failures]
        problems += [str(case.render_failure) for case in item.variants if case.render_failure]
        problems += [str(item.error)] if item.error else []
    return problems


if __name__ == "__main__":
    main()
