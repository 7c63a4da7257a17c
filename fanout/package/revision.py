"""Upstream revisions: names, order, version ranges (docs/concepts/packages-and-revisions.md)."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.values import Value, replace

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


class Revision(Value):
    """Immutable state of a package: its name ("v3", or the commit id) and its commit."""

    name: str
    commit: str
    committed_at: int  # the commit's time, Unix seconds UTC


class Version(Value):
    """Version in semver's order. `v3` is 3.0.0, and equal to it."""

    major: int
    minor: int = 0
    patch: int = 0
    prerelease: tuple[str, ...] = ()

    @property
    def release(self) -> Release:
        """Numbers of the version, without the prerelease."""
        return self.major, self.minor, self.patch

    def __lt__(self, other: "Version") -> bool:
        """Order by semver §11: a prerelease before its release, numbers before words."""
        return self._sort_key() < other._sort_key()

    def __ge__(self, other: "Version") -> bool:
        """Order as `<` does. Python asks it for `<=`, and `<` for `>`."""
        return not self < other

    def _sort_key(self) -> tuple[Release, bool, list[tuple[bool, int, str]]]:
        parts = [
            (False, int(part), "") if part.isdigit() else (True, 0, part)
            for part in self.prerelease
        ]
        return self.release, not parts, parts

    def __str__(self) -> str:
        """Format as `1.2.3-rc.1`."""
        text = ".".join(map(str, self.release))
        return f"{text}-{'.'.join(self.prerelease)}" if self.prerelease else text


class _Comparator(Value):
    """Versions at or above `low` and below `high`; None is no bound."""

    low: Version | None
    high: Version | None
    prerelease_version: Version | None = None  # the prerelease that is written in the range

    def allows(self, version: Version) -> bool:
        is_high_enough = self.low is None or version >= self.low
        return is_high_enough and (self.high is None or version < self.high)


class VersionRange(Value):
    """Set of versions: groups of comparators, of which one group must hold completely."""

    text: str
    groups: tuple[tuple[_Comparator, ...], ...]

    def allows(self, version: Version) -> bool:
        """Return whether the version is in the range.

        A prerelease is, only if a comparator of the same group names a prerelease of the same
        release, as in npm and Cargo.
        """
        for group in self.groups:
            prereleases = [it.prerelease_version for it in group if it.prerelease_version]
            is_named = any(it.release == version.release for it in prereleases)
            if (is_named or not version.prerelease) and all(it.allows(version) for it in group):
                return True
        return False


def parse_tag(tag: str, package: str) -> Version | None:
    """Return the version of a tag `<package>/v<N>` or `<package>/v1.2.3[-pre]`, or None.

    The tag is a name or a full ref; the package at the repository's root (`""`) has tags
    `v1`. A tag with build metadata is not a version tag.
    """
    name = tag.removeprefix("refs/tags/")
    prefix = f"{package}/" if package else ""
    match = _TAG.match(name[len(prefix) :]) if name.startswith(prefix) else None
    if match is None:
        return None
    major, minor, patch, prerelease = match.groups()
    parts = tuple(prerelease.split(".")) if prerelease else ()
    # `v1.2.3-01` is no semver; accepting it would give two spellings to one version.
    if any(_is_padded(part) or (part.isdigit() and len(part) > 18) for part in parts):
        return None
    return Version(int(major), int(minor or 0), int(patch or 0), parts)


def _is_padded(part: str) -> bool:
    """Return whether a number has leading zeros, which semver §9 forbids."""
    return part.isdigit() and part != "0" and part.startswith("0")


def select_allowed(
    tags: Mapping[str, str], package: str, version_range: VersionRange
) -> list[tuple[str, str]]:
    """Return names ("v3") and commits of the tags that a range allows, oldest first.

    Raises InvalidInput if two of them are one version (v1 and v1.0.0), which would be ambiguous.
    """
    return _select_versions(tags, package, lambda version, _: version_range.allows(version))


def select_releases(tags: Mapping[str, str], package: str) -> list[tuple[str, str]]:
    """Return names and commits of all versions but prereleases (`latest`), oldest first.

    The gates choose the newest that a stage may take, so a later stage can still take the revision
    that was the latest while the stage before had it. Raises InvalidInput if two tags are one
    version.
    """
    return _select_versions(tags, package, lambda version, _: not version.prerelease)


def select_tag(tags: Mapping[str, str], package: str, tag: str) -> list[tuple[str, str]]:
    """Return name and commit of a tag (`v3`, or with path): a list of one or none."""
    wanted = tag.removeprefix("refs/tags/").removeprefix(f"{package}/" if package else "")
    return _select_versions(tags, package, lambda _, name: name == wanted)


def _select_versions(
    tags: Mapping[str, str], package: str, selects: Callable[[Version, str], bool]
) -> list[tuple[str, str]]:
    """Return name and commit of a package's tags that are selected by version and name."""
    prefix = f"{package}/" if package else ""
    versions = sorted(
        (version, name, commit)
        for tag, commit in tags.items()
        if (version := parse_tag(tag, package)) is not None
        and selects(version, name := tag.removeprefix("refs/tags/").removeprefix(prefix))
    )
    for (version, name, _), (next_version, next_name, _) in pairwise(versions):
        if version == next_version:
            raise InvalidInput(
                f"the tags {name} and {next_name} of {package or 'the root package'} "
                f"are the same version, {version}",
                reason="AmbiguousVersion",
                remedy="delete one of the two tags",
            )
    return [(name, commit) for _, name, commit in versions]


def parse_range(text: str) -> VersionRange:
    """Parse a range of versions. Raises InvalidInput with the reason and the correct form."""
    groups = []
    for part in map(str.strip, text.split("||")):
        if not part:
            raise _range_error(text, "one side of it is empty" if "||" in text else "it is empty")
        if re.search(r"\s-\s", part):
            raise _range_error(
                text, "hyphen ranges are not supported", "write `1.2 - 1.4` as `>=1.2 <=1.4`"
            )
        if "+" in part:
            problem = "build metadata has no order"
            raise _range_error(text, problem, "remove the `+` and what follows")
        comparators: list[_Comparator] = []
        rest = part
        while rest:
            if (match := _COMPARATOR.match(rest)) is None:
                raise _range_error(text, f"`{rest.split(maxsplit=1)[0]}` is not a comparator")
            comparators.append(_parse_comparator(match, text))
            rest = rest[match.end() :].lstrip()
        groups.append(tuple(comparators))
    return VersionRange(text, tuple(groups))


def _parse_comparator(match: re.Match[str], text: str) -> _Comparator:
    operator, *numbers, prerelease = match.groups()
    numbers_given: list[int] = []
    for number in numbers:
        if number is None or number in "xX*":
            break
        numbers_given.append(int(number))
    if any(number is not None and number not in "xX*" for number in numbers[len(numbers_given) :]):
        raise _range_error(text, f"`{match[0]}` has a number after a wildcard")
    prerelease_version = None
    if prerelease:
        parts = tuple(prerelease.split("."))
        if len(numbers_given) < 3 or any(map(_is_padded, parts)):
            raise _range_error(text, f"`{match[0]}` has a prerelease after an incomplete version")
        prerelease_version = _build_version(numbers_given, parts)
    first = prerelease_version or _build_version(numbers_given)
    if not numbers_given and operator in ("<", ">"):
        raise _range_error(text, f"`{operator}` any version allows nothing", "remove it")
    # The first version above all that begin with the given numbers.
    beyond = _first_beyond(numbers_given, len(numbers_given)) if not prerelease_version else None
    # In semver's order nothing lies between a prerelease and itself with `.0` appended,
    # so the half-open range holds exactly one version.
    just_after = Version(*first.release, (*first.prerelease, "0")) if prerelease_version else beyond
    # `^` keeps all numbers fixed up to the first that is not zero.
    caret_length = next((at for at, number in enumerate(numbers_given, 1) if number), None)
    about = first, _first_beyond(numbers_given, min(len(numbers_given), 2))
    bounds: dict[str, tuple[Version | None, Version | None]] = {
        "=": (first, just_after),
        ">=": (first, None),
        # `<3` excludes 3.0.0-rc.1 as well: `-0` is the lowest prerelease of all.
        "<": (None, first if len(numbers_given) == 3 else replace(first, prerelease=("0",))),
        ">": (just_after, None),
        "<=": (None, just_after),
        "~": about,
        "~>": about,
        "^": (first, _first_beyond(numbers_given, caret_length or len(numbers_given))),
    }
    return _Comparator(*bounds[operator or "="], prerelease_version)


def _first_beyond(numbers_given: list[int], length: int) -> Version | None:
    """Return the first version beyond all that begin with these numbers."""
    if not length:
        return None
    return _build_version([*numbers_given[: length - 1], numbers_given[length - 1] + 1], ("0",))


def _build_version(numbers_given: Sequence[int], prerelease: tuple[str, ...] = ()) -> Version:
    major, minor, patch, *_ = (*numbers_given, 0, 0, 0)
    return Version(major, minor, patch, prerelease)


def _range_error(text: str, problem: str, remedy: str = _REMEDY) -> InvalidInput:
    return InvalidInput(
        f"`{text}` is not a version range: {problem}", reason=Reason.INVALID_OBJECT, remedy=remedy
    )
