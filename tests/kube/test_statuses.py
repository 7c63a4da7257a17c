"""Statuses, variants of policies and events on a real kube-apiserver."""

import copy
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fleet import PACKAGE, check_status
from kube.record_fleet import granted
from kube.status_world import WRITES, StatusWorld, count_requests, count_writes
from kube_server import KubeServer

from fanout.api.durations import format_instant
from fanout.errors import Denied, Unavailable
from fanout.kube.status_writer import digest_object

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parent.parent.parent
SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge"), "cph": ("prod", "core")}
ANNOTATION = "reconcile.fanout.dev/requestedAt"


@pytest.fixture
def cluster(server: KubeServer, kube_namespace: str, tmp_path: Path) -> StatusWorld:
    return StatusWorld.build(server, kube_namespace, tmp_path, SITES)


def versions(cluster: StatusWorld) -> dict[tuple[str, str], str]:
    """Return the resource version of each object of fanout."""
    return {
        (kind, it["metadata"]["name"]): it["metadata"]["resourceVersion"]
        for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy")
        for it in cluster.server.list("fanout.dev/v1alpha1", kind, cluster.namespace)
    }


def contents(cluster: StatusWorld) -> dict[str, Any]:
    """Return the digests of all variants of policies."""
    return {name: digest_object(it)[1:] for name, it in cluster.variants().items()}


def without_managed(item: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies an object, as an apply needs it."""
    meta = {name: item["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}


# ---- what is written -----------------------------------------------------------------------------


def test_a_fan_out_costs_two_writes_of_each_variant(cluster: StatusWorld):
    with cluster.process():
        before = count_writes(cluster.server, "packagevariants")
        cluster.run_round(publish=False)
        assert cluster.variants() == {}, "drafts that the pass wrote are shown by the next one"
        cluster.run_round(publish=False)
        variants = cluster.variants()
        assert count_writes(cluster.server, "packagevariants") - before == 2 * len(SITES)
    assert variants.keys() == SITES.keys()
    for name, (stage, repository) in SITES.items():
        spec, status = variants[name]["spec"], variants[name]["status"]
        assert spec["policyRef"] == {"name": "monitoring"}
        assert spec["stage"] == status["stage"] == stage
        assert spec["downstream"] == {"repository": repository, "package": f"sites/{name}"}
        assert spec["injectors"] == [{"kind": "ConfigMap", "name": name}]
        ref = f"refs/heads/{status['draft']['branch']}"
        assert cluster.fleet.repos[repository].refs()[ref] == status["draft"]["commit"]
        assert status["draft"]["tree"]
        assert status["state"] in ("Proposed", "Drafted")
        assert status["revision"] == "v1"
        assert status["observedGeneration"] == variants[name]["metadata"]["generation"] == 1


def test_a_transition_costs_one_write_and_rest_none(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        before, start = versions(cluster), count_writes(cluster.server, "packagevariants")
        cluster.run_round()
        assert versions(cluster) == before
        cluster.report("dev", "v1")
        cluster.settle()
        changed = {key for key, it in versions(cluster).items() if before[key] != it}
        ams = cluster.variants()["ams"]
        assert cluster.ready(ams) == ("True", "Ready")
        assert changed >= {
            ("PackageVariant", ams["metadata"]["name"]),
            ("UpstreamPolicy", "monitoring"),
        }
        variants = {name for kind, name in changed if kind == "PackageVariant"}
        assert count_writes(cluster.server, "packagevariants") - start == len(variants)


def test_progress_of_others_is_not_written_to_variants_that_wait(cluster: StatusWorld):
    for site in ("dub", "fra", "gva"):
        cluster.add_site(site, "dev")
    for site in ("ams", "dub"):
        site_object = {**cluster.manifest("Cluster", site), "apiVersion": "infra.example.com/v1"}
        cluster.server.patch(site_object, {"metadata": {"labels": {"canary": "yes"}}})
    rollout = {"groups": [{"matchLabels": {"canary": "yes"}}]}
    dev = {"name": "dev", "rollout": rollout, "verification": [{"name": "e2e", "report": {}}]}
    policy = cluster.manifest("UpstreamPolicy", "monitoring")
    cluster.server.patch(policy, {"spec": {"stages": [dev, {"name": "prod"}]}})
    with cluster.process():
        cluster.settle()
        before = cluster.variants()
        for site in ("fra", "gva"):
            assert cluster.ready(before[site]) == ("False", "GroupAwaits")
            assert "UpstreamPolicy monitoring" in before[site]["status"]["holds"][0]["message"]
        cluster.report("dev", "v1", only=before["ams"]["metadata"]["name"])
        cluster.settle()
        after = cluster.variants()
    versions = {
        site: (before[site]["metadata"]["resourceVersion"], it["metadata"]["resourceVersion"])
        for site, it in after.items()
    }
    assert {site for site, (old, new) in versions.items() if old != new} == {"ams"}


def test_a_second_process_writes_no_unchanged_status(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    before = versions(cluster)
    with cluster.process():
        cluster.run_round()
    assert versions(cluster) == before


def test_a_process_writes_nothing_before_its_first_pass(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    before = versions(cluster)
    with cluster.process():
        cluster.show()  # as a watch wakes it
    assert versions(cluster) == before


def test_a_killed_process_leaves_only_the_rest_to_the_next(cluster: StatusWorld):
    start = count_writes(cluster.server, "packagevariants")
    with cluster.process():
        cluster.run_round(publish=False)
        cluster.stop_after(2)  # as if it were killed between two writes
        cluster.run_round(publish=False)
        assert 0 < len(cluster.variants()) < len(SITES)
    with cluster.process():
        cluster.run_round(publish=False)
    assert cluster.variants().keys() == SITES.keys()
    assert count_writes(cluster.server, "packagevariants") - start == 2 * len(SITES)


def test_an_emptied_cluster_gets_the_same_statuses(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    refs, before = cluster.fleet.refs(), contents(cluster)
    cluster.server.kubectl("delete", "pvar", "--all", namespace=cluster.namespace)
    with cluster.process():
        cluster.settle()
    assert contents(cluster) == before
    assert cluster.fleet.refs() == refs


# ---- what others change --------------------------------------------------------------------------


def change_spec(variant: dict[str, Any]) -> None:
    variant["spec"]["suspend"] = True


def add_to_spec(variant: dict[str, Any]) -> None:
    variant["spec"]["pipeline"] = {"mutators": [{"image": "set-namespace"}]}


def add_label(variant: dict[str, Any]) -> None:
    variant["metadata"]["labels"]["team"] = "shop"


def remove_owner(variant: dict[str, Any]) -> None:
    del variant["metadata"]["ownerReferences"]


def change_status(variant: dict[str, Any]) -> None:
    variant["status"]["state"] = "Ready"


def add_condition(variant: dict[str, Any]) -> None:
    ready = next(it for it in variant["status"]["conditions"] if it["type"] == "Ready")
    variant["status"]["conditions"].append({**ready, "type": "Approved", "status": "True"})


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (change_spec, ""),
        (add_to_spec, ""),
        (add_label, ""),
        (remove_owner, ""),
        (change_status, "/status"),
        (add_condition, "/status"),
    ],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_an_edited_variant_is_put_right(cluster: StatusWorld, change: Any, part: str):
    with cluster.process():
        cluster.settle()
        before, refs = versions(cluster), cluster.fleet.refs()
        contents_before = contents(cluster)
        edited = copy.deepcopy(cluster.variants()["ber"])
        change(edited)
        path = (
            f"/apis/fanout.dev/v1alpha1/namespaces/{cluster.namespace}/packagevariants/"
            f"{edited['metadata']['name']}{part}?fieldManager=somebody"
        )
        cluster.server.ask("PUT", path, edited)
        assert contents(cluster) != contents_before
        cluster.await_change()
        cluster.show()
        after = cluster.variants()["ber"]
        assert {**contents(cluster), "ber": None} == {**contents_before, "ber": None}
        assert digest_object(after).content == contents_before["ber"][1]
        assert after["status"]["state"] == "Drafted"
        assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
        assert {it["type"] for it in after["status"]["conditions"]} == {"Ready", "Reconciling"}
        changed = {key for key, it in versions(cluster).items() if before[key] != it}
        assert changed == {("PackageVariant", after["metadata"]["name"])}
        assert cluster.fleet.refs() == refs


def test_a_deleted_variant_is_back(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        contents_before, refs = contents(cluster), cluster.fleet.refs()
        cluster.server.delete(cluster.variants()["cph"])
        cluster.await_change()
        cluster.show()
        assert contents(cluster) == contents_before
        assert cluster.fleet.refs() == refs


def test_an_edited_status_of_a_policy_is_put_right(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        policy_before = cluster.get("UpstreamPolicy", "monitoring")
        edited = {**cluster.manifest("UpstreamPolicy", "monitoring")}
        edited["status"] = {**policy_before["status"], "counts": {"Ready": 3}}
        cluster.server.apply(edited, manager="somebody", subresource="status")
        cluster.await_change()
        cluster.show()
        assert cluster.get("UpstreamPolicy", "monitoring")["status"] == policy_before["status"]


def test_a_process_that_stays_puts_right_what_somebody_edits(cluster: StatusWorld):
    with cluster.process():
        assert cluster.thread is not None
        cluster.settle(show=False)
        with cluster.thread.run():
            cluster.await_state(lambda: cluster.variants().keys() == SITES.keys())
            cluster.await_state(lambda: all("status" in it for it in cluster.variants().values()))
            contents_before = contents(cluster)
            cluster.server.delete(cluster.variants()["ams"])
            cluster.await_state(lambda: contents(cluster) == contents_before)
            edited = cluster.variants()["ber"]
            edited["status"]["state"] = "Ready"
            cluster.server.apply(
                {**without_managed(edited), "status": edited["status"]},
                manager="somebody",
                subresource="status",
            )
            cluster.await_state(lambda: contents(cluster) == contents_before)


# ---- what goes -----------------------------------------------------------------------------------


def test_a_variant_goes_with_its_package(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        cluster.server.delete(
            {**cluster.manifest("Cluster", "ams"), "apiVersion": "infra.example.com/v1"}
        )
        cluster.run_round(publish=False)
        removed = cluster.variants()["ams"]
        assert cluster.ready(removed)[0] == "False"
        assert removed["status"]["state"] == "Held"
        cluster.settle()
        assert cluster.variants().keys() == {"ber", "cph"}


def test_variants_of_a_deleted_policy_go(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        cluster.server.delete(cluster.manifest("UpstreamPolicy", "monitoring"))
        cluster.run_round()
        assert cluster.variants() == {}


def test_variants_of_a_policy_with_errors_stay(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        contents_before = contents(cluster)
        zone = {"schedule": "0 9 * * *", "timeZone": "Mars/Olympus"}
        cluster.server.patch(cluster.manifest("PromotionPolicy", "everything"), {"spec": zone})
        cluster.run_round()
        promotion = cluster.get("PromotionPolicy", "everything")
        conditions = {it["type"]: it for it in promotion["status"]["conditions"]}
        assert conditions["Stalled"]["status"] == "True"
        assert "Mars/Olympus" in conditions["Stalled"]["message"]
        assert "spec.timeZone" in conditions["Stalled"]["message"]
        assert contents(cluster).keys() == contents_before.keys()


# ---- what people and tools read ------------------------------------------------------------------


def test_kubectl_waits_for_conditions(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        ams = cluster.variants()["ams"]["metadata"]["name"]
        lines = (
            ("repository/edge", "Ready"),
            ("promotionpolicy/everything", "Ready"),
            (f"pvar/{ams}", "Reconciling"),
            ("upol/monitoring", "Ready=false"),
        )
        for name, condition in lines:
            cluster.wait(name, condition)
        cluster.report("dev", "v1")
        cluster.settle()
        cluster.fleet.later(hours=2)
        cluster.settle()
        cluster.wait(f"pvar/{ams}", "Ready")
        cluster.wait("upol/monitoring", "Ready")


def test_a_status_is_valid_and_about_the_present_generation(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        cluster.server.patch(
            cluster.manifest("UpstreamPolicy", "monitoring"), {"spec": {"removalLimit": 5}}
        )
        cluster.settle()
    for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy"):
        for item in cluster.server.list("fanout.dev/v1alpha1", kind, cluster.namespace):
            status = item["status"]
            check_status(kind, status)
            assert status["observedGeneration"] == item["metadata"]["generation"]
            types = [it["type"] for it in status["conditions"]]
            assert types[0] == "Ready"
            # kstatus: one of them, and only beside a Ready that is not true.
            marks = {"Reconciling", "Stalled"} & set(types)
            assert len(marks) == (status["conditions"][0]["status"] != "True")
            for condition in status["conditions"]:
                assert condition["observedGeneration"] == item["metadata"]["generation"]
                assert condition["message"]


def test_a_failed_check_is_stalled(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        cluster.report("dev", "v1", "failed")
        cluster.settle()
        ams = cluster.variants()["ams"]
        assert cluster.ready(ams) == ("False", "VerificationFailed")
        assert ams["status"]["state"] == "Failed"
        cluster.wait(f"pvar/{ams['metadata']['name']}", "Stalled")
        cluster.wait("upol/monitoring", "Stalled")
        events = cluster.events()
        assert ("VariantFailed", "Warning") in events


def test_a_request_to_reconcile_is_echoed(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        for resource in ("upol/monitoring", "repository/edge", "promotionpolicy/everything"):
            cluster.server.kubectl(
                "annotate", resource, f"{ANNOTATION}=now-1", namespace=cluster.namespace
            )
        cluster.run_round()
        for kind, name in (
            ("UpstreamPolicy", "monitoring"),
            ("Repository", "edge"),
            ("PromotionPolicy", "everything"),
        ):
            assert cluster.get(kind, name)["status"]["lastHandledReconcileAt"] == "now-1"


def test_a_repository_that_no_policy_uses_is_ready_and_was_never_contacted(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        unused = cluster.get("Repository", "edge")
        unused["metadata"] = {"name": "unused", "namespace": cluster.namespace}
        unused["spec"]["url"] = "file:///does/not/exist.git"
        del unused["status"]
        cluster.server.apply(unused)
        cluster.run_round()
        assert cluster.ready(cluster.get("Repository", "unused")) == ("True", "Unused")


def test_a_policy_that_is_unusable_has_a_condition_and_no_event(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        broken = cluster.get("UpstreamPolicy", "monitoring")
        annotations = {ANNOTATION: "now-1"}
        broken["metadata"] = {
            "name": "broken", "namespace": cluster.namespace, "annotations": annotations
        }  # fmt: skip
        broken.pop("status", None)
        broken["spec"]["upstream"]["revision"] = {"semver": "=>1"}  # which no schema refuses
        cluster.server.apply(broken)
        cluster.settle()
        status = cluster.get("UpstreamPolicy", "broken")["status"]
        assert {it["type"] for it in status["conditions"]} == {"Ready", "Stalled"}
        assert status["lastHandledReconcileAt"] == "now-1"
        events = cluster.server.list("events.k8s.io/v1", "Event", cluster.namespace)
        assert events
        assert {it["regarding"]["name"] for it in events} == {"monitoring"}


def test_a_problem_of_all_policies_is_in_their_status(cluster: StatusWorld):
    def conditions() -> set[str]:
        status = cluster.get("UpstreamPolicy", "monitoring")["status"]
        return {it["type"] for it in status["conditions"]}

    with cluster.process():
        cluster.settle()
        contents_before = contents(cluster)
        cluster.problem = Denied("no binding", reason="AdmissionMissing", remedy="apply it")
        cluster.run_round()
        assert "AdmissionMissing" in conditions()
        cluster.problem = None
        cluster.run_round()
        assert "AdmissionMissing" not in conditions()
        assert contents(cluster) == contents_before


def test_a_failure_that_lasts_is_read_and_written_once(cluster: StatusWorld):
    def requests() -> int:
        return count_requests(cluster.server, "upstreampolicies", ("GET", *WRITES))

    with cluster.process():
        cluster.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with cluster.process():  # which evaluates nothing
        before = requests()
        cluster.fail_round(outage)
        assert requests() - before == 2, "what is there is read, and completed"
        cluster.fail_round(outage)
        assert requests() - before == 2
        cluster.fail_round(Unavailable("reset", reason="RemoteUnavailable", remedy="wait"))
        assert requests() - before == 4
        assert "reset" in str(cluster.get("UpstreamPolicy", "monitoring")["status"]["conditions"])


def test_a_status_edited_during_a_failure_is_written_again(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with cluster.process():
        cluster.fail_round(outage)
        shown = cluster.get("UpstreamPolicy", "monitoring")
        edited = {**without_managed(shown), "status": {**shown["status"], "counts": {"Ready": 3}}}
        edited["status"]["conditions"] = [
            {**it, "message": "mine"} for it in shown["status"]["conditions"]
        ]
        cluster.server.apply(edited, manager="somebody", subresource="status")
        cluster.await_change()
        cluster.fail_round(outage)
        status = cluster.get("UpstreamPolicy", "monitoring")["status"]
        assert status["conditions"] == shown["status"]["conditions"]


def test_events_tell_what_a_pass_did(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
    shown = cluster.server.kubectl("get", "events", namespace=cluster.namespace).stdout
    assert "1 draft of v1 written in stage dev" in shown
    assert "2 drafts of v1 written in stage prod" in shown
    assert "1 variant published at v1 in stage dev" in shown
    described = cluster.server.kubectl("describe", "upol/monitoring", namespace=cluster.namespace)
    assert "DraftsWritten" in described.stdout


def test_the_page_about_statuses_is_true(cluster: StatusWorld):
    page = (ROOT / "docs" / "concepts" / "status.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    with cluster.process():
        cluster.settle()
    outputs = [
        cluster.server.kubectl(*shlex.split(line)[1:], namespace=cluster.namespace).stdout
        for line in block.splitlines()
    ]
    assert "condition met" in outputs[0]
    assert "condition met" in outputs[1]
    assert outputs[2].count("monitoring-") == 2
    assert "DraftsWritten" in outputs[3]


def test_a_repository_that_does_not_answer_is_named(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        core = cluster.fleet.repos["core"].path
        core.rename(core.with_suffix(".away"))
        cluster.run_round()
        status, reason = cluster.ready(cluster.get("Repository", "core"))
        assert (status, reason) == ("False", "RemoteNotFound")
        assert cluster.ready(cluster.get("Repository", "edge")) == ("True", "Listed")
        # Mostly its URL or its secret is wrong: a person is to mend it.
        policy = cluster.get("UpstreamPolicy", "monitoring")
        variant = cluster.variants()["cph"]
        for item in (cluster.get("Repository", "core"), policy, variant):
            types = {it["type"] for it in item["status"]["conditions"]}
            assert types & {"Stalled", "Reconciling"} == {"Stalled"}
        assert cluster.ready(policy) == cluster.ready(variant) == ("False", "RepositoryUnavailable")
        core.write_text("no repository")  # an error that may be gone at the next attempt
        cluster.run_round()
        variant = cluster.variants()["cph"]
        types = {it["type"] for it in variant["status"]["conditions"]}
        assert types & {"Stalled", "Reconciling"} == {"Reconciling"}


def test_an_upstream_without_its_secret_is_not_reported_unused(cluster: StatusWorld):
    with cluster.process():
        cluster.settle()
        upstream = cluster.manifest("Repository", "blueprints")
        cluster.server.patch(upstream, {"spec": {"secretRef": {"name": "absent"}}})
        cluster.run_round()
        assert cluster.ready(cluster.get("Repository", "blueprints")) == ("False", "SecretUnusable")
        conditions = cluster.get("Repository", "blueprints")["status"]["conditions"]
        assert {it["type"] for it in conditions} == {"Ready", "Stalled"}


def since(cluster: StatusWorld, name: str) -> str:
    """Return since when a Repository is as it is."""
    status = cluster.get("Repository", name)["status"]
    (instant,) = (it["lastTransitionTime"] for it in status["conditions"] if it["type"] == "Ready")
    return str(instant)


def test_instants_that_are_on_no_record_are_those_of_passes_and_never_go_back(cluster: StatusWorld):
    core = cluster.fleet.repos["core"].path
    cluster.fleet.later(days=1000)  # after the creation of the objects
    with cluster.process():
        cluster.settle()
        created = cluster.get("Repository", "core")["metadata"]["creationTimestamp"]
        assert since(cluster, "core") == created
        core.rename(core.with_suffix(".away"))
        cluster.run_round()
        began = since(cluster, "core")
        assert began == format_instant(cluster.fleet.now)
        cluster.fleet.later(hours=1)
        cluster.run_round()
        assert since(cluster, "core") == began
    cluster.fleet.later(hours=1)
    with cluster.process():  # another one knows when it began
        cluster.run_round()
        assert since(cluster, "core") == began
        core.with_suffix(".away").rename(core)
        cluster.run_round()
        assert since(cluster, "core") == format_instant(cluster.fleet.now)
        assert (
            since(cluster, "edge")
            == cluster.get("Repository", "edge")["metadata"]["creationTimestamp"]
        )


def columns(cluster: StatusWorld, resource: str, *options: str) -> list[dict[str, str]]:
    """Return the rows of `kubectl get` by the names of their columns."""
    text = cluster.server.kubectl("get", resource, *options, namespace=cluster.namespace).stdout
    head, *rows = text.splitlines()
    starts = [it.start() for it in re.finditer(r"(?<!\S)\S", head)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    return [{head[a:b].strip(): row[a:b].strip() for a, b in spans} for row in rows]


def pass_all(cluster: StatusWorld, revision: str) -> None:
    """Let both stages get a revision and pass it."""
    cluster.settle()
    cluster.report("dev", revision)
    for _ in range(2):
        cluster.fleet.later(hours=2)
        cluster.settle()


def test_a_suspended_policy_shows_suspended_beside_ready(cluster: StatusWorld):
    policy = cluster.manifest("UpstreamPolicy", "monitoring")
    with cluster.process():
        pass_all(cluster, "v1")
        cluster.server.patch(policy, {"spec": {"suspend": True}})
        cluster.settle()
        (row,) = columns(cluster, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("True", "True")
        cluster.fleet.release("v2")
        cluster.settle()
        (row,) = columns(cluster, "upol")
        assert (row["READY"], row["REASON"], row["SUSPENDED"]) == ("False", "Suspended", "True")
        types = {it["type"] for it in cluster.server.get(policy)["status"]["conditions"]}
        assert types == {"Ready", "Suspended"}, "kstatus calls it in progress, as Ready is False"
        cluster.server.patch(policy, {"spec": {"suspend": False}})
        cluster.settle()
        (row,) = columns(cluster, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("False", "")
        line = ("suspend", "monitoring", "--reason", "incident", "-n", cluster.namespace)
        decided = cluster.fleet.run(*line, "--records", str(cluster.records))
        assert decided.code == 0, decided.err
        cluster.settle()
        (row,) = columns(cluster, "upol")
        assert row["SUSPENDED"] == "True", "a decision suspends as well as the spec"


def test_a_variant_that_lacks_what_is_to_be_injected_is_not_ready(cluster: StatusWorld):
    text = PACKAGE["settings.yaml"].replace("optional", "required")
    cluster.fleet.release("v2", {"settings.yaml": text})
    meta = {"name": "ber", "namespace": cluster.namespace}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with cluster.process():
        pass_all(cluster, "v2")
        assert cluster.ready(cluster.get("UpstreamPolicy", "monitoring")) == ("True", "Ready")
        data = cluster.server.get(config)["data"]
        cluster.server.delete(config)
        cluster.settle()
        variants = cluster.variants()
        assert cluster.ready(variants["ber"]) == ("False", "RequiredInjectionMissing")
        assert cluster.ready(variants["ams"]) == ("True", "Ready")
        policy = cluster.get("UpstreamPolicy", "monitoring")
        assert cluster.ready(policy) == ("False", "RequiredInjectionMissing")
        cluster.wait("upol/monitoring", "Stalled")
        cluster.wait(f"pvar/{variants['ber']['metadata']['name']}", "Stalled")
        message = policy["status"]["conditions"][0]["message"]
        assert variants["ber"]["metadata"]["name"] in message
        assert "ConfigMap ber" in message
        cluster.server.apply({**config, "data": data})
        cluster.settle()
        cluster.wait("upol/monitoring", "Ready")


def test_columns_tell_what_is_published_and_what_is_drafted(cluster: StatusWorld):
    with cluster.process():
        pass_all(cluster, "v1")
        promotion = cluster.manifest("PromotionPolicy", "everything")
        cluster.server.patch(promotion, {"spec": {"autoPromotion": None}})
        cluster.fleet.release("v2")
        cluster.settle()
        rows = {it["PACKAGE"]: it for it in columns(cluster, "pvar", "-o", "wide")}
        wide = [
            row
            for kind in ("upol", "repositories", "promotionpolicies")
            for row in columns(cluster, kind, "-o", "wide")
        ]
    ams, ber = rows["sites/ams"], rows["sites/ber"]
    assert (ams["READY"], ams["PUBLISHED"], ams["DRAFT"]) == ("False", "v1", "v2")
    assert (ber["READY"], ber["PUBLISHED"], ber["DRAFT"]) == ("True", "v1", "")
    assert ams["BRANCH"] == "drafts/default/sites/ams/monitoring"
    assert ber["MESSAGE"] == "v1 is published and verified"
    assert all(it["MESSAGE"] and it["REASON"] for it in wide)


def test_a_policy_that_is_made_again_has_the_same_status(cluster: StatusWorld):
    cluster.fleet.later(days=1000)  # what is on record is newer than the first object
    with cluster.process():
        pass_all(cluster, "v1")
        cluster.fleet.release("v2")
        cluster.settle()
    policy = cluster.get("UpstreamPolicy", "monitoring")
    assert cluster.ready(policy) == ("False", "Progressing")
    cluster.server.delete(cluster.manifest("UpstreamPolicy", "monitoring"))
    cluster.await_state(lambda: now() > policy["metadata"]["creationTimestamp"])
    cluster.apply()
    with cluster.process():
        cluster.settle()
    again = cluster.get("UpstreamPolicy", "monitoring")
    assert again["metadata"]["creationTimestamp"] > policy["metadata"]["creationTimestamp"]
    assert again["status"] == policy["status"]


def now() -> str:
    """Return the present time as the API server writes it."""
    return format_instant(datetime.now(UTC))


# ---- rights --------------------------------------------------------------------------------------

READER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: status-reader}
rules:
- {apiGroups: [fanout.dev], resources: ["*"], verbs: [get, list, watch]}
- apiGroups: [fanout.dev]
  resources: [upstreampolicies/status, repositories/status, promotionpolicies/status]
  verbs: [patch]
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: status-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: status-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
"""


def test_a_forbidden_status_is_named_and_the_other_statuses_are_written(cluster: StatusWorld):
    with (
        granted(cluster.server, READER, "list", "upstreampolicies.fanout.dev", by="carol"),
        cluster.process(writer="carol"),
    ):
        cluster.run_round(publish=False)
        cluster.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        cluster.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        assert cluster.get("UpstreamPolicy", "monitoring")["status"]["conditions"]
        assert cluster.variants() == {}
    with cluster.process():
        cluster.run_round(publish=False)
    assert cluster.variants().keys() == SITES.keys()
