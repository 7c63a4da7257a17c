"""Names of a package's files that do not mean the same on every system.

A clone on Windows or macOS has one file where the names of two differ in case or Unicode form
alone, and Windows takes some names for devices and drops dots and spaces at their end.
"""

from collections.abc import Collection, Iterator

from fanout.api.names import folded, reserved_name
from fanout.package.paths import overlaps


def file_faults(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that cannot be had everywhere, and why, as half a sentence."""
    files = sorted(paths)
    for path in files:
        if problem := _name_problem(path):
            yield path, problem
    names = [folded(path) for path in files]
    for first, second in overlaps(names):
        one, other = sorted((files[first], files[second]), reverse=True)
        if names[first] == names[second]:
            yield one, f"is {other} but for case or Unicode form"
        else:
            yield files[first], f"is a file, and {files[second]} is inside it but for case"


def _name_problem(path: str) -> str:
    if reserved := reserved_name(path):
        return f"has the name {reserved!r}, which is reserved on Windows"
    for name in path.split("/"):
        if name.endswith((".", " ")):
            return f"has the name {name!r}, which ends with a dot or a space"
    return ""
