"""Paths of packages: which are safe in a repository and as parts of ref names, and which collide.

A package's path stands in branch and tag names, so git's rules for refs hold for it (see
git-check-ref-format), and fanout's own of design §9: no `..`, no leading dash, nothing that a file
system or a command line could take for something else.
"""

import re
from collections.abc import Iterable
from typing import Final

MAX_PATH: Final = 200  # a tag `<path>/v<N>` is a file name below .git, and has a lock beside it
_FORBIDDEN: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0~^:?*\[\\\u2028\u2029\u202a-\u202e\ud800-\udfff]"
)


def check_path(path: str) -> str | None:
    """What is wrong with a path of a package, or of a ref below `refs/heads/`, as a sentence.

    None when nothing is. Slashes separate components; none may stand at either end.
    """
    if not path:
        return "the path is empty"
    if len(path.encode(errors="replace")) > MAX_PATH:
        return f"the path has more than {MAX_PATH} bytes"
    if match := _FORBIDDEN.search(path):
        return f"the path {path!r} has the character {match[0]!r}, which git refuses in refs"
    if path.startswith("/") or path.endswith("/"):
        return f"the path {path!r} begins or ends with a slash"
    if "@{" in path or path == "@":
        return f"the path {path!r} has '@{{' in it or is '@', which git refuses in refs"
    for component in path.split("/"):
        if problem := _component(component):
            return f"the path {path!r} {problem}"
    return None


def _component(name: str) -> str | None:
    lowered = name.lower()
    if not name:
        return "has two slashes in a row"
    if name in (".", ".."):
        return f"has the component {name!r}, which leads elsewhere"
    if ".." in name:
        return f"has '..' in {name!r}, which git refuses in refs"
    if name.startswith("-"):
        return f"has a component with a leading dash, {name!r}"
    if lowered == ".git":
        return "goes into .git"
    if name.startswith(".") or name.endswith("."):
        return f"has a component that begins or ends with a dot, {name!r}, which git refuses"
    if lowered.endswith(".lock"):
        return f"has a component that ends in .lock, {name!r}, which git refuses"
    return None


def overlaps(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of paths that are equal, or of which the second is inside the first; sorted.

    Every path that is inside another is in a pair with the nearest one around it, every repeated
    one in a pair with itself for each repetition.
    """
    pairs: list[tuple[str, str]] = []
    around: list[list[str]] = []  # the paths that contain the present one, outermost first
    for parts in sorted(path.split("/") if path else [] for path in paths):
        while around and parts[: len(around[-1])] != around[-1]:
            around.pop()
        if around:
            pairs.append(("/".join(around[-1]), "/".join(parts)))
        if not around or around[-1] != parts:
            around.append(parts)
    return pairs
