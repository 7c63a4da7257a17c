"""One spelling of those that mean one repository."""

import pytest

from fanout.api.urls import canonicalize_url

SPELLED = [
    ("a path", "/srv/x.git", "/srv/x.git"),
    ("a file URL is its path", "file:///srv/x.git", "/srv/x.git"),
    ("slashes that say nothing go", "//srv//x.git/", "/srv/x.git"),
    ("a way back is gone", "/srv/../srv/./x.git", "/srv/x.git"),
    ("percent signs are read in a file URL", "file:///srv/%78.git", "/srv/x.git"),
    ("and are themselves in a path", "/srv/%78.git", "/srv/%78.git"),
    ("a relative path stays relative", "./git/x.git", "git/x.git"),
    (
        "a host is written small, a path as it is",
        "https://Git.EX.com/X.git/",
        "https://git.ex.com/X.git",
    ),
    ("a user of ssh stays as it is", "ssh://Git@HOST/x", "ssh://Git@host/x"),
    ("ssh's short form", "git@host:x.git/", "git@host:x.git"),
    ("whether .git may be left out nobody knows", "/srv/x", "/srv/x"),
]


@pytest.mark.parametrize(("_", "url", "canonical"), SPELLED, ids=[row[0] for row in SPELLED])
def test_spellings_of_a_url_have_the_same_canonical_url(_, url, canonical):
    assert canonicalize_url(url) == canonical
    assert canonicalize_url(canonical) == canonical
