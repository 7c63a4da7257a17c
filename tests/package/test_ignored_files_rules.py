"""Which files a `.krmignore` names, as the library that kpt reads it with decides it."""

import pytest

from fanout.errors import InvalidInput
from fanout.package.ignored_files import MAX_COMPARED, find_ignored


def files(*paths: str, **contents: str) -> dict[str, tuple[str, bytes]]:
    """Files with no content; `contents` by path, with `__` for a slash."""
    texts = dict.fromkeys(paths, "") | {
        path.replace("__", "/"): text for path, text in contents.items()
    }
    return {path: ("100644", text.encode()) for path, text in texts.items()}


def ignores(rules: str, path: str) -> bool:
    return path in find_ignored(
        {**files("Kptfile", path), ".krmignore": ("100644", rules.encode())}
    )


RULES = [
    ("a name in the root", "a.yaml", "a.yaml", True),
    ("a name in any directory", "a.yaml", "b/c/a.yaml", True),
    ("another name", "a.yaml", "b.yaml", False),
    ("a part of a name", "a", "a.yaml", False),
    ("a path", "b/a.yaml", "b/a.yaml", True),
    ("a path in any directory, unlike in Git", "b/a.yaml", "x/b/a.yaml", True),
    ("a path from the root", "/b/a.yaml", "b/a.yaml", True),
    ("a path from the root alone", "/b/a.yaml", "x/b/a.yaml", False),
    ("a name in the root alone", "/a.yaml", "b/a.yaml", False),
    ("a directory", "b", "b/a.yaml", True),
    ("a directory in a directory", "b", "x/b/c/a.yaml", True),
    ("a directory with a slash", "b/", "x/b/a.yaml", True),
    ("a file is no directory", "b/", "x/b", False),
    ("a directory from the root", "/b", "b/c/a.yaml", True),
    ("a directory from the root with a slash", "/b/", "b/a.yaml", True),
    ("a directory from the root alone", "/b/", "x/b/a.yaml", False),
    ("a directory by its path", "x/b", "y/x/b/a.yaml", True),
    ("a wildcard", "*.yaml", "b/a.yaml", True),
    ("a wildcard with other letters", "*.yaml", "b/a.json", False),
    ("a wildcard in a path", "b/*.yaml", "x/b/a.yaml", True),
    ("a wildcard of several names", "b/*/a.yaml", "x/b/b/c/a.yaml", True),
    ("a wildcard of a name too few", "b/*/a.yaml", "b/a.yaml", False),
    ("a wildcard is within a name", "/*.yaml", "b/a.yaml", False),
    ("a wildcard for a directory", "gen*/", "generated/a.yaml", True),
    ("two stars are one", "/b/**/a.yaml", "b/c/a.yaml", True),
    ("two stars are no path", "/b/**/a.yaml", "b/c/d/a.yaml", False),
    ("two stars are a name", "/b/**/a.yaml", "b/a.yaml", False),
    ("one letter", "?.yaml", "a.yaml", True),
    ("one letter of two", "?.yaml", "ab.yaml", False),
    ("a class", "[a-c].yaml", "b.yaml", True),
    ("a negated class", "[^a-c].yaml", "b.yaml", False),
    ("an exclamation mark is a letter of a class", "[!a].yaml", "a.yaml", True),
    ("a class of the root may be a slash", "/b[^c]a.yaml", "b/a.yaml", True),
    ("another class is none", "b[^c]a.yaml", "b/a.yaml", False),
    ("a class with a slash", "[^/].yaml", "a.yaml", False),
    ("a class with a slash from the root", "/[^/].yaml", "a.yaml", True),
    ("ranges in any order", "[d-eb-ca].yaml", "b.yaml", True),
    ("ranges that meet", "[^a-cb-d].yaml", "c.yaml", False),
    ("an empty range", "[b-a].yaml", "b.yaml", False),
    ("an open class matches nothing", "[a.yaml", "[a.yaml", False),
    ("an escaped wildcard", r"\*[y].yaml", "*y.yaml", True),
    ("a backslash without wildcards is one", r"\a.yaml", "a.yaml", False),
    ("a backslash in a path without wildcards", r"b/\a.yaml", "b/a.yaml", False),
    ("a comment", "# a.yaml", "a.yaml", False),
    ("an escaped comment", r"\#a.yaml", "#a.yaml", True),
    ("spaces around", "  a.yaml  ", "a.yaml", True),
    ("lines with CR", "b.yaml\r\na.yaml\r\n", "a.yaml", True),
    ("an exception", "*.yaml\n!a.yaml", "a.yaml", False),
    ("an exception before, unlike in Git", "!a.yaml\n*.yaml", "a.yaml", False),
    ("no exception in a directory that is ignored", "b\n!b/a.yaml", "b/a.yaml", True),
    ("an exception for a directory", "*\n!b\n!a.yaml", "b/a.yaml", False),
    ("a slash alone", "/", "a.yaml", False),
    ("an exclamation mark alone", "!", "a.yaml", False),
    ("the Kptfile is read", "*", "Kptfile", False),
]


@pytest.mark.parametrize(
    ("sentence", "rules", "path", "ignored"), RULES, ids=[row[0] for row in RULES]
)
def test_rules(sentence, rules, path, ignored):
    assert ignores(rules, path) is ignored


def test_each_kptfile_begins_a_package_with_rules_of_its_own():
    package = files(
        "Kptfile", "a.yaml", "b/a.yaml", "sub/Kptfile", "sub/a.yaml", "sub/b.yaml", "sub/c/b.yaml"
    )
    package[".krmignore"] = ("100644", b"a.yaml\nsub\n")
    assert find_ignored(package) == {"a.yaml", "b/a.yaml"}
    package["sub/.krmignore"] = ("100644", b"/b.yaml\n")
    assert find_ignored(package) == {"a.yaml", "b/a.yaml", "sub/b.yaml"}


def test_a_file_in_a_directory_that_is_no_package_rules_nothing():
    package = files("Kptfile", "b/a.yaml")
    package["b/.krmignore"] = ("100644", b"a.yaml\n")
    assert find_ignored(package) == frozenset()


def test_too_many_wildcards_are_refused():
    for pattern in ("*", "a/b", "!*"):
        rules = f"{pattern}\n" * (MAX_COMPARED // len(pattern.lstrip("!")))
        ignores(rules, "a.yaml")
        with pytest.raises(InvalidInput, match="more than 10,000 characters of patterns"):
            ignores(f"{rules}[a]*", "a.yaml")
    with pytest.raises(InvalidInput, match="more than 10,000 characters of patterns"):
        ignores("*" * 16_000_000, "a.yaml")
    assert not ignores("\n".join(map(str, range(100_000))), "a.yaml")


def test_many_stars_come_to_an_end():
    assert not ignores("*a" * 500 + "b", "a" * 5000)
