"""The Kustomize base on a real kube-apiserver: rights of the controller and of each role."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube.objects import clear_objects
from kube.record_fleet import wait_until
from kube.tenants import apply_base, with_rules
from kube_server import CONTROLLER, KubeError, KubeServer

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
NAMESPACE = "shop"
RBAC = "rbac.authorization.k8s.io"
KINDS = (
    *("repositories", "upstreampolicies", "packagevariants", "promotionpolicies"),
    *("evidences", "approvals", "decisions"),
)
RECORDS = ("evidences", "approvals", "decisions")
VERBS = ("report", "approve", "promote", "override", "suspend", "remove")
CONFIGMAPS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: fanout-reads-configmaps
  labels: {rbac.fanout.dev/aggregate-to-reader: "true"}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
"""


def bind(role: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}-{subject['name']}", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def user(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


ACCOUNT = {"kind": "ServiceAccount", "name": "fanout-controller", "namespace": "fanout-system"}


def aggregate(server: KubeServer) -> None:
    """Fill the aggregated role, as the controller manager does, which does not run here."""
    role = server.ask("GET", f"/apis/{RBAC}/v1/clusterroles/fanout-reader")
    (selector,) = role["aggregationRule"]["clusterRoleSelectors"]
    (label,) = selector["matchLabels"].items()
    query = f"?labelSelector={label[0]}%3D{label[1]}"
    roles = server.ask("GET", f"/apis/{RBAC}/v1/clusterroles{query}")["items"]
    rules = [rule for it in roles for rule in it["rules"]]
    server.patch({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", **role}, {"rules": rules})


@pytest.fixture(scope="module")
def server(admission_server: KubeServer) -> Iterator[KubeServer]:
    """The server with the base; here the controller has the rights of the base alone."""
    for name in (NAMESPACE, "other"):
        meta = {"name": name}
        admission_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    yield admission_server
    clear_objects(admission_server)
    with_rules(admission_server, [])
    roles = ("fanout-reads-configmaps", "policy-author")
    admission_server.kubectl("delete", "clusterrole", "--ignore-not-found", *roles)


def await_rights(server: KubeServer, person: str, expected: set[str]) -> None:
    """Wait until the API server has noticed a binding; it reads its own watches."""
    wait_until(lambda: rights(server, person) == expected, f"{person} has other rights")


def rights(server: KubeServer, person: str) -> set[str]:
    """Return all rights of a person about fanout's kinds, as the API server lists them."""
    review = server.ask(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": NAMESPACE},
        },
        by=person,
    )
    return {
        f"{verb} {resource}"
        for rule in review["status"]["resourceRules"]
        if "fanout.dev" in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


READ = {f"{verb} *" for verb in ("get", "list", "watch")}


def on(*verbs: str) -> set[str]:
    return {f"{verb} {it}" for verb in verbs for it in ("upstreampolicies", "packagevariants")}


def write(*kinds: str, verbs: tuple[str, ...] = ("create",)) -> set[str]:
    return {f"{verb} {kind}" for verb in verbs for kind in kinds}


ROLES = [
    ("fanout-viewer", READ),
    ("fanout-reporter", READ | write("evidences") | on("report")),
    ("fanout-approver", READ | write("approvals") | on("approve")),
    ("fanout-promoter", READ | write("decisions") | on("promote", "suspend")),
    (
        "fanout-author",
        READ
        | write(
            "upstreampolicies", "packagevariants", verbs=("create", "update", "patch", "delete")
        ),
    ),
    (
        "fanout-admin",
        READ
        | write(*KINDS[:4], verbs=("create", "update", "patch", "delete"))
        | write(*RECORDS, verbs=("create", "delete"))
        | on(*VERBS),
    ),
]


@pytest.mark.parametrize(("role", "expected"), ROLES, ids=[row[0] for row in ROLES])
def test_a_role_gives_exactly_these_rights_in_its_namespace(server, role, expected):
    binding = bind(role, user("carol"))
    server.create(binding)
    try:
        await_rights(server, "carol", expected)
        assert not server.may("carol", "get", "upstreampolicies.fanout.dev", "other")
        assert not server.may("carol", "get", "secrets", NAMESPACE)
    finally:
        server.delete(binding)
        await_rights(server, "carol", set())


def record(kind: str, by: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": kind,
        "metadata": {
            "generateName": "r-",
            "namespace": NAMESPACE,
            "annotations": {"fanout.dev/by": by},
        },
        "spec": {"policy": "monitoring", "stage": "prod", **spec},
    }


Record = tuple[str, dict[str, Any]]  # kind, and what it says beside its policy
EVIDENCE: Record = ("Evidence", {"check": "e2e", "status": "passed", "revision": "v1"})
APPROVAL: Record = ("Approval", {"check": "ok", "revision": "v1", "trees": ["a" * 40]})
AGREED: dict[str, Any] = {"revision": "v1", "reason": "as agreed"}
PUBLICATION: Record = ("Decision", {"action": "Publish", **AGREED})
SUSPENSION: Record = ("Decision", {"action": "Suspend"})
OVERRIDE: Record = ("Decision", {"action": "Publish", "overrides": ["soak"], **AGREED})
REMOVAL: Record = ("Decision", {"action": "ConfirmRemoval", "variants": ["a"]})
SPEAKERS: dict[str, list[Record]] = {
    "fanout-viewer": [],
    "fanout-reporter": [EVIDENCE],
    "fanout-approver": [APPROVAL],
    "fanout-promoter": [PUBLICATION, SUSPENSION],
    "fanout-admin": [EVIDENCE, APPROVAL, PUBLICATION, SUSPENSION, OVERRIDE, REMOVAL],
}


# The verb that an admission policy asks for, beside `create`, which RBAC asks for.
OVERRIDE_VERBS = {"Publish": "override", "ConfirmRemoval": "remove"}


def missing_right(role: str, kind: str, spec: dict[str, Any]) -> str:
    """Return what kubectl says that somebody with this role lacks for a record."""
    resource = f"{kind.lower()}s"
    if f"create {resource}" not in dict(ROLES)[role]:
        return f'User "bob" cannot create resource "{resource}" in API group "fanout.dev"'
    verb = OVERRIDE_VERBS[spec["action"]]
    subject = "upstreampolicies.fanout.dev monitoring in namespace shop"
    return f"user bob needs the verb {verb} on {subject}"


@pytest.mark.parametrize("role", SPEAKERS)
def test_a_role_grants_its_own_records_and_no_others(server, role):
    binding = bind(role, user("bob"))
    server.create(binding)
    try:
        await_rights(server, "bob", dict(ROLES)[role])
        for kind, spec in SPEAKERS["fanout-admin"]:
            manifest = record(kind, "bob", **spec)
            line = ("create", "-f", "-")
            result = server.kubectl(
                *line, by="bob", namespace=NAMESPACE, stdin=json.dumps(manifest), check=False
            )
            if (kind, spec) in SPEAKERS[role]:
                assert result.returncode == 0, result.stderr
            else:
                assert result.returncode != 0
                assert missing_right(role, kind, spec) in result.stderr
    finally:
        server.delete(binding)
        await_rights(server, "bob", set())


def test_the_controller_writes_what_is_its_own_and_nothing_else(server):
    allowed = {(verb, kind) for verb in ("get", "list", "watch") for kind in KINDS}
    allowed |= {(verb, "packagevariants") for verb in ("create", "patch", "delete")}
    allowed |= {("patch", "upstreampolicies")} | {("delete", kind) for kind in RECORDS}
    asked = [
        (verb, kind)
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        for kind in KINDS
    ]
    answers = {
        (verb, kind) for verb, kind in asked
        if server.may(CONTROLLER, verb, f"{kind}.fanout.dev")
    }  # fmt: skip
    assert answers == allowed
    verbs = ("get", "create", "update", "patch", "delete")
    for kind in KINDS:
        part = (f"{kind}.fanout.dev", NAMESPACE, "status")
        assert [it for it in verbs if server.may(CONTROLLER, it, *part)] == ["patch"]
    for verb in VERBS:
        assert not server.may(CONTROLLER, verb, "upstreampolicies.fanout.dev", NAMESPACE)
    events = [
        (verb, group) for verb in ("get", "list", *verbs[1:]) for group in ("", ".events.k8s.io")
        if server.may(CONTROLLER, verb, f"events{group}", NAMESPACE)
    ]  # fmt: skip
    assert events == [("create", ".events.k8s.io")]
    assert not server.may(CONTROLLER, "list", "configmaps", NAMESPACE)


def test_the_controller_reads_its_own_admission_policies_and_no_others(server):
    path = "/apis/admissionregistration.k8s.io/v1"
    for name in ("records.fanout.dev", "packagevariants.fanout.dev"):
        for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            server.ask("GET", f"{path}/{plural}/{name}", by=CONTROLLER)
    with pytest.raises(KubeError):
        server.ask("GET", f"{path}/validatingadmissionpolicies/other", by=CONTROLLER)
    with pytest.raises(KubeError):
        server.ask("GET", f"{path}/validatingadmissionpolicies", by=CONTROLLER)


def test_secrets_are_readable_where_a_namespace_binds_it_and_never_listed(server):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "edge-token"}}
    for namespace in (NAMESPACE, "other"):
        server.apply({**secret, "metadata": {"name": "edge-token", "namespace": namespace}})
    assert not server.may(CONTROLLER, "get", "secrets", NAMESPACE)
    server.create(bind("fanout-secret-reader", ACCOUNT))
    may = partial(server.may, CONTROLLER, "get", "secrets", NAMESPACE)
    wait_until(may, "the controller may not read Secrets")
    path = "/api/v1/namespaces"
    server.ask("GET", f"{path}/{NAMESPACE}/secrets/edge-token", by=CONTROLLER)
    for denied in (f"{path}/{NAMESPACE}/secrets", f"{path}/other/secrets/edge-token"):
        with pytest.raises(KubeError) as refused:
            server.ask("GET", denied, by=CONTROLLER)
        assert refused.value.status == 403


def test_a_labeled_role_gives_the_controller_a_kind_to_read(server):
    server.kubectl("apply", "-f", "-", stdin=CONFIGMAPS)
    aggregate(server)
    may = partial(server.may, CONTROLLER, "watch", "configmaps")
    wait_until(may, "the controller may not watch ConfigMaps")
    assert not server.may(CONTROLLER, "update", "configmaps")


def test_cluster_scoped_objects_of_the_base_have_no_namespace(server):
    lines = server.kubectl("api-resources", "--namespaced=false", "--no-headers").stdout
    cluster_scoped = {line.split()[-1] for line in lines.splitlines()}
    manifests = list(yaml.safe_load_all(server.kubectl("kustomize", str(ROOT / "deploy")).stdout))
    namespaces = {
        (it["kind"] in cluster_scoped, it["metadata"].get("namespace", "")) for it in manifests
    }
    assert namespaces == {(True, ""), (False, "fanout-system")}


def test_the_base_is_applied_twice_without_a_change(server):
    def versions() -> set[tuple[str, str]]:
        resources = ("crd,clusterroles,clusterrolebindings,serviceaccounts,configmaps,deployments",)
        line = ("get", *resources, "-n", "fanout-system", "-o", "yaml")
        items = yaml.safe_load(server.kubectl(*line).stdout)["items"]
        return {(it["metadata"]["uid"], it["metadata"]["resourceVersion"]) for it in items}

    apply_base(server)
    before = versions()
    apply_base(server)
    assert versions() == before
