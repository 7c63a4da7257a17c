"""Notes of a merge for people: lost comments, and files with a doubtful meaning.

A comment changes no value, so an element that upstream removed goes even if a comment was written
into it locally. That is no conflict, but it is reported. So are files that are no KRM although they
look like manifests, and names that Kubernetes does not read as strings.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fanout.control_characters import escape_unprintable
from fanout.package.field_edits import Path, format_path
from fanout.package.json_manifest import is_json
from fanout.package.merge.kpt_clone import is_kpt_comment
from fanout.package.merge.merge_units import (
    DocumentReader,
    MergeFile,
    format_identity,
    is_list,
    is_manifest,
    object_identity,
)
from fanout.package.merge.merge_values import SideValue, find_line_end
from fanout.package.tree_ids import Files
from fanout.package.yaml_scalars import BOOLEAN_WORDS


def find_lost_comments(
    origin: Iterable[MergeFile], local: Sequence[MergeFile], result: Mapping[str, bytes]
) -> list[str]:
    """Return a note for each local comment that neither origin nor result contains."""
    # Counted by text first, without a parser: nearly always nothing is left, and then
    # no node is read.
    lost = Counter(part for file in local for part in _possible_comments(file.text))
    if not lost:
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
        original = origin.get(path)
        if original is None and path not in upstream:
            file = reader.parse(path, local[path][1])
            if file is None:
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
        invalid_name = _find_invalid_name(document.value.data)
        if invalid_name is None:
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
