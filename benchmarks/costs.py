"""Parser of the costs that fanout logs with -v."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"([\w-]+)=([\d.]+)")
_COUNTS, _PHASE = re.compile(r"cost: (.*)"), re.compile(r"cost of (\w+): (.*)")
ALL = "all"  # key of the total seconds of the threads of a phase


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds of one phase."""

    clock: float
    own: float  # processor time of fanout itself
    children: float  # processor time of git and all other child processes
    threads: Mapping[str, float]  # of parallel threads, by kind of work


@dataclass(frozen=True, slots=True)
class Costs:
    """Counts of a pass, and the times of its phases."""

    counts: Mapping[str, int]
    phases: Mapping[str, Phase]


def read_costs(lines: Iterable[str]) -> Costs:
    """Parse the costs from lines of stderr. Raises RuntimeError if there are none."""
    counts: dict[str, int] = {}
    phases: dict[str, Phase] = {}
    for line in lines:
        if match := _COUNTS.fullmatch(line):
            counts = {name: int(number) for name, number in _NUMBER.findall(match[1])}
        elif match := _PHASE.fullmatch(line):
            seconds = {name: float(number) for name, number in _NUMBER.findall(match[2])}
            clock, own, children = (seconds.pop(it) for it in ("clock", "own", "children"))
            phases[match[1]] = Phase(clock, own, children, seconds)
    if not counts:
        raise RuntimeError("fanout logged no costs")
    return Costs(counts, phases)
