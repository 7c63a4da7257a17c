"""Plain files three ways: whole, or line by line where both sides changed a text."""

from fanout.errors import Where
from fanout.package.edits import MISSING
from fanout.package.merge.conflicts import Cause, Choices, Conflict, Side, disputed
from fanout.package.merge.texts import merge_texts

Bytes = bytes | None
_CRLF = "\r\n"


def merge_file(
    path: str, origin: Bytes, upstream: Bytes, local: Bytes, choices: Choices
) -> tuple[Bytes, Conflict | None]:
    """The file's bytes, None when it goes, and the conflict if there is one (design §4).

    A file that one side deleted and the other changed stays as it is here. Where both changed the
    same lines of a text, the winner has those, and no others.
    """
    if upstream in (origin, local):
        return local, None
    if local == origin:
        return upstream, None
    merged = _by_lines(origin, upstream, local)
    if merged is not None:
        return merged, None
    if origin is not None and (local is None or upstream is None):
        cause = Cause.DELETED_HERE if local is None else Cause.DELETED_THERE
        default = Side.LOCAL
    else:
        cause = Cause.BOTH_CHANGED if origin is not None else Cause.BOTH_ADDED
        default = Side.UPSTREAM
    conflict = file_conflict(path, cause, (origin, upstream, local), default, choices)
    merged = _by_lines(origin, upstream, local, conflict.winner)
    if merged is None:
        merged = upstream if conflict.winner is Side.UPSTREAM else local
    return merged, conflict


def file_conflict(
    path: str, cause: Cause, values: tuple[Bytes, Bytes, Bytes], default: Side, choices: Choices
) -> Conflict:
    """A conflict about a file as a whole."""
    o, u, mine = (MISSING if value is None else value for value in values)
    return disputed(Where(file=path), cause, (o, u, mine), default, choices)


def _by_lines(origin: Bytes, upstream: Bytes, local: Bytes, winner: Side | None = None) -> Bytes:
    """The lines of both sides.

    None where they touch each other and nobody wins, and where the file is no text.
    """
    if origin is None or upstream is None or local is None:
        return None
    texts: list[str] = []
    for side in (origin, upstream, local):
        if b"\0" in side:
            return None
        try:
            texts.append(side.decode())
        except UnicodeDecodeError:
            return None
    breaks = [_breaks(text) for text in texts]
    one_kind = len(set(breaks)) == 1 or not all(breaks)
    if not one_kind:
        texts = [text.replace(_CRLF, "\n") for text in texts]
    merged = merge_texts(texts[0], texts[1], texts[2], winner)
    if merged is not None and not one_kind:  # three ways, like everything else
        merged = merged.replace("\n", breaks[1] if breaks[2] == breaks[0] else breaks[2])
    return None if merged is None else merged.encode()


def _breaks(text: str) -> str:
    """What its lines end with; "" where that differs."""
    windows = text.count(_CRLF)
    if windows and windows < text.count("\n"):
        return ""
    return _CRLF if windows else "\n"
