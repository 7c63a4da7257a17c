"""Output of a merge: the files of the merged package, and notes for people.

Each file begins as the local one (a new file as upstream's). Its documents are taken
from one side, spliced into the local text (`text_splice`), or edited where splicing is
not possible: JSON, anchors, documents that moved to a file of another format. The
result is parsed once to verify that it reads as decided.

A comment changes no value, so an element that upstream removed goes even if a comment was written
into it locally. That is no conflict, but it is noted. So are files that are no KRM although they
look like manifests, and names that Kubernetes does not read as strings.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fanout.control_characters import escape_unprintable
from fanout.package.field_edits import Edit, Path, diff_values, format_path, same_json
from fanout.package.json_manifest import is_json
from fanout.package.manifest import Manifest
from fanout.package.merge.kpt_clone import is_kpt_comment
from fanout.package.merge.merge_units import (
    DocumentReader,
    MergeFile,
    MergeUnit,
    UnitSides,
    format_identity,
    is_list,
    is_manifest,
    object_identity,
    values_of,
)
from fanout.package.merge.merge_values import MergeOutcome, SideValue, ValueSource, find_line_end
from fanout.package.merge.text_splice import CannotSplice, splice_document
from fanout.package.tree_ids import Files
from fanout.package.yaml_scalars import BOOLEAN_WORDS, dump, dump_all
from fanout.values import Value

FileSides = tuple[MergeFile | None, MergeFile | None, MergeFile | None]


class ResultUnit(Value):
    """Unit of the result that is a document of its own in a file."""

    path: str  # of the file
    outcome: MergeOutcome
    units: UnitSides

    @property
    def source_unit(self) -> MergeUnit:
        """Unit whose text the result starts from: JSON for JSON, YAML for YAML."""
        _, upstream, local = self.units
        prefers_upstream = (
            self.outcome.source is ValueSource.UPSTREAM or local is None or is_in_list(local)
        )
        candidates = [
            unit for unit in ((upstream, local) if prefers_upstream else (local, upstream)) if unit
        ]
        same_format = (it for it in candidates if is_json(it.document.file) == is_json(self.path))
        return next(same_format, candidates[0])

    def document_text(self, use_edits: bool = False) -> str:
        """Return the text of the document.

        `use_edits`: do not splice, because a first attempt did not read as decided.
        """
        source, data, value_source = self.source_unit, self.outcome.data, self.outcome.source
        _, upstream, local = self.units
        if is_in_list(source):
            return dump(data)
        takes_upstream = value_source is ValueSource.UPSTREAM
        if (takes_upstream and source is upstream) or (
            value_source is ValueSource.LOCAL and source is local
        ):
            return source.document.text
        if not use_edits and source is local and not takes_upstream:
            origin_value, upstream_value, _ = values_of(self.units)
            try:
                return splice_document((origin_value, upstream_value, source.value), self.outcome)
            except CannotSplice:
                pass
        document = source.document
        manifest = Manifest.parse(document.text.encode(), document.file)
        index = manifest.documents[0].index
        edits = [Edit(index, *change) for change in diff_values(document.value.data, data)]
        return manifest.apply_edits_to_text(edits).decode()


def is_in_list(unit: MergeUnit) -> bool:
    """Return whether the unit is an item of a List."""
    return len(unit.container) > 1


def write_file(placed: Sequence[ResultUnit], sides: FileSides, reader: DocumentReader) -> bytes:
    """Return the bytes of a file with these units, in this order.

    `sides`: the file in origin, upstream and local.
    """
    origin_file, upstream_file, local_file = sides
    base = local_file or upstream_file
    assert base is not None
    writer = _FileWriter(placed, base, sides)
    # Nobody touched the file locally: upstream's bytes, so that layout and what stands
    # between the documents follow upstream.
    if (
        origin_file
        and upstream_file
        and local_file
        and local_file.data == origin_file.data
        # Its layout is no difference.
        and same_json(
            [unit.outcome.data for unit in placed],
            [document.value.data for document in upstream_file.documents],
        )
    ):
        return upstream_file.data
    if _is_unchanged_from(
        placed, local_file, 2, ValueSource.LOCAL
    ) and writer.text_before_documents() == base.between(0):
        return base.data
    if _is_unchanged_from(placed, upstream_file, 1, ValueSource.UPSTREAM) and (
        local_file is None or origin_file is None or local_file.data == origin_file.data
    ):
        assert upstream_file is not None
        return upstream_file.data
    bom, crlf = base.bom, base.crlf
    # the byte order mark and line breaks are merged three ways, too
    if origin_file and upstream_file and local_file:
        bom = upstream_file.bom if local_file.bom == origin_file.bom else local_file.bom
        crlf = upstream_file.crlf if local_file.crlf == origin_file.crlf else local_file.crlf
    if is_json(base.path):
        return bom + placed[0].document_text().encode()
    # Splicing keeps most of the text and is verified by reading. If it reads
    # differently, the documents are edited instead, which may lose layout; if even that
    # fails, they are written anew.
    text = writer.assemble_text(use_edits=False)
    data = [unit.outcome.data for unit in placed]
    if not reader.reads_as(text, data):
        text = writer.assemble_text(use_edits=True)
        if not reader.reads_as(text, data):
            text = dump_all(data)
    return bom + (text.replace("\n", "\r\n") if crlf else text).encode()


def _is_unchanged_from(
    placed: Sequence[ResultUnit], file: MergeFile | None, side: int, value_source: ValueSource
) -> bool:
    """Return whether one side's file is exactly these units, all taken from that side."""
    if file is None or len(placed) != len(file.documents):
        return False
    return all(
        unit.outcome.source is value_source
        and (side_unit := unit.units[side]) is not None
        and side_unit.document is document
        and not is_in_list(side_unit)
        for unit, document in zip(placed, file.documents, strict=True)
    )


def _missing_break(text: str) -> str:
    return "" if text.endswith("\n") else "\n"


class _FileWriter(Value):
    placed: Sequence[ResultUnit]
    base: MergeFile
    sides: FileSides

    def assemble_text(self, *, use_edits: bool) -> str:
        """Return the complete text, with the base file's text between its documents."""
        tail = self.base.tail if self.base.documents else ""
        chunks = [self.text_before_documents()]
        for unit in self.placed:
            if unit is not self.placed[0]:
                chunks += [_missing_break(chunks[-1]), self.text_before(unit)]
            text = unit.document_text(use_edits)
            if use_edits and _missing_break(text) and (tail or unit is not self.placed[-1]):
                text = dump(unit.outcome.data)  # a line break would belong to its last text
            chunks.append(text)
        if tail:
            chunks += [_missing_break(chunks[-1]), tail]
        return "".join(chunks)

    def text_before(self, unit: ResultUnit) -> str:
        """Return the base file's text before the unit's document, or a marker."""
        for side_unit in (unit.units[2], unit.units[1]):
            if side_unit and not is_in_list(side_unit):
                number = side_unit.document.number
                if any(it is side_unit.document for it in self.base.documents[number : number + 1]):
                    return self.base.between(number) if number else "---\n"
        return "---\n"

    def text_before_documents(self) -> str:
        """Return the text before the first document; upstream's if it was not changed locally."""
        heads = [file.between(0) if file and file.documents else None for file in self.sides]
        if heads[1] is not None and heads[0] == heads[2] != heads[1]:
            return heads[1]
        if self.base.documents:
            return self.base.between(0)
        text = self.base.text
        return text if not text or text.endswith("\n") else text + "\n"


# ---- notes --------------------------------------------------------------------------------------


def find_lost_comments(
    origin: Iterable[MergeFile], local: Sequence[MergeFile], result: Mapping[str, bytes]
) -> list[str]:
    """Return a note for each local comment that neither origin nor result contains."""
    # Counted by text first, without a parser: nearly always nothing is left, and then
    # no node is read.
    if not (lost := Counter(part for file in local for part in _possible_comments(file.text))):
        return []
    lost -= Counter(part for file in origin for part in _possible_comments(file.text))
    texts = (data.decode(errors="replace") for data in result.values())
    lost -= Counter(part for text in texts for part in _possible_comments(text))
    notes = []
    # Of several equal comments, the lost one is most likely in a file that was removed.
    for file in sorted(local, key=lambda file: file.path in result) if lost else ():
        for position, comment in file.iter_comments():
            if lost[comment] > 0 and not is_kpt_comment(comment):
                lost[comment] -= 1
                line = file.text.count("\n", 0, position) + 1
                place = f"{escape_unprintable(file.path)}:{line}"
                owner = _describe_location(file, position)
                notes.append(f'{place}: the comment "{comment}" was removed with {owner}')
    return notes


def _possible_comments(text: str) -> Iterator[str]:
    """Yield possible comments: from each `#` at a word's start to the line's end."""
    position = text.find("#")
    while position >= 0:
        if position == 0 or text[position - 1] in " \t\n":
            yield text[position : find_line_end(text, position)].rstrip()
        position = text.find("#", position + 1)


def _describe_location(file: MergeFile, position: int) -> str:
    """Return the object and field that a comment belongs to, for a message."""
    for document in file.documents:
        if document.start <= position <= document.end:
            identity = object_identity(document.value.data)
            path = _path_at(document.value, position - document.offset)
            parts = [format_identity(identity)] if identity else []
            parts += [format_path(path)] if path else []
            return ": ".join(parts) or "its document"
    return "the file"


def _path_at(value: SideValue, position: int) -> Path:
    """Return the path of the innermost entry whose lines contain the position.

    Comments above the document's first key belong to the document: ().
    """
    first = next(iter(value.children.values()), None)
    if first is None or first.span is None or position < first.span.start:
        return ()
    path: Path = ()
    while True:
        for part, child in value.children.items():
            if child.span is not None and child.span.comments_start <= position <= child.span.eol:
                path, value = (*path, part), child
                break
        else:
            return path


_NOT_A_STRING: Final = "|".join((*sorted(BOOLEAN_WORDS), r"[-+.0-9][^\n]*"))
_SUSPECT_NAME: Final = re.compile(
    rf"\bname(?:space)?:[ \t]+(?:{_NOT_A_STRING})[ \t]*[\n#,}}]".encode()
)


def find_doubtful_files(
    sides: tuple[Files, Files, Files], reader: DocumentReader, ignored: Collection[str]
) -> Iterator[str]:
    """Yield a note for each local file that is no KRM, and each name that is no string.

    `sides`: origin, upstream and local files. Those that are `ignored` hold no objects. Unchanged
    files are not read: their notes were given when they were new.
    """
    origin, upstream, local = sides
    for path in sorted({*upstream, *local}):
        if not is_manifest(path) or is_json(path) or path in ignored:
            continue
        if (original := origin.get(path)) is None and path not in upstream:
            if (file := reader.parse(path, local[path][1])) is None:
                yield f"{escape_unprintable(path)}: not readable as YAML; kept unchanged"
            elif not any(
                is_list(data) or object_identity(data) or _find_invalid_name(data)
                for data in (document.value.data for document in file.documents)
            ):
                yield f"{escape_unprintable(path)}: contains no KRM object; kept unchanged"
        changed = [
            files[path] for files in (upstream, local) if files.get(path, original) != original
        ]
        # Most files are not read by a merge that takes them from one side as they are.
        suspects = [data for _, data in changed if _SUSPECT_NAME.search(data)]
        files = [reader.parse(path, data) for data in suspects]
        yield from dict.fromkeys(
            note for file in files if file for note in _note_invalid_names(file)
        )


def _note_invalid_names(file: MergeFile) -> Iterator[str]:
    for document in file.documents:
        if (invalid_name := _find_invalid_name(document.value.data)) is None:
            continue
        field, value = invalid_name
        kind = document.value.data["kind"]
        meaning = f"a boolean ({str(value).lower()})" if isinstance(value, bool) else "a number"
        yield (
            f"{escape_unprintable(file.path)}:{document.line + 1}: metadata.{field} of this {kind}"
            f" is {meaning} in Kubernetes, not a name; quote it"
        )


def _find_invalid_name(data: Any) -> tuple[str, Any] | None:
    """Return the name or namespace field and its value, if that is not a string."""
    if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str):
        return None
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping) or "apiVersion" not in data:
        return None
    for field in ("name", "namespace"):
        value = metadata.get(field)
        if isinstance(value, bool | int | float):
            return field, value
    return None
