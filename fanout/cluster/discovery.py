"""Which files are read below the directories that a user names."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fanout.cluster.findings import Finding
from fanout.errors import Where

SUFFIXES = (".yaml", ".yml", ".json")
# Says how a directory is built and is no object of any cluster; Flux and Argo CD leave it out too.
_BUILD_FILES = ("kustomization.yaml", "kustomization.yml")


@dataclass(slots=True)
class Discovery:
    """The files in sorted order, each once, and what could not be looked into."""

    files: list[Path] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def discover(roots: Sequence[Path]) -> Discovery:
    """All *.yaml, *.yml and *.json files below the roots; a root that is a file is taken as it is.

    What is hidden (a leading dot, `.git` among it) and kustomize's own files are skipped. A symlink
    is followed inside its root; one that leads out of it is a finding, for who may write a
    directory of policies must not make fanout read any other file.
    """
    found = Discovery()
    seen: set[str] = set()  # real paths: a link to a file that is read anyhow is no second file
    for root in roots:
        if not root.exists():
            _tell(found, root, "there is no such file or directory", "check what is given to -f")
        elif root.is_dir():
            real_root = os.path.realpath(root)
            for path in _walk(root, real_root, found, seen):
                _take(path, found, seen)
        else:
            _take(root, found, seen)
    found.files.sort(key=lambda path: path.parts)
    return found


def _walk(directory: Path, root: str, found: Discovery, seen: set[str]) -> Iterator[Path]:
    real = os.path.realpath(directory)
    if real in seen:  # a circle of links
        return
    seen.add(real)
    try:
        with os.scandir(directory) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        _tell(found, directory, f"cannot be listed: {error.strerror}", "make it readable")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_symlink() and not _inside(path, root, found):
            continue
        if entry.is_dir():
            yield from _walk(path, root, found, seen)
        elif entry.name.endswith(SUFFIXES) and entry.name not in _BUILD_FILES:
            yield path


def _inside(link: Path, root: str, found: Discovery) -> bool:
    """Does the link lead to a place below the root? One that nobody would read does not matter."""
    real = os.path.realpath(link)
    if os.path.commonpath((real, root)) == root:
        return True
    if link.is_dir() or link.name.endswith(SUFFIXES):
        _tell(
            found, link, "is a symlink that leads out of the directory", "put the file itself there"
        )
    return False


def _take(path: Path, found: Discovery, seen: set[str]) -> None:
    real = os.path.realpath(path)
    if real in seen:
        return
    seen.add(real)
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        _tell(found, path, f"cannot be read: {error.strerror}", "remove it or mend it")
        return
    if regular:  # reading a pipe or a device might never end
        found.files.append(path)
    else:
        _tell(found, path, "is no ordinary file", "remove it")


def _tell(found: Discovery, path: Path, problem: str, remedy: str) -> None:
    found.findings.append(Finding(Where(file=str(path)), problem, remedy))
