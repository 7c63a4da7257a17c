"""What the stories share: a company, and children of the sandbox that outlive a command line.

A command starts children of its own, which takes longer than all else that it does here. They are
the program's own children with the program's own limits, only kept; that a command ends them is
tested with the sandbox. A test marked `own_sandbox` goes without.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from companies import Companies, company
from fleet import Fleet

from fanout.sandbox.limits import Limits
from fanout.sandbox.pool import ProcessSandbox
from fanout.telemetry.counters import Counters


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[dict[Limits, ProcessSandbox]]:
    """Open sandboxes by their limits."""
    kept: dict[Limits, ProcessSandbox] = {}
    yield kept
    for sandbox in kept.values():
        sandbox.close()


@pytest.fixture(scope="session", autouse=True)
def keep_sandboxes(sandboxes: dict[Limits, ProcessSandbox]) -> Iterator[None]:
    """Commands find a sandbox of their limits open."""

    @contextmanager
    def opened(limits: Limits, _: Counters) -> Iterator[ProcessSandbox]:
        if limits not in sandboxes:
            sandboxes[limits] = ProcessSandbox(limits, Counters())
        yield sandboxes[limits]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fanout.cli.start.ProcessSandbox", opened)
        yield


@pytest.fixture(scope="session")
def companies(tmp_path_factory: pytest.TempPathFactory) -> Companies:
    """The companies of all stories."""
    return Companies(tmp_path_factory.mktemp("companies"))


@company
def fleet(root: Path) -> Fleet:
    """A company of three sites in two repositories, dev before prod."""
    return Fleet.build(root)
