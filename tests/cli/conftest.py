"""Fixtures of the command-line tests: the sandbox, and messages that no earlier line silenced."""

import pytest
from sandboxes import keep_sandboxes  # noqa: F401 - a fixture

from fanout.cli.terminal import set_quiet


@pytest.fixture(autouse=True)
def audible() -> None:
    """Undo `-q` of a line that ran in this process."""
    set_quiet(quiet=False)
