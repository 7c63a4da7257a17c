"""Three-way merge of texts by lines, of lists without keys, and of the order of keys.

Edits that adjoin are a conflict. The winner of a conflict wins the ranges that both
sides changed, and no other line.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import (
    ConflictCause,
    ConflictChoices,
    MergeConflict,
    build_conflict,
)
from fanout.package.merge.merge_values import is_sealed_text
from fanout.package.sequence_alignment import common_prefix_length, equal_blocks

Key = TypeVar("Key", bound=Hashable)
OptionalBytes = bytes | None
ElementComparison = Callable[[str, str], bool]
_CRLF: Final = "\r\n"


class SequenceRun(NamedTuple):
    """Consecutive elements of one side. Or of all three, with their starts in the other sides."""

    is_upstream: bool
    start: int
    end: int
    other_starts: tuple[int, int] | None = None  # origin, upstream
    # The range that this run replaces: start, end, and its start in the origin, or -1 if the origin
    # has none of it.
    replaced_range: tuple[int, int, int] = (0, 0, 0)


def merge_sequences(
    origin: Sequence[str],
    upstream: Sequence[str],
    local: Sequence[str],
    winner: ConflictWinner | None = None,
    is_pair: ElementComparison | None = None,
) -> list[SequenceRun] | None:
    """Return the runs of the result, in order.

    Common elements are taken from the local side; where edits adjoin, the winner's are taken. None
    if they do and there is no winner. `is_pair` tells which unequal elements may be common ones, to
    be merged inside: those of stretches of equal length between equal neighbors.
    """
    head = common_prefix_length(origin, upstream, local)
    shortest = min(map(len, (origin, upstream, local))) - head
    tail = common_prefix_length(*(side[::-1][:shortest] for side in (origin, upstream, local)))
    origin_middle, upstream_middle, local_middle = (
        side[head : len(side) - tail] for side in (origin, upstream, local)
    )
    runs = [SequenceRun(False, 0, head, (0, 0))]
    o_at = u_at = l_at = 0
    for o_sync, o_end, l_sync, l_end, u_sync, u_end in _align(
        origin_middle, local_middle, upstream_middle, is_pair
    ):
        origin_part = origin_middle[o_at:o_sync]
        upstream_part, local_part = upstream_middle[u_at:u_sync], local_middle[l_at:l_sync]
        is_settled = upstream_part in (origin_part, local_part)
        if not is_settled and local_part != origin_part and winner is None:
            return None
        if local_part == origin_part or (not is_settled and winner is ConflictWinner.UPSTREAM):
            replaced_range = (
                l_at + head,
                l_sync + head,
                o_at + head if local_part == origin_part else -1,
            )
            runs.append(SequenceRun(True, u_at + head, u_sync + head, None, replaced_range))
        else:
            runs.append(SequenceRun(False, l_at + head, l_sync + head))
        runs.append(SequenceRun(False, l_sync + head, l_end + head, (o_sync + head, u_sync + head)))
        o_at, u_at, l_at = o_end, u_end, l_end
    other_starts = len(origin) - tail, len(upstream) - tail
    runs.append(SequenceRun(False, len(local) - tail, len(local), other_starts))
    return runs


def _align(
    origin: Sequence[str],
    local: Sequence[str],
    upstream: Sequence[str],
    is_pair: ElementComparison | None,
) -> list[tuple[int, int, int, int, int, int]]:
    """Return the ranges that all three sides have, the empty one at the end included.

    Where both sides match the origin, they match each other.
    """
    local_blocks = _matching_blocks(origin, local, is_pair)
    upstream_blocks = _matching_blocks(origin, upstream, is_pair)
    aligned = []
    i = j = 0
    while i < len(local_blocks) and j < len(upstream_blocks):
        (local_a, local_b, local_size), (upstream_a, upstream_b, upstream_size) = (
            local_blocks[i],
            upstream_blocks[j],
        )
        ends = local_a + local_size, upstream_a + upstream_size
        start, end = max(local_a, upstream_a), min(ends)
        if start < end:
            l_at, u_at = local_b + start - local_a, upstream_b + start - upstream_a
            size = end - start
            aligned.append((start, end, l_at, l_at + size, u_at, u_at + size))
        if ends[0] < ends[1]:
            i += 1
        else:
            j += 1
    return [
        *aligned,
        (len(origin), len(origin), len(local), len(local), len(upstream), len(upstream)),
    ]


def _matching_blocks(
    origin: Sequence[str], side: Sequence[str], is_pair: ElementComparison | None
) -> list[tuple[int, int, int]]:
    """Return the common ranges of two sequences: both starts, and the length."""
    blocks = equal_blocks(origin, side)
    if is_pair is None:
        return blocks
    paired: list[tuple[int, int, int]] = []
    origin_at = side_at = 0
    for origin_start, side_start, size in blocks:
        before, after = origin[origin_at:origin_start], side[side_at:side_start]
        if before and len(before) == len(after) and all(map(is_pair, before, after)):
            paired.append((origin_at, side_at, len(before)))
        paired.append((origin_start, side_start, size))
        origin_at, side_at = origin_start + size, side_start + size
    return paired


def merge_order(origin: Sequence[Key], upstream: Sequence[Key], local: Sequence[Key]) -> list[Key]:
    """Return all keys of upstream and local once.

    The local order holds, unless upstream alone changed the order of the keys that all
    sides have. Keys of one side stand behind their predecessor there.
    """
    if upstream == local:
        return list(local)
    common_keys = set(origin).intersection(upstream, local)
    origin_order, upstream_order, local_order = (
        [key for key in side if key in common_keys] for side in (origin, upstream, local)
    )
    # Order is a value like others: a change by upstream alone is taken, and otherwise
    # the local one stays.
    first, second = (
        (upstream, local) if local_order == origin_order != upstream_order else (local, upstream)
    )
    return interleave(first, second)


def interleave(first: Sequence[Key], second: Sequence[Key]) -> list[Key]:
    """Return the first order, with keys of the second behind their predecessors there."""
    first_keys = set(first)
    keys_behind: dict[Key | None, list[Key]] = {}
    predecessor: Key | None = None
    for key in second:
        if key in first_keys:
            predecessor = key
        else:
            keys_behind.setdefault(predecessor, []).append(key)
    result = list(keys_behind.get(None, ()))
    for key in first:
        result.append(key)
        result += keys_behind.get(key, ())
    return result


def merge_texts(
    origin: str, upstream: str, local: str, winner: ConflictWinner | None = None
) -> str | None:
    """Merge texts by lines.

    None if edits adjoin and there is no winner, and if a text is sealed.
    """
    if any(map(is_sealed_text, (origin, upstream, local))):
        return None
    sides = upstream.splitlines(keepends=True), local.splitlines(keepends=True)
    if (runs := merge_sequences(origin.splitlines(keepends=True), *sides, winner)) is None:
        return None
    lines = [line for run in runs for line in sides[not run.is_upstream][run.start : run.end]]
    # A last line without its break may be followed by other lines now.
    return "".join(line if line.endswith("\n") or n == len(lines) - 1 else line + "\n"
                   for n, line in enumerate(lines))  # fmt: skip


# ---- plain files --------------------------------------------------------------------------------


def merge_plain_file(
    path: str,
    origin: OptionalBytes,
    upstream: OptionalBytes,
    local: OptionalBytes,
    choices: ConflictChoices,
    *,
    is_sealed: bool = False,
) -> tuple[OptionalBytes, MergeConflict | None]:
    """Return the merged bytes of a plain file, None if removed, and a conflict or None.

    A file that one side deleted and the other changed keeps its local state. If both
    changed the same lines of a text, the winner has those and no others. A
    sealed file is one value.
    """
    if upstream in (origin, local):
        return local, None
    if local == origin:
        return upstream, None
    merged = None if is_sealed else _merge_by_lines(origin, upstream, local)
    if merged is not None:
        return merged, None
    if origin is not None and (local is None or upstream is None):
        cause = ConflictCause.DELETED_HERE if local is None else ConflictCause.DELETED_THERE
        default = ConflictWinner.LOCAL
    else:
        cause = ConflictCause.BOTH_CHANGED if origin is not None else ConflictCause.BOTH_ADDED
        default = ConflictWinner.UPSTREAM
    conflict = build_file_conflict(path, cause, (origin, upstream, local), default, choices)
    if not is_sealed:
        merged = _merge_by_lines(origin, upstream, local, conflict.winner)
    if merged is None:
        merged = upstream if conflict.winner is ConflictWinner.UPSTREAM else local
    return merged, conflict


def build_file_conflict(
    path: str,
    cause: ConflictCause,
    values: tuple[OptionalBytes, OptionalBytes, OptionalBytes],
    default: ConflictWinner,
    choices: ConflictChoices,
) -> MergeConflict:
    """Build a conflict about a file as a whole."""
    origin, upstream, local = (MISSING if value is None else value for value in values)
    return build_conflict(
        ErrorLocation(file=path), cause, (origin, upstream, local), default, choices
    )


def _merge_by_lines(
    origin: OptionalBytes,
    upstream: OptionalBytes,
    local: OptionalBytes,
    winner: ConflictWinner | None = None,
) -> OptionalBytes:
    """Merge three texts by lines.

    None if edits adjoin and there is no winner, and if a file is not text.
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
    line_breaks = []  # "" for a text that has both kinds
    for text in texts:
        crlf_count = text.count(_CRLF)
        is_mixed = 0 < crlf_count < text.count("\n")
        line_breaks.append("" if is_mixed else _CRLF if crlf_count else "\n")
    has_same_breaks = len(set(line_breaks)) == 1 or not all(line_breaks)
    if not has_same_breaks:
        # Only if the sides differ in their line breaks: otherwise a file with mixed ones
        # would change.
        texts = [text.replace(_CRLF, "\n") for text in texts]
    merged = merge_texts(texts[0], texts[1], texts[2], winner)
    if merged is not None and not has_same_breaks:  # line breaks merge three ways
        merged = merged.replace(
            "\n", line_breaks[1] if line_breaks[2] == line_breaks[0] else line_breaks[2]
        )
    return None if merged is None else merged.encode()
