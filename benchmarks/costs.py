"""Parser of the costs that fanout logs with -v."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"([\w-]+)=([\d.]+)")
_COUNTS, _PHASE = re.compile(r"cost: (.*)"), re.compile(r"cost of (\w+): (.*)")
ALL = "all"  # seconds of the threads of a phase, whatever they did


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds of one phase."""

    clock: float
    own: float  # of the processor, by fanout itself
    children: float  # of the processor, by git and all others that it started
    threads: Mapping[str, float]  # side by side, by what they did


@dataclass(frozen=True, slots=True)
class Costs:
    """Counts of a pass, and where its time went."""

    counts: Mapping[str, int]
    phases: Mapping[str, Phase]


def read_costs(lines: Iterable[str]) -> Costs:
    """Parse the costs from stderr; raises RuntimeError if there are none."""
    counts: dict[str, int] = {}
    phases: dict[str, Phase] = {}
    for line in lines:
        if found := _COUNTS.fullmatch(line):
            counts = {name: int(number) for name, number in _NUMBER.findall(found[1])}
        elif found := _PHASE.fullmatch(line):
            told = {name: float(number) for name, number in _NUMBER.findall(found[2])}
            clock, own, children = (told.pop(it) for it in ("clock", "own", "children"))
            phases[found[1]] = Phase(clock, own, children, told)
    if not counts:
        raise RuntimeError("fanout did not say what it cost")
    return Costs(counts, phases)
