"""A fleet whose records are objects of a real kube-apiserver, and the intake of them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from fleet import Fleet, Result
from kube_server import CONTROLLER, KubeError, KubeServer

from fanout.api.admission_policies import build_admission_policies
from fanout.cli.startup import Program
from fanout.controller.cluster_operation import PolicyErrorMemo
from fanout.errors import FanoutError
from fanout.kube.api_connection import ApiConnection, open_connection
from fanout.kube.pending_records import AdmissionCheck, ApiPendingRecords
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.records.record_intake import IntakeResult, RecordIntake, RecordRetention

PATIENCE = 180  # seconds, for a busy machine
BY, GROUPS = "fanout.dev/by", "fanout.dev/groups"
KINDS = ("Evidence", "Approval", "Decision")  # of records
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
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


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
            pending = ApiPendingRecords(connection)
            retention = RecordRetention(pending, program.configuration.record_retention)
            assert not retention.delete_expired(now).problems
            return intake.take_in(now)

    def records(self, policy: str = "monitoring") -> PolicyRecords:
        key = RecordsKey(self.namespace, policy)
        with self.fleet.opened() as program:
            return program.world.records.read([key])[key]

    def actions(self, policy: str = "monitoring") -> list[tuple[str, str]]:
        """Return who recorded which decisions, in their order."""
        records = self.records(policy).records
        return [(it.by, str(it.action)) for it in records if it.action]

    def condition(self, created: dict[str, Any], type_: str = "Recorded") -> dict[str, Any]:
        conditions = self.server.get(created).get("status", {}).get("conditions", ())
        return next((it for it in conditions if it["type"] == type_), {})


def open_intake(program: Program, connection: ApiConnection) -> RecordIntake:
    """Open the intake of the controller after its first pass, which may have failed."""
    evaluated, mode = PolicyErrorMemo(), PassMode(sweep=False)
    declared, now = program.read_declared(), program.settings.now()
    try:
        evaluated.update(program.reconciler.plan_pass(declared, now, mode), declared)
    except FanoutError as error:
        evaluated.fail(error)
    return build_intake(program, connection, evaluated)


def build_intake(
    program: Program, connection: ApiConnection, evaluated: PolicyErrorMemo
) -> RecordIntake:
    """Build the intake of records; `evaluated` has the results of passes."""
    pending = ApiPendingRecords(connection)
    return RecordIntake(program.world.records, pending, evaluated.find_obstacle)


@contextmanager
def connected(server: KubeServer, by: str = CONTROLLER) -> Iterator[ApiConnection]:
    yield open_connection(server.kubeconfig, by)


@contextmanager
def granted(
    server: KubeServer, rights: str, verb: str, resource: str, by: str = "alice"
) -> Iterator[None]:
    """Grant rights in all namespaces while open; `by` may do this then, and only then."""
    may = partial(server.may, by, verb, resource)
    manifests = list(yaml.safe_load_all(rights))
    for manifest in manifests:
        server.apply(manifest)
    wait_until(may, "the rights are not in force")
    try:
        yield
    finally:
        for manifest in manifests:
            server.delete(manifest)
        wait_until(lambda: not may(), "the rights are still in force")


def install_admission(server: KubeServer) -> None:
    """Apply the admission policies, which leaves those alone that are there already."""
    for document in build_admission_policies("fanout-system/fanout-controller"):
        server.apply(document)
    forged = _forgeries()
    wait_until(
        lambda: all(is_refused(server, it) for it in forged), "the policies are not in force"
    )


def remove_admission(server: KubeServer) -> None:
    """Delete the admission policies, and wait until they are not in force."""
    for document in build_admission_policies("fanout-system/fanout-controller"):
        try:
            server.delete(document)
        except KubeError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    forged = _forgeries()
    wait_until(
        lambda: not any(is_refused(server, it) for it in forged), "the policies are in force"
    )


def _forgeries() -> list[dict[str, Any]]:
    """Return an object that each of the two policies refuses to everybody who is not a forger."""
    upstream = {"repository": "blueprints", "package": "base", "revision": {"tag": "v1"}}
    variant = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "forged", "namespace": "default"},
        "spec": {
            "upstream": upstream,
            "downstream": {"repository": "edge", "package": "forged"},
            "policyRef": {"name": "monitoring"},
        },
    }
    return [decision("default", by="nobody"), variant]


def await_age(server: KubeServer) -> None:
    """Wait until the admission policies are as old as they must be for records to count.

    That is a minute, unless IN_FORCE_AFTER is replaced.
    """
    with connected(server) as connection:
        _, since = AdmissionCheck(connection).read()
    assert since is not None
    wait_until(lambda: datetime.now(UTC) >= since, "the policies are too young")


def is_refused(server: KubeServer, manifest: dict[str, Any]) -> bool:
    try:
        server.create(manifest, dry_run=True)
    except KubeError as error:
        return error.status == 403
    return False
