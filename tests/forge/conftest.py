"""The tests' GitHub, new for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from github_place import HEADERS, Place
from github_server import GitHub, running_github
from github_site import Site

from fanout.forge.forge_http import ForgeHttp, HostAccess
from fanout.forge.github import GitHubForge
from fanout.ports import Credentials


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with running_github(tmp_path / "github") as server:
        yield server


@pytest.fixture
def site(github: GitHub) -> Site:
    return Site(github)


@pytest.fixture
def forge_with(site: Site) -> Iterator[Callable[[str], GitHubForge]]:
    """Return a function from a token to a client with it; all are closed in the end."""
    clients = []

    def make(token: str) -> GitHubForge:
        secret = Credentials(password=token)
        access = HostAccess(site.github.host, site.github.api, secret, "token", headers=HEADERS)
        clients.append(ForgeHttp(access))
        return GitHubForge(clients[-1])

    yield make
    for http in clients:
        http.close()


@pytest.fixture
def place(site: Site, forge_with: Callable[[str], GitHubForge]) -> Place:
    return Place(site, forge_with(site.token))
