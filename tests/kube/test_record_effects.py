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
def installation(
    record_server: KubeServer, kube_namespace: str, tmp_path: Path
) -> Iterator[RecordWorld]:
    installation = RecordWorld.build(record_server, kube_namespace, tmp_path, SITES)
    assert isinstance(installation, RecordWorld)
    with installation.process(writer=CONTROLLER):
        yield installation


def test_an_approval_says_whether_it_counts(installation: RecordWorld):
    installation.set_stages(APPROVED)
    installation.settle()
    tree = installation.tree()
    counting = installation.approve("alice", tree)
    refused = installation.approve("bob", tree)
    other = installation.approve("carol", "a" * 40)
    unknown = installation.approve("carol", tree, check="never")
    installation.go_on()
    assert installation.effect(counting) == EFFECTIVE
    assert installation.condition(counting, "Recorded")["status"] == "True"
    assert installation.effect(refused) == ("False", "NotEntitled")
    assert "user:bob is not in sre" in installation.condition(refused)["message"]
    assert installation.effect(other) == ("False", "Stale")
    assert installation.effect(unknown) == ("False", "NotFound")
    assert "stage dev has no check never by approval" in installation.condition(unknown)["message"]
    installation.approve("carol", tree)
    installation.later(minutes=1)
    installation.go_on()
    assert installation.variants()["ams"]["status"]["published"]
    assert installation.effect(counting) == ("False", "Applied")


def test_an_approval_of_removals_says_whether_it_counts(installation: RecordWorld):
    installation.settle()
    installation.set_stages({"requires": [{"name": "ok", "approval": {"from": ["sre"]}}]})
    installation.server.kubectl("delete", "clusters", "ams", namespace=installation.namespace)
    installation.settle()
    edge = installation.fleet.repos["edge"]
    [branch] = [it for it in edge.refs() if "/_removals/" in it]
    tree = edge.object_id(f"{branch}^{{tree}}")
    removals = {"stage": "dev", "check": "ok"}
    foreign = installation.create(
        record("Approval", installation.namespace, "bob", trees=[tree], **removals)
    )
    other = installation.create(
        record("Approval", installation.namespace, "alice", trees=["a" * 40], **removals)
    )
    installation.go_on()
    assert installation.effect(foreign) == ("False", "NotEntitled")
    assert installation.effect(other) == ("False", "Stale")
    assert [it for it in edge.files() if it.startswith("sites/ams/")]
    counting = installation.create(
        record("Approval", installation.namespace, "alice", trees=[tree], **removals)
    )
    installation.later(minutes=1)
    installation.go_on()
    assert installation.effect(counting) == ("False", "Applied")
    assert [it for it in edge.files() if it.startswith("sites/ams/")] == []
    assert branch not in edge.refs()


def test_an_approval_that_is_revoked_counts_no_more(installation: RecordWorld):
    installation.set_stages(APPROVED)
    installation.settle()
    counting = installation.approve("alice", installation.tree())
    installation.go_on()
    assert installation.effect(counting) == EFFECTIVE
    installation.later(minutes=1)
    foreign = installation.approve("bob", revokes=installation.record_of(counting))
    installation.go_on()
    assert installation.effect(counting) == EFFECTIVE
    assert installation.effect(foreign) == ("False", "NotEntitled")
    installation.later(minutes=1)
    revoking = installation.approve("carol", revokes=installation.record_of(counting))
    installation.go_on()
    assert installation.effect(counting) == ("False", "Withdrawn")
    assert installation.effect(revoking) == ("False", "Applied")


def test_an_approval_of_an_earlier_candidate_says_so(installation: RecordWorld):
    installation.set_stages(APPROVED)
    installation.settle()
    early = installation.approve(
        "bob", installation.tree()
    )  # no approver, so that v1 is not kept for it
    installation.go_on()
    approvers = [{"group": "sre", "subjects": ["user:alice", "user:bob"]}]
    promotion = installation.manifest("PromotionPolicy", "everything")
    installation.fleet.release("v2")
    installation.settle()
    installation.server.patch(promotion, {"spec": {"approvers": approvers}})
    installation.settle()
    assert installation.effect(early) == ("False", "DecisionWaits")
    assert "has no draft of v1: its candidate is v2" in installation.condition(early)["message"]


def test_a_decision_says_whether_it_is_active(installation: RecordWorld):
    installation.set_stages(APPROVED)
    installation.settle()
    suspended = installation.decide("Suspend", stage="prod")
    unknown = installation.decide("Suspend", stage="nowhere")
    waiting = installation.decide("Publish", stage="prod", revision="v9")
    ending = installation.decide(
        "Publish", stage="dev", revision="v1", expires="2100-01-01T00:00:00Z"
    )
    vain = installation.decide("Withdraw", withdraws="20260302t090000z-0123456789ab")
    installation.go_on()
    assert installation.effect(suspended) == EFFECTIVE
    assert installation.effect(unknown) == ("False", "NotFound")
    assert "the policy has no stage nowhere" in installation.condition(unknown)["message"]
    assert installation.effect(waiting) == ("False", "DecisionWaits")
    assert installation.effect(ending) == EFFECTIVE
    assert installation.effect(vain) == ("False", "NotFound")
    installation.later(minutes=1)
    resumed = installation.decide("Resume", "bob", stage="prod")
    withdrawal = installation.decide("Withdraw", withdraws=installation.record_of(ending))
    installation.go_on()
    assert installation.effect(suspended) == ("False", "Applied")
    assert installation.effect(resumed) == ("False", "Applied")
    assert installation.effect(ending) == ("False", "Withdrawn")
    assert installation.effect(withdrawal) == ("False", "Applied")


def test_evidence_says_whether_it_counts(installation: RecordWorld):
    installation.set_stages(TESTED)
    installation.settle()
    installation.later(minutes=1)
    pending = installation.state("pending")
    other = installation.state("passed", revision="v9")
    unknown = installation.state("passed", check="never")
    installation.go_on()
    assert installation.effect(pending) == EFFECTIVE
    assert installation.effect(other) == ("False", "WrongRevision")
    assert "no variant of stage dev has v9 now" in installation.condition(other)["message"]
    assert installation.effect(unknown) == ("False", "NotFound")
    installation.later(minutes=1)
    passed = installation.state("passed")
    installation.go_on()
    assert installation.effect(pending) == ("False", "Superseded")
    assert installation.effect(passed) == EFFECTIVE
    installation.fleet.release("v2")
    installation.later(minutes=1)
    installation.settle()
    assert installation.effect(passed) == ("False", "WrongRevision")


def test_evidence_from_before_the_publication_says_so(installation: RecordWorld):
    installation.set_stages({**APPROVED, **TESTED})
    installation.settle()
    early = installation.state("passed")
    installation.go_on()
    assert installation.effect(early) == ("False", "WrongRevision")
    installation.later(minutes=1)
    for by in ("alice", "carol"):
        installation.approve(by, installation.tree())
    installation.go_on()
    assert installation.variants()["ams"]["status"]["published"]
    assert installation.effect(early) == ("False", "RecordedEarly")


def test_a_transition_of_a_record_costs_one_write_and_rest_none(installation: RecordWorld):
    installation.set_stages(TESTED)
    installation.settle()
    created = installation.decide("Suspend", stage="prod")
    before = count_writes(installation.server, "decisions")
    installation.go_on()
    assert count_writes(installation.server, "decisions") - before == 2, "recorded, then effective"
    present = installation.server.get(created)
    for _ in range(2):
        installation.later(minutes=1)
        installation.go_on()
    assert installation.server.get(created) == present
    resumed = installation.decide("Resume", stage="prod")
    before = count_writes(installation.server, "decisions")
    installation.go_on()
    assert installation.effect(created) == ("False", "Applied")
    assert installation.effect(resumed) == ("False", "Applied")
    assert count_writes(installation.server, "decisions") - before == 3


def test_an_edited_status_of_a_record_is_put_right(installation: RecordWorld):
    installation.set_stages(TESTED)
    installation.settle()
    created = installation.decide("Suspend", stage="prod")
    installation.go_on()
    assert installation.effect(created) == EFFECTIVE
    status = installation.server.get(created)["status"]
    forged = [{**it, "status": "False"} for it in status["conditions"]]
    name = f"decision.fanout.dev/{created['metadata']['name']}"
    patch = json.dumps({"status": {"conditions": forged}})
    line = ("patch", name, "--subresource=status", "--type=merge", "-p", patch)
    installation.server.kubectl(*line, namespace=installation.namespace)
    installation.await_change()
    installation.show()
    assert installation.server.get(created)["status"] == status


def test_a_record_that_was_created_anew_under_its_name_gets_no_status(installation: RecordWorld):
    """The object is another one, which is not recorded yet; the watch has not told of it."""
    installation.set_stages(TESTED)
    installation.settle()
    created = installation.decide("Suspend", stage="prod")
    installation.go_on()
    assert installation.writer is not None
    outdated: dict[str, Any] = dict(installation.writer._read_digests())
    names = {name: it._replace(status=b"") for name, it in outdated["Decision"].items()}
    outdated["Decision"] = names
    installation.writer._read_digests = lambda: outdated  # type: ignore[method-assign]
    installation.server.delete(created)
    meta = {key: created["metadata"][key] for key in ("name", "namespace", "annotations")}
    anew = decision(installation.namespace, "Resume", stage="prod")
    second = installation.server.create({**anew, "metadata": meta}, by="alice")
    installation.writer._confirmed.clear()
    installation.settle()
    installation.run_round()
    assert installation.server.get(second).get("status") is None
