"""Whether a record counts, as the status of its object says it after each pass."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube.record_fleet import build_intake, decision, record
from kube.status_world import StatusWorld, count_writes
from kube_server import CONTROLLER, KubeServer
from msgspec.structs import force_setattr

from fanout.controller.cluster_operation import PolicyErrorMemo
from fanout.kube.api_connection import open_connection

pytestmark = pytest.mark.kube

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "edge")}
APPROVED = {"requires": [{"name": "ok", "approval": {"from": ["sre"], "atLeast": 2}}]}
TESTED = {"verification": [{"name": "e2e", "report": {}}]}
EFFECTIVE = ("True", "Effective")


class RecordWorld(StatusWorld):
    """Statuses of a fleet, with the intake of records before each round."""

    def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a record, as who it says it is."""
        by = manifest["metadata"]["annotations"]["fanout.dev/by"]
        created: dict[str, Any] = self.server.create(manifest, by=by)
        return created

    def decide(self, action: str, by: str = "alice", **spec: Any) -> dict[str, Any]:
        return self.create(decision(self.namespace, action, by, **spec))

    def approve(self, by: str, *trees: str, **spec: Any) -> dict[str, Any]:
        spec = {"stage": "dev", "check": "ok", "revision": "v1", "trees": list(trees), **spec}
        return self.create(record("Approval", self.namespace, by, **spec))

    def state(self, status: str, by: str = "alice", **spec: Any) -> dict[str, Any]:
        spec = {"stage": "dev", "check": "e2e", "revision": "v1", "status": status, **spec}
        return self.create(record("Evidence", self.namespace, by, **spec))

    def set_stages(self, dev: dict[str, Any]) -> None:
        """Write the stages dev and prod, and who may approve."""
        policy = self.manifest("UpstreamPolicy", "monitoring")
        stages = [{"name": "dev", **dev}, {"name": "prod", "after": {"stages": ["dev"]}}]
        self.server.patch(policy, {"spec": {"stages": stages}})
        approvers = [{"group": "sre", "subjects": ["user:alice", "user:carol"]}]
        promotion = self.manifest("PromotionPolicy", "everything")
        self.server.patch(promotion, {"spec": {"approvers": approvers}})

    def go_on(self) -> None:
        """Take in the records that wait, and make rounds until there is nothing to do."""
        assert self.program is not None
        connection = open_connection(self.server.kubeconfig, CONTROLLER)
        evaluated = PolicyErrorMemo()
        evaluated.update(self.run_round().pass_plan, self.program.read_declared())
        intake = build_intake(self.program, connection, evaluated)
        assert intake.take_in(self.fleet.now).problems == ()
        self.settle()
        # The watch may be late.
        self.await_state(lambda: not self.new_records())
        self.show()

    def new_records(self) -> list[Any]:
        assert self.writer is not None
        kinds = ("Evidence", "Approval", "Decision")
        items = {
            it["metadata"]["uid"]
            for kind in kinds
            for it in self.server.list("fanout.dev/v1alpha1", kind, self.namespace)
        }
        return sorted(items - self.writer.list_records().keys())

    def later(self, **span: Any) -> None:
        """Let time pass for the passes."""
        assert self.program is not None
        self.fleet.later(**span)
        settings = self.program.settings
        force_setattr(settings, "now_override", self.fleet.now)

    def condition(self, created: dict[str, Any], type_: str = "Effective") -> dict[str, Any]:
        conditions = self.server.get(created).get("status", {}).get("conditions", ())
        return next((it for it in conditions if it["type"] == type_), {})

    def effect(self, created: dict[str, Any]) -> tuple[str, str]:
        condition = self.condition(created)
        return condition.get("status", ""), condition.get("reason", "")

    def record_of(self, created: dict[str, Any]) -> str:
        name: str = self.server.get(created)["status"]["record"]
        return name

    def tree(self, site: str = "ams") -> str:
        tree: str = self.variants()[site]["status"]["draft"]["tree"]
        return tree


@pytest.fixture
def cluster(
    record_server: KubeServer, kube_namespace: str, tmp_path: Path
) -> Iterator[RecordWorld]:
    cluster = RecordWorld.build(record_server, kube_namespace, tmp_path, SITES)
    assert isinstance(cluster, RecordWorld)
    with cluster.process(writer=CONTROLLER):
        yield cluster


def test_an_approval_says_whether_it_counts(cluster: RecordWorld):
    cluster.set_stages(APPROVED)
    cluster.settle()
    tree = cluster.tree()
    counting = cluster.approve("alice", tree)
    refused = cluster.approve("bob", tree)
    other = cluster.approve("carol", "a" * 40)
    unknown = cluster.approve("carol", tree, check="never")
    cluster.go_on()
    assert cluster.effect(counting) == EFFECTIVE
    assert cluster.condition(counting, "Recorded")["status"] == "True"
    assert cluster.effect(refused) == ("False", "NotEntitled")
    assert "user:bob is not in sre" in cluster.condition(refused)["message"]
    assert cluster.effect(other) == ("False", "Stale")
    assert cluster.effect(unknown) == ("False", "NotFound")
    assert "stage dev has no check never by approval" in cluster.condition(unknown)["message"]
    cluster.approve("carol", tree)
    cluster.later(minutes=1)
    cluster.go_on()
    assert cluster.variants()["ams"]["status"]["published"]
    assert cluster.effect(counting) == ("False", "Applied")


def test_an_approval_of_removals_says_whether_it_counts(cluster: RecordWorld):
    cluster.settle()
    cluster.set_stages({"requires": [{"name": "ok", "approval": {"from": ["sre"]}}]})
    cluster.server.kubectl("delete", "clusters", "ams", namespace=cluster.namespace)
    cluster.settle()
    edge = cluster.fleet.repos["edge"]
    [branch] = [it for it in edge.refs() if "/_removals/" in it]
    tree = edge.object_id(f"{branch}^{{tree}}")
    removals = {"stage": "dev", "check": "ok"}
    foreign = cluster.create(record("Approval", cluster.namespace, "bob", trees=[tree], **removals))
    other = cluster.create(
        record("Approval", cluster.namespace, "alice", trees=["a" * 40], **removals)
    )
    cluster.go_on()
    assert cluster.effect(foreign) == ("False", "NotEntitled")
    assert cluster.effect(other) == ("False", "Stale")
    assert [it for it in edge.files() if it.startswith("sites/ams/")]
    counting = cluster.create(
        record("Approval", cluster.namespace, "alice", trees=[tree], **removals)
    )
    cluster.later(minutes=1)
    cluster.go_on()
    assert cluster.effect(counting) == ("False", "Applied")
    assert [it for it in edge.files() if it.startswith("sites/ams/")] == []
    assert branch not in edge.refs()


def test_an_approval_that_is_revoked_counts_no_more(cluster: RecordWorld):
    cluster.set_stages(APPROVED)
    cluster.settle()
    counting = cluster.approve("alice", cluster.tree())
    cluster.go_on()
    assert cluster.effect(counting) == EFFECTIVE
    cluster.later(minutes=1)
    foreign = cluster.approve("bob", revokes=cluster.record_of(counting))
    cluster.go_on()
    assert cluster.effect(counting) == EFFECTIVE
    assert cluster.effect(foreign) == ("False", "NotEntitled")
    cluster.later(minutes=1)
    revoking = cluster.approve("carol", revokes=cluster.record_of(counting))
    cluster.go_on()
    assert cluster.effect(counting) == ("False", "Withdrawn")
    assert cluster.effect(revoking) == ("False", "Applied")


def test_an_approval_of_an_earlier_candidate_says_so(cluster: RecordWorld):
    cluster.set_stages(APPROVED)
    cluster.settle()
    early = cluster.approve("bob", cluster.tree())  # no approver, so that v1 is not kept for it
    cluster.go_on()
    approvers = [{"group": "sre", "subjects": ["user:alice", "user:bob"]}]
    promotion = cluster.manifest("PromotionPolicy", "everything")
    cluster.fleet.release("v2")
    cluster.settle()
    cluster.server.patch(promotion, {"spec": {"approvers": approvers}})
    cluster.settle()
    assert cluster.effect(early) == ("False", "DecisionWaits")
    assert "has no draft of v1: its candidate is v2" in cluster.condition(early)["message"]


def test_a_decision_says_whether_it_is_active(cluster: RecordWorld):
    cluster.set_stages(APPROVED)
    cluster.settle()
    suspended = cluster.decide("Suspend", stage="prod")
    unknown = cluster.decide("Suspend", stage="nowhere")
    waiting = cluster.decide("Publish", stage="prod", revision="v9")
    ending = cluster.decide("Publish", stage="dev", revision="v1", expires="2100-01-01T00:00:00Z")
    vain = cluster.decide("Withdraw", withdraws="20260302t090000z-0123456789ab")
    cluster.go_on()
    assert cluster.effect(suspended) == EFFECTIVE
    assert cluster.effect(unknown) == ("False", "NotFound")
    assert "the policy has no stage nowhere" in cluster.condition(unknown)["message"]
    assert cluster.effect(waiting) == ("False", "DecisionWaits")
    assert cluster.effect(ending) == EFFECTIVE
    assert cluster.effect(vain) == ("False", "NotFound")
    cluster.later(minutes=1)
    resumed = cluster.decide("Resume", "bob", stage="prod")
    withdrawal = cluster.decide("Withdraw", withdraws=cluster.record_of(ending))
    cluster.go_on()
    assert cluster.effect(suspended) == ("False", "Applied")
    assert cluster.effect(resumed) == ("False", "Applied")
    assert cluster.effect(ending) == ("False", "Withdrawn")
    assert cluster.effect(withdrawal) == ("False", "Applied")


def test_evidence_says_whether_it_counts(cluster: RecordWorld):
    cluster.set_stages(TESTED)
    cluster.settle()
    cluster.later(minutes=1)
    pending = cluster.state("pending")
    other = cluster.state("passed", revision="v9")
    unknown = cluster.state("passed", check="never")
    cluster.go_on()
    assert cluster.effect(pending) == EFFECTIVE
    assert cluster.effect(other) == ("False", "WrongRevision")
    assert "no variant of stage dev has v9 now" in cluster.condition(other)["message"]
    assert cluster.effect(unknown) == ("False", "NotFound")
    cluster.later(minutes=1)
    passed = cluster.state("passed")
    cluster.go_on()
    assert cluster.effect(pending) == ("False", "Superseded")
    assert cluster.effect(passed) == EFFECTIVE
    cluster.fleet.release("v2")
    cluster.later(minutes=1)
    cluster.settle()
    assert cluster.effect(passed) == ("False", "WrongRevision")


def test_evidence_from_before_the_publication_says_so(cluster: RecordWorld):
    cluster.set_stages({**APPROVED, **TESTED})
    cluster.settle()
    early = cluster.state("passed")
    cluster.go_on()
    assert cluster.effect(early) == ("False", "WrongRevision")
    cluster.later(minutes=1)
    for by in ("alice", "carol"):
        cluster.approve(by, cluster.tree())
    cluster.go_on()
    assert cluster.variants()["ams"]["status"]["published"]
    assert cluster.effect(early) == ("False", "RecordedEarly")


def test_a_transition_of_a_record_costs_one_write_and_rest_none(cluster: RecordWorld):
    cluster.set_stages(TESTED)
    cluster.settle()
    created = cluster.decide("Suspend", stage="prod")
    before = count_writes(cluster.server, "decisions")
    cluster.go_on()
    assert count_writes(cluster.server, "decisions") - before == 2, "recorded, then effective"
    present = cluster.server.get(created)
    for _ in range(2):
        cluster.later(minutes=1)
        cluster.go_on()
    assert cluster.server.get(created) == present
    resumed = cluster.decide("Resume", stage="prod")
    before = count_writes(cluster.server, "decisions")
    cluster.go_on()
    assert cluster.effect(created) == ("False", "Applied")
    assert cluster.effect(resumed) == ("False", "Applied")
    assert count_writes(cluster.server, "decisions") - before == 3


def test_an_edited_status_of_a_record_is_put_right(cluster: RecordWorld):
    cluster.set_stages(TESTED)
    cluster.settle()
    created = cluster.decide("Suspend", stage="prod")
    cluster.go_on()
    assert cluster.effect(created) == EFFECTIVE
    status = cluster.server.get(created)["status"]
    forged = [{**it, "status": "False"} for it in status["conditions"]]
    name = f"decision.fanout.dev/{created['metadata']['name']}"
    patch = json.dumps({"status": {"conditions": forged}})
    line = ("patch", name, "--subresource=status", "--type=merge", "-p", patch)
    cluster.server.kubectl(*line, namespace=cluster.namespace)
    cluster.await_change()
    cluster.show()
    assert cluster.server.get(created)["status"] == status


def test_a_record_that_was_created_anew_under_its_name_gets_no_status(cluster: RecordWorld):
    """The object is another one, which is not recorded yet; the watch has not told of it."""
    cluster.set_stages(TESTED)
    cluster.settle()
    created = cluster.decide("Suspend", stage="prod")
    cluster.go_on()
    assert cluster.writer is not None
    outdated: dict[str, Any] = dict(cluster.writer._read_digests())
    names = {name: it._replace(status=b"") for name, it in outdated["Decision"].items()}
    outdated["Decision"] = names
    cluster.writer._read_digests = lambda: outdated  # type: ignore[method-assign]
    cluster.server.delete(created)
    meta = {key: created["metadata"][key] for key in ("name", "namespace", "annotations")}
    anew = decision(cluster.namespace, "Resume", stage="prod")
    second = cluster.server.create({**anew, "metadata": meta}, by="alice")
    cluster.writer._confirmed.clear()
    cluster.settle()
    cluster.run_round()
    assert cluster.server.get(second).get("status") is None
