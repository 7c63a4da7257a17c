"""File mode of the cluster: the objects that a directory of manifests declares (design §8).

`FileCluster` is for a process that stays: it parses a file again only when its content changed.
"""

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fanout.api.meta import DEFAULT_NAMESPACE
from fanout.cluster.declared import Declared, put_together
from fanout.cluster.discovery import discover
from fanout.cluster.documents import FileContent, ObjectKey, Place, places, read_content
from fanout.cluster.findings import Finding
from fanout.cluster.parsed import SMALLEST, ParsedFiles, key_of
from fanout.cluster.stock import NOTHING, Stock, joined
from fanout.errors import FanoutError, Unavailable, Where
from fanout.package.invalid import MAX_OBJECTS
from fanout.package.jsontext import is_json
from fanout.package.plainlines import Texts
from fanout.telemetry.barrier import BARRIER, run_contained, without_faulty
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
        self._files: dict[Path, _Read] = {}
        self._found: tuple[Finding, ...] = ()
        self._stock = NOTHING
        self._declared: Declared | None = None
        self._always = {} if typed is None else {Path(_TYPED): self._read_typed(typed)}

    def read(self) -> Declared:
        """What the files declare now; the same value as before when nothing changed.

        Raises nothing for what is wrong in the files: that is in `faults`.
        """
        found, texts = discover(self._paths), _Texts()
        findings = list(found.findings)
        files = dict(self._always)
        for path in found.files:
            try:
                with BARRIER:
                    files[path] = self._file(path, texts)
            except FanoutError as error:
                files[path] = self._unread(path, error.problem, error.remedy)
        same = [*files] == [*self._files] and all(
            read.content is self._files[path].content for path, read in files.items()
        )
        if self._declared is None or not same or tuple(findings) != self._found:
            contents = {str(path): read.content for path, read in files.items()}
            self._stock, self._declared = self._together(contents, findings)
        self._files, self._found = files, tuple(findings)
        return self._declared

    def _together(
        self, contents: Mapping[str, FileContent], findings: Sequence[Finding]
    ) -> tuple[Stock, Declared]:
        """All that the files declare. A file with which that fails counts as one not read."""

        def together(files: Sequence[tuple[str, FileContent]]) -> tuple[Stock, Declared]:
            stock = joined(dict(files), self._stock)
            return stock, put_together(dict(files), findings, stock, self._locate)

        found, faulty = without_faulty(together, [*contents.items()])
        if not faulty:
            return found
        names = [*contents]
        unread = {
            names[index]: _unread(Path(names[index]), error.problem, error.remedy)
            for index, error in faulty.items()
        }
        whole = run_contained(partial(together, [*{**contents, **unread}.items()]))
        if not isinstance(whole, FanoutError):
            return whole
        stock, declared = found  # even their names make it fail; what is told of others may be less
        faults = (it for content in unread.values() for it in content.findings)
        return stock, replace(
            declared,
            faults=(*declared.faults, *faults),
            unread=(*declared.unread, *unread),
        )

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

    def place_of(self, key: ObjectKey) -> str:
        """`file:line` of an object as it was read last; "" where it is not in these files."""
        for path, read in self._files.items():
            kind = read.content.others.get((key.group, key.kind), {})
            if (key.namespace, key.name) in kind:
                for place in self._locate(str(path)).get(key, ()):
                    return f"{place.file}:{place.line(('metadata', 'name'))}"
        ours = self._declared.places.get(key) if self._declared is not None else None
        return f"{ours.file}:{ours.line(('metadata', 'name'))}" if ours is not None else ""

    def _digest(self, digests: Mapping[Path, bytes], findings: Sequence[Finding]) -> str:
        if findings or self._typed is not None or not all(digests.values()):
            return ""
        whole = hashlib.sha256(self._namespace.encode())
        for path, digest in sorted(digests.items()):
            whole.update(b"%s\0%s" % (os.fsencode(path.absolute()), digest))
        return whole.hexdigest()

    def _file(self, path: Path, texts: _Texts) -> _Read:
        """The file's content, parsed anew only when its bytes are others. Raises Unavailable."""
        known = self._files.get(path)
        try:
            if known is not None and known.stamp == _stamp(path.stat()):
                return known
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                # No more than tells that it is too large, which parsing it then says with its name.
                data = file.read(MAX_OBJECTS + 1)
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            raise Unavailable(problem, remedy="make it readable") from error
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        stamp = _stamp(status) if time.time_ns() - changed > _SETTLED_NS else None
        digest = hashlib.sha256(data).digest()
        if known is not None and known.digest == digest:
            return replace(known, stamp=stamp)
        return _Read(stamp, digest, self._content(path, data, digest, texts))

    def _read_typed(self, data: bytes) -> _Read:
        try:
            with BARRIER:
                return _Read(None, b"", read_content(data, _TYPED, self._namespace))
        except FanoutError as error:
            return self._unread(Path(_TYPED), error.problem, error.remedy)

    def _unread(self, path: Path, problem: str, remedy: str) -> _Read:
        """A file that could not be read: not skipped, since what it would declare is not known.

        The same value as before where it is the same failure, so that nothing has changed.
        """
        content = _unread(path, problem, remedy)
        known = self._files.get(path)
        return known if known and known.content == content else _Read(None, b"", content)

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
        """The places in a file; none where it changed in this very moment or has a fault."""
        try:
            data = self._typed if file == _TYPED else None
            data = Path(file).read_bytes() if data is None else data
            with BARRIER:
                return places(data, file, self._namespace)
        except (FanoutError, OSError):
            return {}


def _unread(path: Path, problem: str, remedy: str) -> FileContent:
    fault = Finding(Where(file=str(path)), problem, remedy)
    return FileContent(findings=(fault,), unread=True)


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
