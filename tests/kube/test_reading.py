"""Commands on the objects of a real kube-apiserver, compared with the same objects in files."""

import json
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import Result
from kube.record_fleet import granted, wait_until
from kube.twin import Twin, install_clusters, open_twin
from kube_server import KubeServer

pytestmark = pytest.mark.kube

READER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [fanout.dev], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [infra.example.com], resources: [clusters], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
"""


@pytest.fixture
def twin(server: KubeServer, tmp_path: Path) -> Iterator[Twin]:
    with open_twin(server, tmp_path) as twin:
        yield twin


# Those of an object that an API server stored, and commands, which are for one of the sources.
SERVER_FIELDS = ("creationTimestamp", "observedGeneration", "commands")


def without_server_fields(value: Any) -> Any:
    """Drop what differs between files and an API server."""
    if isinstance(value, dict):
        return {
            name: without_server_fields(it)
            for name, it in value.items()
            if name not in SERVER_FIELDS
        }
    if isinstance(value, list):
        return [without_server_fields(it) for it in value]
    return value


def describe(result: Result) -> str:
    return json.dumps(without_server_fields(result.json), indent=1)


LINES = (
    ("plan", "-o", "json"),
    ("get", "variants", "-o", "json"),
    ("get", "targets", "-o", "json"),
    ("get", "stages", "-o", "json"),
    ("explain", "monitoring", "-o", "json"),
    ("status", "-o", "json"),
    ("forecast", "monitoring", "-o", "json"),
    ("history", "monitoring", "-o", "json"),
    ("diff", "ams"),
    ("render", "ams"),
    ("graph", "monitoring"),
)


def test_commands_show_the_same_from_files_and_from_the_cluster(twin: Twin):
    for _ in range(3):
        twin.show("sweep")
        for line in LINES:
            files, cluster = twin.show(*line), twin.ask(*line)
            assert cluster.code == files.code, (line, cluster.err, files.err)
            if "json" in line:
                assert describe(cluster) == describe(files), line
            else:
                assert cluster.out == files.out, line
        twin.fleet.report("dev", "v1", "passed", "-n", twin.namespace)


def test_a_change_in_the_cluster_is_seen(twin: Twin):
    twin.show("sweep")
    twin.show("sweep")
    meta = {"name": "ams", "namespace": twin.namespace}
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    twin.server.patch(changed, {"data": {"retention": "30d"}})
    actions = twin.ask("plan", "-o", "json").json["actions"]
    assert [it["kind"] for it in actions if "ams" in it["variant"]] == ["WriteDraft"]


def test_a_status_that_nobody_reads_changes_nothing(twin: Twin):
    before = twin.read()
    twin.write_status("ams", {"heartbeat": "2026-03-02T09:00:00Z"})
    assert not [*twin.read().objects.find_changes(before.objects)]


def test_a_status_that_an_expression_reads_is_an_input(twin: Twin):
    twin.show("sweep")
    path = twin.fleet.root / "policies" / "policy.yaml"
    policy = yaml.safe_load(path.read_text())
    policy["spec"]["targets"][0]["offlineWhen"] = "has(target.status)"
    path.write_text(yaml.safe_dump(policy))
    twin.apply()
    before = twin.read()
    twin.write_status("ams", {"phase": "Lost"})
    [change] = twin.read().objects.find_changes(before.objects)
    assert change.name == (twin.namespace, "ams")
    assert "Offline" in {it["reason"] for it in twin.ask("plan", "-o", "json").json["holds"]}


def test_a_kind_that_must_not_be_listed_holds_who_reads_it_and_is_named(twin: Twin):
    twin.show("sweep")
    with granted(twin.server, READER, "list", "clusters.infra.example.com", by="carol"):
        result = twin.ask("plan", by="carol")
    assert result.code == 3
    assert 'cannot list resource "configmaps"' in " ".join(result.err.split())
    assert "Remove" not in result.out


ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [fanout.dev], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [infra.example.com], resources: [clusters], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [KIND], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
"""


def test_rights_in_one_namespace_suffice_for_it(twin: Twin):
    twin.grant(ROLE.replace("KIND", "configmaps"), "alice")
    twin.show("sweep")
    twin.fleet.release("v2")
    files, in_cluster = twin.show("plan", "-o", "json"), twin.ask("plan", "-o", "json", by="alice")
    assert in_cluster.code == 0, in_cluster.err
    assert files.json["actions"]
    assert in_cluster.json == files.json
    meta = {"name": "ams", "namespace": twin.namespace}
    target = {"apiVersion": "infra.example.com/v1", "kind": "Cluster", "metadata": meta}
    twin.server.delete(target)
    plan = twin.ask("plan", "-o", "json", by="alice").json
    [hold] = [it for it in plan["holds"] if it["reason"] == "InvalidObject"]
    assert "Repository objects of other namespaces" in hold["message"]
    assert not [it for it in plan["actions"] if "Remove" in it["kind"]]


def test_a_repository_of_a_namespace_without_rights_is_not_missing(twin: Twin):
    twin.grant(ROLE.replace("KIND", "configmaps"), "alice")
    twin.fleet.site("dub", "dev", "shared")
    twin.move()
    twin.apply()
    errors = twin.ask("plan", "--new-records", by="alice").err
    sentence = "Repository shared may be declared in Repository objects of other namespaces"
    assert sentence in " ".join(errors.split())


def test_a_kind_without_rights_in_the_namespace_is_named(twin: Twin):
    twin.grant(ROLE.replace("KIND", "services"), "alice")
    result = twin.ask("plan", "--new-records", by="alice")
    assert result.code == 3
    refused = 'cannot list resource "configmaps" in API group "" in the namespace'
    assert f'{refused} "{twin.namespace}"' in " ".join(result.err.split())
    assert 'resource "clusters"' not in result.err


def test_a_user_without_rights_is_refused(twin: Twin):
    result = twin.ask("plan", by="bob")
    assert result.code == 3
    assert 'User "bob" cannot list resource "upstreampolicies"' in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("line", "by", "words"),
    [
        (("plan",), "nobody", "context nobody cannot be used"),
        (("plan", "-f", "."), "admin", "--context"),
    ],
    ids=["an unknown context", "files too"],
)
def test_bad_settings_are_refused_by_name(twin: Twin, line: tuple[str, ...], by: str, words: str):
    result = twin.ask(*line, by=by)
    assert result.code == 1
    assert words in " ".join(result.err.split())


@pytest.fixture
def own_kubeconfig(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> Twin:
    """Return the twin; the kubeconfig file of the user names its cluster and namespace."""
    document = yaml.safe_load(twin.server.kubeconfig.read_text())
    document["current-context"] = "admin"
    for context in document["contexts"]:
        if context["name"] == "admin":
            context["context"]["namespace"] = twin.namespace
    path = twin.fleet.root / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return twin


def test_without_files_the_cluster_and_namespace_are_those_of_kubectl(own_kubeconfig: Twin):
    twin = own_kubeconfig
    for _ in range(2):  # drafts, and their publication: the check of dev is to be reported
        twin.fleet.run("sweep", "-n", twin.namespace)
    shared = ["--now", twin.fleet.now.isoformat(), "--state-dir", str(twin.fleet.root / "other")]
    shared += ["--records", str(twin.fleet.records().path)]
    implied = twin.fleet.run("get", "variants", *shared, files=False)
    named = twin.ask("get", "variants")
    assert "monitoring" in implied.out
    assert (implied.code, implied.out) == (named.code, named.out)
    elsewhere = twin.fleet.run("plan", *shared, "-n", "kube-public", files=False)
    message = " ".join(elsewhere.err.split())
    assert "namespace kube-public has no objects of fanout" in message
    assert f"use -A, or -n with one of: {twin.namespace}" in message
    for option in ((), ("-A",), ("-n", twin.namespace)):
        explained = twin.fleet.run("explain", "monitoring/dev", *shared, *option, files=False)
        commands = explained.out.partition("To unblock:")[2].split("\n  fanout ")[1:]
        assert commands, explained.out + explained.err
        # A next command without an option means the namespace of the context, too.
        assert all(" ".join(option) in " ".join(it.split()) for it in commands), explained.out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed"), 1),
        (("approve", "monitoring", "--stage", "dev", "--revision", "v1"), 1),
        (("suspend", "monitoring", "--reason", "incident"), 1),
        (("suspend", "--all", "--reason", "incident"), 3),
    ],
    ids=lambda it: " ".join(it[:2]) if isinstance(it, tuple) else str(it),
)
def test_a_verb_that_records_says_what_it_must_not_read(
    twin: Twin, line: tuple[str, ...], code: int
):
    refused = twin.ask(*line, *(("--revision", "v1") if line[0] == "report" else ()), by="bob")
    message = " ".join(refused.err.split())
    assert 'User "bob" cannot list resource "upstreampolicies"' in message
    assert "that can be read" in message or "that cannot be read" in message
    assert refused.code == code


def test_a_cluster_that_was_not_meant_is_no_riddle(own_kubeconfig: Twin):
    result = own_kubeconfig.fleet.run("plan", files=False)
    assert result.code == 1
    assert "to read objects of files, use -f DIR" in " ".join(result.err.split())


def test_a_verb_that_reads_files_alone_takes_no_context(twin: Twin):
    for line in (("sweep", "--context", "admin"), ("--context", "admin", "sweep")):
        result = twin.show(*line)
        assert result.code == 1
        assert "No such option '--context'" in result.err


def test_records_have_no_default(twin: Twin):
    result = twin.ask("plan", records=False)
    assert result.code == 1
    assert "--records" in result.err
    assert not (twin.fleet.root / "other" / "records.git").exists()


@pytest.mark.parametrize(
    "line",
    [("plan",), ("promote", "monitoring", "--stage", "prod", "--reason", "test")],
    ids=itemgetter(0),
)
def test_a_directory_of_records_that_does_not_exist_is_not_created(
    twin: Twin, line: tuple[str, ...]
):
    missing = twin.fleet.root / "misspelled.git"
    refused = twin.ask(*line, "--records", str(missing), records=False)
    assert refused.code == 1
    assert f"`git init --bare {missing}`" in " ".join(refused.err.split())
    assert not missing.exists()


def test_an_object_that_no_schema_caught_is_left_out_with_its_path(twin: Twin):
    twin.show("sweep")
    path = twin.fleet.root / "policies" / "promotion.yaml"
    promotion = yaml.safe_load(path.read_text())
    promotion["metadata"]["name"] = "broken"
    promotion["spec"]["schedule"] = "61 * * * *"
    path.with_name("broken.yaml").write_text(yaml.safe_dump(promotion))
    twin.apply()
    result = twin.ask("plan")
    assert result.code == 3
    place = f"PromotionPolicy/{twin.namespace}/broken: spec.schedule: "
    assert place in " ".join(result.err.split())


def test_an_object_with_errors_is_none_of_another_namespace(twin: Twin, tmp_path: Path):
    with open_twin(twin.server, tmp_path / "others") as others:
        path = others.fleet.root / "policies" / "promotion.yaml"
        broken = yaml.safe_load(path.read_text())
        broken["spec"]["schedule"] = "61 * * * *"
        path.write_text(yaml.safe_dump(broken))
        others.apply()
        assert others.ask("plan").code == 3
        plan = twin.ask("plan")
        assert (plan.code, plan.err) == (0, "")


def test_a_broken_repository_holds_who_could_name_it(twin: Twin):
    """Its labels may still be those that a policy selects."""
    path = twin.fleet.root / "policies" / "policy.yaml"
    policy = yaml.safe_load(path.read_text())
    policy["spec"]["targets"] = [
        {
            "repositorySelector": {"matchLabels": {"role": "downstream"}},
            "template": {"stage": "dev", "downstream": {"package": "sites/all"}},
        }
    ]
    path.write_text(yaml.safe_dump(policy))
    for name in ("core", "edge"):
        path = twin.fleet.root / "policies" / f"repository-{name}.yaml"
        repository = yaml.safe_load(path.read_text())
        repository["metadata"]["labels"] = {"role": "downstream"}
        path.write_text(yaml.safe_dump(repository))
    twin.apply()
    twin.show("sweep")
    twin.show("sweep")
    assert not twin.ask("plan", "-o", "json").json["actions"]
    # No rule of the definition can say this.
    broken = {"spec": {"url": "https://git.example.com/edge.git?to%6ben=secret"}}
    meta = {"name": "edge", "namespace": twin.namespace}
    repository = {"apiVersion": "fanout.dev/v1alpha1", "kind": "Repository", "metadata": meta}
    twin.server.patch(repository, broken)
    plan = twin.ask("plan", "-o", "json").json
    assert not plan["actions"]
    assert "InvalidObject" in {it["reason"] for it in plan["holds"]}


def test_each_policy_reads_the_version_that_it_names(twin: Twin, tmp_path: Path):
    """Also beside policies of other namespaces, older or not."""
    versions = ("infra.example.com/v1", "infra.example.com/v1beta1")
    twin.fleet.policy("newer", versions)
    twin.move()
    twin.apply()
    result = twin.ask("plan", "-o", "json", "--new-records")
    assert (result.code, result.err) == (0, "")
    assert {it["policy"] for it in result.json["actions"]} == {"monitoring", "newer"}
    assert result.json == twin.show("plan", "-o", "json").json
    with open_twin(twin.server, tmp_path / "others") as others:
        path = others.fleet.root / "policies" / "policy.yaml"
        path.write_text(path.read_text().replace(*versions))
        others.apply()
        assert others.ask("plan", "--new-records").code == 0
        objects = twin.read().objects
        for version in ("v1", "v1beta1"):
            clusters = objects.of_kind("infra.example.com", "Cluster", version)
            assert {it["apiVersion"] for it in clusters.values()} == {
                f"infra.example.com/{version}"
            }
            assert {namespace for namespace, _ in clusters} >= {twin.namespace, others.namespace}


def test_a_version_that_is_not_served_holds_the_policy_that_names_it(twin: Twin):
    twin.fleet.policy("newer", ("infra.example.com/v1", "infra.example.com/v2"))
    twin.move()
    twin.apply()
    result = twin.ask("plan", "-o", "json", "--new-records")
    assert result.code == 3
    assert {it["policy"] for it in result.json["actions"]} == {"monitoring"}
    place = f"UpstreamPolicy/{twin.namespace}/newer: spec.targets[0].objectSelector.apiVersion: "
    sentence = "the API server serves kind Cluster of group infra.example.com as v1 or v1beta1"
    assert f"{place}{sentence}, not as v2" in " ".join(result.err.split())


INJECTED = """\
apiVersion: infra.example.com/v1
kind: Cluster
metadata:
  name: site
  annotations: {kpt.dev/config-injection: required, config.kubernetes.io/local-config: "true"}
spec: {}
"""


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: hidden, annotations: {kpt.dev/config-injection: optional}}
data: {}
"""


@pytest.mark.parametrize("files", [{"site.yaml": INJECTED}, {"secret.yaml": SECRET}], ids=list)
def test_kinds_that_only_packages_name_are_listed_too(twin: Twin, files: dict[str, str | None]):
    """An injector without a kind is for all injection points of the package, but for Secrets."""
    policy = twin.fleet.root / "policies" / "policy.yaml"
    document = yaml.safe_load(policy.read_text())
    template = document["spec"]["targets"][0]["template"]
    del template["injectors"][0]["kind"]
    document["spec"]["targets"] = [
        {"repositories": [{"name": "edge"}], "template": {**template, "stage": "dev"}}
    ]
    for name in ("stageExpr", "downstream"):
        del document["spec"]["targets"][0]["template"][name]
    document["spec"]["targets"][0]["template"]["injectors"] = [{"name": "ams"}]
    policy.write_text(yaml.safe_dump(document))
    twin.fleet.release("v2", files)
    twin.apply()
    of_files, cluster = (
        twin.show("plan", "-o", "json"),
        twin.ask("plan", "-o", "json", "--new-records"),
    )
    assert [it["kind"] for it in of_files.json["actions"]] == ["WriteDraft"]
    assert cluster.json == of_files.json


REGIONS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: regions.infra.example.com}
spec:
  group: infra.example.com
  scope: Cluster
  names: {kind: Region, plural: regions, singular: region}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
REGION = """\
apiVersion: infra.example.com/v1
kind: Region
metadata: {name: NAME, labels: {tier: dev}}
spec: {repository: edge}
"""


def test_targets_may_be_without_a_namespace(twin: Twin, request: pytest.FixtureRequest):
    twin.server.kubectl("apply", "-f", "-", stdin=REGIONS)
    request.addfinalizer(lambda: twin.server.kubectl("delete", "-f", "-", stdin=REGIONS))
    twin.server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    names = [f"{it}-{twin.namespace}" for it in ("eu", "us")]
    policy = twin.fleet.root / "policies" / "policy.yaml"
    document = yaml.safe_load(policy.read_text())
    [target] = document["spec"]["targets"]
    target["objectSelector"] = {"apiVersion": "infra.example.com/v1", "kind": "Region"}
    policy.write_text(yaml.safe_dump(document))
    twin.apply()
    regions = "---\n".join(REGION.replace("NAME", name) for name in names)
    twin.server.kubectl("apply", "-f", "-", stdin=regions)
    result = twin.ask("plan", "-o", "json", "--new-records")
    assert (result.code, result.err) == (0, "")
    twin.fleet.write("regions.yaml", f"{REGIONS}---\n{regions}")
    assert twin.show("plan", "-o", "json").json == result.json
    drafted = sorted(it["variant"] for it in result.json["actions"])
    assert all(name in it for name, it in zip(names, drafted, strict=True)), drafted
    twin.server.kubectl("delete", "-f", "-", stdin=regions)
    assert twin.ask("plan", "-o", "json", "--new-records").json["actions"] == []


def test_definitions_of_an_earlier_release_are_to_be_applied_anew(twin: Twin, printed_crds: str):
    earlier = list(yaml.safe_load_all(printed_crds))
    for definition in earlier:
        definition["spec"]["versions"][0].pop("selectableFields", None)
    twin.show("sweep")
    try:
        twin.server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(earlier))
        result = twin.ask("plan")
    finally:
        twin.server.kubectl("apply", "-f", "-", stdin=printed_crds)
        wait_until(lambda: twin.ask("plan").code == 0, "the definitions are not in force")
    assert result.code == 3
    assert "run `fanout crds | kubectl apply --server-side -f -" in " ".join(result.err.split())
    assert "emove" not in result.out


def test_a_kind_that_is_not_served_any_more_removes_nothing(
    twin: Twin, request: pytest.FixtureRequest
):
    twin.show("sweep")
    twin.server.kubectl("delete", "crd", "clusters.infra.example.com")
    request.addfinalizer(partial(install_clusters, twin.server))
    result = twin.ask("plan")
    assert result.code == 3
    assert "does not serve kind Cluster of group infra.example.com" in " ".join(result.err.split())
    assert "emove" not in result.out
