"""Companies that many tests begin with: built once, put back to what they were for each test.

Commits, mirrors and records hold the paths of the repositories, so that a company can live at one
place only. What it was is kept beside it.
"""

import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from fleet import Fleet

Build = Callable[[Path], Fleet]


class Companies:
    """Companies built so far, below one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._built: dict[Build, Fleet] = {}

    def begin(self, build: Build) -> Fleet:
        """The company that `build` makes in an empty directory, as if it were made just now."""
        if build not in self._built:
            self._built[build] = self._make(build)
        fleet = deepcopy(self._built[build])
        if fleet.root.exists():
            shutil.rmtree(fleet.root)
        shutil.copytree(_kept(fleet), fleet.root, symlinks=True)
        return fleet

    def _make(self, build: Build) -> Fleet:
        place = self._directory / f"{len(self._built)}"
        shutil.rmtree(place, ignore_errors=True)  # of a test whose company could not be built
        root = place / "live"
        root.mkdir(parents=True)
        fleet = build(root)
        root.rename(_kept(fleet))
        return fleet


def _kept(fleet: Fleet) -> Path:
    return fleet.root.with_name("kept")


def company(build: Build) -> Build:
    """A fixture with the name of `build`: what it makes in an empty directory."""

    @pytest.fixture(name=build.__name__)
    def begun(companies: Companies) -> Fleet:
        return companies.begin(build)

    return begun
