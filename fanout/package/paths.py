"""Paths of packages: which are safe in a repository and in ref names, and which collide.

A package's path stands in branch and tag names, so git's rules for refs hold for it (see
git-check-ref-format), and fanout's own of design §9: no `..`, no leading dash, nothing that a file
system or a command line could take for something else.
"""

from collections.abc import Iterable, Sequence

from fanout.api.paths import path_problem


def check_path(path: str) -> str | None:
    """What is wrong with a path of a package, or of a ref below `refs/heads/`, as a sentence.

    None when nothing is. Slashes separate components; none may stand at either end.
    """
    if not path:
        return "the path is empty"
    if problem := path_problem(path):
        return f"the path {path!r} {problem}"
    return None


def overlaps(paths: Iterable[str]) -> list[tuple[int, int]]:
    """Pairs of positions whose paths are equal, or of which the second is inside the first.

    Every path that is inside others is in a pair with the nearest one around it, and every repeated
    one with its first occurrence: in a set of paths, exactly those in no pair are free. Sorted.
    """
    pairs: list[tuple[int, int]] = []
    around: list[tuple[Sequence[str], int]] = []  # what contains the present path, outermost first
    for parts, position in sorted(
        (path.split("/") if path else [], position) for position, path in enumerate(paths)
    ):
        while around and parts[: len(around[-1][0])] != around[-1][0]:
            around.pop()
        if around:
            pairs.append((around[-1][1], position))
        if not around or around[-1][0] != parts:
            around.append((parts, position))
    return sorted(pairs)
