"""One document with changes on top: what functions look at, and the edits that come of it.

Changes are collected, not written. A value that ends as it began is no edit, so its bytes stay; a
change below an earlier one becomes part of it, and a map that is missing is made by one edit, so
edits never meet in the text.
"""

from typing import Any

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, REMOVE, BlockedPath, Edit, get, same, show, with_value
from fanout.package.manifests import Document
from fanout.variants.functions.function import Path, mapping


class Overlay:
    """Collects the changes to one document; upstream's data is never written to."""

    __slots__ = ("_changed", "_document", "_file", "value")

    def __init__(self, file: str, document: Document) -> None:
        self.value: Any = document.value  # the object as it stands now
        self._changed: dict[Path, object] = {}
        self._document = document
        self._file = file

    def set(self, path: Path, value: object) -> None:
        """Put the value at the path, or take away what is there (REMOVE).

        Missing maps on the way are made. Raises InvalidInput, with file and line, when something
        on the way is neither a map nor a list with that index.
        """
        present = get(self.value, path)
        if same(present, value) or (present is MISSING and value is REMOVE):
            return
        try:
            self.value = with_value(self.value, path, value)
        except BlockedPath as blocked:
            raise self._unfit(path[: blocked.depth], blocked.sentence) from None
        top = self._topmost(path)
        settled = get(self.value, top)
        self._changed[top] = REMOVE if settled is MISSING else settled

    def place(self, path: Path) -> None:
        """Put an empty text where there is nothing yet, to be replaced later."""
        if get(self.value, path) is MISSING:
            self.set(path, "")

    def _topmost(self, path: Path) -> Path:
        """The shortest beginning of the path that is new or already being changed."""
        if not self._changed and isinstance(get(self._document.value, path[:-1]), dict):
            return path
        place: Any = self._document.value
        for length, key in enumerate(path[:-1], 1):
            place = get(place, (key,))
            if place is MISSING or place is None or path[:length] in self._changed:
                path = path[:length]
                break
        for below in [other for other in self._changed if other[: len(path)] == path]:
            del self._changed[below]
        return path

    def _unfit(self, path: Path, sentence: str) -> InvalidInput:
        name = mapping(mapping(self.value).get("metadata")).get("name", "")
        return InvalidInput(
            sentence,
            reason=Reason.RENDER_FAILED,
            remedy="correct the upstream package",
            where=Where(
                object=f"{mapping(self.value).get('kind', '')}/{name}",
                field=show(path),
                file=self._file,
                line=self._document.line_of(path),
            ),
        )

    def edits(self) -> list[Edit]:
        """What to change in the text."""
        index, original = self._document.index, self._document.value
        found = []
        for path, value in self._changed.items():
            before = get(original, path)
            if not same(before, value) and not (before is MISSING and value is REMOVE):
                found.append(Edit(index, path, value))
        return found
