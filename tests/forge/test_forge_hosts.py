"""Which forge and which repository there a Git URL means, and who shares a client."""

import pytest

from fanout.api.fanout_configuration import ForgeHost
from fanout.errors import InvalidInput
from fanout.forge.forge_hosts import ForgeHosts
from fanout.forge.gitea import GiteaForge
from fanout.plan.observation.observed_request import locate_repository
from fanout.ports import (
    BranchReader,
    ClosingReader,
    Credentials,
    Forge,
    RequestMerger,
    RequestSearch,
    ReviewReader,
    StatusStore,
)


def abilities_of(
    gitea: GiteaForge,
) -> tuple[
    Forge, RequestSearch, ClosingReader, ReviewReader, StatusStore, BranchReader, RequestMerger
]:
    """Return the client as each ability; mypy refuses this where it lacks one."""
    return gitea, gitea, gitea, gitea, gitea, gitea, gitea


URLS = [
    ("https://git.example.com/org/edge.git", "git.example.com", "org/edge"),
    ("https://Git.Example.com/org/edge", "git.example.com", "org/edge"),
    ("http://127.0.0.1:3000/org/edge.git/", "127.0.0.1:3000", "org/edge"),
    ("http://[::1]:3000/org/edge", "[::1]:3000", "org/edge"),
    ("https://example.com/gitea/org/edge.git", "example.com", "org/edge"),
    ("ssh://git@git.example.com:2222/org/edge.git", "git.example.com", "org/edge"),
    ("git@git.example.com:org/edge.git", "git.example.com", "org/edge"),
    ("git@Git.example.com:Org/Edge", "git.example.com", "Org/Edge"),
]


@pytest.mark.parametrize(("url", "host", "repository"), URLS)
def test_the_place_of_a_repository(url, host, repository):
    location = locate_repository(url)
    assert (location[0], str(location[1])) == (host, repository)


@pytest.mark.parametrize("url", ["file:///srv/git/edge.git", "git/edge.git", "https://x/edge"])
def test_a_url_without_host_or_owner(url):
    with pytest.raises(InvalidInput, match="names no repository of a forge"):
        locate_repository(url)


def hosts(**fields) -> tuple[ForgeHosts, list[str]]:
    secret = {"name": "git-example-com"}
    entry = {"host": "git.example.com", "type": "gitea", "secretRef": secret, **fields}
    asked: list[str] = []

    def secret_of(name: str) -> Credentials:
        asked.append(name)
        return Credentials(password="token-of-tests")

    return ForgeHosts([ForgeHost.model_validate(entry)], secret_of), asked


def test_repositories_of_one_host_share_a_client_and_its_governor():
    forge_hosts, asked = hosts(callsPerMinute=7)
    edge, name = forge_hosts.forge_of("https://git.example.com/org/edge.git")
    core, _ = forge_hosts.forge_of("git@git.example.com:org/core.git")
    assert str(name) == "org/edge"
    assert isinstance(edge, GiteaForge)
    assert isinstance(core, GiteaForge)
    assert edge._http is core._http
    assert edge._http.access.api == "https://git.example.com/api/v1"
    assert edge._http._governor._limits.calls_per_minute == 7
    assert asked == ["git-example-com"]
    assert "token-of-tests" not in repr(edge._http.access)
    forge_hosts.close()


def test_a_host_that_nobody_listed():
    with pytest.raises(InvalidInput, match=r"the host other\.example\.com is not configured"):
        hosts()[0].forge_of("https://other.example.com/org/edge.git")


def test_a_program_without_a_client_yet():
    with pytest.raises(InvalidInput, match="gitlab is not supported yet"):
        hosts(type="gitlab")[0].forge_of("https://git.example.com/org/edge.git")


def test_a_certificate_authority_that_is_none():
    forge_hosts, _ = hosts(certificateAuthority="-----BEGIN CERTIFICATE-----\nnone")
    with pytest.raises(InvalidInput, match="is no certificate in PEM"):
        forge_hosts.forge_of("https://git.example.com/org/edge.git")
