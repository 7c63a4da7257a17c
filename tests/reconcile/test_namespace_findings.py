"""Which checks read a namespace that an administrator does not open to them."""

import pytest
from reconcile.builders import parsed

from fanout.declared.declared_objects import DeclaredObjects
from fanout.reconcile.validation.namespace_findings import find_closed_namespaces

ROWS = [
    ("its own namespace", {}, []),
    ("its own namespace by name", {"namespace": "platform"}, []),
    ("a namespace that is open", {"namespace": "flux-system"}, []),
    ("another namespace", {"namespace": "vault"}, ["verification[1]", "requires[0]"]),
]


@pytest.mark.parametrize(
    ("namespace", "places"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
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
