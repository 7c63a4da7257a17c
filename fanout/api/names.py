"""Names that not every file system can carry, or tell apart from others."""

import re
from unicodedata import normalize

_DEVICE = re.compile(
    r"(?:^|/)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\xb9\xb2\xb3])"
    r" *(?:\.[^/]*)?(?:/|$)",
    re.IGNORECASE,
)


def reserved_name(path: str) -> str:
    """The first name in a path that Windows reserves for a device, "" when there is none.

    Also with an extension: `aux.yaml` is a device there.
    """
    found = _DEVICE.search(path)
    return found[0].strip("/") if found else ""


def folded(path: str) -> str:
    """What a file system that tells neither case nor Unicode forms apart takes the path for."""
    if path.isascii():
        return path.lower()
    return normalize("NFC", normalize("NFD", path).casefold())
