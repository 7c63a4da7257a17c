"""A fleet whose records are objects of a real kube-apiserver, and the intake of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from fleet import Fleet, Result
from kube_server import CONTROLLER, KubeError, KubeServer

from fanout.api.admission_policies import build_admission_policies
from fanout.cli.startup import Program
from fanout.cli.watched_cluster import (
    PolicyErrorMemo,
    open_record_intake,
    open_record_retention,
)
from fanout.errors import FanoutError
from fanout.kube import admission_check
from fanout.kube.api_connection import ApiConnection, open_connection
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.records.record_intake import IntakeResult, RecordIntake

IN_FORCE = 60  # seconds until a policy is, on a busy machine
BY, GROUPS = "fanout.dev/by", "fanout.dev/groups"
KINDS = ("Evidence", "Approval", "Decision")
USERS = ("alice", "bob", "carol")
WRITER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules:
- {apiGroups: [fanout.dev], resources: ["*"], verbs: ["*"]}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingadmissionpolicies, validatingadmissionpolicybindings]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:fanout-system:fanout-controller"}
"""  # noqa: E501 as YAML wants it


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + IN_FORCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def decision(namespace: str, action: str = "Suspend", by: str = "alice", **spec: Any) -> Any:
    return record("Decision", namespace, by, action=action, reason="because", **spec)


def record(kind: str, namespace: str, by: str, groups: str = "", **spec: Any) -> dict[str, Any]:
    annotations = {BY: by, **({GROUPS: groups} if groups else {})}
    meta = {"generateName": "r-", "namespace": namespace, "annotations": annotations}
    spec = {"policy": "monitoring", **spec}
    if not spec["policy"]:
        del spec["policy"]
    return {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


class Company:
    """A fleet with its objects in files and in a namespace, and the intake of its records."""

    def __init__(self, server: KubeServer, namespace: str, root: Path) -> None:
        self.server, self.namespace = server, namespace
        self.fleet = Fleet.build(root)
        for path in self.policies.glob("*.yaml"):
            documents = list(yaml.safe_load_all(path.read_text()))
            for document in documents:
                document["metadata"]["namespace"] = namespace
            path.write_text(yaml.safe_dump_all(documents))

    @property
    def policies(self) -> Path:
        return self.fleet.root / "policies"

    def run(self, *line: str) -> Result:
        """Run a command on the objects of the files."""
        return self.fleet.run(*line, "-n", self.namespace)

    def create(self, manifest: dict[str, Any], by: str = "") -> dict[str, Any]:
        """Create a record, by default as who it says it is."""
        created: dict[str, Any] = self.server.create(
            manifest, by=by or manifest["metadata"]["annotations"][BY]
        )
        return created

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, ApiConnection]]:
        with self.fleet.opened() as program, connected(self.server) as connection:
            yield program, connection

    def take_in(self, after: timedelta = timedelta()) -> IntakeResult:
        with self.opened() as (program, connection):
            intake, now = open_intake(program, connection), self.fleet.now + after
            retention = open_record_retention(program, connection)
            assert not retention.delete_expired(now).problems
            return intake.take_in(now)

    def records(self, policy: str = "monitoring") -> PolicyRecords:
        key = RecordsKey(self.namespace, policy)
        with self.fleet.opened() as program:
            return program.world.records.read([key])[key]

    def actions(self, policy: str = "monitoring") -> list[tuple[str, str]]:
        """Return who recorded which decisions, in their order."""
        records = self.records(policy).records
        return [(it.by, it.spec["action"]) for it in records if it.kind == "Decision"]

    def condition(self, created: dict[str, Any], type_: str = "Recorded") -> dict[str, Any]:
        conditions = self.server.get(created).get("status", {}).get("conditions", ())
        return next((it for it in conditions if it["type"] == type_), {})


def open_intake(program: Program, connection: ApiConnection) -> RecordIntake:
    """Open the intake of the controller after its first pass, which may have failed."""
    evaluated, mode = PolicyErrorMemo(), PassMode(sweep=False)
    declared, now = program.read_declared(), program.settings.now()
    try:
        evaluated.update(program.reconciler.plan_pass(declared, now, mode))
    except FanoutError as error:
        evaluated.fail(error)
    return open_record_intake(program, connection, evaluated)


@contextmanager
def connected(server: KubeServer, by: str = CONTROLLER) -> Iterator[ApiConnection]:
    yield open_connection(server.kubeconfig, by)


def install(server: KubeServer, crds: str) -> None:
    """Install the kinds, the rights of all users, and the admission policies."""
    server.kubectl("apply", "-f", "-", stdin=crds)
    server.kubectl("apply", "-f", "-", stdin=WRITER)
    wait_until(partial(is_listed, server), "the kinds are not served")
    install_admission(server)


def is_listed(server: KubeServer) -> bool:
    try:
        for kind in KINDS:
            server.list("fanout.dev/v1alpha1", kind)
    # Not discovered yet, or "storage is (re)initializing".
    except (KeyError, KubeError):
        return False
    return True


def install_admission(server: KubeServer) -> None:
    for document in build_admission_policies("fanout-system/fanout-controller"):
        server.apply(document)
    wait_for_admission(server)


def wait_for_admission(server: KubeServer) -> None:
    """Wait until the server refuses what the policies forbid, and a second has begun since."""
    forged = decision("default", by="nobody")
    wait_until(partial(is_refused, server, forged), "the policies are not in force")
    with connected(server) as connection:
        since = admission_check.AdmissionCheck(connection).read().since
    assert since is not None
    wait_until(lambda: datetime.now(UTC) >= since, "the policies are too young")


def is_refused(server: KubeServer, manifest: dict[str, Any]) -> bool:
    try:
        server.create(manifest, dry_run=True)
    except KubeError as error:
        return error.status == 403
    return False
