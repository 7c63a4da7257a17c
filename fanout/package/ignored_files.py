"""Files that a package names in its `.krmignore`: bytes, of which no object is read.

kpt reads these files with a library whose patterns are not those of Git: a pattern with a slash
in its middle matches in every directory, `**` is `*`, and a pattern that begins with `!` wins
wherever it stands. Each Kptfile begins a package, which has a `.krmignore` of its own and is
ignored by no other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.package.wildcard_patterns import WILDCARDS, WildcardPatterns
from fanout.values import Value

KRM_IGNORE = ".krmignore"
MAX_COMPARED = 10_000  # characters of the patterns of a file that are compared with each path


def find_ignored(files: Mapping[str, tuple[object, bytes]]) -> frozenset[str]:
    """Return the paths that are ignored; a Kptfile is none.

    `files`: of a package with its subpackages, each a pair with the content last. Raises
    InvalidInput for a file of too many patterns.
    """
    # Most packages have none.
    if not any(path.rpartition("/")[2] == KRM_IGNORE for path in files):
        return frozenset()
    paths = {path: path.split("/") for path in files}
    root = _Directory(is_package=True)
    for path, (*directories, name) in paths.items():
        if name in (KPTFILE, KRM_IGNORE):
            directory = root
            for part in directories:
                directory = directory.children.setdefault(part, _Directory())
            if name == KPTFILE:
                directory.is_package = True
            else:
                directory.rules = _read_rules(path, files[path][1])
    ignored = set()
    root_place = root.enter(None, "")
    for path, (*directories, name) in paths.items():
        directory, place = root, root_place
        for part in directories:
            directory = directory.children.setdefault(part, _Directory())
            place = directory.place or directory.enter(place, part)
        if name != KPTFILE and place.ignores(name, is_directory=False):
            ignored.add(path)
    return frozenset(ignored)


@dataclass(slots=True)
class _Directory:
    """Directory of a package or of a subpackage."""

    is_package: bool = False  # one begins in it
    rules: "_Rules | None" = None  # of the `.krmignore` in it
    children: dict[str, "_Directory"] = field(default_factory=dict)
    place: "_Place | None" = None  # None: not entered yet

    def enter(self, parent: "_Place | None", name: str) -> "_Place":
        """Return the place of the directory, whose name in its parent is given."""
        if parent is None or self.is_package:
            rules = self.rules or _Rules()
            self.place = _Place(rules, rules.ignored.begin(), rules.accepted.begin())
        else:
            self.place = parent.enter(name)
        return self.place


@dataclass(slots=True)
class _PathTree:
    """Paths without wildcards, name by name."""

    children: dict[str, "_PathTree"] = field(default_factory=dict)
    of_directories: bool | None = None  # None: no pattern ends here

    def add(self, names: Iterable[str], *, of_directories: bool) -> None:
        tree = self
        for name in names:
            tree = tree.children.setdefault(name, _PathTree())
        tree.of_directories = of_directories and tree.of_directories is not False

    def matches(self, *, is_directory: bool) -> bool:
        """Return whether a pattern for such an entry ends here."""
        return is_directory if self.of_directories else self.of_directories is False


_NO_PATHS = _PathTree()
_Progress = tuple[_PathTree, int]
"""Patterns below the path of a directory: a tree of plain ones, and a state of the others."""


class _Place(Value):
    """Directory as the patterns of its package see it."""

    rules: "_Rules"
    ignored: _Progress
    accepted: _Progress
    is_ignored: bool = False

    def enter(self, name: str) -> "_Place":
        """Return the place of a directory in this one."""
        return _Place(
            self.rules,
            self.rules.ignored.enter(self.ignored, name),
            self.rules.accepted.enter(self.accepted, name),
            is_ignored=self.ignores(name, is_directory=True),
        )

    def ignores(self, name: str, *, is_directory: bool) -> bool:
        """Return whether an entry of the directory is ignored."""
        # Nothing is read below a directory that is ignored.
        return self.is_ignored or (
            self.rules.ignored.match(self.ignored, name, is_directory=is_directory)
            and not self.rules.accepted.match(self.accepted, name, is_directory=is_directory)
        )


@dataclass(slots=True)
class _Patterns:
    """Patterns of one kind; names, and paths from the package, are looked up if they are plain."""

    names: _PathTree = field(default_factory=_PathTree)
    paths: _PathTree = field(default_factory=_PathTree)
    wildcards: WildcardPatterns = field(default_factory=WildcardPatterns)
    size: int = 0  # characters of those with wildcards

    def add(self, pattern: str) -> None:
        text, of_directories = pattern.strip("/"), pattern.endswith("/")
        is_rooted, is_plain = pattern.startswith("/"), WILDCARDS.isdisjoint(text)
        if not text:
            return
        if is_plain and is_rooted:
            self.paths.add(text.split("/"), of_directories=of_directories)
        elif is_plain and "/" not in text:
            self.names.add([text], of_directories=of_directories)
        else:
            self.size += len(text)
            escaped = text.replace("\\", r"\\") if is_plain else text
            if self.size <= MAX_COMPARED:  # more are refused
                self.wildcards.add(escaped, is_rooted=is_rooted, of_directories=of_directories)

    def begin(self) -> _Progress:
        return self.paths, self.wildcards.begin()

    def enter(self, progress: _Progress, name: str) -> _Progress:
        """Return the progress in a directory of the one with this progress."""
        paths, state = progress
        entered = self.wildcards.enter(self.wildcards.read(state, name))
        return paths.children.get(name, _NO_PATHS), entered

    def match(self, progress: _Progress, name: str, *, is_directory: bool) -> bool:
        """Return whether a pattern matches an entry of the directory with this progress."""
        paths, state = progress
        return (
            self.names.children.get(name, _NO_PATHS).matches(is_directory=is_directory)
            or paths.children.get(name, _NO_PATHS).matches(is_directory=is_directory)
            or self.wildcards.matches(self.wildcards.read(state, name), is_directory=is_directory)
        )


@dataclass(slots=True)
class _Rules:
    """Content of one `.krmignore`."""

    ignored: _Patterns = field(default_factory=_Patterns)
    accepted: _Patterns = field(default_factory=_Patterns)


def _read_rules(path: str, data: bytes) -> _Rules:
    rules = _Rules()
    for line in data.decode(errors="surrogateescape").split("\n"):
        pattern = line.removesuffix("\r").strip(" ")
        if pattern.startswith("#"):
            continue
        if pattern.startswith("!"):
            rules.accepted.add(pattern[1:])
        else:
            rules.ignored.add(pattern[1:] if pattern.startswith("\\#") else pattern)
    if rules.ignored.size + rules.accepted.size > MAX_COMPARED:
        raise InvalidInput(
            f"has more than {MAX_COMPARED:,} characters of patterns with wildcards, or with a "
            "slash in their middle alone",
            reason=Reason.LIMIT_EXCEEDED,
            remedy="name directories instead, or begin paths with a slash",
            where=ErrorLocation(file=path),
        )
    return rules
