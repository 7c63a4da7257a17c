"""Overlay of one object: its current value, and the edits that lead to it.

Changes are collected, not written. A value that ends as it began is no edit, so its
bytes stay. A change below an earlier one becomes part of it, and a missing map is
created by one edit, so that edits never overlap in the text.

Fields are set one by one. Where elements of a list were added, removed or moved, the
object's lines are rewritten at once, so that comments, and the setters in them, move
with their elements and are there for the next function.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import (
    MISSING,
    REMOVE,
    BlockedPath,
    Edit,
    Path,
    ValueEditor,
    format_path,
    get_value,
    same_json,
)
from fanout.package.manifest import Document, Manifest
from fanout.package.merge.list_rearrangement import (
    RearrangedList,
    ValueChanges,
    apply_rearranged_lists,
    compare_values,
)
from fanout.package.merge.merge_keys import DEFAULT_SHAPE, Schemas, find_shape
from fanout.package.merge.merge_values import find_seal
from fanout.package.value_spelling import ValueSpelling
from fanout.package.yaml_nodes import InvalidManifest
from fanout.package.yaml_scalars import format_scalar, is_plain
from fanout.variants.functions.function_interface import (
    LineComment,
    UnfitObject,
    group_kind,
    mapping,
    render_error,
)
from fanout.variants.manifest_objects import ITEMS, ListItem, ManifestObject, find_objects


class ObjectChanges(NamedTuple):
    """Collected changes to one object."""

    edits: tuple[Edit, ...] = ()  # to the document that it is in
    comments: tuple[tuple[Path, str], ...] = ()  # to be put on the lines of values
    dropped: bool = False  # removed from the package
    text: str | None = None  # replaces its lines; the edits apply to it


NO_CHANGES = ObjectChanges()


class Overlay(ValueEditor):
    """Collector of the changes to one object; upstream's data is never modified."""

    __slots__ = (
        *("_changed", "_comments", "_document", "_origin", "_parents", "_text", "dropped", "file"),
    )

    def __init__(self, file: str, manifest_object: ManifestObject) -> None:
        super().__init__(manifest_object.value)
        self.dropped = False
        self._changed: dict[Path, None] = {}  # in order
        self._parents: set[Path] = set()  # of the changed paths
        self._comments: dict[Path, str] = {}
        self._document = manifest_object  # base of the changes
        self._origin = manifest_object
        self._text: str | None = None
        self.file = file

    def set(self, path: Path, value: object) -> None:
        """Set the value at the path, or remove what is there (REMOVE).

        Missing maps on the way are created; a LineComment is put on the line of the value.
        Raises InvalidInput, with file and line, if something on the way is neither a map nor
        a list with that index, and UnfitObject if the object is sealed.
        """
        if isinstance(value, LineComment):
            self._comments[path] = value.text
            return
        if not path and value is REMOVE:
            self.dropped = True
            return
        present = self.peek(path)
        # Functions set values without looking first; most of them are set already.
        if same_json(present, value) or (present is MISSING and value is REMOVE):
            return
        self.refuse_sealed(path)
        try:
            super().set(path, value)
        except BlockedPath as blocked:
            raise self._build_error(path[: blocked.depth], blocked.message) from None
        top = self._find_edit_path(path)
        self._changed[top] = None
        self._parents.update(top[:length] for length in range(len(top)))

    def refuse_sealed(self, path: Path) -> None:
        """Raise UnfitObject if the object is sealed: a change would break its seal."""
        if seal := find_seal(self.peek(())):
            raise UnfitObject(
                path,
                f"it is sealed by {seal}, and a change would break the seal",
                "exclude the object, or change it upstream and seal it again",
            )

    def lines(self) -> str | None:
        """Return the lines that the changes apply to, or None if the object has none."""
        # JSON files have no root node; lines are rearranged in YAML only.
        if self._text is None and self._document.root is not None:
            return self._document.document_text()
        return self._text

    def rebase(self, text: str, document: ManifestObject) -> None:
        """Continue from lines with all changes so far; `document` is their parsed form."""
        super().__init__(document.value)
        self._text, self._document = text, document
        self._changed, self._comments, self._parents = {}, {}, set()

    @property
    def path_in_document(self) -> Path:
        """Return the object's path in its document."""
        return self._origin.path

    def _find_edit_path(self, path: Path) -> Path:
        """Return the shortest prefix of the path that is new or already changed."""
        # Fast path for the first change to a field of an existing map, which is most of them.
        if not self._changed and isinstance(get_value(self._document.value, path[:-1]), dict):
            return path
        value: Any = self._document.value
        for length, key in enumerate(path[:-1], 1):
            value = get_value(value, (key,))
            if value is MISSING or value is None or path[:length] in self._changed:
                path = path[:length]
                break
        self._changed.pop(path, None)
        # The new edit writes the complete value at `path`, so earlier changes below it are
        # contained. Mostly there are none, and looking at all changes would be quadratic.
        if path in self._parents:
            self._parents.remove(path)
            for below in [changed for changed in self._changed if changed[: len(path)] == path]:
                del self._changed[below]
        return path

    def comments(self) -> Mapping[Path, str]:
        """Return the comments on lines of values by path, including those yet to be written."""
        present = {
            path: spelling.comment
            for path, spelling in self._document.spellings().items()
            if spelling.comment and not self._is_rewritten(path)
        }
        return {**present, **self._comments}

    def spelling(self, path: Path) -> ValueSpelling:
        """Return the spelling of the value at the path, as it would be if written now."""
        present = self._document.spellings().get(path)
        is_rewritten = self._is_rewritten(path)
        if present is not None and not is_rewritten and path not in self._changed:
            return present
        value, has_lines = self.peek(path), self._document.root is not None
        text, quoted = None, isinstance(value, str) and not is_plain(value)
        if value is not MISSING and not isinstance(value, dict | list):
            text = value if isinstance(value, str) else format_scalar(value)
        if is_rewritten:
            return ValueSpelling(text, quoted, "", has_lines)
        upstream_value = get_value(self._document.value, path)
        # an existing value without a spelling comes from an alias
        aliased = present is None and upstream_value is not MISSING and has_lines
        fits_comment = (
            present.has_comment_room if present else upstream_value is MISSING and has_lines
        )
        comment = present.comment if present else ""
        return ValueSpelling(text, quoted, comment, fits_comment, aliased)

    def _is_rewritten(self, path: Path) -> bool:
        """Return whether the value is part of a value that is written anew."""
        return any(path[:length] in self._changed for length in range(len(path)))

    def line_of(self, path: Path) -> int:
        """Return the line of the deepest value on the path that is in the file."""
        return self._origin.line_of(path)

    def unfit_error(self, function: str, unfit: UnfitObject) -> InvalidInput:
        """Return the error for an object that does not fit a function, with file and line."""
        return self._build_error(
            unfit.path, f"{function}: {unfit.problem}", unfit.remedy, unfit.reason
        )

    def _build_error(
        self,
        path: Path,
        sentence: str,
        remedy: str = "correct the upstream package",
        reason: Reason = Reason.RENDER_FAILED,
    ) -> InvalidInput:
        return InvalidInput(sentence, reason=reason, remedy=remedy, where=self.locate(path))

    def locate(self, path: Path) -> ErrorLocation:
        """Return the place of the deepest value on the path that is in the file, for messages."""
        name = mapping(mapping(self.value).get("metadata")).get("name", "")
        title = f"{mapping(self.value).get('kind', '')}/{name}"
        return ErrorLocation(title, format_path(path), self.file, self._origin.line_of(path))

    def collect_changes(self) -> ObjectChanges:
        """Return all changes to the object."""
        if self.dropped:
            return ObjectChanges(dropped=True)
        spellings = self._document.spellings() if self._comments else {}
        new_comments = tuple(
            (path, text)
            for path, text in self._comments.items()
            if path not in spellings or spellings[path].comment != text
        )
        if not self._changed and not new_comments and self._text is None:
            return NO_CHANGES
        # The lines were rewritten on the way, but the value is upstream's again: keep upstream's
        # bytes.
        if (
            self._text is not None
            and not self._comments
            and same_json(self.value, self._origin.value)
        ):
            return NO_CHANGES
        return ObjectChanges(tuple(self.collect_edits()), new_comments, text=self._text)

    def collect_edits(self) -> list[Edit]:
        """Return the edits to the text of the document."""
        index, prefix, original = self._origin.index, self.path_in_document, self._document.value
        edits, current = [], self.value
        for path in self._changed:
            value = get_value(current, path)
            if not same_json(get_value(original, path), value):
                edits.append(Edit(index, (*prefix, *path), REMOVE if value is MISSING else value))
        return edits


def rewrite_manifest(
    manifest: Manifest, changes_by_number: Mapping[int, ObjectChanges]
) -> bytes | None:
    """Return the file's bytes after the changes, or None if no object is left.

    `changes_by_number` has the changes by the object's number in the file. A List is
    removed with its last item. Raises InvalidInput for a comment that cannot be placed.
    """
    texts = {number: it.text for number, it in changes_by_number.items() if it.text is not None}
    if texts:
        manifest = _replace_lines(manifest, texts)
    edits = [edit for changes in changes_by_number.values() for edit in changes.edits]
    data = manifest.apply_edits_to_text(edits)
    # Comments and removals need the positions of the edited text, hence a second parse. Few
    # files have any, so the others are not charged for it.
    if not any(changes.dropped or changes.comments for changes in changes_by_number.values()):
        return data
    manifest = Manifest.parse(data, manifest.file)
    objects = find_objects(manifest)
    comments: dict[int, dict[Path, str]] = {}
    for number, changes in changes_by_number.items():
        manifest_object = objects[number]
        for path, text in changes.comments:
            comments.setdefault(manifest_object.index, {})[*manifest_object.path, *path] = text
    for index, comments_by_path in comments.items():
        document = manifest.document(index)
        spellings = document.spellings()
        for path in comments_by_path:
            if path not in spellings or not spellings[path].has_comment_room:
                field, line = format_path(path), document.line_of(path)
                raise render_error(
                    "there is no room for a comment",
                    "write the value on its own line, or exclude the object",
                    ErrorLocation(field=field, file=manifest.file, line=line),
                )
    if comments:
        data = manifest.add_line_comments(comments)
    dropped = [number for number, changes in changes_by_number.items() if changes.dropped]
    return remove_objects(Manifest.parse(data, manifest.file), dropped) if dropped else data


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
        if (lines := manifest.document(index).replace_elements_text(its_texts)) is not None:
            document_texts[index] = lines
            continue
        for path, text in its_texts.items():
            document = Manifest.parse(text.encode(), manifest.file).documents[0]
            edits.append(Edit(index, path, document.value))
    if edits:
        manifest = Manifest.parse(manifest.apply_edits_to_text(edits), manifest.file)
    if not document_texts:
        return manifest
    return Manifest.parse(manifest.replace_documents(document_texts), manifest.file)


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
    comment cannot be placed, and UnfitObject if the object is sealed.
    """
    if not same_json(overlay.value, value):
        overlay.refuse_sealed(())
    changes = compare_values(overlay.value, value, find_shape(*group_kind(value), schemas))
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
    assert data is not None, "only a document without content is dropped"
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
