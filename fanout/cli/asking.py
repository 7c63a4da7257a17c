"""Probes whose HTTP library is loaded with the first question: most policies ask none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fanout.cli.loading import load
from fanout.plan.probe import Heard, Probe, Unheard
from fanout.ports import Probes


@dataclass(slots=True)
class LateProbes:
    """Implements `fanout.ports.Probes` by those that are made when something is asked."""

    made_by: Callable[[Any], Probes]  # of the module that was loaded

    def ask(self, questions: Sequence[Probe]) -> list[Heard | Unheard]:
        """As the port says."""
        return self.made_by(load("probes.asking")).ask(questions) if questions else []
