"""Records as objects of a real kube-apiserver: taken in once, each under its author's name."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import START
from kube.record_fleet import (
    BY,
    USERS,
    WRITER,
    Company,
    await_age,
    connected,
    decision,
    install_admission,
    is_refused,
    open_intake,
    record,
    wait_until,
)
from kube_server import KubeError, KubeServer

from fanout.api.admission_policies import build_admission_policies
from fanout.kube.pending_records import AdmissionCheck, ApiPendingRecords
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.records.record_intake import IntakeResult

pytestmark = pytest.mark.kube
ROOT = Path(__file__).parent.parent.parent
APPROVING = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: everything}
spec:
  policies: ["*"]
  autoPromotion: {stages: ["*"]}
  approvers: [{group: sre, subjects: ["group:platform", "user:carol"]}]
"""


def test_a_record_is_taken_in_once_under_the_name_of_its_author(company: Company):
    company.run("sweep")
    created = company.create(decision(company.namespace, stage="prod"))
    result = company.take_in()
    assert [tuple(it) for it in result.changed] == [(company.namespace, "monitoring")]
    (entry,) = company.records().records
    assert (entry.by, entry.at) == ("alice <user:alice>", company.fleet.now)
    assert entry.fields["action"] == "Suspend"
    assert entry.uid == created["metadata"]["uid"]
    status = company.server.get(created)["status"]
    assert status["record"] == entry.name
    assert company.condition(created) == {
        "type": "Recorded",
        "status": "True",
        "reason": "Recorded",
        "message": "",
        "lastTransitionTime": START.isoformat().replace("+00:00", "Z"),
        "observedGeneration": 1,
    }
    assert company.condition(created, "Ready")["status"] == "True"
    head = company.records().head
    for minutes in (1, 2):
        again = company.take_in(timedelta(minutes=minutes))
        assert again == IntakeResult()
    assert company.records().head == head
    assert company.server.get(created)["status"] == status


def test_kubectl_waits_for_recorded(company: Company):
    company.run("sweep")
    created = company.create(decision(company.namespace))
    company.take_in()
    name = f"decision.fanout.dev/{created['metadata']['name']}"
    company.server.kubectl(
        "wait", "--for=condition=Recorded", name, "--timeout=60s", namespace=company.namespace
    )


FORGED = [
    ("somebody else's name", "bob", "", "annotation fanout.dev/by is not the user"),
    ("a group that one is not in", "alice", "platform\nsecurity", "user alice is not in"),
]


@pytest.mark.parametrize(("_", "by", "groups", "words"), FORGED, ids=[it[0] for it in FORGED])
def test_kubectl_creates_nothing_in_the_name_of_others(company: Company, _, by, groups, words):
    company.run("sweep")
    manifest = record("Decision", company.namespace, by, groups, action="Suspend")
    result = company.server.kubectl(
        "create", "-f", "-", by="alice", stdin=json.dumps(manifest),
        namespace=company.namespace, check=False,
    )  # fmt: skip
    assert result.returncode != 0
    assert words in result.stderr
    assert company.take_in() == IntakeResult()
    assert company.records().records == ()


def test_kubectl_edits_no_record(company: Company):
    company.run("sweep")
    created = company.create(decision(company.namespace))
    name = f"decision.fanout.dev/{created['metadata']['name']}"
    for patch in ({"spec": {"action": "Resume"}}, {"metadata": {"annotations": {BY: "bob"}}}):
        result = company.server.kubectl(
            "patch", name, "--type=merge", "-p", json.dumps(patch), by="bob",
            namespace=company.namespace, check=False,
        )  # fmt: skip
        assert result.returncode != 0
        assert "never change" in result.stderr
    company.take_in()
    assert company.actions() == [("alice <user:alice>", "Suspend")]


def test_records_keep_the_order_in_which_they_were_created(company: Company):
    company.run("sweep")
    actions = ["Suspend", "Resume"] * 4 + ["Suspend"]
    users = [USERS[number % 3] for number in range(len(actions))]
    for action, user in zip(actions, users, strict=True):
        company.create(decision(company.namespace, action, user))
    company.take_in()
    assert company.actions() == [
        (f"{user} <user:{user}>", action) for user, action in zip(users, actions, strict=True)
    ]
    result = company.run("get", "policies", "-o", "json")
    assert "Suspended" in result.out


def test_a_record_counts_like_one_that_a_verb_wrote(company: Company):
    company.run("sweep")
    company.run("sweep")
    evidence = {"stage": "dev", "check": "e2e", "status": "passed", "revision": "v1"}
    company.create(record("Evidence", company.namespace, "bob", **evidence))
    company.take_in()
    company.run("sweep")
    (stage,) = (
        it for it in company.run("get", "stages", "-o", "json").items
        if it["spec"]["stage"] == "dev"
    )  # fmt: skip
    assert "passed" in yaml.safe_dump(stage).lower()


def test_an_object_deleted_before_the_intake_is_no_record_and_after_it_changes_nothing(
    company: Company,
):
    company.run("sweep")
    company.server.delete(company.create(decision(company.namespace, stage="dev")))
    kept = company.create(decision(company.namespace, stage="prod"))
    company.take_in()
    company.server.delete(kept)
    company.take_in()
    assert [it.fields["stage"] for it in company.records().records] == ["prod"]


def test_recorded_objects_are_deleted_after_the_retention(company: Company):
    company.run("sweep")
    created = company.create(decision(company.namespace))
    company.take_in()
    company.take_in(timedelta(hours=167, minutes=59))
    company.server.get(created)
    company.take_in(timedelta(hours=168))
    with pytest.raises(KubeError):
        company.server.get(created)
    assert company.actions() == [("alice <user:alice>", "Suspend")]


def test_refused_objects_stay_and_are_listed_by_the_command_of_the_page(company: Company):
    page = (ROOT / "docs" / "concepts" / "records-as-objects.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(kubectl get .*?)```", page, re.DOTALL)
    listing, deletion = (shlex.split(line)[1:] for line in block.splitlines())
    company.run("sweep")
    expired = {"stage": "prod", "revision": "v1", "expires": "2020-01-01T00:00:00Z"}
    refused = company.create(decision(company.namespace, "Publish", **expired))
    recorded = company.create(decision(company.namespace))
    company.take_in()
    shown = company.server.kubectl(*listing, namespace=company.namespace).stdout.splitlines()
    table = company.server.kubectl("get", "decisions", "-o", "wide", namespace=company.namespace)
    heads, *rows = (line.split() for line in table.stdout.splitlines())
    assert {"STATE", "EFFECT", "RECORD", "MESSAGE"} <= {*heads}
    assert {
        row[0]: word for row in rows for word in row if word in ("InvalidRecord", "Recorded")
    } == {
        refused["metadata"]["name"]: "InvalidRecord",
        recorded["metadata"]["name"]: "Recorded",
    }
    reasons = {line.split()[1]: line.split()[2] for line in shown[1:]}
    name = refused["metadata"]["name"]
    assert reasons == {name: "InvalidRecord", recorded["metadata"]["name"]: "<none>"}
    company.take_in(timedelta(hours=168))
    with pytest.raises(KubeError):
        company.server.get(recorded)
    company.server.get(refused)
    words = [name if it == "NAME" else it for it in deletion]
    company.server.kubectl(*words, namespace=company.namespace)
    with pytest.raises(KubeError):
        company.server.get(refused)


CRASHING = """\
import os, sys
from datetime import datetime
from fanout.kube.pending_records import AdmissionCheck
from fanout.kube.pending_records import ApiPendingRecords

sys.path[:0] = TESTS
count = 0


def die(self, item, state):
    global count
    count += 1
    if count == FATAL:
        os.kill(os.getpid(), 9)
    return written(self, item, state)


written = ApiPendingRecords.write_state
ApiPendingRecords.write_state = die

from kube_server import CONTROLLER
from kube.record_fleet import open_intake
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.kube import pending_records
from fanout.kube.api_connection import open_connection
from datetime import timedelta
from pathlib import Path

pending_records.IN_FORCE_AFTER = timedelta(seconds=1)
root, kubeconfig, now = sys.argv[1:]
now = datetime.fromisoformat(now)
settings = Settings(
    files=(Path(root) / "policies",), state_dir=Path(root) / "state", now_override=now
)
with open_program(settings) as program:
    connection = open_connection(Path(kubeconfig), CONTROLLER)
    open_intake(program, connection).take_in(now)
"""


@pytest.mark.parametrize("fatal", [1, 2, 3])
def test_a_process_that_is_killed_before_the_status_repeats_nothing(company: Company, fatal: int):
    company.run("sweep")
    created = [
        company.create(decision(company.namespace, stage=stage, by=user))
        for stage, user in (("dev", "alice"), ("prod", "bob"), ("dev", "carol"))
    ]
    text = CRASHING.replace("TESTS", repr(sys.path)).replace("FATAL", str(fatal))
    line = [str(company.fleet.root), str(company.server.kubeconfig), company.fleet.now.isoformat()]
    killed = subprocess.run(
        [sys.executable, "-c", text, *line], env=os.environ, capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    head, names = company.records().head, [it.name for it in company.records().records]
    assert len(names) == 3
    statuses = [company.server.get(it).get("status", {}).get("record") for it in created]
    # They are written over several connections at once, so others than the first may be there.
    assert all(it in (None, name) for it, name in zip(statuses, names, strict=True))
    assert None in statuses
    company.take_in(timedelta(minutes=1))
    assert company.records().head == head
    assert [company.server.get(it)["status"]["record"] for it in created] == names
    at = {company.condition(it)["lastTransitionTime"] for it in created}
    assert at == {START.isoformat().replace("+00:00", "Z")}


def test_two_processes_take_in_the_same_records_once(company: Company):
    company.run("sweep")
    for stage in ("dev", "prod"):
        company.create(decision(company.namespace, stage=stage))
    with company.opened() as (program, connection):
        first = open_intake(program, connection)
        listing = ApiPendingRecords(connection).read()
        company.take_in(timedelta(minutes=1))  # another process, between list and push

        class Earlier(ApiPendingRecords):
            def read(self):
                return listing

        first.pending = Earlier(connection)
        result = first.take_in(company.fleet.now)
    assert result.changed == frozenset()
    assert [it.fields["stage"] for it in company.records().records] == ["dev", "prod"]


def test_an_object_that_was_created_anew_meanwhile_is_another_record(company: Company):
    company.run("sweep")
    first = company.create(decision(company.namespace, stage="dev"))
    anew = decision(company.namespace, stage="prod")
    anew["metadata"]["name"] = first["metadata"]["name"]
    with company.opened() as (program, connection):
        listing = ApiPendingRecords(connection).read()
        company.server.delete(first)
        second = company.create(anew)

        class Earlier(ApiPendingRecords):
            def read(self):
                return listing

        intake = open_intake(program, connection)
        intake.pending = Earlier(connection)
        assert intake.take_in(company.fleet.now).problems == ()
    assert company.server.get(second).get("status") is None
    company.take_in()
    assert [it.fields["stage"] for it in company.records().records] == ["dev", "prod"]
    assert company.condition(second)["status"] == "True"


def test_a_user_who_could_pass_for_another_in_git_is_refused(company: Company):
    company.run("sweep")
    user = "eve <bob@example.com>"
    manifest = decision(company.namespace, by=user)
    line = ["--as", user, "--as-group", "system:masters", "create", "-f", "-", "-o", "json"]
    result = company.server.kubectl(*line, stdin=json.dumps(manifest), namespace=company.namespace)
    created = json.loads(result.stdout)
    assert company.take_in() == IntakeResult()
    condition = company.condition(created, "Stalled")
    assert condition["reason"] == "InvalidRecord"
    assert "cannot be the author of a commit" in condition["message"]
    assert company.condition(created)["status"] == "False"
    assert company.records().records == ()


def test_a_policy_whose_records_fail_holds_no_other(company: Company):
    company.run("sweep")
    waiting = company.create(decision(company.namespace, policy="absent"))
    company.create(decision(company.namespace))
    result = company.take_in()
    assert company.actions() == [("alice <user:alice>", "Suspend")]
    (problem,) = result.problems
    assert "records of policy absent" in problem
    assert "has no UpstreamPolicy absent" in problem
    assert company.condition(waiting)["reason"] == "NotFound"
    assert company.condition(waiting, "Stalled") == {}
    assert company.take_in(timedelta(minutes=1)).problems == result.problems


REFUSING = """\
#!/bin/sh
while read old new ref; do
  git log --format=%s $new --not --all | grep -q '^Record Decision' && exit 1
done
exit 0
"""


def test_no_variant_is_released_while_a_record_waits(company: Company):
    """The suspension is in the cluster, and the records repository does not take it."""
    company.run("sweep")
    company.create(decision(company.namespace))
    hook = company.fleet.records().path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(REFUSING)
    hook.chmod(0o755)
    refs = company.fleet.refs()["edge"]
    with company.opened() as (program, connection):
        intake = open_intake(program, connection)
        (problem,) = intake.take_in(company.fleet.now).problems
        assert "records of policy monitoring" in problem
        assert program.sweep(PassMode()).pass_plan.policies[0].error is not None
        assert company.fleet.refs()["edge"] == refs
        hook.unlink()
        assert intake.take_in(company.fleet.now).problems == ()
        program.sweep(PassMode())
    # Only the trace of what was recorded is written.
    traced = company.fleet.refs()["edge"]
    assert traced.pop("refs/heads/fanout/default/_records")
    assert traced == refs
    assert company.actions() == [("alice <user:alice>", "Suspend")]
    company.create(decision(company.namespace, "Resume"))
    company.take_in()
    company.run("sweep")
    assert company.fleet.refs()["edge"]["refs/heads/main"] != refs["refs/heads/main"]


def test_records_of_a_deleted_policy_go_on_counting(company: Company):
    company.run("sweep")
    company.create(decision(company.namespace))
    policy = company.policies / "policy.yaml"
    text = policy.read_text()
    policy.unlink()
    company.create(decision(company.namespace, stage="dev"))
    company.take_in()
    policy.write_text(text)
    assert len(company.actions()) == 2


def test_a_promotion_that_waited_for_a_policy_made_again_publishes_once(company: Company):
    """It is created while there is no policy, counts for the new one, and for no third one."""
    (company.policies / "promotion.yaml").unlink()  # nothing is published by itself
    company.run("sweep")
    edge = company.fleet.repos["edge"]
    assert edge.tags() == []
    policy = company.policies / "policy.yaml"
    text = policy.read_text()
    policy.unlink()
    created = company.create(decision(company.namespace, "Publish", stage="dev", revision="v1"))
    company.take_in()
    policy.write_text(text)
    company.take_in(timedelta(minutes=1))
    assert company.condition(created)["status"] == "True"
    company.run("sweep")
    assert edge.tags() == ["sites/ams/v1"]
    refs = edge.refs()
    policy.unlink()
    company.run("sweep")
    policy.write_text(text)
    company.fleet.later(hours=1)
    company.take_in()
    company.run("sweep")
    assert edge.tags() == ["sites/ams/v1"]
    assert edge.refs() == refs
    assert company.actions() == [("alice <user:alice>", "Publish")]


@pytest.mark.parametrize("action", ["Suspend", "AcceptRecords"])
@pytest.mark.parametrize("are_heads_known", [False, True], ids=["new-process", "same-process"])
def test_lost_records_are_not_begun_again_by_a_record(
    company: Company, action: str, are_heads_known: bool
):
    company.run("sweep")
    created = company.create(decision(company.namespace, action))
    shutil.rmtree(company.fleet.records().path)
    if not are_heads_known:
        shutil.rmtree(company.fleet.root / company.fleet.state / "heads")
    result = company.take_in()
    condition = company.condition(created)
    assert condition["reason"] == "RecordsLost", result
    # They would be accepted as they are: none.
    assert "accept-records" not in condition["message"]
    assert not company.fleet.records().path.exists()


def test_records_that_are_lost_after_a_pass_are_not_called_older(company: Company):
    company.run("sweep")
    with company.opened() as (program, connection):
        intake = open_intake(program, connection)
        created = company.create(decision(company.namespace))
        shutil.rmtree(company.fleet.records().path)
        intake.take_in(company.fleet.now)
    condition = company.condition(created)
    assert condition["reason"] == "RecordsLost"
    assert "name the correct records repository" in condition["message"]
    assert "accept-records" not in condition["message"]
    assert not company.fleet.records().path.exists()


def test_a_records_branch_that_is_gone_is_begun_again_by_an_acceptance_alone(company: Company):
    company.create(decision(company.namespace))
    company.take_in()
    records = company.fleet.records()
    (branch,) = (it for it in records.refs() if it.endswith("/monitoring"))
    records.git("update-ref", "-d", branch)
    waiting = company.create(decision(company.namespace, stage="dev"))
    company.take_in()
    assert company.condition(waiting)["reason"] == "RecordsRewound"
    assert branch not in records.refs()
    company.create(decision(company.namespace, "AcceptRecords"))
    company.take_in()
    company.take_in()
    assert [action for _, action in company.actions()] == ["AcceptRecords", "Suspend"]


def test_an_approval_counts_for_a_member_of_a_group(company: Company):
    policy = company.policies / "policy.yaml"
    document = yaml.safe_load(policy.read_text())
    document["spec"]["stages"] = [
        {"name": "dev", "requires": [{"name": "ok", "approval": {"from": ["sre"], "atLeast": 2}}]},
        {"name": "prod"},
    ]
    policy.write_text(yaml.safe_dump(document))
    promotion = yaml.safe_load(APPROVING)
    promotion["metadata"]["namespace"] = company.namespace
    (company.policies / "promotion.yaml").write_text(yaml.safe_dump(promotion))
    company.run("sweep")

    def hold() -> str:
        explained: str = company.run("explain", "ams").out
        return explained

    (draft,) = (
        it for it in company.run("get", "drafts", "-o", "json").items
        if it["spec"]["stage"] == "dev"
    )  # fmt: skip
    tree = draft["status"]["tree"]
    approval: dict[str, Any] = {"stage": "dev", "check": "ok", "revision": "v1", "trees": [tree]}
    # Who does not say for which group, and who is in none of them, does not count.
    company.create(record("Approval", company.namespace, "alice", **approval))
    company.create(record("Approval", company.namespace, "bob", "security", **approval))
    company.take_in()
    assert "0 of 2" in hold()
    company.create(record("Approval", company.namespace, "bob", "platform\nsecurity", **approval))
    company.create(record("Approval", company.namespace, "carol", **approval))
    company.fleet.later(minutes=1)
    company.take_in()
    company.run("sweep")
    assert "0 of 2" not in hold()
    published = company.run("get", "variants", "-o", "json").items
    assert any(it["status"].get("published") for it in published if it["spec"]["stage"] == "dev")


def test_a_record_says_that_it_waits_for_the_admission_policies(company: Company):
    """The controller lacks the right to read them; with the right, the record is taken in."""
    company.run("sweep")
    created = company.create(decision(company.namespace))
    role, _ = yaml.safe_load_all(WRITER)
    base = {**role, "metadata": {"name": "fanout-controller"}}
    rules = company.server.get(base)["rules"]
    kept = [it for it in rules if it["apiGroups"] != ["admissionregistration.k8s.io"]]
    company.server.apply({**role, "rules": role["rules"][:1]})
    company.server.patch(base, {"rules": kept})
    try:
        wait_until(lambda: not reads_admission(company), "the right is still in force")
        assert company.take_in().admission_problem is not None
        waiting = company.server.get(created)
        assert company.condition(created)["status"] == "False"
        assert company.condition(created)["reason"] == "AdmissionMissing"
        assert "validatingadmissionpolicies" in company.condition(created)["message"]
        assert company.condition(created, "Stalled") == {}
        company.take_in(timedelta(minutes=1))
        assert company.server.get(created) == waiting
    finally:
        company.server.apply(role)
        company.server.patch(base, {"rules": rules})
        wait_until(lambda: reads_admission(company), "the right is not in force")
    company.take_in(timedelta(minutes=2))
    assert company.condition(created)["status"] == "True"
    assert company.condition(created)["reason"] == "Recorded"
    assert company.actions() == [("alice <user:alice>", "Suspend")]


def reads_admission(company: Company) -> bool:
    with connected(company.server) as connection:
        return AdmissionCheck(connection).read()[0] is None


EFFECTLESS = [
    ("Publish", {"stage": "prod"}, "this action needs a revision"),
    ("Withdraw", {}, "withdraws is for Withdraw, which requires it"),
]


@pytest.mark.parametrize(
    ("action", "spec", "words"), EFFECTLESS, ids=[action for action, _, _ in EFFECTLESS]
)
def test_a_decision_that_can_have_no_effect_is_not_created(company: Company, action, spec, words):
    with pytest.raises(KubeError, match=words):
        company.create(decision(company.namespace, action, **spec))


def test_a_decision_that_was_over_before_it_was_made_is_never_recorded(company: Company):
    company.run("sweep")
    created = company.create(
        decision(company.namespace, "Publish", stage="prod", revision="v1",
                 expires="2020-01-01T00:00:00Z")
    )  # fmt: skip
    assert company.take_in() == IntakeResult()
    condition = company.condition(created, "Stalled")
    assert condition["reason"] == "InvalidRecord"
    assert "spec.expires: is not after the creation" in condition["message"]
    assert company.condition(created)["status"] == "False"
    assert company.records().records == ()


def test_a_publication_without_a_revision_from_an_older_schema_is_never_recorded(company: Company):
    """The definition lacks the rule, as that of an earlier release does."""
    company.run("sweep")
    name = "decisions.fanout.dev"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
    }
    present = company.server.get(definition)
    rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"
    patch = json.dumps([{"op": "remove", "path": rules}])
    company.server.kubectl("patch", "crd", name, "--type=json", "-p", patch)
    manifest = decision(company.namespace, "Publish", stage="prod")
    wait_until(lambda: not refusal(company.server, manifest), "the rule is still in force")
    try:
        created = company.create(manifest)
        assert company.take_in() == IntakeResult()
        condition = company.condition(created, "Stalled")
    finally:
        patch = json.dumps({"spec": present["spec"]})
        company.server.kubectl("patch", "crd", name, "--type=merge", "-p", patch)
        wait_until(lambda: bool(refusal(company.server, manifest)), "the rule is not in force")
    assert condition["reason"] == "InvalidRecord"
    assert "spec.revision: a decision to publish needs a revision" in condition["message"]
    assert company.records().records == ()


def refusal(server: KubeServer, manifest: dict[str, Any]) -> str:
    """Return why the server does not create the object; "" if it would."""
    try:
        server.create(manifest, by="alice", dry_run=True)
    except KubeError as error:
        return error.message
    return ""


def test_no_record_is_taken_in_without_the_admission_policies(company: Company):
    company.run("sweep")
    documents = build_admission_policies("fanout-system/fanout-controller")
    before = company.create(decision(company.namespace, stage="dev"))
    company.take_in()
    for document in documents:
        company.server.delete(document)
        result = company.take_in()
        assert result.admission_problem is not None
        assert document["metadata"]["name"] in result.admission_problem.problem
        assert result.admission_problem.reason == "AdmissionMissing"
        company.server.apply(document)
    for change in (
        {"spec": {"failurePolicy": "Ignore"}},
        {"spec": {"validations": documents[0]["spec"]["validations"][:1]}},
        {"spec": {"matchConditions": [{"name": "no", "expression": "false"}]}},
    ):
        company.server.patch(documents[0], change)
        assert company.take_in().admission_problem is not None, change
        company.server.delete(documents[0])
        company.server.apply(documents[0])
    company.server.patch(documents[1], {"spec": {"validationActions": ["Audit"]}})
    assert company.take_in().admission_problem is not None
    wait_until(
        lambda: not is_refused(company.server, decision(company.namespace, by="bob")),
        "the policies are still in force",
    )
    # Nobody checks: alice speaks for bob.
    forged = company.create(decision(company.namespace, stage="prod", by="bob"), by="alice")
    assert company.take_in().admission_problem is not None
    assert company.condition(forged)["reason"] == "AdmissionMissing"
    assert company.condition(forged, "Stalled") == {}
    company.server.delete(documents[1])
    install_admission(company.server)
    await_age(company.server)
    after = company.create(decision(company.namespace, "Resume", by="bob", stage="dev"))
    assert company.take_in().admission_problem is None
    assert company.actions() == [
        ("alice <user:alice>", "Suspend"), ("bob <user:bob>", "Resume")
    ]  # fmt: skip
    refused = company.condition(forged, "Stalled")
    assert refused["reason"] == "AdmissionMissing"
    assert "create it again" in refused["message"]
    company.take_in(timedelta(hours=1))
    assert len(company.actions()) == 2
    assert company.server.get(before)["status"]["record"]
    assert company.server.get(after)["status"]["record"]
