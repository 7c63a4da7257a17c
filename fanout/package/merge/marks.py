"""Takes `kpt-merge` marks off objects that have been given another name since.

The mark says what an object was called upstream. Where a pipeline has renamed it there too, the
mark would keep it from being found under its own name.
"""

import re
from collections.abc import Collection
from typing import Final

from fanout.package.invalid import BOM
from fanout.package.merge.documents import Document, File, Reader, is_manifest
from fanout.package.merge.identity import Identity, identity_of, merge_identity
from fanout.package.merge.packages import Files, package_of
from fanout.package.merge.sides import line_end

_MARK: Final = re.compile(r"(?P<before>[ \t]*#.*?)\bkpt-merge:\s*[^\s/]*/[^\s/]+[ \t]*$")


def without_marks(files: Files, known: Collection[tuple[str, Identity]]) -> Files:
    """The files; no object in them that is `known` by its own name is marked with another one."""
    reader, directories = Reader(), {directory for directory, _ in known}
    changed: dict[str, tuple[str, bytes]] = {}
    for path, (mode, data) in files.items():
        file = reader.parse(path, data) if b"kpt-merge" in data and is_manifest(path) else None
        if file is None:
            continue
        directory = package_of(path, directories)
        stale = [it for it in file.documents if _stale(it, directory, known)]
        if stale:
            changed[path] = mode, _unmarked(file, stale)
    return {**files, **changed}


def _stale(document: Document, directory: str, known: Collection[tuple[str, Identity]]) -> bool:
    value = document.value
    identity = identity_of(value.data)
    if identity is None or (directory, identity) not in known:
        return False
    named = merge_identity(value)
    return named is not None and named != identity and (directory, named) not in known


def _unmarked(file: File, stale: list[Document]) -> bytes:
    text = file.text
    for document in reversed(stale):
        value = document.value
        metadata = value.children["metadata"]
        assert value.slot is not None, "it is a document"
        assert metadata.slot is not None, "it has a mark, and that stands on a line"
        shift = document.start - (value.slot.mark + 1)
        start = shift + metadata.slot.mark
        end = shift + line_end(value.text, metadata.slot.mark)
        text = text[:start] + _MARK.sub(_kept, text[start:end]) + text[end:]
    data = (text.replace("\n", "\r\n") if file.crlf else text).encode()
    return data if data.startswith(file.bom) else BOM + data


def _kept(match: re.Match[str]) -> str:
    """What else the comment says."""
    before = match["before"].rstrip()
    return "" if before.strip() == "#" else before
