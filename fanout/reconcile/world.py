"""Everything a pass may touch, in one value: the ports, and how the program is set up."""

from collections.abc import Sequence
from dataclasses import field

from fanout.errors import Bug
from fanout.plan.probe import Heard, Probe, Unheard
from fanout.plan.repository import Identity
from fanout.ports import GitStore, Probes, RecordStore, Sandbox, Workshop
from fanout.telemetry.counters import Counters
from fanout.telemetry.progress import Progress, Quiet
from fanout.values import frozen
from fanout.variants.model import Limits
from fanout.variants.questions import Broken, Listed, Ran, Run, Script


@frozen
class Setup:
    """What an administrator configured."""

    install: str = "default"
    identity: Identity = Identity("fanout", "fanout@localhost")
    limits: Limits = Limits()
    new_records: bool = False  # a person said that nothing on record is to be taken for a beginning


class NoWorkshop:
    """Runs nothing: no program is allowed, so none is asked for."""

    def run(self, questions: Sequence[Run]) -> list[Ran | Broken]:
        """An answer to no question."""
        raise Bug(f"{questions[0].program.name} is to be run and no program is allowed")

    def run_scripts(self, scripts: Sequence[Script]) -> list[Listed | Broken]:
        """Say of each script that it cannot be run."""
        return [Broken("scripts are not run here") for _ in scripts]


class NoProbes:
    """Asks nobody: every question stays open."""

    def ask(self, questions: Sequence[Probe]) -> list[Heard | Unheard]:
        """Why there is no answer."""
        return [Unheard(f"{question.url} is not asked here") for question in questions]


@frozen
class World:
    """The ports. Declared and cluster objects are handed to each pass, already read."""

    git: GitStore
    records: RecordStore
    sandbox: Sandbox
    setup: Setup
    counters: Counters = field(default_factory=Counters)
    progress: Progress = field(default_factory=Quiet)
    workshop: Workshop = field(default_factory=NoWorkshop)
    probes: Probes = field(default_factory=NoProbes)
