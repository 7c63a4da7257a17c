"""Repositories whose forge an administrator does not list, and checks of closed namespaces."""

import pytest
from reconcile.builders import parsed

from fanout.api.fanout_configuration import ForgeHost
from fanout.declared.declared_objects import DeclaredObjects
from fanout.reconcile.validation.configuration_findings import (
    find_closed_namespaces,
    find_forge_findings,
)

GITEA = "git.example.com"
FORGES = [
    ("it is listed", f"https://{GITEA}/ann/edge.git", "gitea", ""),
    ("another port is another host", f"https://{GITEA}:8443/ann/edge.git", "gitea", "is not conf"),
    ("a host that nobody lists", "https://other.example.com/ann/edge.git", "gitea", "is not conf"),
    ("a URL without an owner", f"https://{GITEA}/edge.git", "gitea", "names no repository"),
    ("a local path", "/srv/git/edge.git", "gitea", "names no repository"),
    ("the repository has no forge", "https://other.example.com/ann/edge.git", "none", ""),
    ("it is another program", "https://hub.example.com/ann/edge.git", "gitea", "is github in"),
]


@pytest.mark.parametrize(
    ("url", "forge", "words"), [row[1:] for row in FORGES], ids=[row[0] for row in FORGES]
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


NAMESPACES = [
    ("its own namespace", {}, []),
    ("its own namespace by name", {"namespace": "platform"}, []),
    ("a namespace that is open", {"namespace": "flux-system"}, []),
    ("another namespace", {"namespace": "vault"}, ["verification[1]", "requires[0]"]),
]


@pytest.mark.parametrize(
    ("namespace", "places"), [row[1:] for row in NAMESPACES], ids=[row[0] for row in NAMESPACES]
)
def test_checks_of_namespaces_that_are_not_open(namespace, places):
    asked = {"apiVersion": "v1", "kind": "ConfigMap", "nameExpr": "'x'", **namespace}
    check = {
        "name": "live",
        "object": {**asked, "cel": "true", "observedRevision": "'x'"},
        "freshFor": "1h",
    }
    stages = [
        {"name": "dev", "verification": [{"name": "e2e", "report": {}}, check]},
        {"name": "prod", "requires": [check]},
    ]
    upstream = {"repository": "up", "package": "p", "revision": {"latest": True}}
    target = {"repositories": [{"name": "edge"}], "template": {"stage": "dev"}}
    policy = parsed("UpstreamPolicy", "p", upstream=upstream, targets=[target], stages=stages)
    findings = list(find_closed_namespaces(DeclaredObjects(policies=(policy,)), ["flux-system"]))
    assert [it.severity for it in findings] == ["warning"] * len(places)
    for finding, place in zip(findings, places, strict=True):
        assert place in finding.where.field
        assert "add vault to checks.namespaces" in finding.problem
