"""Text of others in the messages of commits, from which forges read references and commands.

A forge reads the messages of commits on a branch: it mentions `@name`, closes `#1` after a word
like "fixes", and runs no checks after `[skip ci]`. Messages have no code, so an invisible character
takes such a text apart. fanout removes it where it reads its own lines again.
"""

import re
from typing import Final

# Not printable: neither a path nor a value that is spelled out can contain it.
_JOINER: Final = "\N{WORD JOINER}"
_REFERENCE: Final = re.compile(
    r"(?i)(?<!\w)@(?=\w)|[#!&%$~](?=[0-9])|\bGH-(?=[0-9])"
    r"|/(?:issues|pulls?|merge_requests|work_items|epics)/(?=[0-9])"
    r"|\[(?=(?:skip|ci|no|actions)\b)|\*(?=NO_CI)"
)
_PARTS: Final = ("gh-", "/issues/", "/pull", "/merge_requests/", "/work_items/", "/epics/")
_SIGNS: Final = (*"@#!&%$~[*", *_PARTS)  # one of them is in each reference, in small letters


def disarm_references(text: str) -> str:
    """Return the text with what forges read as references and commands taken apart."""
    lowered = text.lower()
    # Most messages have none, and the search takes ten times as long as this look.
    if not any(sign in lowered for sign in _SIGNS):
        return text
    return _REFERENCE.sub(lambda match: f"{match[0]}{_JOINER}", text)


def restore_references(text: str) -> str:
    """Return a text as it was before `disarm_references`."""
    return text.replace(_JOINER, "")
