"""The files of a merged package: documents put together so that untouched bytes stay.

Each file begins as the local one (a new file as upstream's); documents are replaced, taken out and
put in, and the result is read once to prove that it says what was decided.
"""

from collections.abc import Sequence
from typing import Any

from fanout.package.dump import dump
from fanout.package.edits import Edit, changes, same
from fanout.package.jsontext import is_json
from fanout.package.manifests import Manifest
from fanout.package.merge.documents import Document, File, Key, Reader, Unit
from fanout.package.merge.outcome import How, Outcome
from fanout.package.merge.sides import Value
from fanout.package.merge.splice import CannotSplice, spliced
from fanout.values import frozen


@frozen
class Placed:
    """A unit of the result that stands in a file by itself."""

    key: Key
    path: str  # of the file
    outcome: Outcome
    units: tuple[Unit | None, Unit | None, Unit | None]  # origin, upstream, local

    @property
    def source(self) -> Unit:
        """The unit whose text is the first draft of the result's: JSON in JSON, YAML in YAML."""
        _, u, mine = self.units
        theirs = self.outcome.how is How.UPSTREAM or mine is None or in_list(mine)
        known = [unit for unit in ((u, mine) if theirs else (mine, u)) if unit is not None]
        fits = (unit for unit in known if is_json(unit.document.file) == is_json(self.path))
        return next(fits, known[0])

    def text(self, careful: bool = False) -> str:
        """The document; `careful` where a first attempt did not read as it should."""
        source = self.source
        if in_list(source):
            return dump(self.outcome.data)
        how, (_, u, mine) = self.outcome.how, self.units
        if source is (u if how is How.UPSTREAM else mine) and how in (How.UPSTREAM, How.LOCAL):
            return source.document.text
        if not careful and source is mine and how is not How.UPSTREAM:
            values: list[Value | None] = [unit.value if unit else None for unit in self.units]
            try:
                return spliced((values[0], values[1], source.value), self.outcome)
            except CannotSplice:
                pass
        return edited(source.document, self.outcome.data)


def in_list(unit: Unit) -> bool:
    """Is it an item of a List?"""
    return len(unit.container) > 1


def edited(document: Document, data: Any) -> str:
    """The document's text with edits that make it say this."""
    manifest = Manifest.parse(document.text.encode(), document.file)
    index = manifest.documents[0].index
    edits = [Edit(index, path, value) for path, value in changes(document.value.data, data)]
    return manifest.edited(edits).decode()


def write_file(
    placed: Sequence[Placed], sides: tuple[File | None, File | None, File | None], reader: Reader
) -> bytes:
    """The bytes of a file in which these units stand, in this order."""
    o, u, mine = sides
    base = mine or u
    assert base is not None
    writer = _Writer(placed, base, sides)
    if o and u and mine and mine.data == o.data and _is_json_of(placed, u):
        return u.data
    if _is(placed, mine, 2, How.LOCAL) and writer.head() == base.between(0):
        return base.data
    if _is(placed, u, 1, How.UPSTREAM) and (mine is None or o is None or mine.data == o.data):
        assert u is not None
        return u.data
    bom, crlf = base.bom, base.crlf
    if o and u and mine:  # three ways, like everything else
        bom = u.bom if mine.bom == o.bom else mine.bom
        crlf = u.crlf if mine.crlf == o.crlf else mine.crlf
    if is_json(base.path):
        return bom + placed[0].text().encode()
    text = writer.assembled(careful=False)
    data = [unit.outcome.data for unit in placed]
    if not reader.says(text, data):
        text = writer.assembled(careful=True)
        if not reader.says(text, data):
            text = "---\n".join(map(dump, data))
    return bom + (text.replace("\n", "\r\n") if crlf else text).encode()


def _is_json_of(placed: Sequence[Placed], file: File) -> bool:
    """Does the JSON file say the same? Its layout is no part of a value, and so no difference."""
    return is_json(file.path) and same(placed[0].outcome.data, file.documents[0].value.data)


def _is(placed: Sequence[Placed], file: File | None, side: int, how: How) -> bool:
    """Does the file as one side has it hold exactly these units, all as that side has them?"""
    if file is None or len(placed) != len(file.documents):
        return False
    for unit, document in zip(placed, file.documents, strict=True):
        one = unit.units[side]
        if unit.outcome.how is not how or one is None or one.document is not document:
            return False
        if in_list(one):
            return False
    return True


@frozen
class _Writer:
    placed: Sequence[Placed]
    base: File
    sides: tuple[File | None, File | None, File | None]

    def assembled(self, *, careful: bool) -> str:
        """The whole text, the documents between what stands between them in the base."""
        numbers = {id(document): document.number for document in self.base.documents}
        out = [self.head()]
        for position, unit in enumerate(self.placed):
            number = 0
            for one in (unit.units[2], unit.units[1]):
                if one is not None and id(one.document) in numbers and not in_list(one):
                    number = numbers[id(one.document)]
                    break
            if position:
                if not out[-1].endswith("\n"):
                    out.append("\n")
                out.append(self.base.between(number) if number else "---\n")
            text = unit.text(careful)
            if careful and not text.endswith("\n") and unit is not self.placed[-1]:
                text = dump(unit.outcome.data)  # a line break would belong to its last text
            out.append(text)
        if self.base.documents:
            out.append(self.base.tail)
        return "".join(out)

    def head(self) -> str:
        """What stands before the first document; upstream's if nobody changed it here."""
        heads = [file.between(0) if file and file.documents else None for file in self.sides]
        if heads[1] is not None and heads[0] == heads[2] != heads[1]:
            return heads[1]
        if self.base.documents:
            return self.base.between(0)
        text = self.base.text
        return text if not text or text.endswith("\n") else text + "\n"
