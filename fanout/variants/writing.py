"""Writes a file after the functions: edits, comments, documents that went or came."""

from collections.abc import Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput, Where
from fanout.package.edits import Edit, Path, show
from fanout.package.manifests import Manifest
from fanout.variants.overlay import Outcome


def written(manifest: Manifest, outcomes: Mapping[int, Outcome]) -> bytes | None:
    """The file's bytes after what became of its documents; None when none of them is left.

    Raises InvalidInput for a comment where there is no room for one.
    """
    edits: list[Edit] = []
    rare = False
    texts = {index: it.text for index, it in outcomes.items() if it.text is not None}
    if texts:
        manifest = Manifest.parse(manifest.replaced(texts), manifest.file)
    for outcome in outcomes.values():
        edits += outcome.edits
        rare = rare or outcome.dropped or bool(outcome.comments)
    data = manifest.edited(edits)
    return _rarely(data, manifest.file, outcomes) if rare else data


def _rarely(data: bytes, file: str, outcomes: Mapping[int, Outcome]) -> bytes | None:
    comments = {
        index: dict(outcome.comments) for index, outcome in outcomes.items() if outcome.comments
    }
    if comments:
        data = _commented(Manifest.parse(data, file), comments)
    dropped = [index for index, outcome in outcomes.items() if outcome.dropped]
    return Manifest.parse(data, file).without(dropped) if dropped else data


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
