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
def installation(server: KubeServer, kube_namespace: str, tmp_path: Path) -> StatusWorld:
    return StatusWorld.build(server, kube_namespace, tmp_path, SITES)


def versions(installation: StatusWorld) -> dict[tuple[str, str], str]:
    """Return the resource version of each object of fanout."""
    return {
        (kind, it["metadata"]["name"]): it["metadata"]["resourceVersion"]
        for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy")
        for it in installation.server.list("fanout.dev/v1alpha1", kind, installation.namespace)
    }


def contents(installation: StatusWorld) -> dict[str, Any]:
    """Return the digests of all variants of policies."""
    return {name: digest_object(it)[1:] for name, it in installation.variants().items()}


def without_managed(item: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies an object, as an apply needs it."""
    meta = {name: item["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}


# ---- what is written -----------------------------------------------------------------------------


def test_a_fan_out_costs_two_writes_of_each_variant(installation: StatusWorld):
    with installation.process():
        before = count_writes(installation.server, "packagevariants")
        installation.run_round(publish=False)
        assert installation.variants() == {}, "drafts that the pass wrote are shown by the next one"
        installation.run_round(publish=False)
        variants = installation.variants()
        assert count_writes(installation.server, "packagevariants") - before == 2 * len(SITES)
    assert variants.keys() == SITES.keys()
    for name, (stage, repository) in SITES.items():
        spec, status = variants[name]["spec"], variants[name]["status"]
        assert spec["policyRef"] == {"name": "monitoring"}
        assert spec["stage"] == status["stage"] == stage
        assert spec["downstream"] == {"repository": repository, "package": f"sites/{name}"}
        assert spec["injectors"] == [{"kind": "ConfigMap", "name": name}]
        ref = f"refs/heads/{status['draft']['branch']}"
        assert installation.fleet.repos[repository].refs()[ref] == status["draft"]["commit"]
        assert status["draft"]["tree"]
        assert status["state"] in ("Proposed", "Drafted")
        assert status["revision"] == "v1"
        assert status["observedGeneration"] == variants[name]["metadata"]["generation"] == 1


def test_a_transition_costs_one_write_and_rest_none(installation: StatusWorld):
    with installation.process():
        installation.settle()
        before, start = versions(installation), count_writes(installation.server, "packagevariants")
        installation.run_round()
        assert versions(installation) == before
        installation.report("dev", "v1")
        installation.settle()
        changed = {key for key, it in versions(installation).items() if before[key] != it}
        ams = installation.variants()["ams"]
        assert installation.ready(ams) == ("True", "Ready")
        assert changed >= {
            ("PackageVariant", ams["metadata"]["name"]),
            ("UpstreamPolicy", "monitoring"),
        }
        variants = {name for kind, name in changed if kind == "PackageVariant"}
        assert count_writes(installation.server, "packagevariants") - start == len(variants)


def test_progress_of_others_is_not_written_to_variants_that_wait(installation: StatusWorld):
    for site in ("dub", "fra", "gva"):
        installation.add_site(site, "dev")
    for site in ("ams", "dub"):
        cluster = {**installation.manifest("Cluster", site), "apiVersion": "infra.example.com/v1"}
        installation.server.patch(cluster, {"metadata": {"labels": {"canary": "yes"}}})
    rollout = {"groups": [{"matchLabels": {"canary": "yes"}}]}
    dev = {"name": "dev", "rollout": rollout, "verification": [{"name": "e2e", "report": {}}]}
    policy = installation.manifest("UpstreamPolicy", "monitoring")
    installation.server.patch(policy, {"spec": {"stages": [dev, {"name": "prod"}]}})
    with installation.process():
        installation.settle()
        before = installation.variants()
        for site in ("fra", "gva"):
            assert installation.ready(before[site]) == ("False", "GroupAwaits")
            assert "UpstreamPolicy monitoring" in before[site]["status"]["holds"][0]["message"]
        installation.report("dev", "v1", only=before["ams"]["metadata"]["name"])
        installation.settle()
        after = installation.variants()
    versions = {
        site: (before[site]["metadata"]["resourceVersion"], it["metadata"]["resourceVersion"])
        for site, it in after.items()
    }
    assert {site for site, (old, new) in versions.items() if old != new} == {"ams"}


def test_a_second_process_writes_no_unchanged_status(installation: StatusWorld):
    with installation.process():
        installation.settle()
    before = versions(installation)
    with installation.process():
        installation.run_round()
    assert versions(installation) == before


def test_a_process_writes_nothing_before_its_first_pass(installation: StatusWorld):
    with installation.process():
        installation.settle()
    before = versions(installation)
    with installation.process():
        installation.show()  # as a watch wakes it
    assert versions(installation) == before


def test_a_killed_process_leaves_only_the_rest_to_the_next(installation: StatusWorld):
    start = count_writes(installation.server, "packagevariants")
    with installation.process():
        installation.run_round(publish=False)
        installation.stop_after(2)  # as if it were killed between two writes
        installation.run_round(publish=False)
        assert 0 < len(installation.variants()) < len(SITES)
    with installation.process():
        installation.run_round(publish=False)
    assert installation.variants().keys() == SITES.keys()
    assert count_writes(installation.server, "packagevariants") - start == 2 * len(SITES)


def test_an_emptied_cluster_gets_the_same_statuses(installation: StatusWorld):
    with installation.process():
        installation.settle()
    refs, before = installation.fleet.refs(), contents(installation)
    installation.server.kubectl("delete", "pvar", "--all", namespace=installation.namespace)
    with installation.process():
        installation.settle()
    assert contents(installation) == before
    assert installation.fleet.refs() == refs


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
def test_an_edited_variant_is_put_right(installation: StatusWorld, change: Any, part: str):
    with installation.process():
        installation.settle()
        before, contents_before, refs = (
            versions(installation),
            contents(installation),
            installation.fleet.refs(),
        )
        edited = copy.deepcopy(installation.variants()["ber"])
        change(edited)
        path = (
            f"/apis/fanout.dev/v1alpha1/namespaces/{installation.namespace}/packagevariants/"
            f"{edited['metadata']['name']}{part}?fieldManager=somebody"
        )
        installation.server.ask("PUT", path, edited)
        assert contents(installation) != contents_before
        installation.await_change()
        installation.show()
        after = installation.variants()["ber"]
        assert {**contents(installation), "ber": None} == {**contents_before, "ber": None}
        assert digest_object(after).content == contents_before["ber"][1]
        assert after["status"]["state"] == "Drafted"
        assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
        assert {it["type"] for it in after["status"]["conditions"]} == {"Ready", "Reconciling"}
        changed = {key for key, it in versions(installation).items() if before[key] != it}
        assert changed == {("PackageVariant", after["metadata"]["name"])}
        assert installation.fleet.refs() == refs


def test_a_deleted_variant_is_back(installation: StatusWorld):
    with installation.process():
        installation.settle()
        contents_before, refs = contents(installation), installation.fleet.refs()
        installation.server.delete(installation.variants()["cph"])
        installation.await_change()
        installation.show()
        assert contents(installation) == contents_before
        assert installation.fleet.refs() == refs


def test_an_edited_status_of_a_policy_is_put_right(installation: StatusWorld):
    with installation.process():
        installation.settle()
        policy_before = installation.get("UpstreamPolicy", "monitoring")
        edited = {**installation.manifest("UpstreamPolicy", "monitoring")}
        edited["status"] = {**policy_before["status"], "counts": {"Ready": 3}}
        installation.server.apply(edited, manager="somebody", subresource="status")
        installation.await_change()
        installation.show()
        assert installation.get("UpstreamPolicy", "monitoring")["status"] == policy_before["status"]


def test_a_process_that_stays_puts_right_what_somebody_edits(installation: StatusWorld):
    with installation.process():
        assert installation.thread is not None
        installation.settle(show=False)
        with installation.thread.run():
            installation.await_state(lambda: installation.variants().keys() == SITES.keys())
            installation.await_state(
                lambda: all("status" in it for it in installation.variants().values())
            )
            contents_before = contents(installation)
            installation.server.delete(installation.variants()["ams"])
            installation.await_state(lambda: contents(installation) == contents_before)
            edited = installation.variants()["ber"]
            edited["status"]["state"] = "Ready"
            installation.server.apply(
                {**without_managed(edited), "status": edited["status"]},
                manager="somebody",
                subresource="status",
            )
            installation.await_state(lambda: contents(installation) == contents_before)


# ---- what goes -----------------------------------------------------------------------------------


def test_a_variant_goes_with_its_package(installation: StatusWorld):
    with installation.process():
        installation.settle()
        installation.server.delete(
            {**installation.manifest("Cluster", "ams"), "apiVersion": "infra.example.com/v1"}
        )
        installation.run_round(publish=False)
        removed = installation.variants()["ams"]
        assert installation.ready(removed)[0] == "False"
        assert removed["status"]["state"] == "Held"
        installation.settle()
        assert installation.variants().keys() == {"ber", "cph"}


def test_variants_of_a_deleted_policy_go(installation: StatusWorld):
    with installation.process():
        installation.settle()
        installation.server.delete(installation.manifest("UpstreamPolicy", "monitoring"))
        installation.run_round()
        assert installation.variants() == {}


def test_variants_of_a_policy_with_errors_stay(installation: StatusWorld):
    with installation.process():
        installation.settle()
        contents_before = contents(installation)
        zone = {"schedule": "0 9 * * *", "timeZone": "Mars/Olympus"}
        installation.server.patch(
            installation.manifest("PromotionPolicy", "everything"), {"spec": zone}
        )
        installation.run_round()
        promotion = installation.get("PromotionPolicy", "everything")
        conditions = {it["type"]: it for it in promotion["status"]["conditions"]}
        assert conditions["Stalled"]["status"] == "True"
        assert "Mars/Olympus" in conditions["Stalled"]["message"]
        assert "spec.timeZone" in conditions["Stalled"]["message"]
        assert contents(installation).keys() == contents_before.keys()


# ---- what people and tools read ------------------------------------------------------------------


def test_kubectl_waits_for_conditions(installation: StatusWorld):
    with installation.process():
        installation.settle()
        ams = installation.variants()["ams"]["metadata"]["name"]
        lines = (
            ("repository/edge", "Ready"),
            ("promotionpolicy/everything", "Ready"),
            (f"pvar/{ams}", "Reconciling"),
            ("upol/monitoring", "Ready=false"),
        )
        for name, condition in lines:
            installation.wait(name, condition)
        installation.report("dev", "v1")
        installation.settle()
        installation.fleet.later(hours=2)
        installation.settle()
        installation.wait(f"pvar/{ams}", "Ready")
        installation.wait("upol/monitoring", "Ready")


def test_a_status_is_valid_and_about_the_present_generation(installation: StatusWorld):
    with installation.process():
        installation.settle()
        installation.server.patch(
            installation.manifest("UpstreamPolicy", "monitoring"), {"spec": {"removalLimit": 5}}
        )
        installation.settle()
    for kind in ("Repository", "UpstreamPolicy", "PackageVariant", "PromotionPolicy"):
        for item in installation.server.list("fanout.dev/v1alpha1", kind, installation.namespace):
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


def test_a_failed_check_is_stalled(installation: StatusWorld):
    with installation.process():
        installation.settle()
        installation.report("dev", "v1", "failed")
        installation.settle()
        ams = installation.variants()["ams"]
        assert installation.ready(ams) == ("False", "VerificationFailed")
        assert ams["status"]["state"] == "Failed"
        installation.wait(f"pvar/{ams['metadata']['name']}", "Stalled")
        installation.wait("upol/monitoring", "Stalled")
        events = installation.events()
        assert ("VariantFailed", "Warning") in events


def test_a_request_to_reconcile_is_echoed(installation: StatusWorld):
    with installation.process():
        installation.settle()
        for resource in ("upol/monitoring", "repository/edge", "promotionpolicy/everything"):
            installation.server.kubectl(
                "annotate", resource, f"{ANNOTATION}=now-1", namespace=installation.namespace
            )
        installation.run_round()
        for kind, name in (
            ("UpstreamPolicy", "monitoring"),
            ("Repository", "edge"),
            ("PromotionPolicy", "everything"),
        ):
            assert installation.get(kind, name)["status"]["lastHandledReconcileAt"] == "now-1"


def test_a_repository_that_no_policy_uses_is_ready_and_was_never_contacted(
    installation: StatusWorld,
):
    with installation.process():
        installation.settle()
        unused = installation.get("Repository", "edge")
        unused["metadata"] = {"name": "unused", "namespace": installation.namespace}
        unused["spec"]["url"] = "file:///does/not/exist.git"
        del unused["status"]
        installation.server.apply(unused)
        installation.run_round()
        assert installation.ready(installation.get("Repository", "unused")) == ("True", "Unused")


def test_a_policy_that_is_unusable_has_a_condition_and_no_event(installation: StatusWorld):
    with installation.process():
        installation.settle()
        broken = installation.get("UpstreamPolicy", "monitoring")
        annotations = {ANNOTATION: "now-1"}
        broken["metadata"] = {
            "name": "broken", "namespace": installation.namespace, "annotations": annotations
        }  # fmt: skip
        broken.pop("status", None)
        broken["spec"]["upstream"]["revision"] = {"semver": "=>1"}  # which no schema refuses
        installation.server.apply(broken)
        installation.settle()
        status = installation.get("UpstreamPolicy", "broken")["status"]
        assert {it["type"] for it in status["conditions"]} == {"Ready", "Stalled"}
        assert status["lastHandledReconcileAt"] == "now-1"
        events = installation.server.list("events.k8s.io/v1", "Event", installation.namespace)
        assert events
        assert {it["regarding"]["name"] for it in events} == {"monitoring"}


def test_a_problem_of_all_policies_is_in_their_status(installation: StatusWorld):
    def conditions() -> set[str]:
        status = installation.get("UpstreamPolicy", "monitoring")["status"]
        return {it["type"] for it in status["conditions"]}

    with installation.process():
        installation.settle()
        contents_before = contents(installation)
        installation.problem = Denied("no binding", reason="AdmissionMissing", remedy="apply it")
        installation.run_round()
        assert "AdmissionMissing" in conditions()
        installation.problem = None
        installation.run_round()
        assert "AdmissionMissing" not in conditions()
        assert contents(installation) == contents_before


def test_a_failure_that_lasts_is_read_and_written_once(installation: StatusWorld):
    def requests() -> int:
        return count_requests(installation.server, "upstreampolicies", ("GET", *WRITES))

    with installation.process():
        installation.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with installation.process():  # which evaluates nothing
        before = requests()
        installation.fail_round(outage)
        assert requests() - before == 2, "what is there is read, and completed"
        installation.fail_round(outage)
        assert requests() - before == 2
        installation.fail_round(Unavailable("reset", reason="RemoteUnavailable", remedy="wait"))
        assert requests() - before == 4
        assert "reset" in str(
            installation.get("UpstreamPolicy", "monitoring")["status"]["conditions"]
        )


def test_a_status_edited_during_a_failure_is_written_again(installation: StatusWorld):
    with installation.process():
        installation.settle()
    outage = Unavailable("no route to host", reason="RemoteUnavailable", remedy="wait")
    with installation.process():
        installation.fail_round(outage)
        shown = installation.get("UpstreamPolicy", "monitoring")
        edited = {**without_managed(shown), "status": {**shown["status"], "counts": {"Ready": 3}}}
        edited["status"]["conditions"] = [
            {**it, "message": "mine"} for it in shown["status"]["conditions"]
        ]
        installation.server.apply(edited, manager="somebody", subresource="status")
        installation.await_change()
        installation.fail_round(outage)
        status = installation.get("UpstreamPolicy", "monitoring")["status"]
        assert status["conditions"] == shown["status"]["conditions"]


def test_events_tell_what_a_pass_did(installation: StatusWorld):
    with installation.process():
        installation.settle()
    shown = installation.server.kubectl("get", "events", namespace=installation.namespace).stdout
    assert "1 draft of v1 written in stage dev" in shown
    assert "2 drafts of v1 written in stage prod" in shown
    assert "1 variant published at v1 in stage dev" in shown
    described = installation.server.kubectl(
        "describe", "upol/monitoring", namespace=installation.namespace
    )
    assert "DraftsWritten" in described.stdout


def test_the_page_about_statuses_is_true(installation: StatusWorld):
    page = (ROOT / "docs" / "concepts" / "status.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    with installation.process():
        installation.settle()
    outputs = [
        installation.server.kubectl(*shlex.split(line)[1:], namespace=installation.namespace).stdout
        for line in block.splitlines()
    ]
    assert "condition met" in outputs[0]
    assert "condition met" in outputs[1]
    assert outputs[2].count("monitoring-") == 2
    assert "DraftsWritten" in outputs[3]


def test_a_repository_that_does_not_answer_is_named(installation: StatusWorld):
    with installation.process():
        installation.settle()
        core = installation.fleet.repos["core"].path
        core.rename(core.with_suffix(".away"))
        installation.run_round()
        status, reason = installation.ready(installation.get("Repository", "core"))
        assert (status, reason) == ("False", "RemoteNotFound")
        assert installation.ready(installation.get("Repository", "edge")) == ("True", "Listed")
        # Mostly its URL or its secret is wrong: a person is to mend it.
        policy, variant = (
            installation.get("UpstreamPolicy", "monitoring"),
            installation.variants()["cph"],
        )
        for item in (installation.get("Repository", "core"), policy, variant):
            types = {it["type"] for it in item["status"]["conditions"]}
            assert types & {"Stalled", "Reconciling"} == {"Stalled"}
        assert (
            installation.ready(policy)
            == installation.ready(variant)
            == ("False", "RepositoryUnavailable")
        )
        core.write_text("no repository")  # an error that may be gone at the next attempt
        installation.run_round()
        variant = installation.variants()["cph"]
        types = {it["type"] for it in variant["status"]["conditions"]}
        assert types & {"Stalled", "Reconciling"} == {"Reconciling"}


def test_an_upstream_without_its_secret_is_not_reported_unused(installation: StatusWorld):
    with installation.process():
        installation.settle()
        upstream = installation.manifest("Repository", "blueprints")
        installation.server.patch(upstream, {"spec": {"secretRef": {"name": "absent"}}})
        installation.run_round()
        assert installation.ready(installation.get("Repository", "blueprints")) == (
            "False",
            "SecretUnusable",
        )
        conditions = installation.get("Repository", "blueprints")["status"]["conditions"]
        assert {it["type"] for it in conditions} == {"Ready", "Stalled"}


def since(installation: StatusWorld, name: str) -> str:
    """Return since when a Repository is as it is."""
    status = installation.get("Repository", name)["status"]
    (instant,) = (it["lastTransitionTime"] for it in status["conditions"] if it["type"] == "Ready")
    return str(instant)


def test_instants_that_are_on_no_record_are_those_of_passes_and_never_go_back(
    installation: StatusWorld,
):
    core = installation.fleet.repos["core"].path
    installation.fleet.later(days=1000)  # after the creation of the objects
    with installation.process():
        installation.settle()
        created = installation.get("Repository", "core")["metadata"]["creationTimestamp"]
        assert since(installation, "core") == created
        core.rename(core.with_suffix(".away"))
        installation.run_round()
        began = since(installation, "core")
        assert began == format_instant(installation.fleet.now)
        installation.fleet.later(hours=1)
        installation.run_round()
        assert since(installation, "core") == began
    installation.fleet.later(hours=1)
    with installation.process():  # another one knows when it began
        installation.run_round()
        assert since(installation, "core") == began
        core.with_suffix(".away").rename(core)
        installation.run_round()
        assert since(installation, "core") == format_instant(installation.fleet.now)
        assert (
            since(installation, "edge")
            == installation.get("Repository", "edge")["metadata"]["creationTimestamp"]
        )


def columns(installation: StatusWorld, resource: str, *options: str) -> list[dict[str, str]]:
    """Return the rows of `kubectl get` by the names of their columns."""
    text = installation.server.kubectl(
        "get", resource, *options, namespace=installation.namespace
    ).stdout
    head, *rows = text.splitlines()
    starts = [it.start() for it in re.finditer(r"(?<!\S)\S", head)]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    return [{head[a:b].strip(): row[a:b].strip() for a, b in spans} for row in rows]


def pass_all(installation: StatusWorld, revision: str) -> None:
    """Let both stages get a revision and pass it."""
    installation.settle()
    installation.report("dev", revision)
    for _ in range(2):
        installation.fleet.later(hours=2)
        installation.settle()


def test_a_suspended_policy_shows_suspended_beside_ready(installation: StatusWorld):
    policy = installation.manifest("UpstreamPolicy", "monitoring")
    with installation.process():
        pass_all(installation, "v1")
        installation.server.patch(policy, {"spec": {"suspend": True}})
        installation.settle()
        (row,) = columns(installation, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("True", "True")
        installation.fleet.release("v2")
        installation.settle()
        (row,) = columns(installation, "upol")
        assert (row["READY"], row["REASON"], row["SUSPENDED"]) == ("False", "Suspended", "True")
        types = {it["type"] for it in installation.server.get(policy)["status"]["conditions"]}
        assert types == {"Ready", "Suspended"}, "kstatus calls it in progress, as Ready is False"
        installation.server.patch(policy, {"spec": {"suspend": False}})
        installation.settle()
        (row,) = columns(installation, "upol")
        assert (row["READY"], row["SUSPENDED"]) == ("False", "")
        line = ("suspend", "monitoring", "--reason", "incident", "-n", installation.namespace)
        decided = installation.fleet.run(*line, "--records", str(installation.records))
        assert decided.code == 0, decided.err
        installation.settle()
        (row,) = columns(installation, "upol")
        assert row["SUSPENDED"] == "True", "a decision suspends as well as the spec"


def test_a_variant_that_lacks_what_is_to_be_injected_is_not_ready(installation: StatusWorld):
    text = PACKAGE["settings.yaml"].replace("optional", "required")
    installation.fleet.release("v2", {"settings.yaml": text})
    meta = {"name": "ber", "namespace": installation.namespace}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with installation.process():
        pass_all(installation, "v2")
        assert installation.ready(installation.get("UpstreamPolicy", "monitoring")) == (
            "True",
            "Ready",
        )
        data = installation.server.get(config)["data"]
        installation.server.delete(config)
        installation.settle()
        variants = installation.variants()
        assert installation.ready(variants["ber"]) == ("False", "RequiredInjectionMissing")
        assert installation.ready(variants["ams"]) == ("True", "Ready")
        policy = installation.get("UpstreamPolicy", "monitoring")
        assert installation.ready(policy) == ("False", "RequiredInjectionMissing")
        installation.wait("upol/monitoring", "Stalled")
        installation.wait(f"pvar/{variants['ber']['metadata']['name']}", "Stalled")
        message = policy["status"]["conditions"][0]["message"]
        assert variants["ber"]["metadata"]["name"] in message
        assert "ConfigMap ber" in message
        installation.server.apply({**config, "data": data})
        installation.settle()
        installation.wait("upol/monitoring", "Ready")


def test_columns_tell_what_is_published_and_what_is_drafted(installation: StatusWorld):
    with installation.process():
        pass_all(installation, "v1")
        promotion = installation.manifest("PromotionPolicy", "everything")
        installation.server.patch(promotion, {"spec": {"autoPromotion": None}})
        installation.fleet.release("v2")
        installation.settle()
        rows = {it["PACKAGE"]: it for it in columns(installation, "pvar", "-o", "wide")}
        wide = [
            row
            for kind in ("upol", "repositories", "promotionpolicies")
            for row in columns(installation, kind, "-o", "wide")
        ]
    ams, ber = rows["sites/ams"], rows["sites/ber"]
    assert (ams["READY"], ams["PUBLISHED"], ams["DRAFT"]) == ("False", "v1", "v2")
    assert (ber["READY"], ber["PUBLISHED"], ber["DRAFT"]) == ("True", "v1", "")
    assert ams["BRANCH"] == "drafts/default/sites/ams/monitoring"
    assert ber["MESSAGE"] == "v1 is published and verified"
    assert all(it["MESSAGE"] and it["REASON"] for it in wide)


def test_a_policy_that_is_made_again_has_the_same_status(installation: StatusWorld):
    installation.fleet.later(days=1000)  # what is on record is newer than the first object
    with installation.process():
        pass_all(installation, "v1")
        installation.fleet.release("v2")
        installation.settle()
    policy = installation.get("UpstreamPolicy", "monitoring")
    assert installation.ready(policy) == ("False", "Progressing")
    installation.server.delete(installation.manifest("UpstreamPolicy", "monitoring"))
    installation.await_state(lambda: now() > policy["metadata"]["creationTimestamp"])
    installation.apply()
    with installation.process():
        installation.settle()
    again = installation.get("UpstreamPolicy", "monitoring")
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


def test_a_forbidden_status_is_named_and_the_other_statuses_are_written(installation: StatusWorld):
    with (
        granted(installation.server, READER, "list", "upstreampolicies.fanout.dev", by="carol"),
        installation.process(writer="carol"),
    ):
        installation.run_round(publish=False)
        installation.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        installation.run_round(publish=False, problem='cannot patch resource "packagevariants"')
        assert installation.get("UpstreamPolicy", "monitoring")["status"]["conditions"]
        assert installation.variants() == {}
    with installation.process():
        installation.run_round(publish=False)
    assert installation.variants().keys() == SITES.keys()
