"""Upstream revisions: names, order, ranges. (Design §1, "upstream revision".)"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import total_ordering
from itertools import pairwise
from typing import Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.values import frozen, replace

Release = tuple[int, int, int]

_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_PRERELEASE: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_TAG: Final = re.compile(
    rf"v({_NUMBER})(?:\.({_NUMBER})\.({_NUMBER})(?:-({_PRERELEASE}))?)?\Z", re.ASCII
)
_COMPARATOR: Final = re.compile(
    rf"(\^|~>?|>=|<=|>|<|=)?\s*v?({_NUMBER}|[xX*])(?:\.({_NUMBER}|[xX*]))?(?:\.({_NUMBER}|[xX*]))?"
    rf"(?:-({_PRERELEASE}))?(?=\s|\Z)",
    re.ASCII,
)
_REMEDY: Final = "write comparators such as `>=1 <3`, `^1.2`, `~1.2.3` or `1.x`, with `||` for or"


@frozen
class Revision:
    """One immutable state of a package: its name ("v3", or the commit id) and its commit."""

    name: str
    commit: str
    when: int  # the commit's time, Unix seconds UTC


@total_ordering
@frozen
class Version:
    """A version; its order is semver's. `v3` is 3.0.0, and equal to it."""

    major: int
    minor: int = 0
    patch: int = 0
    prerelease: tuple[str, ...] = ()

    @property
    def release(self) -> Release:
        """Without the prerelease."""
        return self.major, self.minor, self.patch

    def __lt__(self, other: "Version") -> bool:
        """Semver §11: a prerelease comes before its release, numbers before words."""
        return self._order() < other._order()

    def _order(self) -> tuple[Release, bool, list[tuple[bool, int, str]]]:
        parts = [
            (False, int(part), "") if part.isdigit() else (True, 0, part)
            for part in self.prerelease
        ]
        return self.release, not parts, parts

    def __str__(self) -> str:
        """`1.2.3-rc.1`."""
        text = ".".join(map(str, self.release))
        return f"{text}-{'.'.join(self.prerelease)}" if self.prerelease else text


@frozen
class _Comparator:
    """At or above `low`, below `high`; None is no bound. A prerelease is allowed where named."""

    low: Version | None
    high: Version | None
    named: Version | None = None  # the prerelease that is written in the range

    def allows(self, version: Version) -> bool:
        return (self.low is None or version >= self.low) and (
            self.high is None or version < self.high
        )


@frozen
class Range:
    """A set of versions: comparators that all hold, or another such group of them."""

    text: str
    groups: tuple[tuple[_Comparator, ...], ...]

    def allows(self, version: Version) -> bool:
        """Is the version in the range?

        A prerelease is so only where a comparator of the same group names a prerelease of the same
        release, as npm and Cargo have it.
        """
        return any(
            all(comparator.allows(version) for comparator in group)
            and (not version.prerelease or _names(group, version))
            for group in self.groups
        )


def _names(group: tuple[_Comparator, ...], version: Version) -> bool:
    return any(c.named is not None and c.named.release == version.release for c in group)


def parse_tag(tag: str, package: str) -> Version | None:
    """The version in `<package>/v<N>` or `<package>/v1.2.3[-pre]`, or None for any other tag.

    The tag is a name or a full ref; the package at the repository's root (`""`) has tags `v1`.
    Build numbers are no part of a tag's version: such a tag is none of ours.
    """
    name = tag.removeprefix("refs/tags/")
    prefix = f"{package}/" if package else ""
    match = _TAG.match(name[len(prefix) :]) if name.startswith(prefix) else None
    if match is None:
        return None
    major, minor, patch, prerelease = match.groups()
    parts = tuple(prerelease.split(".")) if prerelease else ()
    if any(_is_padded(part) for part in parts):
        return None
    return Version(int(major), int(minor or 0), int(patch or 0), parts)


def _is_padded(part: str) -> bool:
    """Semver §9: numbers have no leading zeros."""
    return part.isdigit() and part != "0" and part.startswith("0")


def allowed(tags: Mapping[str, str], package: str, rule: Range) -> list[tuple[str, str]]:
    """Names ("v3") and commits of a package's tags that a range allows, oldest first.

    Raises InvalidInput when two of them are one version (v1 and v1.0.0): nobody could say which.
    """
    return _names_and_commits(package, [v for v in _versions(tags, package) if rule.allows(v[0])])


def releases(tags: Mapping[str, str], package: str) -> list[tuple[str, str]]:
    """What `latest` allows: all versions that are no prereleases, oldest first.

    The gates choose the newest that a stage may take, so a later stage can still take the one that
    was the latest while the stage before had it. (Design §6, "Which revision".)
    Raises InvalidInput when one version is spelled in two ways.
    """
    found = [version for version in _versions(tags, package) if not version[0].prerelease]
    return _names_and_commits(package, found)


def tagged(tags: Mapping[str, str], package: str, tag: str) -> list[tuple[str, str]]:
    """The one tag of this name (`v3`, or with the package's path), as a list of one, or of none."""
    name = tag.removeprefix("refs/tags/").removeprefix(f"{package}/" if package else "")
    found = [entry for entry in _versions(tags, package) if entry[1] == name]
    return _names_and_commits(package, found)


def _versions(tags: Mapping[str, str], package: str) -> list[tuple[Version, str, str]]:
    """Version, name and commit of each of a package's tags, oldest first."""
    prefix = f"{package}/" if package else ""
    return sorted(
        (version, tag.removeprefix("refs/tags/").removeprefix(prefix), commit)
        for tag, commit in tags.items()
        if (version := parse_tag(tag, package)) is not None
    )


def _names_and_commits(
    package: str, versions: list[tuple[Version, str, str]]
) -> list[tuple[str, str]]:
    for (version, name, _), (after, other, _) in pairwise(versions):
        if version == after:
            raise InvalidInput(
                f"the tags {name} and {other} of {package or 'the root package'} "
                f"are one version, {version}",
                reason="AmbiguousVersion",
                remedy="delete one of the two tags",
            )
    return [(name, commit) for _, name, commit in versions]


def parse_range(text: str) -> Range:
    """A range of versions. Raises InvalidInput with the reason and the way to write it."""
    return Range(text, tuple(_group(part.strip(), text) for part in text.split("||")))


def _group(part: str, text: str) -> tuple[_Comparator, ...]:
    if not part:
        raise _refused(text, "one side of it is empty" if "||" in text else "it is empty")
    if re.search(r"\s-\s", part):
        raise _refused(
            text, "hyphen ranges are not supported", "write `1.2 - 1.4` as `>=1.2 <=1.4`"
        )
    if "+" in part:
        raise _refused(text, "build numbers have no order", "leave out what follows the `+`")
    comparators: list[_Comparator] = []
    while part:
        match = _COMPARATOR.match(part)
        if match is None:
            raise _refused(text, f"`{part.split(maxsplit=1)[0]}` is no comparator")
        comparators.append(_comparator(match, text))
        part = part[match.end() :].lstrip()
    return tuple(comparators)


def _comparator(match: re.Match[str], text: str) -> _Comparator:
    operator, *numbers, prerelease = match.groups()
    given: list[int] = []
    for number in numbers:
        if number is None or number in "xX*":
            break
        given.append(int(number))
    if any(number is not None and number not in "xX*" for number in numbers[len(given) :]):
        raise _refused(text, f"`{match[0]}` has a number behind a wildcard")
    named = None
    if prerelease:
        parts = tuple(prerelease.split("."))
        if len(given) < 3 or any(map(_is_padded, parts)):
            raise _refused(text, f"`{match[0]}` is no complete version before its prerelease")
        named = _version(given, parts)
    return _bounds(operator or "=", given, named, text)


def _bounds(operator: str, given: list[int], named: Version | None, text: str) -> _Comparator:
    first = named or _version(given)
    if not given and operator in ("<", ">"):
        raise _refused(text, f"`{operator}` any version allows nothing", "leave it out")
    beyond = _after(given, len(given)) if not named else None  # behind all that fit what is given
    just_after = Version(*first.release, (*first.prerelease, "0")) if named else beyond
    table: dict[str, Callable[[], tuple[Version | None, Version | None]]] = {
        "=": lambda: (first, just_after),
        ">=": lambda: (first, None),
        "<": lambda: (None, first if len(given) == 3 else replace(first, prerelease=("0",))),
        ">": lambda: (just_after, None),
        "<=": lambda: (None, just_after),
        "~": lambda: (first, _after(given, min(len(given), 2))),
        "~>": lambda: (first, _after(given, min(len(given), 2))),
        "^": lambda: (first, _after(given, _caret(given))),
    }
    return _Comparator(*table[operator](), named)


def _caret(given: list[int]) -> int:
    """How many numbers must stay: all up to the first that is not zero."""
    for position, number in enumerate(given):
        if number:
            return position + 1
    return len(given)


def _after(given: list[int], length: int) -> Version | None:
    """The first version behind all that begin with these numbers, its own prereleases included."""
    if not length:
        return None
    return _version([*given[: length - 1], given[length - 1] + 1], ("0",))


def _version(given: Sequence[int], prerelease: tuple[str, ...] = ()) -> Version:
    major, minor, patch, *_ = (*given, 0, 0, 0)
    return Version(major, minor, patch, prerelease)


def _refused(text: str, problem: str, remedy: str = _REMEDY) -> InvalidInput:
    return InvalidInput(
        f"`{text}` is no range of versions: {problem}", reason=Reason.INVALID_OBJECT, remedy=remedy
    )
