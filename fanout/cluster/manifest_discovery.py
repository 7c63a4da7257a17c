"""Discovery of manifest files below the paths that a user supplied."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fanout.cluster.file_findings import FileFinding
from fanout.errors import ErrorLocation

MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
# Build files of kustomize are no cluster objects; Flux and Argo CD skip them too.
_KUSTOMIZE_FILES = ("kustomization.yaml", "kustomization.yml")


@dataclass(slots=True)
class ManifestDiscovery:
    """Files in sorted order, each once, and errors for paths that could not be searched."""

    files: list[Path] = field(default_factory=list)
    findings: list[FileFinding] = field(default_factory=list)


def discover_manifests(roots: Sequence[Path]) -> ManifestDiscovery:
    """Find all *.yaml, *.yml and *.json files below the roots.

    A file as root is always read. Hidden entries (`.git` among them) and kustomize's own
    files are skipped. A symlink is followed inside its root; one that leaves it is an
    error, because write access to a directory of policies must not let fanout read other
    files.
    """
    discovery = ManifestDiscovery()
    visited: set[str] = set()  # real paths, so that a file and links to it count once
    for root in roots:
        if not root.exists():
            _add_finding(
                discovery, root, "there is no such file or directory", "check what is given to -f"
            )
        elif root.is_dir():
            real_root = os.path.realpath(root)
            for path in _walk(root, real_root, discovery, visited):
                _add_file(path, discovery, visited)
        else:
            _add_file(root, discovery, visited)
    # Sorted by parts, so that the order does not depend on characters that sort before "/".
    discovery.files.sort(key=lambda path: path.parts)
    return discovery


def _walk(
    directory: Path, root: str, discovery: ManifestDiscovery, visited: set[str]
) -> Iterator[Path]:
    real = os.path.realpath(directory)
    if real in visited:  # a cycle of links
        return
    visited.add(real)
    try:
        with os.scandir(directory) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        _add_finding(
            discovery, directory, f"cannot be listed: {error.strerror}", "make it readable"
        )
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_symlink() and not _is_inside(path, root, discovery):
            continue
        if entry.is_dir():
            yield from _walk(path, root, discovery, visited)
        elif entry.name.endswith(MANIFEST_SUFFIXES) and entry.name not in _KUSTOMIZE_FILES:
            yield path


def _is_inside(link: Path, root: str, discovery: ManifestDiscovery) -> bool:
    """Return whether the link leads below the root; a link to no manifest is not reported."""
    real = os.path.realpath(link)
    if os.path.commonpath((real, root)) == root:
        return True
    if link.is_dir() or link.name.endswith(MANIFEST_SUFFIXES):
        _add_finding(
            discovery,
            link,
            "is a symlink that leads out of the directory",
            "put the file itself there",
        )
    return False


def _add_file(path: Path, discovery: ManifestDiscovery, visited: set[str]) -> None:
    real = os.path.realpath(path)
    if real in visited:
        return
    visited.add(real)
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        _add_finding(discovery, path, f"cannot be read: {error.strerror}", "remove it or mend it")
        return
    if regular:  # reading a pipe or a device might never end
        discovery.files.append(path)
    else:
        _add_finding(discovery, path, "is no ordinary file", "remove it")


def _add_finding(discovery: ManifestDiscovery, path: Path, problem: str, remedy: str) -> None:
    discovery.findings.append(FileFinding(ErrorLocation(file=str(path)), problem, remedy))
