"""Overlay of one object: its current value, and the edits that lead to it.

Changes are collected, not written. A value that ends as it began is no edit, so its
bytes stay. A change below an earlier one becomes part of it, and a missing map is
created by one edit, so that edits never overlap in the text.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.field_edits import (
    MISSING,
    REMOVE,
    BlockedPath,
    Edit,
    format_path,
    get_value,
    same_json,
    with_value,
)
from fanout.package.node_text import ValueSpelling
from fanout.package.yaml_scalars import format_scalar, is_plain
from fanout.variants.functions.function_interface import LineComment, Path, UnfitObject, mapping
from fanout.variants.manifest_objects import ManifestObject


class ObjectChanges(NamedTuple):
    """Collected changes to one object."""

    edits: tuple[Edit, ...] = ()  # to the document that it is in
    comments: tuple[tuple[Path, str], ...] = ()  # to be put on the lines of values
    dropped: bool = False  # removed from the package
    text: str | None = None  # replaces its lines; the edits apply to it


NO_CHANGES = ObjectChanges()


class Overlay:
    """Collector of the changes to one object; upstream's data is never modified."""

    __slots__ = (
        *("_changed", "_comments", "_document", "_file", "_origin", "_text"),
        *("dropped", "value"),
    )

    def __init__(self, file: str, manifest_object: ManifestObject) -> None:
        self.value: Any = manifest_object.value  # current value
        self.dropped = False
        self._changed: dict[Path, object] = {}
        self._comments: dict[Path, str] = {}
        self._document = manifest_object  # base of the changes
        self._origin = manifest_object
        self._text: str | None = None
        self._file = file

    def set(self, path: Path, value: object) -> None:
        """Set the value at the path, or remove what is there (REMOVE).

        Missing maps on the way are created; a LineComment is put on the line of the value.
        Raises InvalidInput, with file and line, if something on the way is neither a map nor
        a list with that index.
        """
        if isinstance(value, LineComment):
            self._comments[path] = value.text
            return
        if not path and value is REMOVE:
            self.dropped = True
            return
        present = get_value(self.value, path)
        # Functions set values without looking first; most of them are set already.
        if same_json(present, value) or (present is MISSING and value is REMOVE):
            return
        try:
            self.value = with_value(self.value, path, value)
        except BlockedPath as blocked:
            raise self._build_error(path[: blocked.depth], blocked.sentence) from None
        top = self._find_edit_path(path)
        topmost_value = get_value(self.value, top)
        self._changed[top] = REMOVE if topmost_value is MISSING else topmost_value

    def lines(self) -> str | None:
        """Return the lines that the changes apply to, or None if the object has none."""
        # JSON files have no root node; lines are rearranged in YAML only.
        if self._text is None and self._document.root is not None:
            return self._document.document_text()
        return self._text

    def rebase(self, text: str, document: ManifestObject) -> None:
        """Continue from these lines, which already contain all changes.

        `document` is their parsed form.
        """
        self.value, self._text, self._document = document.value, text, document
        self._changed, self._comments = {}, {}

    @property
    def path_in_document(self) -> Path:
        """Return the object's path in its document."""
        return self._origin.path

    def ensure_text(self, path: Path) -> None:
        """Set an empty text where nothing is yet, to be replaced later."""
        if get_value(self.value, path) is MISSING:
            self.set(path, "")

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
        # The new edit writes the complete value at `path`, so earlier changes below it are
        # contained.
        for changed_below in [changed for changed in self._changed if changed[: len(path)] == path]:
            del self._changed[changed_below]
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
        value = get_value(self.value, path)
        if is_rewritten:
            return ValueSpelling(
                _plain_spelling(value), _is_quoted(value), "", self._document.root is not None
            )
        upstream_value = get_value(self._document.value, path)
        has_lines = self._document.root is not None
        # an existing value without a spelling comes from an alias
        aliased = present is None and upstream_value is not MISSING and has_lines
        fits_comment = (
            present.has_comment_room if present else upstream_value is MISSING and has_lines
        )
        comment = present.comment if present else ""
        return ValueSpelling(
            _plain_spelling(value), _is_quoted(value), comment, fits_comment, aliased
        )

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
        name = mapping(mapping(self.value).get("metadata")).get("name", "")
        return InvalidInput(
            sentence,
            reason=reason,
            remedy=remedy,
            where=ErrorLocation(
                object=f"{mapping(self.value).get('kind', '')}/{name}",
                field=format_path(path),
                file=self._file,
                line=self._origin.line_of(path),
            ),
        )

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
        edits = []
        for path, value in self._changed.items():
            upstream_value = get_value(original, path)
            if not same_json(upstream_value, value) and not (
                upstream_value is MISSING and value is REMOVE
            ):
                edits.append(Edit(index, (*prefix, *path), value))
        return edits


def _plain_spelling(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return None if value is MISSING or isinstance(value, dict | list) else format_scalar(value)


def _is_quoted(value: Any) -> bool:
    return isinstance(value, str) and not is_plain(value)
