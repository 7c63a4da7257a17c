"""Versions, their order, and ranges: tables, and a model that counts through all versions."""

import itertools
import re
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.errors import InvalidInput
from fanout.package.revision import (
    Version,
    parse_range,
    parse_tag,
    select_allowed,
    select_releases,
    select_tag,
)

TAGS = [
    ("a whole number", "team/app/v3", "team/app", "3.0.0"),
    ("a semantic version", "team/app/v1.2.3", "team/app", "1.2.3"),
    ("a prerelease", "team/app/v1.2.3-rc.1", "team/app", "1.2.3-rc.1"),
    ("a full ref", "refs/tags/app/v3", "app", "3.0.0"),
    ("the package at the root", "v3", "", "3.0.0"),
    ("another package", "other/v3", "app", None),
    ("a package inside", "app/sub/v3", "app", None),
    ("a package around", "app/v3", "app/sub", None),
    ("no v", "app/3", "app", None),
    ("two numbers", "app/v1.2", "app", None),
    ("a build number", "app/v1.2.3+5", "app", None),
    ("a leading zero", "app/v01", "app", None),
    ("a leading zero in the prerelease", "app/v1.2.3-01", "app", None),
    ("a prerelease of a whole number", "app/v1-rc", "app", None),
    ("digits of another script", "app/v٣", "app", None),
    ("more digits than Python converts", f"app/v{'9' * 5000}", "app", None),
    ("and in the prerelease", f"app/v1.2.3-{'9' * 5000}", "app", None),
    ("a line break at the end", "app/v1\n", "app", None),
]


@pytest.mark.parametrize(
    ("sentence", "tag", "package", "expected"), TAGS, ids=map(itemgetter(0), TAGS)
)
def test_tags(sentence, tag, package, expected):
    version = parse_tag(tag, package)
    assert (str(version) if version else None) == expected


def version(text):
    version_read = parse_tag(f"v{text}", "")
    assert version_read is not None
    return version_read


def test_the_order_is_that_of_semver():
    texts = [
        "0.0.1",
        "0.1.0",
        "1.0.0-0",
        "1.0.0-1",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.10.0",
        "2",
        "10",
    ]
    assert sorted(map(version, reversed(texts))) == list(map(version, texts))
    assert version("3") == version("3.0.0")


RANGES = [
    (">=1 <3", "1 1.5.0 2.9.9", "0.9.9 3 2.0.0-rc.1 3.0.0-rc.1"),
    ("^1.2", "1.2.0 1.9.0", "1.1.9 2 2.0.0-0"),
    ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
    ("^0.0.3", "0.0.3", "0.0.4 0.0.2"),
    ("^0.0", "0.0.0 0.0.9", "0.1.0"),
    ("^0", "0.0.0 0.9.0", "1"),
    ("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2"),
    ("~1.2", "1.2.0 1.2.9", "1.3.0"),
    ("~1", "1 1.9.0", "2"),
    ("1.x", "1 1.9.0", "2 0.9.0"),
    ("1.2.*", "1.2.0 1.2.7", "1.3.0"),
    ("1", "1 1.9.0", "2"),
    ("=1.2.3", "1.2.3", "1.2.4 1.2.2 1.2.3-rc.1"),
    ("v1.2.3", "1.2.3", "1.2.4"),
    ("*", "0.0.0 1 99", "1.0.0-rc.1"),
    ("x", "0.0.0 99", "1.0.0-rc.1"),
    (">1", "2 2.0.1", "1 1.9.9 2.0.0-rc.1"),
    ("<=1", "0.1.0 1 1.9.9", "2 2.0.0-rc.1"),
    (">1.2", "1.3.0", "1.2.9"),
    ("<1.2.3", "1.2.2", "1.2.3 1.2.3-rc.1"),
    ("1 || 3", "1 3 3.1.0", "2 4"),
    ("<1 || >=2.5.0 <3", "0.9.0 2.5.0", "1 2 3"),
    (">=1.0.0-rc.2", "1.0.0-rc.2 1.0.0-rc.10 1 2", "1.0.0-rc.1 2.0.0-rc.3 1.0.0-beta"),
    ("1.0.0-rc.1", "1.0.0-rc.1", "1 1.0.0-rc.1.1 1.0.0-rc.2"),
    ("^1.2.3-beta.2", "1.2.3-beta.2 1.2.3-rc 1.2.3 1.9.0", "1.2.3-beta.1 1.2.4-beta.2 2"),
    ("~1.2.3-beta.2", "1.2.3-beta.4 1.2.9", "1.2.4-beta.4 1.3.0"),
    (">1.0.0-rc.1", "1.0.0-rc.1.1 1.0.0-rc.2 1", "1.0.0-rc.1"),
    ("<=1.0.0-rc.1", "1.0.0-rc.1 1.0.0-a 0.9.0", "1.0.0-rc.2 1"),
    ("1.x || 2.0.0-rc.1", "1.5.0 2.0.0-rc.1", "1.0.0-rc.1 2"),
    (">= 1", "1 2", "0.9.0"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inside", "outside"), RANGES, ids=map(itemgetter(0), RANGES))
def test_ranges(text, inside, outside):
    version_range = parse_range(text)
    assert [t for t in inside.split() if not version_range.allows(version(t))] == []
    assert [t for t in outside.split() if version_range.allows(version(t))] == []


REFUSED = [
    ("nothing", "", "it is empty"),
    ("an empty side", "1 ||", "one side of it is empty"),
    ("a hyphen range", "1.2 - 1.4", "hyphen ranges"),
    ("a build number", "1.2.3+5", "build metadata"),
    ("a word", "stable", "`stable` is not a comparator"),
    ("a comma", ">=1, <3", "`>=1,` is not a comparator"),
    ("no space between", ">=1<3", "is not a comparator"),
    ("a number after a wildcard", "1.x.3", "after a wildcard"),
    ("a prerelease of a part", "1.2-rc", "incomplete version"),
    ("a prerelease with a leading zero", "1.2.3-01", "incomplete version"),
    ("less than anything", "<*", "allows nothing"),
    ("more numbers", "1.2.3.4", "is not a comparator"),
    ("a path", "app/v1", "is not a comparator"),
]


@pytest.mark.parametrize(("sentence", "text", "expected"), REFUSED, ids=map(itemgetter(0), REFUSED))
def test_refused_ranges(sentence, text, expected):
    with pytest.raises(InvalidInput, match=re.escape(expected)) as caught:
        parse_range(text)
    assert caught.value.remedy


SMALL = [Version(*numbers) for numbers in itertools.product(range(4), repeat=3)]
parts = st.lists(st.integers(0, 3), min_size=1, max_size=3)
comparators = st.tuples(st.sampled_from(["", "=", ">", ">=", "<", "<=", "~", "^"]), parts)


def naive(operator, given_parts, candidate):
    """By the meaning of the words: which versions fit what is given, and which are beyond."""
    numbers = candidate.release
    fits = list(numbers[: len(given_parts)]) == given_parts
    low = Version(*[*given_parts, 0, 0][:3])
    match operator:
        case "" | "=":
            return fits
        case ">":
            return not fits and candidate > low
        case ">=":
            return candidate >= low
        case "<":
            return candidate < low
        case "<=":
            return fits or candidate < low
        case "~":
            return candidate >= low and list(numbers[: min(2, len(given_parts))]) == given_parts[:2]
        case "^":
            nonzero = next((i for i, n in enumerate(given_parts) if n), len(given_parts) - 1)
            return candidate >= low and list(numbers[: nonzero + 1]) == given_parts[: nonzero + 1]
    raise AssertionError(operator)


@given(st.lists(st.lists(comparators, min_size=1, max_size=3), min_size=1, max_size=3))
def test_ranges_agree_with_their_meaning(groups):
    text = " || ".join(" ".join(o + ".".join(map(str, n)) for o, n in group) for group in groups)
    version_range = parse_range(text)
    for candidate in SMALL:
        expected = any(all(naive(o, n, candidate) for o, n in group) for group in groups)
        assert version_range.allows(candidate) is expected, candidate


REPOSITORY = {
    "app/v1": "a", "app/v2": "b", "app/v10": "c", "app/v11.0.0-rc.1": "d", "app/v2.1.0": "e",
    "other/v3": "f", "v7": "g", "v7.0.0": "h", "app/sub/v4": "i", "v6": "j",
}  # fmt: skip


def test_allowed_tags_come_oldest_first():
    assert select_allowed(REPOSITORY, "app", parse_range(">=1 <10")) == [
        ("v1", "a"),
        ("v2", "b"),
        ("v2.1.0", "e"),
    ]
    assert select_allowed(REPOSITORY, "app", parse_range(">=11.0.0-0")) == [("v11.0.0-rc.1", "d")]
    assert select_allowed(REPOSITORY, "none", parse_range("*")) == []
    refs = {f"refs/tags/{name}": commit for name, commit in REPOSITORY.items()}
    assert select_allowed(refs, "app", parse_range("10")) == [("v10", "c")]


def test_latest_allows_all_that_are_no_prereleases():
    assert select_releases(REPOSITORY, "app") == [
        ("v1", "a"),
        ("v2", "b"),
        ("v2.1.0", "e"),
        ("v10", "c"),
    ]
    assert select_releases({"app/v1.0.0-rc.1": "x"}, "app") == []


def test_a_version_with_two_spellings_is_refused_by_name_where_it_is_requested():
    assert select_allowed(REPOSITORY, "", parse_range("6")) == [("v6", "j")]
    for ask in (
        lambda: select_allowed(REPOSITORY, "", parse_range(">=6")),
        lambda: select_releases(REPOSITORY, ""),
    ):
        with pytest.raises(InvalidInput, match=re.escape("v7 and v7.0.0")):
            ask()


def test_a_tag_by_its_name():
    assert (
        select_tag(REPOSITORY, "app", "v2")
        == select_tag(REPOSITORY, "app", "app/v2")
        == [("v2", "b")]
    )
    assert select_tag(REPOSITORY, "", "v6") == [("v6", "j")]
    assert select_tag(REPOSITORY, "app", "v3") == []
