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
        evaluated.update(self.run_round().pass_plan)
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
def world(record_server: KubeServer, kube_namespace: str, tmp_path: Path) -> Iterator[RecordWorld]:
    world = RecordWorld.build(record_server, kube_namespace, tmp_path, SITES)
    assert isinstance(world, RecordWorld)
    with world.process(writer=CONTROLLER):
        yield world


def test_an_approval_says_whether_it_counts(world: RecordWorld):
    world.set_stages(APPROVED)
    world.settle()
    tree = world.tree()
    counting = world.approve("alice", tree)
    refused = world.approve("bob", tree)
    other = world.approve("carol", "a" * 40)
    unknown = world.approve("carol", tree, check="never")
    world.go_on()
    assert world.effect(counting) == EFFECTIVE
    assert world.condition(counting, "Recorded")["status"] == "True"
    assert world.effect(refused) == ("False", "NotEntitled")
    assert "user:bob is not in sre" in world.condition(refused)["message"]
    assert world.effect(other) == ("False", "Stale")
    assert world.effect(unknown) == ("False", "NotFound")
    assert "stage dev has no check never by approval" in world.condition(unknown)["message"]
    world.approve("carol", tree)
    world.later(minutes=1)
    world.go_on()
    assert world.variants()["ams"]["status"]["published"]
    assert world.effect(counting) == ("False", "Applied")


def test_an_approval_of_removals_says_whether_it_counts(world: RecordWorld):
    world.settle()
    world.set_stages({"requires": [{"name": "ok", "approval": {"from": ["sre"]}}]})
    world.server.kubectl("delete", "clusters", "ams", namespace=world.namespace)
    world.settle()
    edge = world.fleet.repos["edge"]
    [branch] = [it for it in edge.refs() if "/_removals/" in it]
    tree = edge.object_id(f"{branch}^{{tree}}")
    removals = {"stage": "dev", "check": "ok"}
    foreign = world.create(record("Approval", world.namespace, "bob", trees=[tree], **removals))
    other = world.create(record("Approval", world.namespace, "alice", trees=["a" * 40], **removals))
    world.go_on()
    assert world.effect(foreign) == ("False", "NotEntitled")
    assert world.effect(other) == ("False", "Stale")
    assert [it for it in edge.files() if it.startswith("sites/ams/")]
    counting = world.create(record("Approval", world.namespace, "alice", trees=[tree], **removals))
    world.later(minutes=1)
    world.go_on()
    assert world.effect(counting) == ("False", "Applied")
    assert [it for it in edge.files() if it.startswith("sites/ams/")] == []
    assert branch not in edge.refs()


def test_an_approval_that_is_revoked_counts_no_more(world: RecordWorld):
    world.set_stages(APPROVED)
    world.settle()
    counting = world.approve("alice", world.tree())
    world.go_on()
    assert world.effect(counting) == EFFECTIVE
    world.later(minutes=1)
    foreign = world.approve("bob", revokes=world.record_of(counting))
    world.go_on()
    assert world.effect(counting) == EFFECTIVE
    assert world.effect(foreign) == ("False", "NotEntitled")
    world.later(minutes=1)
    revoking = world.approve("carol", revokes=world.record_of(counting))
    world.go_on()
    assert world.effect(counting) == ("False", "Withdrawn")
    assert world.effect(revoking) == ("False", "Applied")


def test_an_approval_of_an_earlier_candidate_says_so(world: RecordWorld):
    world.set_stages(APPROVED)
    world.settle()
    early = world.approve("bob", world.tree())  # no approver, so that v1 is not kept for it
    world.go_on()
    approvers = [{"group": "sre", "subjects": ["user:alice", "user:bob"]}]
    promotion = world.manifest("PromotionPolicy", "everything")
    world.fleet.release("v2")
    world.settle()
    world.server.patch(promotion, {"spec": {"approvers": approvers}})
    world.settle()
    assert world.effect(early) == ("False", "DecisionWaits")
    assert "has no draft of v1: its candidate is v2" in world.condition(early)["message"]


def test_a_decision_says_whether_it_is_active(world: RecordWorld):
    world.set_stages(APPROVED)
    world.settle()
    suspended = world.decide("Suspend", stage="prod")
    unknown = world.decide("Suspend", stage="nowhere")
    waiting = world.decide("Publish", stage="prod", revision="v9")
    ending = world.decide("Publish", stage="dev", revision="v1", expires="2100-01-01T00:00:00Z")
    vain = world.decide("Withdraw", withdraws="20260302t090000z-0123456789ab")
    world.go_on()
    assert world.effect(suspended) == EFFECTIVE
    assert world.effect(unknown) == ("False", "NotFound")
    assert "the policy has no stage nowhere" in world.condition(unknown)["message"]
    assert world.effect(waiting) == ("False", "DecisionWaits")
    assert world.effect(ending) == EFFECTIVE
    assert world.effect(vain) == ("False", "NotFound")
    world.later(minutes=1)
    resumed = world.decide("Resume", "bob", stage="prod")
    withdrawal = world.decide("Withdraw", withdraws=world.record_of(ending))
    world.go_on()
    assert world.effect(suspended) == ("False", "Applied")
    assert world.effect(resumed) == ("False", "Applied")
    assert world.effect(ending) == ("False", "Withdrawn")
    assert world.effect(withdrawal) == ("False", "Applied")


def test_evidence_says_whether_it_counts(world: RecordWorld):
    world.set_stages(TESTED)
    world.settle()
    world.later(minutes=1)
    pending = world.state("pending")
    other = world.state("passed", revision="v9")
    unknown = world.state("passed", check="never")
    world.go_on()
    assert world.effect(pending) == EFFECTIVE
    assert world.effect(other) == ("False", "WrongRevision")
    assert "no variant of stage dev has v9 now" in world.condition(other)["message"]
    assert world.effect(unknown) == ("False", "NotFound")
    world.later(minutes=1)
    passed = world.state("passed")
    world.go_on()
    assert world.effect(pending) == ("False", "Superseded")
    assert world.effect(passed) == EFFECTIVE
    world.fleet.release("v2")
    world.later(minutes=1)
    world.settle()
    assert world.effect(passed) == ("False", "WrongRevision")


def test_evidence_from_before_the_publication_says_so(world: RecordWorld):
    world.set_stages({**APPROVED, **TESTED})
    world.settle()
    early = world.state("passed")
    world.go_on()
    assert world.effect(early) == ("False", "WrongRevision")
    world.later(minutes=1)
    for by in ("alice", "carol"):
        world.approve(by, world.tree())
    world.go_on()
    assert world.variants()["ams"]["status"]["published"]
    assert world.effect(early) == ("False", "RecordedEarly")


def test_a_transition_of_a_record_costs_one_write_and_rest_none(world: RecordWorld):
    world.set_stages(TESTED)
    world.settle()
    created = world.decide("Suspend", stage="prod")
    before = count_writes(world.server, "decisions")
    world.go_on()
    assert count_writes(world.server, "decisions") - before == 2, "recorded, then effective"
    present = world.server.get(created)
    for _ in range(2):
        world.later(minutes=1)
        world.go_on()
    assert world.server.get(created) == present
    resumed = world.decide("Resume", stage="prod")
    before = count_writes(world.server, "decisions")
    world.go_on()
    assert world.effect(created) == ("False", "Applied")
    assert world.effect(resumed) == ("False", "Applied")
    assert count_writes(world.server, "decisions") - before == 3


def test_an_edited_status_of_a_record_is_put_right(world: RecordWorld):
    world.set_stages(TESTED)
    world.settle()
    created = world.decide("Suspend", stage="prod")
    world.go_on()
    assert world.effect(created) == EFFECTIVE
    status = world.server.get(created)["status"]
    forged = [{**it, "status": "False"} for it in status["conditions"]]
    name = f"decision.fanout.dev/{created['metadata']['name']}"
    patch = json.dumps({"status": {"conditions": forged}})
    line = ("patch", name, "--subresource=status", "--type=merge", "-p", patch)
    world.server.kubectl(*line, namespace=world.namespace)
    world.await_change()
    world.show()
    assert world.server.get(created)["status"] == status


def test_a_record_that_was_created_anew_under_its_name_gets_no_status(world: RecordWorld):
    """The object is another one, which is not recorded yet; the watch has not told of it."""
    world.set_stages(TESTED)
    world.settle()
    created = world.decide("Suspend", stage="prod")
    world.go_on()
    assert world.writer is not None
    outdated: dict[str, Any] = dict(world.writer._read_digests())
    names = {name: it._replace(status=b"") for name, it in outdated["Decision"].items()}
    outdated["Decision"] = names
    world.writer._read_digests = lambda: outdated  # type: ignore[method-assign]
    world.server.delete(created)
    meta = {key: created["metadata"][key] for key in ("name", "namespace", "annotations")}
    anew = decision(world.namespace, "Resume", stage="prod")
    second = world.server.create({**anew, "metadata": meta}, by="alice")
    world.writer._confirmed.clear()
    world.settle()
    world.run_round()
    assert world.server.get(second).get("status") is None
