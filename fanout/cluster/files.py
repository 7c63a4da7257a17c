"""File mode of the cluster: the objects that a directory of manifests declares (design §8).

`FileCluster` is for a process that stays: it parses a file again only when its content changed.
"""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.cluster.declared import Declared, put_together
from fanout.cluster.discovery import discover
from fanout.cluster.documents import FileContent, ObjectKey, Place, places, read_content
from fanout.cluster.findings import Finding
from fanout.cluster.parsed import SMALLEST, ParsedFiles, key_of
from fanout.cluster.stock import NOTHING, joined
from fanout.errors import Where
from fanout.package.invalid import MAX_OBJECTS, InvalidManifest
from fanout.package.jsontext import is_json
from fanout.package.plainlines import Texts
from fanout.values import frozen

# A file written so short a time ago could change again and keep its time stamps.
_SETTLED_NS = 2_000_000_000
_TYPED = "-"  # what stands for a file's name in sentences about standard input


@frozen
class _Read:
    """A file as it was read; `stamp` is None while it cannot be trusted to tell a change."""

    stamp: tuple[int, ...] | None
    digest: bytes
    content: FileContent


@frozen
class _Texts:
    """Texts that many files have in common, while all are read."""

    parsed: Texts = field(default_factory=Texts)
    kept: dict[Any, Any] = field(default_factory=dict)


class FileCluster:
    """What files declare, read again and again. One thread at a time may read."""

    def __init__(
        self,
        paths: Sequence[Path],
        namespace: str = DEFAULT_NAMESPACE,
        typed: bytes | None = None,
        parsed: ParsedFiles | None = None,
    ) -> None:
        """Objects that name no namespace are in `namespace`; `typed` came from standard input.

        `parsed` is what earlier commands have read.
        """
        self._paths = tuple(paths)
        self._namespace = namespace
        self._typed = typed
        self._parsed = parsed
        content = None if typed is None else read_content(typed, _TYPED, namespace)
        self._always = {} if content is None else {Path(_TYPED): _Read(None, b"", content)}
        self._files: dict[Path, _Read] = {}
        self._found: tuple[Finding, ...] = ()
        self._stock = NOTHING
        self._declared: Declared | None = None

    def read(self) -> Declared:
        """What the files declare now; the same value as before when nothing changed.

        Raises nothing for what is wrong in the files: that is in `faults`.
        """
        found, texts = discover(self._paths), _Texts()
        findings = list(found.findings)
        files = dict(self._always)
        for path in found.files:
            try:
                files[path] = self._file(path, texts)
            except OSError as error:
                # Not skipped: what it would have declared is not known.
                problem = f"cannot be read: {error.strerror}"
                fault = Finding(Where(file=str(path)), problem, "make it readable")
                files[path] = _Read(None, b"", FileContent(findings=(fault,), unread=True))
        same = [*files] == [*self._files] and all(
            read.content is self._files[path].content for path, read in files.items()
        )
        if self._declared is None or not same or tuple(findings) != self._found:
            contents = {str(path): read.content for path, read in files.items()}
            self._stock = joined(contents, self._stock)
            self._declared = put_together(contents, findings, self._stock, self._locate)
        self._files, self._found = files, tuple(findings)
        return self._declared

    def digest(self) -> str:
        """Of all files as they are now, none of them parsed; "" where one cannot be read."""
        found = discover(self._paths)
        try:
            digests = {path: hashlib.sha256(path.read_bytes()).digest() for path in found.files}
        except OSError:
            return ""
        return self._digest(digests, found.findings)

    def digest_read(self) -> str:
        """The same of what was read last."""
        return self._digest({path: it.digest for path, it in self._files.items()}, self._found)

    def _digest(self, digests: Mapping[Path, bytes], findings: Sequence[Finding]) -> str:
        if findings or self._typed is not None or not all(digests.values()):
            return ""
        whole = hashlib.sha256(self._namespace.encode())
        for path, digest in sorted(digests.items()):
            whole.update(b"%s\0%s" % (os.fsencode(path.absolute()), digest))
        return whole.hexdigest()

    def _file(self, path: Path, texts: _Texts) -> _Read:
        """The file's content, parsed anew only when its bytes are others. Raises OSError."""
        known = self._files.get(path)
        if known is not None and known.stamp == _stamp(path.stat()):
            return known
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            # No more than tells that it is too large, which parsing it then says with its name.
            data = file.read(MAX_OBJECTS + 1)
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        stamp = _stamp(status) if time.time_ns() - changed > _SETTLED_NS else None
        digest = hashlib.sha256(data).digest()
        if known is not None and known.digest == digest:
            return replace(known, stamp=stamp)
        return _Read(stamp, digest, self._content(path, data, digest, texts))

    def _content(self, path: Path, data: bytes, digest: bytes, texts: _Texts) -> FileContent:
        """What the bytes hold; files of many plain objects are not read twice."""
        file = str(path)
        if self._parsed is None or len(data) < SMALLEST:
            return read_content(data, file, self._namespace, texts.parsed)
        key = key_of(digest, self._namespace, as_json=is_json(file))
        kinds = self._parsed.find(key, texts.kept)
        if kinds is not None:
            return FileContent(others=kinds)
        content = read_content(data, file, self._namespace, texts.parsed)
        if content.plain:
            self._parsed.keep(key, content.others)
        return content

    def _locate(self, file: str) -> Mapping[ObjectKey, Sequence[Place]]:
        try:
            if file == _TYPED and self._typed is not None:
                return places(self._typed, file, self._namespace)
            return places(Path(file).read_bytes(), file, self._namespace)
        except (InvalidManifest, OSError):  # changed in this very moment; the next pass tells
            return {}


def read_directory(paths: Sequence[Path], namespace: str = DEFAULT_NAMESPACE) -> Declared:
    """What all manifests below the paths declare, and every fault of every document."""
    return FileCluster(paths, namespace).read()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
