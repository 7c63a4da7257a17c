"""Verbs that record, on a real kube-apiserver: they create objects, and the intake records them."""

import shlex
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import yaml
from fleet import PACKAGE, Result
from kube.record_fleet import GROUPS, KINDS, Company, decision, granted, wait_until
from kube_server import KubeServer

from fanout.reconcile.removal import orphaned_variants

pytestmark = pytest.mark.kube
READER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [infra.example.com], resources: [clusters], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}
"""
SIGNED = [{"name": "ok", "approval": {"from": ["sre"]}}]


def ask(company: Company, *line: str, by: str = "alice") -> Result:
    """Run a verb on the objects of the cluster."""
    shared = ["--state-dir", str(company.fleet.root / "other"), "--now"]
    shared += [company.fleet.now.isoformat(), "--records", str(company.fleet.records().path)]
    shared += ["--kubeconfig", str(company.server.kubeconfig), "--context", by]
    return company.fleet.run(*line, *shared, "-n", company.namespace, files=False)


@pytest.fixture(scope="module")
def readers(record_server: KubeServer) -> Iterator[None]:
    """All users may read targets and what is injected."""
    with granted(record_server, READER, "list", "clusters.infra.example.com"):
        yield


@pytest.fixture
def fleet(readers: None, company: Company) -> Company:
    """Return a company whose objects are in the cluster, with v1 drafted in both stages."""
    edit(company, "policy.yaml", stages=[{"name": "dev", "requires": SIGNED}, {"name": "prod"}])
    edit(
        company,
        "promotion.yaml",
        autoPromotion=None,
        approvers=[{"group": "sre", "subjects": ["group:platform", "user:carol"]}],
    )
    apply(company)
    company.run("sweep")
    return company


def edit(company: Company, name: str, **fields: Any) -> None:
    path = company.policies / name
    document = yaml.safe_load(path.read_text())
    spec = document["spec"] | fields
    document["spec"] = {name: it for name, it in spec.items() if it is not None}
    path.write_text(yaml.safe_dump(document))


def apply(company: Company) -> None:
    """Make the objects of the cluster those of the files."""
    for path in sorted(company.policies.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            company.server.apply(document)


def objects(company: Company, kind: str) -> list[Any]:
    return company.server.list("fanout.dev/v1alpha1", kind, company.namespace)


def created_name(result: Result, kind: str) -> str:
    assert result.code in (0, 4), result.err
    line = next(it for it in result.out.splitlines() if f"{kind}.fanout.dev/" in it)
    return line.split()[0].partition("/")[2]


def test_an_approval_is_an_object_for_the_groups_that_it_needs(fleet: Company):
    before = fleet.records().head
    result = ask(fleet, "approve", "monitoring", "--stage", "dev", "--revision", "v1", by="bob")
    name = created_name(result, "approval")
    assert name.startswith("approval-")
    assert f"approval.fanout.dev/{name} created for" in result.out
    (item,) = objects(fleet, "Approval")
    annotations = item["metadata"]["annotations"]
    # He is in security too, which the rule does not name.
    assert annotations == {"fanout.dev/by": "bob", GROUPS: "platform"}
    assert fleet.records().head == before
    fleet.take_in()
    (entry,) = fleet.records().records
    assert (entry.kind, entry.by, entry.groups) == ("Approval", "bob <user:bob>", ("platform",))
    again = ask(fleet, "approve", "monitoring", "--stage", "dev", "--revision", "v1", by="bob")
    assert "has already approved these drafts" in again.err
    assert len(objects(fleet, "Approval")) == 1


def test_an_approval_that_does_not_count_says_so(fleet: Company):
    edit(fleet, "promotion.yaml", approvers=[{"group": "sre", "subjects": ["user:carol"]}])
    apply(fleet)
    result = ask(fleet, "approve", "monitoring", "--stage", "dev", "--revision", "v1", by="bob")
    assert result.code == 4
    assert "it does not count: user:bob is not in sre" in result.err
    (item,) = objects(fleet, "Approval")
    assert GROUPS not in item["metadata"]["annotations"]


def test_a_promotion_is_an_object_and_the_controller_publishes(fleet: Company):
    refs = fleet.fleet.repos["edge"].refs() if "edge" in fleet.fleet.repos else {}
    line = ("promote", "monitoring", "--stage", "dev", "--override", "requires", "--reason", "go")
    result = ask(fleet, *line)
    name = created_name(result, "decision")
    assert name.startswith("publish-")
    assert "Publish" in result.out
    if refs:
        assert fleet.fleet.repos["edge"].refs() == refs
    fleet.take_in()
    assert fleet.actions() == [("alice <user:alice>", "Publish")]
    fleet.run("sweep")
    variants = fleet.run("get", "variants", "-o", "json").items
    published = [it for it in variants if it["status"].get("published")]
    assert {it["spec"]["stage"] for it in published} == {"dev"}


def test_wait_ends_when_the_record_is_taken_in(fleet: Company):
    line = ("promote", "monitoring", "--stage", "dev", "--override", "requires", "--reason", "go")
    done = threading.Event()

    def control() -> None:
        while not done.is_set() and not fleet.records().records:
            fleet.take_in()

    controller = threading.Thread(target=control)
    controller.start()
    try:
        result = ask(fleet, *line, "--wait=5m")
    finally:
        done.set()
        controller.join()
    assert result.code == 0, result.err
    assert fleet.actions() == [("alice <user:alice>", "Publish")]


def test_a_record_that_waits_too_long_exits_with_4(fleet: Company):
    line = ("promote", "monitoring", "--stage", "dev", "--override", "requires", "--reason", "go")
    result = ask(fleet, *line, "--wait=1s")
    assert result.code == 4
    assert "stopped waiting after 1s" in result.err


# verb, further words, kind and action of the object
VERBS: list[tuple[str, list[str], str]] = [
    ("suspend", ["--stage", "prod", "--reason", "r"], "Suspend"),
    ("skip", ["--stage", "dev", "--variant", "ams", "--reason", "r"], "Skip"),
    ("promote", ["--stage", "dev", "--reason", "r"], "Publish"),
]


@pytest.mark.parametrize(("verb", "words", "action"), VERBS, ids=[it[0] for it in VERBS])
def test_a_verb_creates_an_object_and_writes_nothing(fleet: Company, verb, words, action):
    before = fleet.records().head
    result = ask(fleet, verb, "monitoring", *words, by="carol")
    created_name(result, "decision")
    (item,) = objects(fleet, "Decision")
    assert item["spec"]["action"] == action
    assert item["spec"]["reason"] == "r"
    assert item["metadata"]["annotations"] == {"fanout.dev/by": "carol"}
    assert fleet.records().head == before


def test_suspend_resume_and_withdraw_follow_each_other(fleet: Company):
    ask(fleet, "suspend", "monitoring", "--reason", "r", by="carol")
    fleet.take_in()
    result = ask(fleet, "suspend", "monitoring", "--reason", "r", by="carol")
    assert "already suspended by user:carol" in result.err
    created_name(ask(fleet, "resume", "monitoring", "--reason", "r"), "decision")
    fleet.take_in()
    line = ("promote", "monitoring", "--stage", "dev", "--reason", "go")
    created_name(ask(fleet, *line), "decision")
    fleet.take_in()
    name = fleet.records().records[-1].name
    result = ask(fleet, "withdraw", "monitoring", name, "--reason", "no")
    assert f"withdraws {name}" in result.out
    fleet.take_in()
    assert [action for _, action in fleet.actions()] == [
        "Suspend", "Resume", "Publish", "Withdraw"
    ]  # fmt: skip


def test_suspend_all_creates_an_object_for_each_policy(fleet: Company):
    result = ask(fleet, "suspend", "--all", "--reason", "r")
    assert result.code == 0, result.err
    assert [it["spec"]["action"] for it in objects(fleet, "Decision")] == ["Suspend"]


def test_a_report_is_an_object_and_counts(fleet: Company):
    edit(fleet, "policy.yaml", stages=[{"name": "dev", "verification": [
        {"name": "e2e", "report": {}}]}, {"name": "prod"}])  # fmt: skip
    edit(fleet, "promotion.yaml", autoPromotion={"stages": ["*"]})
    apply(fleet)
    for _ in range(2):
        fleet.run("sweep")
    line = ("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed")
    result = ask(fleet, *line, "--revision", "v1", by="bob")
    name = created_name(result, "evidence")
    assert f"evidence.fanout.dev/{name} created" in result.out
    fleet.take_in()
    (entry,) = fleet.records().records
    assert (entry.kind, entry.fields["status"]) == ("Evidence", "passed")


def test_revoke_names_the_record_and_ends_it(fleet: Company):
    line = ("monitoring", "--stage", "dev", "--revision", "v1")
    ask(fleet, "approve", *line, by="carol")
    fleet.take_in()
    (approval,) = fleet.records().records
    result = ask(fleet, "revoke", "monitoring", approval.name, by="bob")
    assert result.code == 0, result.err
    assert f"revokes {approval.name}" in result.out
    fleet.take_in(timedelta(minutes=1))
    revocation = fleet.records().records[-1]
    assert (revocation.fields["revokes"], revocation.groups) == (approval.name, ("platform",))


def test_withdraw_and_revoke_take_the_name_that_a_verb_printed(fleet: Company):
    line = ("monitoring", "--stage", "dev")
    approved = created_name(ask(fleet, "approve", *line, "--revision", "v1", by="bob"), "approval")
    promoted = created_name(ask(fleet, "promote", *line, "--reason", "go"), "decision")
    early = ask(fleet, "withdraw", "monitoring", promoted, "--reason", "no")
    assert (early.code, early.out) == (1, "")
    assert f"decision {promoted} is not on record for {fleet.namespace}/monitoring" in early.err
    assert f"`kubectl get decisions.fanout.dev {promoted} -n {fleet.namespace}" in early.err
    fleet.take_in()
    approval, decision = (it.name for it in fleet.records().records)
    assert {approved, promoted}.isdisjoint({approval, decision})
    result = ask(fleet, "revoke", "monitoring", f"approval.fanout.dev/{approved}", by="bob")
    assert f"revokes {approval}" in result.out
    result = ask(fleet, "withdraw", "monitoring", promoted, "--reason", "no")
    assert f"withdraws {decision}" in result.out
    fleet.take_in(timedelta(minutes=1))
    revocation, withdrawal = fleet.records().records[-2:]
    assert revocation.fields["revokes"] == approval
    assert withdrawal.fields["withdraws"] == decision
    # Names of other kinds, of nothing and of what is no name.
    for verb, name in (("revoke", promoted), ("withdraw", "nothing"), ("revoke", "../a b")):
        reason = () if verb == "revoke" else ("--reason", "no")
        unknown = ask(fleet, verb, "monitoring", name, *reason)
        assert (unknown.code, unknown.out) == (1, "")
        assert f"no {'approval' if verb == 'revoke' else 'decision or evidence'} {name}" in (
            unknown.err
        )


def test_a_dry_run_creates_nothing(fleet: Company):
    result = ask(fleet, "suspend", "monitoring", "--reason", "r", "--dry-run")
    assert result.code == 0, result.err
    assert "would be recorded" in result.out
    assert objects(fleet, "Decision") == []


def publish(fleet: Company, revision: str) -> None:
    """Publish a revision in both stages, and wait for nothing."""
    edit(fleet, "policy.yaml", stages=[{"name": "dev"}, {"name": "prod"}])
    edit(fleet, "promotion.yaml", autoPromotion={"stages": ["*"]})
    apply(fleet)
    if revision != "v1":
        fleet.fleet.release(revision)
    for _ in range(3):
        fleet.fleet.later(minutes=1)
        fleet.run("sweep")


def test_a_rollback_is_an_object_that_the_controller_follows(fleet: Company):
    publish(fleet, "v1")
    publish(fleet, "v2")
    line = ("rollback", "monitoring", "--stage", "dev", "--reason", "broken", "--yes")
    result = ask(fleet, *line)
    assert created_name(result, "decision").startswith("rollback-")
    assert "back to v1" in result.out
    fleet.take_in()
    for _ in range(2):
        fleet.fleet.later(minutes=1)
        fleet.run("sweep")
    published = [
        it["status"]["published"]["revision"]
        for it in fleet.run("get", "variants", "-o", "json").items
        if it["spec"]["stage"] == "dev"
    ]
    assert set(published) == {"v1"}


def test_a_retry_is_an_object_that_the_controller_follows(fleet: Company):
    verified = {"name": "dev", "verification": [{"name": "e2e", "report": {}}]}
    edit(fleet, "policy.yaml", stages=[verified, {"name": "prod"}])
    edit(fleet, "promotion.yaml", autoPromotion={"stages": ["*"]})
    apply(fleet)
    for _ in range(2):
        fleet.run("sweep")
    line = ("report", "monitoring", "--stage", "dev", "--check", "e2e", "--revision", "v1")
    created_name(ask(fleet, *line, "--variant", "ams", "--status", "failed"), "evidence")
    fleet.fleet.later(minutes=1)
    fleet.take_in()
    fleet.run("sweep")
    result = ask(fleet, "retry", "monitoring", "--stage", "dev", "--reason", "flaky", by="bob")
    assert created_name(result, "decision").startswith("retry-")
    fleet.take_in()
    assert fleet.actions() == [("bob <user:bob>", "Retry")]
    again = ask(fleet, "retry", "monitoring", "--stage", "dev", "--reason", "flaky", by="bob")
    assert "already recorded" in again.out
    assert len(objects(fleet, "Decision")) == 1


def test_a_resolution_is_an_object_that_the_controller_follows(fleet: Company):
    publish(fleet, "v1")
    path = "sites/ams/deployment.yaml"
    text = fleet.fleet.repos["edge"].file("main", path)
    fleet.fleet.repos["edge"].commit("main", {path: text.replace("replicas: 1", "replicas: 7")})
    upstream = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 2")
    fleet.fleet.release("v2", {"deployment.yaml": upstream})
    fleet.fleet.later(minutes=1)
    fleet.run("sweep")
    result = ask(fleet, "resolve", "monitoring", "--take", "local", "--reason", "7 it is")
    assert created_name(result, "decision").startswith("resolve-")
    fleet.take_in()
    for _ in range(3):
        fleet.fleet.later(minutes=1)
        fleet.run("sweep")
    assert "replicas: 7" in fleet.fleet.repos["edge"].file("main", path)
    assert fleet.actions() == [("alice <user:alice>", "Resolve")]


def test_a_removal_is_an_object_and_the_controller_removes(fleet: Company):
    publish(fleet, "v1")
    edit(fleet, "promotion.yaml", autoPromotion=None)
    site = next(it for it in fleet.policies.glob("*ams*"))
    fleet.server.kubectl("delete", "--ignore-not-found", "-f", str(site), namespace=fleet.namespace)
    site.unlink()
    apply(fleet)
    files = set(fleet.fleet.repos["edge"].files())
    result = ask(fleet, "remove", "monitoring", "ams", "--reason", "closed")
    assert created_name(result, "decision").startswith("confirm-removal-")
    assert "the controller removes" in result.out
    assert set(fleet.fleet.repos["edge"].files()) == files
    fleet.take_in()
    fleet.run("sweep")
    assert not any("ams" in it for it in fleet.fleet.repos["edge"].files())


def test_the_command_of_uncertain_targets_removes_a_variant(
    fleet: Company, monkeypatch: pytest.MonkeyPatch
):
    """The definition of the targets looks newer than the policy."""
    monkeypatch.setattr(orphaned_variants, "INSTALLATION_TIME", timedelta(days=-1))
    publish(fleet, "v1")
    site = next(it for it in fleet.policies.glob("*ams*"))
    fleet.server.kubectl("delete", "--ignore-not-found", "-f", str(site), namespace=fleet.namespace)

    def find_blockers() -> list[dict[str, Any]]:
        result = ask(fleet, "explain", "monitoring", "-o", "json", by="admin")
        blockers = result.json["status"]["blockers"]
        return [it for it in blockers if it["reason"] == "TargetsUncertain"]

    [uncertain] = find_blockers()
    [command] = uncertain["commands"]
    line = shlex.split(command)
    assert line[:2] == ["fanout", "remove"]
    result = ask(fleet, *line[1:])
    assert "the controller removes" in result.out
    fleet.take_in()
    site.unlink()
    fleet.run("sweep")
    assert find_blockers() == []
    assert not any("ams" in it for it in fleet.fleet.repos["edge"].files())


def test_records_that_were_put_back_take_their_acceptance_alone(fleet: Company):
    fleet.create(decision(fleet.namespace))
    fleet.take_in()
    fleet.run("sweep")
    (branch,) = (it for it in fleet.fleet.records().refs() if it.endswith("/monitoring"))
    ask(fleet, "plan")  # sees the head
    head = fleet.fleet.records().refs()[branch]
    fleet.fleet.records().git("update-ref", branch, f"{head}~1")
    waiting = fleet.create(decision(fleet.namespace, stage="prod"))
    assert fleet.take_in().changed == frozenset()
    assert fleet.condition(waiting)["reason"] == "RecordsRewound"
    result = ask(fleet, "accept-records", "monitoring", "--reason", "restored")
    assert created_name(result, "decision").startswith("accept-records-")
    assert fleet.take_in().has_more
    assert not fleet.take_in().has_more
    assert [action for _, action in fleet.actions()][-2:] == ["AcceptRecords", "Suspend"]
    assert fleet.condition(waiting)["status"] == "True"


def test_a_user_without_a_right_gets_its_name(fleet: Company):
    server = fleet.server
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "writer"},
    }
    binding = server.get(role)
    others = [it for it in binding["subjects"] if it["name"] != "bob"]
    server.patch(role, {"subjects": others})
    reader = yaml.safe_load(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: creator},"
        " rules: [{apiGroups: [fanout.dev], resources: ['*'], verbs: [get, list, create]},"
        " {apiGroups: [fanout.dev], resources: [upstreampolicies], verbs: [suspend]}]}"
    )
    server.apply(reader)
    server.apply(
        {
            **role,
            "metadata": {"name": "creator"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "creator"
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
            ],
        }
    )  # fmt: skip
    try:
        line = ("promote", "monitoring", "--stage", "dev", "--reason", "r")
        result = ask(fleet, *line, by="bob")
        assert result.code == 1, result.err
        refusal = "user bob needs the verb promote on upstreampolicies.fanout.dev monitoring"
        assert refusal in " ".join(result.err.split())
        assert objects(fleet, "Decision") == []
        assert ask(fleet, "suspend", "monitoring", "--reason", "r", by="bob").code == 0
    finally:
        server.patch(role, {"subjects": binding["subjects"]})
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            server.delete({**role, "kind": kind, "metadata": {"name": "creator"}})


def test_recording_on_a_cluster_refuses_another_author(fleet: Company):
    line = ("suspend", "monitoring", "--reason", "r", "--by", "Bob <bob@example.com>")
    result = ask(fleet, *line)
    assert result.code == 1
    assert "omit --by" in result.err
    assert objects(fleet, "Decision") == []


def suspend(fleet: Company) -> None:
    result = ask(fleet, "suspend", "monitoring", "--stage", "dev", "--reason", "because")
    assert result.code == 0, result.err
    fleet.take_in()


def promote_nothing(fleet: Company) -> None:
    edit(fleet, "policy.yaml", stages=[{"name": "dev"}, {"name": "prod"}])
    apply(fleet)


def remove_target(fleet: Company) -> None:
    result = ask(fleet, "promote", "monitoring", "--stage", "dev", "--override", "requires", *WHY)
    assert result.code == 0, result.err
    fleet.take_in()
    fleet.run("sweep")
    fleet.run("sweep")
    fleet.fleet.remove("site-ams.yaml")
    cluster = {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}
    meta = {"name": "ams", "namespace": fleet.namespace}
    fleet.server.delete({**cluster, "metadata": meta})


WHY = ("--reason", "go")
BLOCKED = [
    (lambda fleet: None, "ApprovalMissing", "carol"),
    (suspend, "Suspended", "alice"),
    (promote_nothing, "AutomationOff", "alice"),
    (remove_target, "AutomationOff", "alice"),
]


@pytest.mark.parametrize(("block", "reason", "by"), BLOCKED)
def test_the_commands_of_an_explanation_are_accepted_as_printed(
    fleet: Company, monkeypatch: pytest.MonkeyPatch, block, reason, by
):
    block(fleet)
    monkeypatch.setenv("FANOUT_NOW", fleet.fleet.now.isoformat())
    subject = "monitoring" if block is remove_target else "monitoring/dev"
    output = ask(fleet, "explain", subject, by=by).out
    assert reason in output
    assert "fanout sweep" not in output
    section = output.partition("To unblock:\n")[2]
    commands = [shlex.split(it)[1:] for it in section.splitlines() if it.startswith("  fanout ")]
    assert commands, output
    before = sum(len(objects(fleet, it)) for it in KINDS)
    for number, arguments in enumerate(commands, start=1):
        done = fleet.fleet.run(*arguments, files=False)
        assert done.code == 0, f"{arguments}: {done.err}"
        assert sum(len(objects(fleet, it)) for it in KINDS) == before + number
    fleet.take_in()
    assert reason not in ask(fleet, "explain", "monitoring/dev").out


def test_errors_of_the_cluster_name_commands_for_it(fleet: Company):
    context = f"--kubeconfig {fleet.server.kubeconfig}"
    result = ask(fleet, "explain", "monitoring/prod/ams")
    line = next(it for it in result.err.splitlines() if "is in stage dev, not in prod" in it)
    command = line.rpartition("`fanout ")[2].partition("`")[0]
    assert context in command
    assert fleet.fleet.run(*shlex.split(command), files=False).code == 0


def test_no_record_is_created_that_the_controller_would_refuse(fleet: Company):
    meta = {"name": "monitoring", "namespace": fleet.namespace}
    policy = {"apiVersion": "fanout.dev/v1alpha1", "kind": "UpstreamPolicy", "metadata": meta}
    condition = {
        "type": "AdmissionMissing",
        "status": "True",
        "reason": "AdmissionMissing",
        "message": "nothing proves who created it; run `fanout crds --admission`",
        "lastTransitionTime": "2026-03-02T09:00:00Z",
    }
    fleet.server.apply(
        {**policy, "status": {"observedGeneration": 1, "conditions": [condition]}},
        subresource="status",
    )
    line = ("approve", "monitoring", "--stage", "dev", "--revision", "v1")
    result = ask(fleet, *line, by="bob")
    assert (result.code, result.out) == (3, "")
    assert "nothing proves who created it; run `fanout crds --admission" in result.err
    assert objects(fleet, "Approval") == []
    condition["status"] = "False"
    fleet.server.apply(
        {**policy, "status": {"observedGeneration": 1, "conditions": [condition]}},
        subresource="status",
    )
    created_name(ask(fleet, *line, by="bob"), "approval")


def test_a_verb_without_a_right_to_targets_names_the_right(fleet: Company):
    server = fleet.server
    _, binding = yaml.safe_load_all(READER)
    lists_clusters = partial(server.may, "bob", "list", "clusters.infra.example.com")
    server.delete(binding)
    wait_until(lambda: not lists_clusters(), "the right is still in force")
    try:
        for verb in (
            ("suspend", "monitoring", "--reason", "r"),
            ("promote", "monitoring", "--stage", "dev", "--reason", "r"),
            ("approve", "monitoring", "--stage", "dev", "--revision", "v1"),
            ("explain", "monitoring"),
        ):
            result = ask(fleet, *verb, by="bob")
            assert (result.code, result.out) == (2, "")
            assert f"UpstreamPolicy/{fleet.namespace}/monitoring: spec.targets[0]" in result.err
            assert 'User "bob" cannot list resource "clusters"' in result.err
    finally:
        server.apply(binding)
        wait_until(lists_clusters, "the right is not back")
