"""Everything a pass may touch, in one value: the ports, and how the program is set up."""

from dataclasses import dataclass, field

from fanout.plan.repository import Identity
from fanout.ports import GitStore, RecordStore, Sandbox
from fanout.telemetry.counters import Counters
from fanout.telemetry.progress import Progress, Quiet
from fanout.variants.model import Limits


@dataclass(frozen=True, slots=True)
class Setup:
    """What an administrator configured."""

    install: str = "default"
    identity: Identity = Identity("fanout", "fanout@localhost")  # noqa: RUF009 - it is frozen
    limits: Limits = Limits()  # noqa: RUF009 - it is frozen
    new_records: bool = False  # a person said that nothing on record is to be taken for a beginning


@dataclass(frozen=True, slots=True)
class World:
    """The ports. Declared and cluster objects are handed to each pass, already read."""

    git: GitStore
    records: RecordStore
    sandbox: Sandbox
    setup: Setup
    counters: Counters = field(default_factory=Counters)
    progress: Progress = field(default_factory=Quiet)
