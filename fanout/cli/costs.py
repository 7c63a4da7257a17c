"""What a command cost, told with -v to whoever wonders where the time goes."""

from fanout.cli.terminal import say
from fanout.telemetry.counters import Counters


def tell_costs(counters: Counters) -> None:
    """A line of all counts, then one for each phase that took time, on stderr.

    `own` is our processor time and `children` that of processes that ended; `threads` add up what
    threads did side by side.
    """
    say("cost: " + " ".join(f"{name}={number}" for name, number in counters.read().items()))
    for phase, spent in counters.times.read().items():
        if spent.clock < 0.0005:
            continue
        parts = [f"clock={spent.clock:.3f} own={spent.own:.3f} children={spent.children:.3f}"]
        threads = counters.times.threads(phase).items()
        parts += [f"{what.replace(' ', '-')}={seconds:.3f}" for what, seconds in threads]
        say(f"cost of {phase}: {' '.join(parts)}")
