"""Pages of repositories on hosts of each program."""

import pytest

from fanout.api.fanout_configuration import ForgeProgram
from fanout.plan.pull_requests.forge_urls import find_urls

LISTED = {
    "git.example.com": ForgeProgram.GITEA,
    "git.example.com:3000": ForgeProgram.GITEA,
    "lab.example.com": ForgeProgram.GITLAB,
}
PLACES = [
    ("https://github.com/acme/base.git", "https://github.com/acme/base", "tree", ""),
    ("git@github.com:acme/base.git", "https://github.com/acme/base", "tree", ""),
    ("ssh://git@github.com:22/acme/base", "https://github.com/acme/base", "tree", ""),
    ("https://ann:pw@github.com/acme/base", "https://github.com/acme/base", "tree", ""),
    ("https://gitlab.com/a/b/base.git", "https://gitlab.com/a/b/base", "-/tags", "-/"),
    ("https://lab.example.com/a/base.git", "https://lab.example.com/a/base", "-/tags", "-/"),
    ("https://git.example.com/a/base.git", "https://git.example.com/a/base", "src/tag", ""),
    ("http://git.example.com:3000/a/b.git", "http://git.example.com:3000/a/b", "src/tag", ""),
    ("https://git.example.com/a b/(x).git", "https://git.example.com/a%20b/%28x%29", "src/tag", ""),
]


@pytest.mark.parametrize(("url", "page", "tag", "prefix"), PLACES)
def test_pages(url, page, tag, prefix):
    urls = find_urls(url, LISTED)
    assert urls is not None
    assert urls.find_tag("app/v1 #2") == f"{page}/{tag}/app/v1%20%232"
    assert urls.find_commit("12ab") == f"{page}/{prefix}commit/12ab"
    assert urls.compare("12ab", "34cd") == f"{page}/{prefix}compare/12ab...34cd"


UNKNOWN = [
    "https://code.example.com/a/base.git",
    "https://git.example.com:4000/a/base.git",
    "https://git.example.com/base.git",
    "file:///srv/git/a/base.git",
    "/srv/git/a/base.git",
    "https://[::1/a/b",
    "github.com",
]


@pytest.mark.parametrize("url", UNKNOWN)
def test_other_hosts_have_no_pages(url):
    assert find_urls(url, LISTED) is None
