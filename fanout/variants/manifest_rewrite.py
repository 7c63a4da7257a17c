"""Rewriting of manifests after the functions: edits, comments, removals, replacements.

Fields are set one by one. Where elements of a list were added, removed or moved, the
object's lines are rewritten at once, so that comments, and the setters in them, move
with their elements and are there for the next function.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import Edit, Path, format_path, same_json
from fanout.package.manifest import Document, Manifest
from fanout.package.merge.list_rearrangement import (
    RearrangedList,
    ValueChanges,
    apply_rearranged_lists,
    compare_values,
)
from fanout.package.merge.merge_keys import DEFAULT_SHAPE, Schemas, find_shape
from fanout.package.yaml_nodes import InvalidManifest
from fanout.selection.cluster_objects import group_of
from fanout.variants.manifest_objects import ITEMS, ListItem, find_objects
from fanout.variants.overlay import ObjectChanges, Overlay


def rewrite_manifest(
    manifest: Manifest, changes_by_number: Mapping[int, ObjectChanges]
) -> bytes | None:
    """Return the file's bytes after the changes, or None if no object is left.

    `changes_by_number` has the changes by the object's number in the file. A List is
    removed with its last item. Raises InvalidInput for a comment that cannot be placed.
    """
    edits: list[Edit] = []
    needs_second_pass = False
    texts = {number: it.text for number, it in changes_by_number.items() if it.text is not None}
    if texts:
        manifest = _replace_lines(manifest, texts)
    for changes in changes_by_number.values():
        edits += changes.edits
        needs_second_pass = needs_second_pass or changes.dropped or bool(changes.comments)
    data = manifest.apply_edits_to_text(edits)
    # Comments and removals need the positions of the edited text, hence a second parse. Few
    # files have any, so the others are not charged for it.
    return (
        _apply_comments_and_removals(data, manifest.file, changes_by_number)
        if needs_second_pass
        else data
    )


def _replace_lines(manifest: Manifest, texts: Mapping[int, str]) -> Manifest:
    """Return the file with the lines of some objects replaced, by number."""
    objects = find_objects(manifest)
    document_texts: dict[int, str] = {}
    item_texts: dict[int, dict[Path, str]] = {}
    for number, text in texts.items():
        manifest_object = objects[number]
        if isinstance(manifest_object, ListItem):
            item_texts.setdefault(manifest_object.index, {})[manifest_object.path] = text
        else:
            document_texts[manifest_object.index] = text
    edits: list[Edit] = []
    for index, its_texts in item_texts.items():
        lines = manifest.document(index).replace_elements_text(its_texts)
        if lines is not None:
            document_texts[index] = lines
            continue
        for path, text in its_texts.items():
            document = Manifest.parse(text.encode(), manifest.file).documents[0]
            edits.append(Edit(index, path, document.value))
    if edits:
        manifest = Manifest.parse(manifest.apply_edits_to_text(edits), manifest.file)
    return (
        Manifest.parse(manifest.replace_documents(document_texts), manifest.file)
        if document_texts
        else manifest
    )


def _apply_comments_and_removals(
    data: bytes, file: str, changes_by_number: Mapping[int, ObjectChanges]
) -> bytes | None:
    manifest = Manifest.parse(data, file)
    objects = find_objects(manifest)
    comments: dict[int, dict[Path, str]] = {}
    for number, changes in changes_by_number.items():
        manifest_object = objects[number]
        for path, text in changes.comments:
            comments.setdefault(manifest_object.index, {})[*manifest_object.path, *path] = text
    if comments:
        data = _add_comments(manifest, comments)
    dropped = [number for number, changes in changes_by_number.items() if changes.dropped]
    return remove_objects(Manifest.parse(data, file), dropped) if dropped else data


def remove_objects(manifest: Manifest, numbers: Collection[int]) -> bytes | None:
    """Return the file's bytes without some of its objects, or None if none is left."""
    documents: set[int] = set()
    removed_items: dict[int, set[int]] = {}
    objects = find_objects(manifest)
    for number in numbers:
        manifest_object = objects[number]
        if isinstance(manifest_object, ListItem):
            removed_items.setdefault(manifest_object.index, set()).add(manifest_object.number)
        else:
            documents.add(manifest_object.index)
    for index, item_indexes in removed_items.items():
        document = manifest.document(index)
        if len(item_indexes) == len(document.value[ITEMS]):
            documents.add(index)
        else:
            manifest = Manifest.parse(
                _remove_items(manifest, document, item_indexes), manifest.file
            )
    return manifest.remove_documents(documents)


def _remove_items(manifest: Manifest, document: Document, item_indexes: Collection[int]) -> bytes:
    """Return the file without some items of a List; the other items keep their lines."""
    remaining = [item for at, item in enumerate(document.value[ITEMS]) if at not in item_indexes]
    rearrangements = [RearrangedList((ITEMS,), remaining, DEFAULT_SHAPE)]
    text = (
        apply_rearranged_lists(document.document_text(), rearrangements)
        if document.root is not None
        else None
    )
    if text is not None:
        data = manifest.replace_documents({document.index: text})
        expected_values = [
            {**it.value, ITEMS: remaining} if it is document else it.value
            for it in manifest.documents
        ]
        if same_json(
            [it.value for it in Manifest.parse(data, manifest.file).documents], expected_values
        ):
            return data
    # From the last to the first: removing an item shifts the index of those after it.
    edits = [Edit(document.index, (ITEMS, at)) for at in sorted(item_indexes, reverse=True)]
    return manifest.apply_edits_to_text(edits)


def _add_comments(manifest: Manifest, comments: Mapping[int, Mapping[Path, str]]) -> bytes:
    for index, comments_by_path in comments.items():
        document = manifest.document(index)
        spellings = document.spellings()
        for path in comments_by_path:
            if path not in spellings or not spellings[path].has_comment_room:
                raise InvalidInput(
                    "there is no room for a comment",
                    reason=Reason.RENDER_FAILED,
                    remedy="write the value on a line of its own, or exclude the object",
                    where=ErrorLocation(
                        field=format_path(path), file=manifest.file, line=document.line_of(path)
                    ),
                )
    return manifest.add_line_comments(comments)


def join_documents(parts: Sequence[bytes]) -> bytes:
    """Return documents, or files of them, as one file with the line breaks of the first."""
    first, *later_parts = parts
    text = first.decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    for part in later_parts:
        gap = "" if text.endswith("\n") else newline
        text += f"{gap}---{newline}{part.decode().replace(chr(10), newline)}"
    return text.encode()


def replace_object(overlay: Overlay, value: Any, schemas: Schemas) -> None:
    """Replace the object's value, keeping as much of its text as possible.

    `schemas` describe the kinds that the package defines; they tell which key identifies
    the elements of a list. Raises InvalidInput with file and line where an earlier
    comment cannot be placed.
    """
    group, kind = group_of(str(value.get("apiVersion", ""))), str(value.get("kind", ""))
    changes = compare_values(overlay.value, value, find_shape(group, kind, schemas))
    lines = overlay.lines()
    if changes.rearranged_lists and lines is not None:
        rewritten = _rewrite_lines(overlay, lines, changes)
        # Rearranging works on lines and can fail on unusual layouts, so the result must parse to
        # the wanted value. Otherwise the list is set as a value, which loses its comments.
        if rewritten is not None and same_json(rewritten[1].value, value):
            overlay.rebase(*rewritten)
            return
    for path, field in changes.field_edits:
        overlay.set(path, field)
    for path, elements, _ in changes.rearranged_lists:
        overlay.set(path, elements)


def _rewrite_lines(
    overlay: Overlay, lines: str, changes: ValueChanges
) -> tuple[str, Document] | None:
    """Return the object's lines after all changes, and their parsed document, if possible."""
    earlier_changes = overlay.collect_changes()
    prefix_length = len(overlay.path_in_document)
    edits = tuple(Edit(0, edit.path[prefix_length:], edit.value) for edit in earlier_changes.edits)
    document_alone = Manifest.parse(lines.encode(), "")
    data = rewrite_manifest(document_alone, {0: earlier_changes._replace(edits=edits, text=None)})
    assert data is not None, "it is not dropped"
    fields = [Edit(0, path, value) for path, value in changes.field_edits]
    text = apply_rearranged_lists(
        Manifest.parse(data, "").apply_edits_to_text(fields).decode(), changes.rearranged_lists
    )
    if text is None:
        return None
    try:
        documents = Manifest.parse(text.encode(), "").documents
    except InvalidManifest:
        return None
    return (text, documents[0]) if len(documents) == 1 else None
