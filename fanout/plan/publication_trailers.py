"""Trailers of messages of publications, which Git reads from the last paragraph."""

import re
from collections.abc import Sequence

from fanout.api.commit_trailers import Trailer

_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: ")


def with_paragraph(message: str, paragraph: str) -> str:
    """Return the message with one more paragraph, before its trailers if it has some."""
    if not paragraph:
        return message
    head, _, last = message.strip("\n").rpartition("\n\n")
    # Git reads trailers from the last paragraph only, so other text goes above it.
    if head and all(_TRAILER.match(line) for line in last.split("\n")):
        return f"{head}\n\n{paragraph}\n{last}\n"
    text = message.strip("\n")
    return f"{text}\n\n{paragraph}"


def with_trailers(message: str, lines: Sequence[str]) -> str:
    """Return the message with more trailers, in its last paragraph if that has trailers."""
    if not lines:
        return message
    text = message.rstrip()
    head, _, last = text.rpartition("\n\n")
    has_trailers = head and all(_TRAILER.match(line) for line in last.split("\n"))
    gap = "" if has_trailers else "\n"
    return f"{text}\n{gap}" + "".join(f"{line}\n" for line in lines)


def parse_last_record(message: str) -> str:
    """Parse the name of the record in the message of a publication, or "" without one."""
    for line in reversed(message.rstrip().splitlines()):
        key, colon, value = line.partition(":")
        if colon and key == Trailer.RECORDS.value:
            return value.strip()
        if not line:
            break
    return ""
