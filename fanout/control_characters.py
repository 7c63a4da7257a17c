"""Control characters, line breaks and direction marks in text that is shown.

Names of files come from repositories, and messages from other servers. Imported by the entry point
before any verb is loaded, so it imports nothing.
"""


def escape_unprintable(text: str, kept: str = "") -> str:
    """Return the text with every character spelled out that is not printable, save those `kept`."""
    # Nearly every text is printable, and this test is one call in C.
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode()
        for char in text
    )
