"""How much two forms of a package have in common, and which objects a merge could not match.

Taking a package over begins with a question that nothing in it answers: did the one who cloned it
also render it? Its content shows that.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fanout.package.kptfile import NAME as KPTFILE
from fanout.package.merge.documents import File, Key, Reader, Unit, is_manifest, units_of
from fanout.package.merge.identity import Identity, identity_of
from fanout.package.merge.namespaces import followed
from fanout.package.merge.packages import Files, package_of
from fanout.values import frozen

_Fact = tuple[object, ...]


@frozen
class Unmatched:
    """Objects that only one of two forms of a package has."""

    gone: tuple[Unit, ...]
    new: tuple[Unit, ...]


def distance(one: Files, other: Files) -> int:
    """How many facts only one of two packages has.

    A fact is that some object of a kind has a field, and that it has a value there. Names and
    namespaces are fields like others, so an object that is called otherwise is near all the same.
    """
    first, second = Counter(_facts(one)), Counter(_facts(other))
    return ((first - second) + (second - first)).total()


def unmatched(base: Files, local: Files) -> Unmatched:
    """The objects that a merge would take for deleted, and those it would take for added, here."""
    gone: list[Unit] = []
    new: list[Unit] = []
    reader = Reader()
    directories = _packages(base) | _packages(local)
    for directory in sorted(directories):
        (before, after), _ = units_of(
            [_manifests(files, directory, directories, reader) for files in (base, local)]
        )
        _, after = followed(before, before, after)
        gone += _objects(before, after)
        new += _objects(after, before)
    return Unmatched(tuple(gone), tuple(new))


def identities(files: Files) -> set[tuple[str, Identity]]:
    """The directory of the package that each object is in, and what it is called."""
    reader, directories = Reader(), _packages(files)
    return {
        (directory, identity)
        for directory in directories
        for file in _manifests(files, directory, directories, reader)
        for document in file.documents
        if (identity := identity_of(document.value.data))
    }


def _packages(files: Files) -> set[str]:
    return {"", *(path.rpartition("/")[0] for path in files if path.endswith(f"/{KPTFILE}"))}


def _manifests(
    files: Files, directory: str, directories: set[str], reader: Reader
) -> Iterator[File]:
    for path, (_, data) in files.items():
        if not is_manifest(path) or path.rpartition("/")[2] == KPTFILE:
            continue
        if package_of(path, directories) == directory and (file := reader.parse(path, data)):
            yield file


def _objects(side: dict[Key, Unit], other: dict[Key, Unit]) -> Iterator[Unit]:
    return (unit for key, unit in side.items() if key[0] == "object" and key not in other)


def _facts(files: Files) -> Iterator[_Fact]:
    reader = Reader()
    for file in _manifests(files, "", {""}, reader):
        for document in file.documents:
            data = document.value.data
            kind = data.get("kind") if isinstance(data, dict) else None
            for path, value in _leaves(data, ()):
                yield kind, path
                yield kind, path, value


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """All values with their fields; which element of a list it is does not matter."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, (*path, str(name)))
    elif isinstance(value, list) and value:
        for item in value:
            yield from _leaves(item, (*path, "[]"))
    else:
        yield path, repr(value)
