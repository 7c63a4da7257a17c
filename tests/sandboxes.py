"""Children of the sandbox that outlive a command line.

A command starts children of its own, which takes longer than most of what tests let it do. They are
the program's own children with the program's own limits, only kept; that a command ends them is
tested with the sandbox. A folder of tests keeps them by importing the fixture in its conftest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

KEPT: dict[WorkerLimits, ProcessSandbox] = {}


@contextmanager
def kept(limits: WorkerLimits, _: Counters, __: Path | None = None) -> Iterator[ProcessSandbox]:
    """Sandbox that commands share instead of starting their own."""
    if limits not in KEPT:
        KEPT[limits] = ProcessSandbox(limits, Counters())
    yield KEPT[limits]


@pytest.fixture(scope="session", autouse=True)
def keep_sandboxes() -> Iterator[None]:
    """Commands find a sandbox of their limits open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fanout.cli.startup.ProcessSandbox", kept)
        yield
    while KEPT:
        KEPT.popitem()[1].close()
