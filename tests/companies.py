"""Companies that many tests begin with: built once, put back to what they were for each test.

Commits, mirrors and records hold the paths of the repositories, so that a company can live at one
place only. What it was is kept beside it.
"""

import os
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
        copy_tree(str(_kept(fleet)), str(fleet.root))
        return fleet

    def _make(self, build: Build) -> Fleet:
        place = self._directory / f"{len(self._built)}"
        shutil.rmtree(place, ignore_errors=True)  # of a test whose company could not be built
        root = place / "live"
        root.mkdir(parents=True)
        fleet = build(root)
        root.rename(_kept(fleet))
        return fleet


def copy_tree(source: str, target: str) -> None:
    """Copy a directory with modes and times of its files, a third as long as `shutil.copytree`.

    Paths are text, because a company has hundreds of them and every story begins with a copy.
    """
    os.mkdir(target, os.stat(source).st_mode & 0o7777)  # noqa: PTH102, PTH116
    for entry in os.scandir(source):
        path = f"{target}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)  # noqa: PTH115, PTH211
        elif entry.is_dir():
            copy_tree(entry.path, path)
        else:
            _copy_file(entry.path, path)


def _copy_file(source: str, target: str) -> None:
    read = os.open(source, os.O_RDONLY)
    try:
        status = os.fstat(read)
        written = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.fchmod(written, status.st_mode)
            size = os.write(written, os.read(read, status.st_size))
            assert size == status.st_size, source
            os.utime(written, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(written)
    finally:
        os.close(read)


def _kept(fleet: Fleet) -> Path:
    return fleet.root.with_name("kept")


def company(build: Build) -> Build:
    """A fixture with the name of `build`: what it makes in an empty directory."""

    @pytest.fixture(name=build.__name__)
    def begun(companies: Companies) -> Fleet:
        return companies.begin(build)

    return begun
