"""Rules for package paths and file names: safe in refs, without overlaps, portable.

A package's path is part of branch and tag names, so git's rules for refs hold for it
(see git-check-ref-format), and those of design §9: no `..`, no leading dash, nothing
that a file system or a command line could take for something else. File names must mean
the same on every system: a clone on Windows or macOS has one file where two names
differ in case or Unicode form alone, and Windows takes some names for devices and drops
dots and spaces at their end.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from fanout.api.path_fields import find_path_problem, find_reserved_name, fold_path


def find_package_path_problem(path: str) -> str | None:
    """Return the problem of a package's path, or of a ref below `refs/heads/`, or None.

    Slashes separate components; none may stand at either end.
    """
    if not path:
        return "the path is empty"
    if problem := find_path_problem(path):
        return f"the path {path!r} {problem}"
    return None


def find_overlaps(paths: Iterable[str]) -> list[tuple[int, int]]:
    """Return pairs of positions of which the second path equals or is inside the first.

    A path inside others is paired with its nearest parent, a repeated path with its first
    occurrence. So the paths without overlaps are exactly those in no pair. Sorted.
    """
    pairs: list[tuple[int, int]] = []
    # what contains the present path, outermost first
    enclosing: list[tuple[Sequence[str], int]] = []
    for parts, position in sorted(
        # Sorted by components, everything inside a path directly follows it: `a/b` sorts
        # before `a-b`, which it would not as text.
        (path.split("/") if path else [], position)
        for position, path in enumerate(paths)
    ):
        while enclosing and parts[: len(enclosing[-1][0])] != enclosing[-1][0]:
            enclosing.pop()
        if enclosing:
            pairs.append((enclosing[-1][1], position))
        if not enclosing or enclosing[-1][0] != parts:
            enclosing.append((parts, position))
    return sorted(pairs)


def find_unportable_files(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that some system cannot store, and the reason as half a sentence."""
    files = sorted(paths)
    for path in files:
        if problem := _name_problem(path):
            yield path, problem
    names = [fold_path(path) for path in files]
    for first, second in find_overlaps(names):
        later, earlier = sorted((files[first], files[second]), reverse=True)
        if names[first] == names[second]:
            yield later, f"is {earlier} but for case or Unicode form"
        else:
            yield files[first], f"is a file, and {files[second]} is inside it but for case"


def _name_problem(path: str) -> str:
    if reserved := find_reserved_name(path):
        return f"has the name {reserved!r}, which is reserved on Windows"
    for name in path.split("/"):
        if name.endswith((".", " ")):
            return f"has the name {name!r}, which ends with a dot or a space"
    return ""
