"""What a command cost, told with -v to whoever wonders where the time goes."""

from collections.abc import Iterator

from fanout.telemetry.counters import Counters

_LEAST = 0.0005  # seconds; a phase that took less is not worth a line


def costs(counters: Counters) -> Iterator[str]:
    """A line of all counts, then one for each phase that took time.

    `own` is our processor time and `children` that of processes that ended; what follows adds up
    what threads did side by side.
    """
    yield "cost: " + " ".join(f"{name}={number}" for name, number in counters.read().items())
    for phase, spent in counters.times.read().items():
        if spent.clock < _LEAST:
            continue
        parts = [f"clock={spent.clock:.3f} own={spent.own:.3f} children={spent.children:.3f}"]
        threads = counters.times.threads(phase).items()
        parts += [f"{what.replace(' ', '-')}={seconds:.3f}" for what, seconds in threads]
        yield f"cost of {phase}: {' '.join(parts)}"
