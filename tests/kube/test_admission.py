"""The admission policies on a real kube-apiserver: who may record what, and write which variant."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import pytest
import yaml
from kube.objects import clear_objects
from kube.record_fleet import wait_until
from kube_server import ADMIN, CONTROLLER, KubeError, KubeServer

from fanout.api.admission_policies import VERBS

pytestmark = pytest.mark.kube
GROUP = "fanout.dev"
TREE = "a" * 40


def print_documents(*arguments: str) -> str:
    command = [sys.executable, "-m", "fanout", "crds", *arguments]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def server(admission_server: KubeServer) -> Iterator[KubeServer]:
    """The server with the rights of the tables, which are those of a namespace."""
    for rights in RIGHTS:
        admission_server.apply(rights)
    for user in ("alice", CONTROLLER):
        may = partial(admission_server.may, user, "delete", "packagevariants.fanout.dev", "default")
        wait_until(may, f"{user} has no rights")
    yield admission_server
    clear_objects(admission_server)
    for rights in RIGHTS:
        admission_server.delete(rights)


def grant(
    name: str, rules: list[dict[str, Any]], users: list[str], namespace: str = "default"
) -> list[dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    meta = {"name": name, "namespace": namespace}
    subjects = [{"apiGroup": api, "kind": "User", "name": user} for user in users]
    return [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "subjects": subjects,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        },
    ]


def allow(resource: str, verbs: list[str], *names: str) -> dict[str, Any]:
    rule = {"apiGroups": [GROUP], "resources": [resource], "verbs": verbs}
    return {**rule, "resourceNames": list(names)} if names else rule


WRITE = ["get", "create", "update", "patch", "delete"]
KINDS = ("evidences", "approvals", "decisions", "packagevariants")


def record(kind: str, by: str | None, groups: str | None = None, **spec: Any) -> dict[str, Any]:
    annotations = {f"{GROUP}/by": by, f"{GROUP}/groups": groups}
    written = {key: value for key, value in annotations.items() if value is not None}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": kind,
        "metadata": {"generateName": "r-", "namespace": "default", "annotations": written},
        "spec": spec,
    }


def evidence(by: str | None = "alice", groups: str | None = None, **spec: Any) -> dict[str, Any]:
    subject = spec or {"policy": "has-report", "stage": "dev"}
    return record(
        "Evidence", by, groups, **{"check": "e2e", "status": "passed", "revision": "v1"} | subject
    )


def variant(name: str, **spec: Any) -> dict[str, Any]:
    upstream = {"repository": "blueprints", "package": "base", "revision": {"tag": "v1"}}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"upstream": upstream, "downstream": {"repository": "eu", "package": name}, **spec},
    }


REVISION = {"revision": "v1", "reason": "as agreed"}
# description, kind, fields of the record, verbs that it needs on the policy
RECORDS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("evidence", "Evidence", {"check": "e2e", "status": "passed", "revision": "v1"}, ["report"]),
    ("an approval", "Approval", {"check": "ok", "revision": "v1", "trees": [TREE]}, ["approve"]),
    (
        "a revoked approval",
        "Approval",
        {"check": "ok", "revision": "v1", "revokes": "r-1"},
        ["approve"],
    ),
    ("a publication", "Decision", {"action": "Publish", **REVISION}, ["promote"]),
    ("a rollback", "Decision", {"action": "Rollback", **REVISION}, ["promote"]),
    ("a skip", "Decision", {"action": "Skip", "variants": ["a"], **REVISION}, ["promote"]),
    ("a retry", "Decision", {"action": "Retry", **REVISION}, ["promote"]),
    ("a resolution", "Decision", {"action": "Resolve", "revision": "v1"}, ["promote"]),
    (
        "a publication past gates",
        "Decision",
        {"action": "Publish", "overrides": ["soak"], **REVISION},
        ["promote", "override"],
    ),
    (
        "a rollback past a window",
        "Decision",
        {"action": "Rollback", "overrides": ["window"], **REVISION},
        ["promote", "override"],
    ),
    ("a suspension", "Decision", {"action": "Suspend"}, ["suspend"]),
    ("the end of a suspension", "Decision", {"action": "Resume"}, ["suspend"]),
    (
        "a confirmed removal",
        "Decision",
        {"action": "ConfirmRemoval", "variants": ["a"]},
        ["remove"],
    ),
    (
        "a withdrawal",
        "Decision",
        {"action": "Withdraw", "withdraws": "r-1"},
        ["report", "promote", "suspend"],
    ),
    ("accepted records", "Decision", {"action": "AcceptRecords"}, ["override"]),
]
SETS = sorted({tuple(row[3]) for row in RECORDS})
# Rights are given by the names of policies, so that one user has all sets of rights.
RIGHTS = [
    *grant(
        "writers", [allow(kind, WRITE) for kind in KINDS], ["alice", "bob", "carol", CONTROLLER]
    ),
    *grant(
        "verbs",
        [
            *(allow("upstreampolicies", list(it), f"has-{'-'.join(it)}") for it in SETS),
            *(
                allow("upstreampolicies", [it for it in VERBS if it != verb], f"lacks-{verb}")
                for verb in VERBS
            ),
            allow("packagevariants", ["report"], "site"),
        ],
        ["alice", "bob"],
    ),
    *grant("reporters", [allow("packagevariants", ["report"])], ["carol"]),
]


def refusal_of(server: KubeServer, manifest: dict[str, Any], by: str) -> str:
    with pytest.raises(KubeError) as refused:
        server.create(manifest, by=by)
    assert refused.value.status == 403
    return refused.value.message.rpartition("denied request: ")[2]


@pytest.mark.parametrize(("_", "kind", "fields", "verbs"), RECORDS, ids=map(itemgetter(0), RECORDS))
def test_a_record_needs_its_verbs_on_the_policy_that_it_names(server, _, kind, fields, verbs):
    def create(policy):
        manifest = record(kind, "alice", **fields, policy=policy, stage="dev")
        line = ("create", "-f", "-")
        return server.kubectl(*line, by="alice", stdin=json.dumps(manifest), check=False)

    allowed = create(f"has-{'-'.join(verbs)}")
    assert allowed.returncode == 0, allowed.stderr
    for verb in verbs:
        refused = create(f"lacks-{verb}")
        assert refused.returncode != 0
        assert refused.stderr.rstrip().endswith(
            f"denied request: user alice needs the verb {verb} on upstreampolicies.fanout.dev"
            f" lacks-{verb} in namespace default"
        )


def test_every_action_is_in_the_table():
    actions = {row[2]["action"] for row in RECORDS if "action" in row[2]}
    (crd,) = (
        it for it in yaml.safe_load_all(print_documents()) if "decisions" in str(it["metadata"])
    )
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert actions == set(spec["properties"]["action"]["enum"])


SPEAKERS = [
    ("one's own name", "alice", evidence(), ""),
    ("nobody's name", "alice", evidence(by=None), "annotation fanout.dev/by is not the user"),
    (
        "somebody else's name",
        "alice",
        evidence(by="bob"),
        "annotation fanout.dev/by is not the user",
    ),
    (
        "somebody else's name, by an administrator",
        ADMIN,
        evidence(),
        "annotation fanout.dev/by is not the user of the request, admin",
    ),
    ("one's own group", "alice", evidence(groups="platform"), ""),
    ("two of one's own groups", "bob", evidence("bob", "platform\nsecurity\n"), ""),
    (
        "a group that one is not in",
        "alice",
        evidence(groups="platform\nsecurity"),
        "annotation fanout.dev/groups has a group that user alice is not in",
    ),
    ("a variant of no policy", "alice", evidence(variants=["site"]), ""),
    (
        "another variant of no policy",
        "alice",
        evidence(variants=["other"]),
        "user alice needs the verb report on packagevariants.fanout.dev other in namespace default",
    ),
    (
        "several variants, with the verb for one",
        "alice",
        evidence(variants=["other", "site"]),
        "user alice needs the verb report on all packagevariants.fanout.dev in namespace default",
    ),
    (
        "several variants, with the verb for all",
        "carol",
        evidence("carol", variants=["a", "b"]),
        "",
    ),
    (
        "a policy of which one has variants alone",
        "carol",
        evidence("carol"),
        "user carol needs the verb report on upstreampolicies.fanout.dev has-report",
    ),
]


@pytest.mark.parametrize(
    ("_", "by", "manifest", "refusal"), SPEAKERS, ids=map(itemgetter(0), SPEAKERS)
)
def test_an_author_may_record_only_under_the_own_name(server, _, by, manifest, refusal):
    if refusal:
        assert refusal_of(server, manifest, by).startswith(refusal)
    else:
        server.create(manifest, by=by)


EDITS = [
    ("another verdict", {"spec": {"status": "failed"}}, "a record never changes"),
    ("another author", {"metadata": {"annotations": {f"{GROUP}/by": "bob"}}}, "never change"),
    ("no author", {"metadata": {"annotations": {f"{GROUP}/by": None}}}, "never change"),
    ("a group", {"metadata": {"annotations": {f"{GROUP}/groups": "platform"}}}, "never change"),
]


@pytest.mark.parametrize("by", ["alice", "bob", ADMIN, CONTROLLER])
@pytest.mark.parametrize(("_", "edit", "refusal"), EDITS, ids=map(itemgetter(0), EDITS))
def test_a_record_never_changes(server, by, _, edit, refusal):
    created = server.create(evidence(), by="alice")
    with pytest.raises(KubeError, match=refusal):
        server.patch(created, edit, by=by)
    assert server.get(created)["spec"] == created["spec"]
    assert server.get(created)["metadata"]["annotations"] == created["metadata"]["annotations"]


def test_a_record_may_be_labeled_and_deleted(server):
    created = server.create(evidence(), by="alice")
    server.patch(created, {"metadata": {"labels": {"seen": "yes"}}}, by="bob")
    server.delete(created, by="bob")
    with pytest.raises(KubeError):
        server.get(created)


ONLY_CONTROLLER = f"only {CONTROLLER} writes PackageVariants of a policy; change the UpstreamPolicy"


@pytest.mark.parametrize(
    "fields", [{"policyRef": {"name": "monitoring"}}, {"stage": "dev"}], ids=str
)
@pytest.mark.parametrize("by", ["alice", ADMIN])
def test_variants_of_a_policy_are_written_by_the_controller(server, fields, by):
    name = f"{by}-{next(iter(fields)).lower()}"
    assert refusal_of(server, variant(name, **fields), by) == ONLY_CONTROLLER
    created = server.create(variant(name, **fields), by=CONTROLLER)
    edit = {"spec": {"suspend": True}}
    for change in (edit, {"spec": dict.fromkeys(fields)}, {"metadata": {"labels": {"a": "b"}}}):
        with pytest.raises(KubeError, match=ONLY_CONTROLLER):
            server.patch(created, change, by=by)
    with pytest.raises(KubeError, match=ONLY_CONTROLLER):
        server.delete(created, by=by)
    server.patch(created, edit, by=CONTROLLER)
    server.delete(created, by=CONTROLLER)


def test_variants_that_people_write_are_theirs_and_stay_so(server):
    created = server.create(variant("site"), by="alice")
    server.patch(created, {"spec": {"suspend": True}}, by="bob")
    with pytest.raises(KubeError, match=ONLY_CONTROLLER):
        server.patch(created, {"spec": {"policyRef": {"name": "monitoring"}}}, by="bob")
    server.delete(created, by="alice")


def test_a_namespace_that_is_deleted_takes_its_variants_along(server):
    meta = {"name": "leaving"}
    namespace = server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    for rights in grant("writers", [allow("packagevariants", WRITE)], [CONTROLLER], "leaving"):
        server.create(rights)
    manifest = variant("site", policyRef={"name": "monitoring"})
    manifest["metadata"]["namespace"] = "leaving"
    created = server.create(manifest, by=CONTROLLER)
    with pytest.raises(KubeError, match=ONLY_CONTROLLER):
        server.delete(created)
    server.delete(namespace)

    def is_deleted() -> bool:
        try:
            server.delete(created)
        except KubeError as error:
            return error.status == 404
        return True

    wait_until(is_deleted, "the variant stays")


def test_policies_that_are_applied_again_stay_as_they_are(server):
    def generations() -> list[tuple[str, int, str]]:
        return [
            (
                it["metadata"]["name"],
                it["metadata"]["generation"],
                it["metadata"]["resourceVersion"],
            )
            for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
            for it in server.list("admissionregistration.k8s.io/v1", kind)
            if it["metadata"]["name"].endswith(GROUP)
        ]

    printed = print_documents("--admission")
    server.kubectl("apply", "-f", "-", stdin=printed)
    before = generations()
    assert len(before) == 4
    server.kubectl("apply", "-f", "-", stdin=printed)
    assert generations() == before
