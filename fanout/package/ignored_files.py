"""Files that a package names in its `.krmignore`: bytes, of which no object is read.

kpt reads these files with a library whose patterns are not those of Git: a pattern with a slash
in its middle matches in every directory, `**` is `*`, and a pattern that begins with `!` wins
wherever it stands. Each Kptfile begins a package, which has a `.krmignore` of its own and is
ignored by no other.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.package.kptfile import find_package, package_directories

KRM_IGNORE = ".krmignore"
MAX_WILDCARDS = 100  # patterns of a file, each of which is compared with each path
_WILDCARDS = frozenset("*?[")


def find_ignored(files: Mapping[str, tuple[object, bytes]]) -> frozenset[str]:
    """Return the paths that are ignored; a Kptfile is none.

    `files`: of a package with its subpackages, each a pair with the content last. Raises
    InvalidInput for a file of too many patterns.
    """
    rules_by_package = {
        path[: -len(KRM_IGNORE)]: _read_rules(path, data)
        for path, (_, data) in files.items()
        if path.rpartition("/")[2] == KRM_IGNORE
    }
    if not rules_by_package:
        return frozenset()
    return frozenset(_find_ignored(files, rules_by_package))


def _find_ignored(
    paths: Collection[str], rules_by_package: Mapping[str, "_Rules"]
) -> Iterator[str]:
    packages = package_directories(paths)
    decisions: dict[str, bool] = {}  # of directories, which many files share

    def is_ignored(path: str, package: str, *, is_directory: bool) -> bool:
        prefix = f"{package}/" if package else ""
        if path == package or prefix not in rules_by_package:
            return False
        if is_directory and path in decisions:
            return decisions[path]
        # Nothing is read below a directory that is ignored.
        ignored = rules_by_package[prefix].ignores(
            path[len(prefix) :], is_directory=is_directory
        ) or is_ignored(path.rpartition("/")[0], package, is_directory=True)
        if is_directory:
            decisions[path] = ignored
        return ignored

    for path in paths:
        if path.rpartition("/")[2] != KPTFILE and is_ignored(
            path, find_package(path, packages), is_directory=False
        ):
            yield path


@dataclass(slots=True)
class _Patterns:
    """Patterns of one kind; those without wildcards are looked up."""

    # Paths from the package, or last parts of paths; True: of directories alone.
    whole: dict[str, bool] = field(default_factory=dict)
    last: dict[str, bool] = field(default_factory=dict)
    # The number of parts of a path that each is compared with (0: all), and the same mark.
    wildcards: list[tuple[re.Pattern[str], int, bool]] = field(default_factory=list)

    def add(self, pattern: str) -> None:
        text, of_directories = pattern.strip("/"), pattern.endswith("/")
        is_rooted = pattern.startswith("/")
        if not text:
            return
        if _WILDCARDS.isdisjoint(text):
            literals = self.whole if is_rooted else self.last
            literals[text] = of_directories and literals.get(text, True)
        elif (expression := _translate(text)) is not None:
            parts = 0 if is_rooted else text.count("/") + 1
            self.wildcards.append((re.compile(expression, re.DOTALL), parts, of_directories))

    def match(self, path: str, *, is_directory: bool) -> bool:
        candidates = [(self.whole, path)]
        tails = {0: path}
        start = len(path)
        for number in range(1, path.count("/") + 2):
            start = path.rfind("/", 0, start)
            tails[number] = path[start + 1 :]
            candidates.append((self.last, tails[number]))
        return any(
            not literals.get(text, True) or (is_directory and text in literals)
            for literals, text in candidates
        ) or any(
            expression.fullmatch(tails[parts]) is not None
            for expression, parts, of_directories in self.wildcards
            if parts in tails and (is_directory or not of_directories)
        )


@dataclass(slots=True)
class _Rules:
    """Content of one `.krmignore`."""

    ignored: _Patterns = field(default_factory=_Patterns)
    accepted: _Patterns = field(default_factory=_Patterns)

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """Return whether the path, from the package of the file, is ignored."""
        return self.ignored.match(path, is_directory=is_directory) and not self.accepted.match(
            path, is_directory=is_directory
        )


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
    if len(rules.ignored.wildcards) + len(rules.accepted.wildcards) > MAX_WILDCARDS:
        raise InvalidInput(
            f"has more than {MAX_WILDCARDS:,} patterns with wildcards",
            reason=Reason.LIMIT_EXCEEDED,
            remedy="name directories instead",
            where=ErrorLocation(file=path),
        )
    return rules


def _translate(pattern: str) -> str | None:
    """Translate a pattern of Go's `filepath.Match`; None if it is malformed and matches nothing."""
    chunks, chunk, at = [], "", 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            chunks.append(chunk)
            chunk = ""
        elif character == "?":
            chunk += "[^/]"
        elif character == "[":
            parsed = _CLASS.match(pattern, at)
            if parsed is None:
                return None
            chunk += _translate_class(parsed)
            at = parsed.end()
        elif character == "\\":
            if at == len(pattern):
                return None
            chunk += re.escape(pattern[at])
            at += 1
        else:
            chunk += re.escape(character)
    # Atomic, so that the time is bounded: if the first place of a chunk does not lead to a match,
    # no later one does.
    first, *rest = [*chunks, chunk]
    middle = "".join(f"(?>[^/]*?{it})" for it in rest[:-1])
    return f"{first}{middle}" + (f"[^/]*{rest[-1]}" if rest else "")


_CHARACTER = r"(?:\\.|[^]\\-])"
_RANGE = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_CLASS = re.compile(rf"(\^?)((?:{_CHARACTER}(?:-{_CHARACTER})?)+)\]", re.DOTALL)


def _translate_class(parsed: re.Match[str]) -> str:
    ranges = [
        (low, high or low)
        for low, high in (
            (it[1][-1], it[2][-1] if it[2] else "") for it in _RANGE.finditer(parsed[2])
        )
    ]
    text = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if not text:  # of ranges that hold nothing
        return "[^/]" if parsed[1] else "(?!)"
    return f"[{parsed[1]}{text}]"
