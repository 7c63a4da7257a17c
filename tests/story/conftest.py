"""Fixtures of the stories: a company, and the sandbox."""

from pathlib import Path

import pytest
from companies import Companies, company
from fleet import Fleet
from sandboxes import keep_sandboxes  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def companies(tmp_path_factory: pytest.TempPathFactory) -> Companies:
    """The companies of all stories."""
    return Companies(tmp_path_factory.mktemp("companies"))


@company
def fleet(root: Path) -> Fleet:
    """A company of three sites in two repositories, dev before prod."""
    return Fleet.build(root)
