"""Which Repositories name a forge that an administrator does not list."""

import pytest
from reconcile.builders import parsed

from fanout.api.fanout_configuration import ForgeHost
from fanout.declared.declared_objects import DeclaredObjects
from fanout.reconcile.validation.forge_hosts_check import find_forge_findings

GITEA = "git.example.com"
ROWS = [
    ("it is listed", f"https://{GITEA}/ann/edge.git", "gitea", ""),
    ("another port is another host", f"https://{GITEA}:8443/ann/edge.git", "gitea", "is not conf"),
    ("a host that nobody lists", "https://other.example.com/ann/edge.git", "gitea", "is not conf"),
    ("a URL without an owner", f"https://{GITEA}/edge.git", "gitea", "names no repository"),
    ("a local path", "/srv/git/edge.git", "gitea", "names no repository"),
    ("the repository has no forge", "https://other.example.com/ann/edge.git", "none", ""),
    ("it is another program", "https://hub.example.com/ann/edge.git", "gitea", "is github in"),
]


@pytest.mark.parametrize(
    ("url", "forge", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_repositories_whose_forge_is_not_listed(url, forge, words):
    secret = {"name": "token"}
    hosts = [
        ForgeHost.model_validate({"host": GITEA, "type": "gitea", "secretRef": secret}),
        ForgeHost.model_validate(
            {"host": "hub.example.com", "type": "github", "secretRef": secret}
        ),
    ]
    repository = parsed("Repository", "edge", url=url, forge={"type": forge})
    findings = list(find_forge_findings(DeclaredObjects(repositories=(repository,)), hosts))
    assert [words in str(it) and "Repository/edge" in str(it) for it in findings] == (
        [True] if words else []
    )
