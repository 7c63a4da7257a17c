"""One object with changes on top: what functions look at, and the edits that come of it.

Changes are collected, not written. A value that ends as it began is no edit, so its bytes stay; a
change below an earlier one becomes part of it, and a map that is missing is made by one edit, so
edits never meet in the text.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import MISSING, REMOVE, BlockedPath, Edit, get, same, show, with_value
from fanout.package.scalars import is_plain, scalar
from fanout.package.spelling import Spelling
from fanout.variants.functions.function import Comment, Path, Unfit, mapping
from fanout.variants.parts import Part


class Outcome(NamedTuple):
    """What became of one object."""

    edits: tuple[Edit, ...] = ()  # to the document that it is in
    comments: tuple[tuple[Path, str], ...] = ()  # to be put on the lines of values
    dropped: bool = False  # it is no longer in the package
    text: str | None = None  # lines in place of its own, which the edits are made in


UNTOUCHED = Outcome()


class Overlay:
    """Collects the changes to one object; upstream's data is never written to."""

    __slots__ = (
        *("_changed", "_comments", "_document", "_file", "_origin", "_text"),
        *("dropped", "value"),
    )

    def __init__(self, file: str, part: Part) -> None:
        self.value: Any = part.value  # the object as it stands now
        self.dropped = False
        self._changed: dict[Path, object] = {}
        self._comments: dict[Path, str] = {}
        self._document = part  # what the changes are made to
        self._origin = part
        self._text: str | None = None
        self._file = file

    def set(self, path: Path, value: object) -> None:
        """Put the value at the path, or take away what is there (REMOVE).

        Missing maps on the way are made; a Comment is put on the line of the value. Raises
        InvalidInput, with file and line, when something on the way is neither a map nor a list
        with that index.
        """
        if isinstance(value, Comment):
            self._comments[path] = value.text
            return
        if not path and value is REMOVE:
            self.dropped = True
            return
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

    def lines(self) -> str | None:
        """The lines that the changes are made to; None where the object has none of its own."""
        if self._text is None and self._document.root is not None:
            return self._document.own_text()
        return self._text

    def rest_on(self, text: str, document: Part) -> None:
        """Go on from these lines, which say what all changes have come to, as the document says."""
        self.value, self._text, self._document = document.value, text, document
        self._changed, self._comments = {}, {}

    @property
    def within(self) -> Path:
        """Where the object is in its document."""
        return self._origin.path

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

    def comments(self) -> Mapping[Path, str]:
        """The comments on values' lines, those to be put there included."""
        found = {
            path: spelling.comment
            for path, spelling in self._document.spellings().items()
            if spelling.comment and not self._below_a_change(path)
        }
        return {**found, **self._comments}

    def spelling(self, path: Path) -> Spelling:
        """How the value at the path is spelled, or would be if it were written now."""
        there = self._document.spellings().get(path)
        below = self._below_a_change(path)
        if there is not None and not below and path not in self._changed:
            return there
        value = get(self.value, path)
        if below:
            return Spelling(_spelled(value), _is_quoted(value), "", self._document.root is not None)
        before = get(self._document.value, path)
        lines = self._document.root is not None
        # what is there and has no spelling of its own comes from an alias
        aliased = there is None and before is not MISSING and lines
        room = there.comments if there else before is MISSING and lines
        comment = there.comment if there else ""
        return Spelling(_spelled(value), _is_quoted(value), comment, room, aliased)

    def _below_a_change(self, path: Path) -> bool:
        """Is the value part of one that is written anew as a whole?"""
        return any(path[:length] in self._changed for length in range(len(path)))

    def line_of(self, path: Path) -> int:
        """The line of the deepest value on the path that is in the file."""
        return self._origin.line_of(path)

    def refused(self, function: str, unfit: Unfit) -> InvalidInput:
        """The error for an object that a function cannot do its work on, with file and line."""
        return self._unfit(unfit.path, f"{function}: {unfit.problem}", unfit.remedy, unfit.reason)

    def _unfit(
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
            where=Where(
                object=f"{mapping(self.value).get('kind', '')}/{name}",
                field=show(path),
                file=self._file,
                line=self._origin.line_of(path),
            ),
        )

    def outcome(self) -> Outcome:
        """All that became of the object."""
        if self.dropped:
            return Outcome(dropped=True)
        there = self._document.spellings() if self._comments else {}
        new = tuple(
            (path, text)
            for path, text in self._comments.items()
            if path not in there or there[path].comment != text
        )
        if not self._changed and not new and self._text is None:
            return UNTOUCHED
        if self._text is not None and not self._comments and same(self.value, self._origin.value):
            return UNTOUCHED
        return Outcome(tuple(self.edits()), new, text=self._text)

    def edits(self) -> list[Edit]:
        """What to change in the text."""
        index, within, original = self._origin.index, self.within, self._document.value
        found = []
        for path, value in self._changed.items():
            before = get(original, path)
            if not same(before, value) and not (before is MISSING and value is REMOVE):
                found.append(Edit(index, (*within, *path), value))
        return found


def _spelled(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return None if value is MISSING or isinstance(value, dict | list) else scalar(value)


def _is_quoted(value: Any) -> bool:
    return isinstance(value, str) and not is_plain(value)
