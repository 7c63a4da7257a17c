"""Discovery of manifests below the paths that a user gives: which files, and which links."""

import os
import stat
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation

MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
# Build files of kustomize are no cluster objects; Flux and Argo CD skip them too.
_KUSTOMIZE_FILES = ("kustomization.yaml", "kustomization.yml")


# A process that stays finds the same files every two seconds. A path that is there already has its
# parts and its hash, which is half of the time that a reading without a change takes.
_intern_path = lru_cache(1 << 16)(Path)


class ManifestDiscovery:
    """Files with their status in sorted order, each once, and errors from searching paths.

    All *.yaml, *.yml and *.json files below the roots are found. A file as root is always read.
    Hidden entries (`.git` among them) and kustomize's own files are skipped. A symlink is followed
    inside its root; one that leaves it is an error, because write access to a directory of policies
    must not let fanout read other files.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        """Search the roots."""
        self.findings: list[Finding] = []
        self._visited: set[str] = set()  # real paths, so that a file and links to it count once
        self._files: dict[Path, os.stat_result] = {}
        for root in roots:
            if not root.exists():
                self._add_finding(root, "does not exist", "correct the path of -f")
            elif root.is_dir():
                self._walk(root, os.path.realpath(root))
            else:
                self._add_file(root, os.path.realpath(root), root.stat)
        # Sorted by parts, so that the order does not depend on characters that sort before "/".
        paths = sorted(self._files, key=lambda path: path.parts)
        self.files = {path: self._files[path] for path in paths}

    def _walk(self, directory: Path, root: str) -> None:
        real = os.path.realpath(directory)
        if real in self._visited:  # a cycle of links
            return
        self._visited.add(real)
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            problem = f"cannot be listed: {error.strerror}"
            self._add_finding(directory, problem, "make it readable")
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            path, is_link = _intern_path(entry.path), entry.is_symlink()
            if is_link and os.path.commonpath((os.path.realpath(path), root)) != root:
                if path.is_dir() or path.name.endswith(MANIFEST_SUFFIXES):
                    problem = "is a symlink to a path outside the directory"
                    self._add_finding(path, problem, "replace it with the file")
            elif entry.is_dir():
                self._walk(path, root)
            elif entry.name.endswith(MANIFEST_SUFFIXES) and entry.name not in _KUSTOMIZE_FILES:
                # Only a link can lead elsewhere; resolving each of thousands of files takes longer
                # than all else that is done with an unchanged one.
                real_path = os.path.realpath(path) if is_link else f"{real}/{entry.name}"
                self._add_file(path, real_path, entry.stat)

    def _add_file(
        self, path: Path, real_path: str, read_status: Callable[[], os.stat_result]
    ) -> None:
        if real_path in self._visited:
            return
        self._visited.add(real_path)
        try:
            status = read_status()
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            self._add_finding(path, problem, "remove it, or make it readable")
            return
        if stat.S_ISREG(status.st_mode):  # reading a pipe or a device might never end
            self._files[path] = status
        else:
            self._add_finding(path, "is not a regular file", "remove it")

    def _add_finding(self, path: Path, problem: str, remedy: str) -> None:
        self.findings.append(file_finding(path, problem, remedy))


def file_finding(path: Path, problem: str, remedy: str) -> Finding:
    """Build the finding about a file as a whole."""
    return Finding(ErrorLocation(file=str(path)), problem, remedy)
