"""A fresh process that sweeps as `fanout sweep` does and leaves behind what it counted."""

import argparse
import json
import os
import time
from pathlib import Path

from fanout.cli.settings import resolve
from fanout.cli.start import open_program
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import Report


def main() -> None:
    """Sweep, once or several times; for each pass its seconds, its counts and what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--passes", type=int, default=1)
    said = parser.parse_args()
    settings = resolve({}, os.environ)
    passes = []
    with open_program(settings) as program:
        for _ in range(said.passes):
            program.world.counters.reset()
            begin = time.perf_counter()
            report = program.sweep(Mode(publish=said.publish))
            seconds = time.perf_counter() - begin
            counts = program.world.counters.read()
            done = sum(outcome.done for outcome in report.outcomes)
            passes.append(
                {"seconds": seconds, "counts": counts, "done": done, "troubles": _troubles(report)}
            )
    said.result.write_text(json.dumps(passes))


def _troubles(report: Report) -> list[str]:
    """What went wrong, a sentence each."""
    found = [outcome.problem for outcome in report.failed]
    for item in report.observed.policies:
        found += [failure.problem for failure in item.failures]
        found += [str(case.failure) for case in item.cases if case.failure]
        found += [str(item.problem)] if item.problem else []
    return found


if __name__ == "__main__":
    main()
