"""The tests' GitHub, new for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from github_server import GitHub, running_github
from github_site import Site


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with running_github(tmp_path / "github") as server:
        yield server


@pytest.fixture
def site(github: GitHub) -> Site:
    return Site(github)
