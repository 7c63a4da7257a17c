"""The objects of a file: its documents, and the items of a List (design §4).

An item stands in its List's document and has no text of its own, but everything that looks at an
object, changes it or tells of it takes an item as it takes a document.
"""

from collections.abc import Mapping
from typing import Any

from fanout.package.edits import Path
from fanout.package.manifests import Document, Manifest
from fanout.package.merge.identity import is_list
from fanout.package.nodes import Root
from fanout.package.spelling import Spelling
from fanout.values import frozen
from fanout.variants.functions.function import is_local, mapping

ITEMS = "items"


@frozen
class Item:
    """An object among the items of a List; what a `Document` is that holds one object."""

    document: Document
    at: int
    value: Any

    @property
    def path(self) -> Path:
        """Where the object is in its document."""
        return (ITEMS, self.at)

    @property
    def index(self) -> int:
        """Its document's place in the file."""
        return self.document.index

    @property
    def root(self) -> Root | None:
        """Of its document; None: the file is JSON."""
        return self.document.root

    def spellings(self) -> Mapping[Path, Spelling]:
        """How its values stand in the text; as of a document."""
        return self.document.spellings(self.path)

    def own_text(self) -> str | None:
        """Its lines as if they were a document; None where it has no lines of its own."""
        return self.document.part_text(self.path)

    def line_of(self, path: Path) -> int:
        """The line, from 1, of the deepest value on the path that is there."""
        return self.document.line_of((*self.path, *path))


Part = Document | Item


def parts_of(manifest: Manifest) -> dict[int, Part]:
    """The objects of a file by their number in it, and what else its documents hold.

    The items of a List are counted as if they were documents: that is their index for programs.
    A List that is itself marked as for tools alone is one object, as it says.
    """
    found: dict[int, Part] = {}
    further = 0
    for document in manifest.documents:
        number = document.index + further
        if is_split(document.value):
            items = document.value[ITEMS]
            found |= {number + at: Item(document, at, item) for at, item in enumerate(items)}
            further += len(items) - 1
        else:
            found[number] = document
    return found


def is_split(value: Any) -> bool:
    """Are the objects of this document the items in it?"""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or is_local(value):
        return False
    if not is_plain_list(value):
        return is_list(value)
    items = value.get(ITEMS)
    return isinstance(items, list) and all(is_object(item) for item in items)


def is_any_list(value: object) -> bool:
    """Is it a List, of whatever, and no object itself?"""
    return is_plain_list(value) or is_list(value)


def is_plain_list(value: object) -> bool:
    """Is it a List of any objects, and no list of one kind?"""
    found = mapping(value)
    return found.get("kind") == "List" and found.get("apiVersion") == "v1"


def is_object(value: object) -> bool:
    """Has it a kind? Everything else is a file of values or the like."""
    found = mapping(value)
    return bool(found.get("kind")) and bool(found.get("apiVersion"))
