"""Writes a file after the functions: edits, comments, objects that went or came."""

from collections.abc import Collection, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import Edit, Path, same, show
from fanout.package.manifests import Document, Manifest
from fanout.package.merge.keys import PLAIN
from fanout.package.merge.rearranging import Rearranged, rearranged
from fanout.variants.overlay import Outcome
from fanout.variants.parts import ITEMS, Item, parts_of


def written(manifest: Manifest, outcomes: Mapping[int, Outcome]) -> bytes | None:
    """The file's bytes after what became of its objects, by number; None when none is left.

    A List goes with the last of its items. Raises InvalidInput for a comment where there is no room
    for one.
    """
    edits: list[Edit] = []
    rare = False
    texts = {number: it.text for number, it in outcomes.items() if it.text is not None}
    if texts:
        manifest = _relined(manifest, texts)
    for outcome in outcomes.values():
        edits += outcome.edits
        rare = rare or outcome.dropped or bool(outcome.comments)
    data = manifest.edited(edits)
    return _rarely(data, manifest.file, outcomes) if rare else data


def _relined(manifest: Manifest, texts: Mapping[int, str]) -> Manifest:
    """The file with other lines for some objects."""
    parts = parts_of(manifest)
    whole: dict[int, str] = {}
    items: dict[int, dict[Path, str]] = {}
    for number, text in texts.items():
        part = parts[number]
        if isinstance(part, Item):
            items.setdefault(part.index, {})[part.path] = text
        else:
            whole[part.index] = text
    edits: list[Edit] = []
    for index, its_texts in items.items():
        lines = manifest.document(index).with_parts(its_texts)
        if lines is not None:
            whole[index] = lines
            continue
        for path, text in its_texts.items():
            alone = Manifest.parse(text.encode(), manifest.file).documents[0]
            edits.append(Edit(index, path, alone.value))
    if edits:
        manifest = Manifest.parse(manifest.edited(edits), manifest.file)
    return Manifest.parse(manifest.replaced(whole), manifest.file) if whole else manifest


def _rarely(data: bytes, file: str, outcomes: Mapping[int, Outcome]) -> bytes | None:
    manifest = Manifest.parse(data, file)
    parts = parts_of(manifest)
    comments: dict[int, dict[Path, str]] = {}
    for number, outcome in outcomes.items():
        part = parts[number]
        for path, text in outcome.comments:
            comments.setdefault(part.index, {})[*part.path, *path] = text
    if comments:
        data = _commented(manifest, comments)
    dropped = [number for number, outcome in outcomes.items() if outcome.dropped]
    return without(Manifest.parse(data, file), dropped) if dropped else data


def without(manifest: Manifest, numbers: Collection[int]) -> bytes | None:
    """The file's bytes without some of its objects; None when no other one is left in it."""
    documents: set[int] = set()
    leaving: dict[int, set[int]] = {}
    parts = parts_of(manifest)
    for number in numbers:
        part = parts[number]
        if isinstance(part, Item):
            leaving.setdefault(part.index, set()).add(part.at)
        else:
            documents.add(part.index)
    for index, gone in leaving.items():
        document = manifest.document(index)
        if len(gone) == len(document.value[ITEMS]):
            documents.add(index)
        else:
            manifest = Manifest.parse(_without_items(manifest, document, gone), manifest.file)
    return manifest.without(documents)


def _without_items(manifest: Manifest, document: Document, gone: Collection[int]) -> bytes:
    """The file without some items of a List; the others keep their lines."""
    kept = [item for at, item in enumerate(document.value[ITEMS]) if at not in gone]
    lists = [Rearranged((ITEMS,), kept, PLAIN)]
    text = rearranged(document.own_text(), lists) if document.root is not None else None
    if text is not None:
        data = manifest.replaced({document.index: text})
        wanted = [
            {**it.value, ITEMS: kept} if it is document else it.value for it in manifest.documents
        ]
        if same([it.value for it in Manifest.parse(data, manifest.file).documents], wanted):
            return data
    edits = [Edit(document.index, (ITEMS, at)) for at in sorted(gone, reverse=True)]
    return manifest.edited(edits)


def _commented(manifest: Manifest, comments: Mapping[int, Mapping[Path, str]]) -> bytes:
    for index, wanted in comments.items():
        document = manifest.document(index)
        there = document.spellings()
        for path in wanted:
            if path not in there or not there[path].comments:
                raise InvalidInput(
                    "there is no room for a comment",
                    reason=Reason.RENDER_FAILED,
                    remedy="write the value on a line of its own, or exclude the object",
                    where=Where(field=show(path), file=manifest.file, line=document.line_of(path)),
                )
    return manifest.commented(comments)


def joined(parts: Sequence[bytes]) -> bytes:
    """Documents, or files of them, as one file; line breaks as in the first."""
    first, *more = parts
    text = first.decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    for part in more:
        gap = "" if text.endswith("\n") else newline
        text += f"{gap}---{newline}{part.decode().replace(chr(10), newline)}"
    return text.encode()
