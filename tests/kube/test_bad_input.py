"""Bad input of people in a cluster, row by row: what happens, and which test plays it.

| what | what happens | played by |
|---|---|---|
| an own object that no schema caught | left out, `Stalled` with every fault and its path; holds its namespace alone, as a broken file does | `test_an_object_with_errors_holds_its_namespace_alone`; commands: `test_reading.py::test_an_object_that_no_schema_caught_is_left_out_with_its_path` |
| a target of 1 MiB, unicode, names of 253 characters | works or is refused by name; the others go on | `test_large_long_and_foreign_texts_are_published` |
| a Secret as injection source | refused, by name | `test_a_secret_is_no_source_and_a_repository_of_others_no_destination` |
| a policy naming another namespace's Repository | refused, by name | the same |
| a check of an object in another tenant's namespace | refused, by namespace; the object is not shown | `test_an_object_with_errors_holds_its_namespace_alone` |
| a Repository with another tenant's URL and no secret | sees what the remote shows anonymous people | `test_the_url_of_another_tenant_shows_what_anybody_sees` |
| RBAC denies a kind | policies that need it hold, with verb and resource; others go on; nothing is removed | `test_a_kind_that_must_not_be_listed_holds_who_needs_it`; commands: `test_reading.py::test_a_kind_that_must_not_be_listed_holds_who_reads_it_and_is_named` |
| the conversion webhook of a kind is down | policies that name the kind hold, with its message; others go on | `test_a_kind_that_the_server_cannot_list_holds_who_names_it_alone` |
| targets deleted by mistake | above `removalLimit` nothing is removed until a person confirms, with the command that `explain` prints | `test_removals_above_the_limit_wait_for_a_person_and_follow` |
| the definition of a kind deleted and made again | held, then goes on; no variant is removed | `test_controller.py::test_a_definition_that_is_deleted_removes_no_variant`; commands: `test_reading.py::test_a_kind_that_is_not_served_any_more_removes_nothing` |
| a policy deleted while records wait, and made again under its name | its records go on counting; nothing is published twice | `test_a_policy_made_again_has_the_records_that_waited` |
| no records repository | refused, by name | `test_without_a_records_repository_nothing_begins`; commands: `test_reading.py::test_records_have_no_default` |
| a records repository in a directory that does not exist | refused, by name; nothing is created | `test_reading.py::test_a_missing_directory_of_records_is_refused` |
| a records repository that cannot be reached | nothing is granted; drafts go on | `test_without_the_records_drafts_go_on_and_nothing_is_published` |
| a user edits spec or status of a variant to promote it | refused; written all the same it is ignored and put right | `test_a_variant_is_not_promoted_by_writing_it`; each part: `test_statuses.py::test_an_edited_variant_is_put_right` |
"""  # noqa: E501 as Markdown wants it

import json
import shlex
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import yaml
from fleet import PACKAGE
from http_git import serving
from kube.objects import refusal_of
from kube.record_fleet import decision, wait_until
from kube.tenants import (
    HASTY_ADMISSION,
    INJECTING,
    OPEN,
    OWN,
    PLAIN_POLICY,
    READER,
    allow_secrets,
    await_handled,
    condition,
    denied,
    essence,
    exists,
    is_written,
    own,
    request_pass,
    variants_of,
    without_admission,
)
from kube.twin import Twin
from kube_server import CONTROLLER, KubeError
from run_process import PATIENCE

pytestmark = pytest.mark.kube


def texts_of(twin: Twin, kind: str, name: str) -> str:
    """Return the status of an object of fanout as text."""
    return json.dumps(twin.server.get(own(twin, kind, name)).get("status", {}))


# ---- objects -------------------------------------------------------------------------------------


def test_an_object_with_errors_holds_its_namespace_alone(tenant, begin):
    broken, whole = tenant(), tenant()
    zone = {"schedule": "61 * * * *", "timeZone": "Mars/Olympus", "policies": ["*"]}
    promotion = own(broken, "PromotionPolicy", "broken", **zone)
    broken.server.create(promotion)
    check = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": broken.namespace}
    check |= {"nameExpr": "'ams'", "cel": "true", "observedRevision": "object.data.text"}
    requires = json.dumps([{"name": "look", "freshFor": "1h", "object": check}])
    whole.fleet.policy("curious", ("name: dev,", f"name: dev, requires: {requires},"))
    whole.move()
    whole.apply()
    controller = begin(broken)
    controller.until(whole.fleet.repos["edge"].tags)
    controller.until(lambda: condition(broken, "PromotionPolicy", "broken", "Stalled"))
    stalled = condition(broken, "PromotionPolicy", "broken", "Stalled")
    assert stalled["status"] == "True"
    assert "spec.schedule: " in stalled["message"]
    assert "spec.timeZone: " in stalled["message"]
    edge = broken.fleet.repos["edge"]
    await_handled(controller, broken, "first")
    assert edge.drafts() == ["sites/ams/monitoring"]
    assert edge.tags() == []
    await_handled(controller, whole, "first", "curious")
    status = json.dumps(variants_of(whole)["curious"]["status"])
    refusal = f"checks of policies in namespace {whole.namespace} may not read objects in"
    assert f"{refusal} {broken.namespace}" in status
    assert whole.fleet.repos["edge"].tags() == ["sites/ams/v1"]
    broken.server.delete(promotion)
    controller.until(edge.tags)
    assert controller.end() == 0


TOO_LONG = ".".join(["n" * 63, "n" * 63, "n" * 63, "n" * 61])  # 253 characters
SIGNS = "Zürich 東京 🚀 \u202e"
MIB = 1 << 20


def test_large_long_and_foreign_texts_are_published(tenant, begin):
    twin = tenant()

    def create_site(name: str, text: str, **spec: Any) -> None:
        meta = {"name": name, "namespace": twin.namespace}
        cluster = {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}
        labels = {"labels": {"tier": "dev"}}
        spec = {"spec": {"repository": "edge", **spec}}
        source = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        twin.server.create({**source, "data": {"text": text}})
        twin.server.create({**cluster, "metadata": {**meta, **labels}, **spec})

    longest = "n" * 249  # with `sites/` before it a path of 255 bytes
    create_site("big", "x" * (MIB - 100), notes="x" * MIB)
    create_site("signs", SIGNS, notes=SIGNS)
    create_site(longest, "long")
    create_site(TOO_LONG, "too long")
    controller = begin(twin)
    edge = twin.fleet.repos["edge"]
    expected = {f"sites/{name}/v1" for name in ("ams", "big", "signs", longest)}
    controller.until(lambda: {*edge.tags()} == expected)
    await_handled(controller, twin, "first")
    for name, text in (("signs", SIGNS), ("big", "x" * (MIB - 100)), (longest, "long")):
        settings = yaml.safe_load(edge.file("main", f"sites/{name}/settings.yaml"))
        assert settings["data"]["text"] == text
    items = twin.server.list(OWN, "PackageVariant", twin.namespace)
    assert {it["status"]["revision"] for it in items} == {"v1"}
    assert len(items) == 4
    stalled = condition(twin, "UpstreamPolicy", "monitoring", "Stalled")
    assert stalled["reason"] == "TargetsFailed"
    assert f"Cluster.infra.example.com/{twin.namespace}/{TOO_LONG}" in stalled["message"]
    assert "is longer than 255 bytes" in stalled["message"]
    assert controller.end() == 0


def test_a_secret_is_no_source_and_a_repository_of_others_no_destination(tenant):
    mine, theirs = tenant(), tenant()
    theirs.fleet.repository("vault")
    theirs.move()
    theirs.apply()
    secret = {"name": "ams", "namespace": mine.namespace}
    mine.server.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "stringData": {"a": "hidden"}}
    )
    secretive = mine.fleet.policy("secretive", ("kind: ConfigMap", "kind: Secret"))
    mine.fleet.policy("foreign", ("target.spec.repository", "\"'vault'\""))
    mine.move()
    refusal = refusal_of(mine.server, yaml.safe_load(secretive.read_text()))
    assert "spec.targets[0].template.injectors[0]" in refusal
    assert "a Secret cannot be injected" in refusal
    secretive.unlink()
    mine.apply()
    result = mine.ask("plan", "--new-records")
    assert result.code == 3
    shown = " ".join((result.out + result.err).split())
    assert f"there is no Repository vault that namespace {mine.namespace} may use" in shown
    assert "hidden" not in shown
    plan = mine.ask("plan", "--new-records", "-o", "json").json
    assert {it["policy"] for it in plan["actions"]} == {"monitoring"}


# ---- rights --------------------------------------------------------------------------------------


def test_the_url_of_another_tenant_shows_what_anybody_sees(tenant, begin, tmp_path):
    owner, other = tenant(), tenant({"ber": ("dev", "edge")})
    header = f"Basic {b64encode(b'ann:word').decode()}"
    remote = owner.fleet.repos["edge"]
    with serving(remote.path.parent, authorization=header) as git:
        meta = {"name": "git", "namespace": owner.namespace}
        words = {"username": "ann", "password": "word"}
        owner.server.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": words}
        )
        allow_secrets(owner)
        url = git.url("edge.git")
        owner.server.patch(
            own(owner, "Repository", "edge"),
            {"spec": {"url": url, "secretRef": {"name": "git"}}},
        )
        other.server.patch(own(other, "Repository", "edge"), {"spec": {"url": url}})
        controller = begin(owner)
        controller.until(lambda: remote.tags() == ["sites/ams/v1"])
        controller.until(lambda: condition(other, "Repository", "edge", "Ready"))
        ready = condition(other, "Repository", "edge", "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "RemoteDenied")
        assert not [it for it in remote.refs() if "ber" in it]
        assert "sites/ams" not in texts_of(other, "UpstreamPolicy", "monitoring")
        git.authorization = ""  # open to everybody
        request_pass(other, "first")
        controller.until(lambda: "sites/ber/v1" in remote.tags())
        assert controller.end() == 0


@pytest.mark.parametrize(
    ("resource", "holding"),
    [
        ("clusters.infra.example.com", {"monitoring": "spec.targets[0].objectSelector.kind: "}),
        (
            "configmaps",
            {
                "monitoring": "spec.targets[0].template.injectors[0].kind: ",
                "injecting": "spec.targets[0].template.injectors[0].kind: ",
                "open": "spec.targets[0].template.injectors[0]: ",
            },
        ),
    ],
    ids=["targets", "sources"],
)
def test_a_kind_that_must_not_be_listed_holds_who_needs_it(tenant, begin, resource, holding):
    twin = tenant()
    paths = {"monitoring": "sites/ams", "plain": "plain", "injecting": "injecting", "open": "open"}
    for name, more in (("plain", ""), ("injecting", INJECTING), ("open", OPEN)):
        twin.fleet.write(f"{name}.yaml", PLAIN_POLICY.format(name=name, more=more))
    twin.move()
    twin.apply()
    controller = begin(twin)
    edge = twin.fleet.repos["edge"]
    published = {f"{path}/v1" for path in paths.values()}
    controller.until(lambda: {*edge.tags()} == published)
    controller.until(lambda: variants_of(twin).keys() == paths.keys())
    await_handled(controller, twin, "first", "plain")
    assert controller.end() == 0
    before = variants_of(twin)
    with denied(twin.server, resource):
        twin.fleet.release("v2")
        controller = begin(twin)
        news = {f"{path}/v2" for name, path in paths.items() if name not in holding}
        controller.until(lambda: news <= {*edge.tags()})
        await_handled(controller, twin, "second", "plain")
        assert {*edge.tags()} == published | news
        assert not edge.drafts()
        for name, place in holding.items():
            # Statuses follow their round; those of one policy may come before those of another.
            controller.until(lambda it=name: condition(twin, "UpstreamPolicy", it, "Stalled"))
            message = condition(twin, "UpstreamPolicy", name, "Stalled")["message"]
            assert place in message
            assert f'cannot list resource "{resource.partition(".")[0]}"' in message
            assert before[name] == variants_of(twin)[name]
        assert controller.end() == 0
    controller = begin(twin)
    controller.until(lambda: {f"{path}/v2" for path in paths.values()} <= {*edge.tags()})
    for path in ("sites/ams", "injecting", "open"):
        settings = yaml.safe_load(edge.file("main", f"{path}/settings.yaml"))
        assert settings["data"]["retention"] == "7d"
    assert controller.end() == 0


WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "https://127.0.0.1:1/convert"}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture
def widgets(base_server):
    """A kind of which the API server can list no objects in version v2, because it has one."""
    verbs = ["get", "list", "watch"]
    rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": verbs}
    base_server.patch(READER, {"rules": [*READER["rules"], rule]})
    wait_until(
        lambda: base_server.may(CONTROLLER, "list", "widgets.example.com"),
        "the controller has no right",
    )
    base_server.kubectl("apply", "-f", "-", stdin=WIDGETS)
    base_server.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    base_server.kubectl("get", "widgets.v1.example.com", "--all-namespaces")
    yield
    base_server.patch(READER, {"rules": READER["rules"]})
    base_server.kubectl("delete", "crd", "widgets.example.com")


def test_a_kind_that_the_server_cannot_list_holds_who_names_it_alone(tenant, begin, widgets):
    broken, whole = tenant(), tenant()
    meta = {"name": "ams", "namespace": broken.namespace, "labels": {"tier": "dev"}}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}
    broken.server.create({**widget, "spec": {"repository": "edge"}})
    named = ("infra.example.com/v1, kind: Cluster", "example.com/v2, kind: Widget")
    broken.fleet.policy("widgets", named)
    broken.move()
    broken.apply()
    planned = whole.ask("plan")
    assert "publish" in planned.out or "draft" in planned.out, planned.err
    controller = begin(whole)
    edges = [it.fleet.repos["edge"] for it in (broken, whole)]
    controller.until(lambda: all("sites/ams/v1" in it.tags() for it in edges))
    controller.until(lambda: condition(broken, "UpstreamPolicy", "widgets", "Stalled"))
    message = condition(broken, "UpstreamPolicy", "widgets", "Stalled")["message"]
    assert "spec.targets[0].objectSelector" in message
    assert "conversion webhook for example.com/v1, Kind=Widget failed" in message
    whole.fleet.release("v2")
    request_pass(whole, "second")
    controller.until(lambda: "sites/ams/v2" in edges[1].tags())
    conversion = [{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]
    patch = ("patch", "crd", "widgets.example.com", "--type=json", "-p", json.dumps(conversion))
    whole.server.kubectl(*patch)
    controller.until(lambda: "widgets/ams/v1" in edges[0].tags())
    assert controller.end() == 0


def test_a_kind_that_only_a_package_names_holds_the_policies_of_that_package(tenant, begin):
    """All have an injector without a kind, and the package of one has no point for the kind."""
    twin = tenant()
    upstream = twin.fleet.repos["blueprints"]
    plain = {f"plain/{it}": text for it, text in PACKAGE.items() if it != "settings.yaml"}
    upstream.git("update-ref", "refs/tags/plain/v1", upstream.commit("main", plain))
    for name, package in (("open", "monitoring"), ("other", "plain")):
        text = PLAIN_POLICY.format(name=name, more=OPEN)
        twin.fleet.write(f"{name}.yaml", text.replace("package: monitoring", f"package: {package}"))
    twin.move()
    twin.apply()
    twin.server.delete(own(twin, "UpstreamPolicy", "monitoring"))
    edge = twin.fleet.repos["edge"]
    with denied(twin.server, "configmaps"):
        controller = begin(twin)
        stalled = partial(condition, twin, "UpstreamPolicy", "open", "Stalled")
        controller.until(lambda: "template.injectors[0]: " in stalled().get("message", ""))
        assert 'cannot list resource "configmaps"' in stalled()["message"]
        controller.until(lambda: edge.tags() == ["other/v1"])
        assert not condition(twin, "UpstreamPolicy", "other", "Stalled")
    controller.until(lambda: edge.tags() == ["open/v1", "other/v1"])
    assert controller.end() == 0


def test_a_kind_that_is_granted_again_is_read_without_a_poll(tenant, begin):
    twin = tenant()
    with denied(twin.server, "configmaps"):
        controller = begin(twin)
        stalled = partial(condition, twin, "UpstreamPolicy", "monitoring", "Stalled")
        controller.until(
            lambda: 'cannot list resource "configmaps"' in stalled().get("message", "")
        )
        assert not twin.fleet.repos["edge"].drafts()
    controller.until(twin.fleet.repos["edge"].tags)
    assert "interval" not in controller.triggers()
    assert controller.end() == 0


def test_removals_above_the_limit_wait_for_a_person_and_follow(tenant, begin, monkeypatch):
    twin = tenant(dict.fromkeys(("ams", "ber", "cph", "dub"), ("dev", "edge")))
    spec = {"stages": [{"name": "dev"}], "removalLimit": 2}
    policy = own(twin, "UpstreamPolicy", "monitoring")
    twin.server.patch(policy, {"spec": spec})
    controller = begin(twin, program=("-c", HASTY_ADMISSION))
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: len(edge.tags()) == 4)
    await_handled(controller, twin, "first")
    before = edge.refs()["refs/heads/main"]
    line = ("delete", "clusters.infra.example.com", "ams", "ber", "cph")
    twin.server.kubectl(*line, namespace=twin.namespace)
    ready = partial(condition, twin, "UpstreamPolicy", "monitoring", "Ready")
    controller.until(lambda: ready().get("reason") == "TooManyRemovals")
    confirmation = "fanout remove monitoring --all-gone --reason WHY -n " + twin.namespace
    assert "3 of 4 variants would be removed (removalLimit: 2)" in ready()["message"]
    assert edge.refs()["refs/heads/main"] == before
    variants = partial(twin.server.list, OWN, "PackageVariant", twin.namespace)
    assert len(variants()) == 4
    twin.fleet.now = datetime.now(UTC)
    explained = twin.ask("explain", "monitoring").out.partition("To unblock:\n  fanout ")[2]
    command = explained.partition("\n")[0]
    assert f"fanout {command}".startswith(confirmation)
    monkeypatch.setenv("FANOUT_NOW", twin.fleet.now.isoformat())
    confirmed = twin.fleet.run(*shlex.split(command), files=False)
    assert confirmed.code == 0, confirmed.err
    controller.until(lambda: ready().get("status") == "True")
    assert all(it.startswith("sites/dub/") for it in edge.files() if "/" in it)
    controller.until(lambda: len(variants()) == 1)
    assert controller.end() == 0


# ---- records -------------------------------------------------------------------------------------


def test_without_a_records_repository_nothing_begins(tenant, begin):
    twin = tenant()
    controller = begin(twin, records=False)
    assert controller.process.wait(PATIENCE) == 1
    assert "the records repository of the cluster is not configured" in controller.path.read_text()
    assert twin.fleet.repos["edge"].drafts() == []


def test_without_the_records_drafts_go_on_and_nothing_is_published(tenant, begin):
    twin = tenant()
    controller = begin(twin)
    edge = twin.fleet.repos["edge"]
    controller.until(edge.tags)
    await_handled(controller, twin, "first")
    records = twin.fleet.records().path
    away = records.rename(records.with_name("away.git"))
    records.write_text("no repository")
    before = edge.refs("refs/heads/drafts")
    twin.fleet.release("v2")
    request_pass(twin, "second")
    controller.until(lambda: edge.refs("refs/heads/drafts") != before and edge.drafts())
    await_handled(controller, twin, "third")
    assert edge.tags() == ["sites/ams/v1"]
    assert controller.end() == 0
    # A process that has never read them does not know which drafts are whose.
    refs = edge.refs()
    controller = begin(twin)
    controller.until(lambda: any(it["event"] == "Pass failed" for it in controller.log()))
    assert edge.refs() == refs
    records.unlink()
    away.rename(records)
    request_pass(twin, "fourth")
    controller.until(lambda: "sites/ams/v2" in edge.tags())
    assert controller.end() == 0


def test_a_policy_made_again_has_the_records_that_waited(tenant, begin):
    twin = tenant()
    program = ("-c", HASTY_ADMISSION)
    controller = begin(twin, program=program)
    edge = twin.fleet.repos["edge"]
    controller.until(edge.tags)
    twin.server.patch(
        own(twin, "UpstreamPolicy", "monitoring"), {"spec": {"deletionPolicy": "Orphan"}}
    )
    await_handled(controller, twin, "first")
    assert controller.end() == 0
    # Nobody takes it in before the policy is deleted.
    suspension = twin.server.create(decision(twin.namespace, stage="prod"), by="alice")
    twin.server.delete(own(twin, "UpstreamPolicy", "monitoring"))
    controller = begin(twin, program=program)
    controller.until(lambda: not exists(twin, "UpstreamPolicy", "monitoring"))
    controller.until(lambda: twin.server.get(suspension).get("status", {}).get("record"))
    head = edge.refs()["refs/heads/main"]
    twin.fleet.release("v2")
    twin.apply()
    await_handled(controller, twin, "second")
    status = twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))["status"]
    (prod,) = (it for it in status["stages"] if it["name"] == "prod")
    assert "Suspended" in {it["reason"] for it in prod["holds"]}
    assert edge.refs()["refs/heads/main"] == head
    assert edge.tags() == ["sites/ams/v1"]
    assert controller.end() == 0


# ---- variants of policies ------------------------------------------------------------------------


def test_a_variant_is_not_promoted_by_writing_it(tenant, begin):
    twin = tenant({"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    controller = begin(twin)
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: edge.tags() == ["sites/ams/v1"])
    await_handled(controller, twin, "first")

    def waiting() -> dict[str, Any]:
        items = twin.server.list(OWN, "PackageVariant", twin.namespace)
        item: dict[str, Any]
        (item,) = [it for it in items if "-ber-" in it["metadata"]["name"]]
        return item

    before, refs = waiting(), edge.refs()
    assert before["status"]["state"] != "Ready"
    path = f"/apis/{OWN}/namespaces/{twin.namespace}/packagevariants/{before['metadata']['name']}"
    edits: tuple[tuple[str, Any], ...] = (
        (path, {"spec": {"stage": "dev"}}),
        (
            f"{path}/status",
            {"status": {"state": "Ready", "revision": "v1", "published": {"tag": "sites/ber/v1"}}},
        ),
        (f"{path}/status", {"status": {"conditions": []}}),
    )

    def write(path: str, change: Any) -> None:
        content = "application/merge-patch+json"
        twin.server.ask("PATCH", path, change, by="alice", content=content)

    for edit in edits:
        with pytest.raises(KubeError, match=f"only {CONTROLLER} writes PackageVariants"):
            write(*edit)
    with without_admission(twin.server):
        for edit in edits:
            wait_until(partial(is_written, write, edit), "admission is still in force")
            controller.until(lambda: essence(waiting()) == essence(before))
    await_handled(controller, twin, "second")
    assert essence(waiting()) == essence(before)
    assert edge.refs() == refs
    assert controller.end() == 0
