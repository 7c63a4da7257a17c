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
def world(server: KubeServer, kube_namespace: str, tmp_path: Path) -> StatusWorld:
    return StatusWorld.build(server, kube_namespace, tmp_path, SITES)


def versions(world: StatusWorld) -> dict[tuple[str, str], str]:
    """Return the resource version of each object of fanout."""
    return {
        (kind, it["metadata"]["name"]): it["metadata"]["resourceVersion"]
        for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy")
        for it in world.server.list("fanout.dev/v1alpha1", kind, world.namespace)
    }


def contents(world: StatusWorld) -> dict[str, Any]:
    """Return the digests of all variants of policies."""
    return {name: digest_object(it)[1:] for name, it in world.variants().items()}


def without_managed(item: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies an object, as an apply needs it."""
    meta = {name: item["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}


# ---- what is written -----------------------------------------------------------------------------


def test_a_fan_out_costs_two_writes_of_each_variant(world: StatusWorld):
    with world.process():
        before = count_writes(world.server, "packagevariants")
        world.run_round(publish=False)
        assert world.variants() == {}, "drafts that the pass wrote are shown by the next one"
        world.run_round(publish=False)
        variants = world.variants()
        assert count_writes(world.server, "packagevariants") - before == 2 * len(SITES)
    assert variants.keys() == SITES.keys()
    for name, (stage, repository) in SITES.items():
        spec, status = variants[name]["spec"], variants[name]["status"]
        assert spec["policyRef"] == {"name": "monitoring"}
        assert spec["stage"] == status["stage"] == stage
        assert spec["downstream"] == {"repository": repository, "package": f"sites/{name}"}
        assert spec["injectors"] == [{"kind": "ConfigMap", "name": name}]
        ref = f"refs/heads/{status['draft']['branch']}"
        assert world.fleet.repos[repository].refs()[ref] == status["draft"]["commit"]
        assert status["draft"]["tree"]
        assert status["state"] in ("Proposed", "Drafted")
        assert status["revision"] == "v1"
        assert status["observedGeneration"] == variants[name]["metadata"]["generation"] == 1


def test_a_transition_costs_one_write_and_rest_none(world: StatusWorld):
    with world.process():
        world.settle()
        before, start = versions(world), count_writes(world.server, "packagevariants")
        world.run_round()
        assert versions(world) == before
        world.report("dev", "v1")
        world.settle()
        changed = {key for key, it in versions(world).items() if before[key] != it}
        ams = world.variants()["ams"]
        assert world.ready(ams) == ("True", "Ready")
        assert changed >= {
            ("PackageVariant", ams["metadata"]["name"]),
            ("UpstreamPolicy", "monitoring"),
        }
        variants = {name for kind, name in changed if kind == "PackageVariant"}
        assert count_writes(world.server, "packagevariants") - start == len(variants)


def test_progress_of_others_is_not_written_to_variants_that_wait(world: StatusWorld):
    for site in ("dub", "fra", "gva"):
        world.add_site(site, "dev")
    for site in ("ams", "dub"):
        cluster = {**world.manifest("Cluster", site), "apiVersion": "infra.example.com/v1"}
        world.server.patch(cluster, {"metadata": {"labels": {"canary": "yes"}}})
    rollout = {"groups": [{"matchLabels": {"canary": "yes"}}]}
    dev = {"name": "dev", "rollout": rollout, "verification": [{"name": "e2e", "report": {}}]}
    policy = world.manifest("UpstreamPolicy", "monitoring")
    world.server.patch(policy, {"spec": {"stages": [dev, {"name": "prod"}]}})
    with world.process():
        world.settle()
        before = world.variants()
        for site in ("fra", "gva"):
            assert world.ready(before[site]) == ("False", "GroupAwaits")
            assert "UpstreamPolicy monitoring" in before[site]["status"]["holds"][0]["message"]
        world.report("dev", "v1", only=before["ams"]["metadata"]["name"])
        world.settle()
        after = world.variants()
    versions = {
        site: (before[site]["metadata"]["resourceVersion"], it["metadata"]["resourceVersion"])
        for site, it in after.items()
    }
    assert {site for site, (old, new) in versions.items() if old != new} == {"ams"}


def test_a_second_process_writes_no_unchanged_status(world: StatusWorld):
    with world.process():
        world.settle()
    before = versions(world)
    with world.process():
        world.run_round()
    assert versions(world) == before


def test_a_process_writes_nothing_before_its_first_pass(world: StatusWorld):
    with world.process():
        world.settle()
    before = versions(world)
    with world.process():
        world.show()  # as a watch wakes it
    assert versions(world) == before


def test_a_killed_process_leaves_only_the_rest_to_the_next(world: StatusWorld):
    start = count_writes(world.server, "packagevariants")
    with world.process():
        world.run_round(publish=False)
        world.stop_after(2)  # as if it were killed between two writes
        world.run_round(publish=False)
        assert 0 < len(world.variants()) < len(SITES)
    with world.process():
        world.run_round(publish=False)
    assert world.variants().keys() == SITES.keys()
    assert count_writes(world.server, "packagevariants") - start == 2 * len(SITES)


def test_an_emptied_cluster_gets_the_same_statuses(world: StatusWorld):
    with world.process():
        world.settle()
    refs, before = world.fleet.refs(), contents(world)
    world.server.kubectl("delete", "pvar", "--all", namespace=world.namespace)
    with world.process():
        world.settle()
    assert contents(world) == before
    assert world.fleet.refs() == refs


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
def test_an_edited_variant_is_put_right(world: StatusWorld, change: Any, part: str):
    with world.process():
        world.settle()
        before, known, refs = versions(world), contents(world), world.fleet.refs()
        edited = copy.deepcopy(world.variants()["ber"])
        change(edited)
        path = (
            f"/apis/fanout.dev/v1alpha1/namespaces/{world.namespace}/packagevariants/"
            f"{edited['metadata']['name']}{part}?fieldManager=somebody"
        )
        world.server.ask("PUT", path, edited)
        assert contents(world) != known
        world.await_change()
        world.show()
        after = world.variants()["ber"]
        assert {**contents(world), "ber": None} == {**known, "ber": None}
        assert digest_object(after).content == known["ber"][1]
        assert after["status"]["state"] == "Drafted"
        assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
        assert {it["type"] for it in after["status"]["conditions"]} == {"Ready", "Reconciling"}
        changed = {key for key, it in versions(world).items() if before[key] != it}
        assert changed == {("PackageVariant", after["metadata"]["name"])}
        assert world.fleet.refs() == refs


def test_a_deleted_variant_is_back(world: StatusWorld):
    with world.process():
        world.settle()
        known, refs = contents(world), world.fleet.refs()
        world.server.delete(world.variants()["cph"])
        world.await_change()
        world.show()
        assert contents(world) == known
        assert world.fleet.refs() == refs


def test_an_edited_status_of_a_policy_is_put_right(world: StatusWorld):
    with world.process():
        world.settle()
        known = world.get("UpstreamPolicy", "monitoring")
        edited = {**world.manifest("UpstreamPolicy", "monitoring")}
        edited["status"] = {**known["status"], "counts": {"Ready": 3}}
        world.server.apply(edited, manager="somebody", subresource="status")
        world.await_change()
        world.show()
        assert world.get("UpstreamPolicy", "monitoring")["status"] == known["status"]


def test_a_process_that_stays_puts_right_what_somebody_edits(world: StatusWorld):
    with world.process():
        assert world.thread is not None
        world.settle(show=False)
        with world.thread.run():
            world.await_state(lambda: world.variants().keys() == SITES.keys())
            world.await_state(lambda: all("status" in it for it in world.variants().values()))
            known = contents(world)
            world.server.delete(world.variants()["ams"])
            world.await_state(lambda: contents(world) == known)
            edited = world.variants()["ber"]
            edited["status"]["state"] = "Ready"
            world.server.apply(
                {**without_managed(edited), "status": edited["status"]},
                manager="somebody",
                subresource="status",
            )
            world.await_state(lambda: contents(world) == known)


# ---- what goes -----------------------------------------------------------------------------------


def test_a_variant_goes_with_its_package(world: StatusWorld):
    with world.process():
        world.settle()
        world.server.delete(
            {**world.manifest("Cluster", "ams"), "apiVersion": "infra.example.com/v1"}
        )
        world.run_round(publish=False)
        gone = world.variants()["ams"]
        assert world.ready(gone)[0] == "False"
        assert gone["status"]["state"] == "Held"
        world.settle()
        assert world.variants().keys() == {"ber", "cph"}


def test_variants_of_a_deleted_policy_go(world: StatusWorld):
    with world.process():
        world.settle()
        world.server.delete(world.manifest("UpstreamPolicy", "monitoring"))
        world.run_round()
        assert world.variants() == {}


def test_variants_of_a_policy_with_errors_stay(world: StatusWorld):
    with world.process():
        world.settle()
        known = contents(world)
        zone = {"schedule": "0 9 * * *", "timeZone": "Mars/Olympus"}
        world.server.patch(world.manifest("PromotionPolicy", "everything"), {"spec": zone})
        world.run_round()
        promotion = world.get("PromotionPolicy", "everything")
        conditions = {it["type"]: it for it in promotion["status"]["conditions"]}
        assert conditions["Stalled"]["status"] == "True"
        assert "Mars/Olympus" in conditions["Stalled"]["message"]
        assert "spec.timeZone" in conditions["Stalled"]["message"]
        assert contents(world).keys() == known.keys()


# ---- what people and tools read ------------------------------------------------------------------


def test_kubectl_waits_for_conditions(world: StatusWorld):
    with world.process():
        world.settle()
        ams = world.variants()["ams"]["metadata"]["name"]
        lines = (
            ("repository/edge", "Ready"),
            ("promotionpolicy/everything", "Ready"),
            (f"pvar/{ams}", "Reconciling"),
            ("upol/monitoring", "Ready=false"),
        )
        for name, condition in lines:
            world.wait(name, condition)
        world.report("dev", "v1")
        world.settle()
        world.fleet.later(hours=2)
        world.settle()
        world.wait(f"pvar/{ams}", "Ready")
        world.wait("upol/monitoring", "Ready")


def test_a_status_is_valid_and_about_the_present_generation(world: StatusWorld):
    with world.process():
        world.settle()
        world.server.patch(
            world.manifest("UpstreamPolicy", "monitoring"), {"spec": {"removalLimit": 5}}
        )
        world.settle()
    for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy"):
        for item in world.server.list("fanout.dev/v1alpha1", kind, world.namespace):
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


def test_a_failed_check_is_stalled(world: StatusWorld):
    with world.process():
        world.settle()
        world.report("dev", "v1", "failed")
        world.settle()
        ams = world.variants()["ams"]
        assert world.ready(ams) == ("False", "VerificationFailed")
        assert ams["status"]["state"] == "Failed"
        world.wait(f"pvar/{ams['metadata']['name']}", "Stalled")
        world.wait("upol/monitoring", "Stalled")
        events = world.events()
        assert ("VariantFailed", "Warning") in events


def test_a_request_to_reconcile_is_echoed(world: StatusWorld):
    with world.process():
        world.settle()
        for resource in ("upol/monitoring", "repository/edge", "promotionpolicy/everything"):
            world.server.kubectl(
                "annotate", resource, f"{ANNOTATION}=now-1", namespace=world.namespace
            )
        world.run_round()
        for kind, name in (
            ("UpstreamPolicy", "monitoring"),
            ("Repository", "edge"),
            ("PromotionPolicy", "everything"),
        ):
            assert world.get(kind, name)["status"]["lastHandledReconcileAt"] == "now-1"


def test_a_repository_that_no_policy_uses_is_ready_and_was_never_contacted(world: StatusWorld):
    with world.process():
        world.settle()
        unused = world.get("Repository", "edge")
        unused["metadata"] = {"name": "unused", "namespace": world.namespace}
        unused["spec"]["url"] = "file:///does/not/exist.git"
        del unused["status"]
        world.server.apply(unused)
        world.run_round()
        assert world.ready(world.get("Repository", "unused")) == ("True", "Unused")


def test_a_policy_that_is_unusable_has_a_condition_and_no_event(world: StatusWorld):
    with world.process():
        world.settle()
        broken = world.get("UpstreamPolicy", "monitoring")
        annotations = {ANNOTATION: "now-1"}
        broken["metadata"] = {
            "name": "broken", "namespace": world.namespace, "annotations": annotations
        }  # fmt: skip
        broken.pop("status", None)
        broken["spec"]["upstream"]["revision"] = {"semver": "=>1"}  # which no schema refuses
        world.server.apply(broken)
        world.settle()
        status = world.get("UpstreamPolicy", "broken")["status"]
        assert {it["type"] for it in status["conditions"]} == {"Ready", "Stalled"}
        assert status["lastHandledReconcileAt"] == "now-1"
        events = world.server.list("events.k8s.io/v1", "Event", world.namespace)
        assert events
        assert {it["regarding"]["name"] for it in events} == {"monitoring"}


def test_a_problem_of_all_policies_is_in_their_status(world: StatusWorld):
    def conditions() -> set[str]:
        status = world.get("UpstreamPolicy", "monitoring")["status"]
        return {it["type"] for it in status["conditions"]}

    with world.process():
        world.settle()
        known = contents(world)
        world.problem = Denied("no binding", reason="AdmissionMissing", remedy="apply it")
        world.run_round()
        assert "AdmissionMissing" in conditions()
        world.problem = None
        world.run_round()
        assert "AdmissionMissing" not in conditions()
        assert contents(world) == known


def test_a_failure_that_lasts_is_read_and_written_once(world: StatusWorld):
    def requests() -> int:
        return count_requests(world.server, "upstreampolicies", ("GET", *WRITES))

    with world.process():
        world.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with world.process():  # which evaluates nothing
        before = requests()
        world.fail_round(outage)
        assert requests() - before == 2, "what is there is read, and completed"
        world.fail_round(outage)
        assert requests() - before == 2
        world.fail_round(Unavailable("reset", reason="RemoteUnavailable", remedy="wait"))
        assert requests() - before == 4
        assert "reset" in str(world.get("UpstreamPolicy", "monitoring")["status"]["conditions"])


def test_a_status_edited_during_a_failure_is_written_again(world: StatusWorld):
    with world.process():
        world.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with world.process():
        world.fail_round(outage)
        shown = world.get("UpstreamPolicy", "monitoring")
        edited = {**without_managed(shown), "status": {**shown["status"], "counts": {"Ready": 3}}}
        edited["status"]["conditions"] = [
            {**it, "message": "mine"} for it in shown["status"]["conditions"]
        ]
        world.server.apply(edited, manager="somebody", subresource="status")
        world.await_change()
        world.fail_round(outage)
        status = world.get("UpstreamPolicy", "monitoring")["status"]
        assert status["conditions"] == shown["status"]["conditions"]


def test_events_tell_what_a_pass_did(world: StatusWorld):
    with world.process():
        world.settle()
    shown = world.server.kubectl("get", "events", namespace=world.namespace).stdout
    assert "1 draft of v1 written in stage dev" in shown
    assert "2 drafts of v1 written in stage prod" in shown
    assert "1 variant published at v1 in stage dev" in shown
    described = world.server.kubectl("describe", "upol/monitoring", namespace=world.namespace)
    assert "DraftsWritten" in described.stdout


def test_the_page_about_statuses_is_true(world: StatusWorld):
    page = (ROOT / "docs" / "concepts" / "status.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    with world.process():
        world.settle()
    outputs = [
        world.server.kubectl(*shlex.split(line)[1:], namespace=world.namespace).stdout
        for line in block.splitlines()
    ]
    assert "condition met" in outputs[0]
    assert "condition met" in outputs[1]
    assert outputs[2].count("monitoring-") == 2
    assert "DraftsWritten" in outputs[3]


def test_a_repository_that_does_not_answer_is_named(world: StatusWorld):
    with world.process():
        world.settle()
        core = world.fleet.repos["core"].path
        core.rename(core.with_suffix(".away"))
        world.run_round()
        status, reason = world.ready(world.get("Repository", "core"))
        assert (status, reason) == ("False", "RemoteNotFound")
        assert world.ready(world.get("Repository", "edge")) == ("True", "Listed")
        # Mostly its URL or its secret is wrong: a person is to mend it.
        policy, variant = world.get("UpstreamPolicy", "monitoring"), world.variants()["cph"]
        for item in (world.get("Repository", "core"), policy, variant):
            types = {it["type"] for it in item["status"]["conditions"]}
            assert types & {"Stalled", "Reconciling"} == {"Stalled"}
        assert world.ready(policy) == world.ready(variant) == ("False", "RepositoryUnavailable")
        core.write_text("no repository")  # an error that may be gone at the next attempt
        world.run_round()
        variant = world.variants()["cph"]
        types = {it["type"] for it in variant["status"]["conditions"]}
        assert types & {"Stalled", "Reconciling"} == {"Reconciling"}


def test_an_upstream_without_its_secret_is_not_said_to_be_unused(world: StatusWorld):
    with world.process():
        world.settle()
        upstream = world.manifest("Repository", "blueprints")
        world.server.patch(upstream, {"spec": {"secretRef": {"name": "absent"}}})
        world.run_round()
        assert world.ready(world.get("Repository", "blueprints")) == ("False", "SecretUnusable")
        conditions = world.get("Repository", "blueprints")["status"]["conditions"]
        assert {it["type"] for it in conditions} == {"Ready", "Stalled"}


def since(world: StatusWorld, name: str) -> str:
    """Return since when a Repository is as it is."""
    status = world.get("Repository", name)["status"]
    (instant,) = (it["lastTransitionTime"] for it in status["conditions"] if it["type"] == "Ready")
    return str(instant)


def test_instants_that_are_on_no_record_are_those_of_passes_and_never_go_back(world: StatusWorld):
    core = world.fleet.repos["core"].path
    world.fleet.later(days=1000)  # after the creation of the objects
    with world.process():
        world.settle()
        created = world.get("Repository", "core")["metadata"]["creationTimestamp"]
        assert since(world, "core") == created
        core.rename(core.with_suffix(".away"))
        world.run_round()
        began = since(world, "core")
        assert began == format_instant(world.fleet.now)
        world.fleet.later(hours=1)
        world.run_round()
        assert since(world, "core") == began
    world.fleet.later(hours=1)
    with world.process():  # another one knows when it began
        world.run_round()
        assert since(world, "core") == began
        core.with_suffix(".away").rename(core)
        world.run_round()
        assert since(world, "core") == format_instant(world.fleet.now)
        assert (
            since(world, "edge") == world.get("Repository", "edge")["metadata"]["creationTimestamp"]
        )


def columns(world: StatusWorld, resource: str, *options: str) -> list[dict[str, str]]:
    """Return the rows of `kubectl get` by the names of their columns."""
    text = world.server.kubectl("get", resource, *options, namespace=world.namespace).stdout
    head, *rows = text.splitlines()
    starts = [it.start() for it in re.finditer(r"(?<!\S)\S", head)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    return [{head[a:b].strip(): row[a:b].strip() for a, b in spans} for row in rows]


def pass_all(world: StatusWorld, revision: str) -> None:
    """Let both stages get a revision and pass it."""
    world.settle()
    world.report("dev", revision)
    for _ in range(2):
        world.fleet.later(hours=2)
        world.settle()


def test_a_suspended_policy_shows_suspended_beside_ready(world: StatusWorld):
    policy = world.manifest("UpstreamPolicy", "monitoring")
    with world.process():
        pass_all(world, "v1")
        world.server.patch(policy, {"spec": {"suspend": True}})
        world.settle()
        (row,) = columns(world, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("True", "True")
        world.fleet.release("v2")
        world.settle()
        (row,) = columns(world, "upol")
        assert (row["READY"], row["REASON"], row["SUSPENDED"]) == ("False", "Suspended", "True")
        types = {it["type"] for it in world.server.get(policy)["status"]["conditions"]}
        assert types == {"Ready", "Suspended"}, "kstatus calls it in progress, as Ready is False"
        world.server.patch(policy, {"spec": {"suspend": False}})
        world.settle()
        (row,) = columns(world, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("False", "")
        line = ("suspend", "monitoring", "--reason", "incident", "-n", world.namespace)
        decided = world.fleet.run(*line, "--records", str(world.records))
        assert decided.code == 0, decided.err
        world.settle()
        (row,) = columns(world, "upol")
        assert row["SUSPENDED"] == "True", "a decision suspends as well as the spec"


def test_a_variant_that_lacks_what_is_to_be_injected_is_not_ready(world: StatusWorld):
    text = PACKAGE["settings.yaml"].replace("optional", "required")
    world.fleet.release("v2", {"settings.yaml": text})
    meta = {"name": "ber", "namespace": world.namespace}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with world.process():
        pass_all(world, "v2")
        assert world.ready(world.get("UpstreamPolicy", "monitoring")) == ("True", "Ready")
        data = world.server.get(config)["data"]
        world.server.delete(config)
        world.settle()
        variants = world.variants()
        assert world.ready(variants["ber"]) == ("False", "RequiredInjectionMissing")
        assert world.ready(variants["ams"]) == ("True", "Ready")
        policy = world.get("UpstreamPolicy", "monitoring")
        assert world.ready(policy) == ("False", "RequiredInjectionMissing")
        world.wait("upol/monitoring", "Stalled")
        world.wait(f"pvar/{variants['ber']['metadata']['name']}", "Stalled")
        message = policy["status"]["conditions"][0]["message"]
        assert variants["ber"]["metadata"]["name"] in message
        assert "ConfigMap ber" in message
        world.server.apply({**config, "data": data})
        world.settle()
        world.wait("upol/monitoring", "Ready")


def test_columns_tell_what_is_published_and_what_is_drafted(world: StatusWorld):
    with world.process():
        pass_all(world, "v1")
        promotion = world.manifest("PromotionPolicy", "everything")
        world.server.patch(promotion, {"spec": {"autoPromotion": None}})
        world.fleet.release("v2")
        world.settle()
        rows = {it["PACKAGE"]: it for it in columns(world, "pvar", "-o", "wide")}
        wide = [
            row
            for kind in ("upol", "repositories", "promotionpolicies")
            for row in columns(world, kind, "-o", "wide")
        ]
    ams, ber = rows["sites/ams"], rows["sites/ber"]
    assert (ams["READY"], ams["PUBLISHED"], ams["DRAFT"]) == ("False", "v1", "v2")
    assert (ber["READY"], ber["PUBLISHED"], ber["DRAFT"]) == ("True", "v1", "")
    assert ams["BRANCH"] == "drafts/default/sites/ams/monitoring"
    assert ber["MESSAGE"] == "v1 is published and verified"
    assert all(it["MESSAGE"] and it["REASON"] for it in wide)


def test_a_policy_that_is_made_again_has_the_same_status(world: StatusWorld):
    world.fleet.later(days=1000)  # what is on record is newer than the first object
    with world.process():
        pass_all(world, "v1")
        world.fleet.release("v2")
        world.settle()
    policy = world.get("UpstreamPolicy", "monitoring")
    assert world.ready(policy) == ("False", "Progressing")
    world.server.delete(world.manifest("UpstreamPolicy", "monitoring"))
    world.await_state(lambda: now() > policy["metadata"]["creationTimestamp"])
    world.apply()
    with world.process():
        world.settle()
    again = world.get("UpstreamPolicy", "monitoring")
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


def test_a_forbidden_status_is_named_and_the_other_statuses_are_written(world: StatusWorld):
    with (
        granted(world.server, READER, "list", "upstreampolicies.fanout.dev", by="carol"),
        world.process(writer="carol"),
    ):
        world.run_round(publish=False)
        world.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        world.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        assert world.get("UpstreamPolicy", "monitoring")["status"]["conditions"]
        assert world.variants() == {}
    with world.process():
        world.run_round(publish=False)
    assert world.variants().keys() == SITES.keys()
