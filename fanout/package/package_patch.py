"""Patches for `git apply` that turn one package into another, with masked Secrets."""

import difflib
from collections.abc import Iterator

from fanout.package.merge.package_update import Files
from fanout.package.secret_redaction import mask_secrets

NO_NEWLINE = "\\ No newline at end of file"


PackageNames = tuple[str, str]  # names of the old and the new package


def format_masked_patch(old: Files, new: Files, names: PackageNames) -> list[str]:
    """Return the lines of `format_patch`, with the values of Secrets masked.

    A note takes the place of a patch if only the notation of values of Secrets differs.
    """
    before, after = mask_secrets((old, new), ("before", "after"))
    patch = list(format_patch(before, after, names))
    if not patch and old != new:
        note = f"# note: {names[0]} and {names[1]} differ in how values of Secrets are written"
        return [note]
    return patch


def format_patch(old: Files, new: Files, names: PackageNames) -> Iterator[str]:
    """Yield the lines of a patch that turns the old package into the new.

    Yields nothing if they are equal.

    `names`: names of the two packages, as first directory of each path.
    """
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        old_name, new_name = (_quote_name(f"{name}/{path}") for name in names)
        yield f"diff --git {old_name} {new_name}"
        if before is None or after is None:
            change, mode = ("deleted", before[0]) if before else ("new", after[0] if after else "")
            yield f"{change} file mode {mode}"
        elif before[0] != after[0]:
            yield f"old mode {before[0]}"
            yield f"new mode {after[0]}"
        old_lines, new_lines = (split_lines(side[1]) if side else [] for side in (before, after))
        shown = old_name if before else "/dev/null", new_name if after else "/dev/null"
        if old_lines is not None and new_lines is not None:
            # Lines keep their newline characters, so a last line without one differs, as it does
            # for Git.
            diff = difflib.unified_diff(old_lines, new_lines, *shown, lineterm="")
            for number, line in enumerate(diff):
                yield line.removesuffix("\n")
                if number > 1 and not line.startswith("@") and not line.endswith("\n"):
                    yield NO_NEWLINE
        elif before is None or after is None or before[1] != after[1]:
            yield f"Binary files {shown[0]} and {shown[1]} differ"


def _quote_name(name: str) -> str:
    """Return a name of a file as headers of patches have it.

    Git quotes a name with control characters, quotes or backslashes like a string in C.
    """
    if name.isprintable() and not _BACKSLASHED.intersection(name):
        return name
    quoted = ""
    for char in name:
        if char in _BACKSLASHED:
            quoted += f"\\{char}"
        elif char.isprintable():
            quoted += char
        else:
            quoted += "".join(f"\\{byte:03o}" for byte in char.encode())
    return f'"{quoted}"'


_BACKSLASHED = frozenset('"\\')


def split_lines(data: bytes) -> list[str] | None:
    """Split text into lines with their newline characters; return None for binary data."""
    if b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    # str.splitlines would also split at form feeds and Unicode separators, which Git does not.
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
