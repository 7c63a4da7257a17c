"""Several fleets of one API server, the rights of a controller on them, and their objects."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kube.objects import KINDS, clear_objects, create_namespace
from kube.record_fleet import granted, wait_until
from kube.twin import Sites, Twin, install_clusters
from kube_server import CONTROLLER, KubeError, KubeServer
from run_process import PLAIN, Running, run_processes

from fanout.api.admission_policies import build_admission_policies
from fanout.git.mirror import create_bare

CreateTenant = Callable[..., Twin]
BeginController = Callable[..., Running]

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
OWN = "fanout.dev/v1alpha1"
READER: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "fanout-reader"},
    "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["infra.example.com"],
            "resources": ["clusters"],
            "verbs": ["get", "list", "watch"],
        },
    ],
}
# Whose rights end where the admission policies begin.
WRITER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules: [{apiGroups: [fanout.dev], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
"""
# As the record tests do: in force after a second in place of a minute.
HASTY_ADMISSION = """\
from datetime import timedelta
from fanout.cli.main import run
from fanout.kube import pending_records
pending_records.IN_FORCE_AFTER = timedelta(seconds=1)
run()
"""

# Watches end after a second in place of 75: the API server asks for a right when one begins.
HASTY_WATCHES = """\
from fanout.cli.main import run
from fanout.kube import object_watch
object_watch.WATCH_SECONDS = 1
run()
"""

PLAIN_POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: {name}}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets:
  - repositories: [{{name: edge, packageNames: [{name}]}}]
    template: {{stage: dev{more}}}
  stages: [{{name: dev}}]
"""
INJECTING = ", injectors: [{kind: ConfigMap, name: ams}]"
OPEN = ", injectors: [{name: ams}]"
AMS: Sites = {"ams": ("dev", "edge")}


def apply_base(server: KubeServer) -> None:
    """Apply the Kustomize base, as an administrator does."""
    line = ("apply", "--server-side", "--force-conflicts", "-k", str(DEPLOY))
    server.kubectl(*line, namespace="fanout-system")


def install_base(server: KubeServer) -> None:
    """Install the base and the kind of the targets, and wait until all kinds are served."""
    apply_base(server)
    install_clusters(server)
    await_kinds(server)


@contextmanager
def granted_tenants(server: KubeServer) -> Iterator[None]:
    """Let alice write all objects of fanout, and the controller read targets, while open."""
    with granted(server, WRITER, "create", "decisions.fanout.dev"):
        with_rules(server, READER["rules"])
        try:
            yield
        finally:
            with_rules(server, [])


def with_rules(server: KubeServer, rules: list[Any]) -> None:
    """Give the controller these rights to what policies name, and wait until they are in force."""
    server.patch(READER, {"rules": rules})
    asked, expected = _list_rights(READER["rules"]), _list_rights(rules)
    wait_until(
        lambda: {it for it in asked if server.may(CONTROLLER, *it)} == expected,
        "the controller has other rights",
    )


def _list_rights(rules: list[Any]) -> set[tuple[str, str]]:
    """Return the verbs and resources of rules with one group and one resource each."""
    return {
        (verb, f"{it['resources'][0]}.{it['apiGroups'][0]}") for it in rules for verb in it["verbs"]
    }


@contextmanager
def open_tenants(server: KubeServer, root: Path) -> Iterator[CreateTenant]:
    """Yield a function that makes a fleet in a namespace of its own; all are cleared at the end."""

    def create(sites: Sites = AMS) -> Twin:
        namespace = create_namespace(server)
        return Twin(server, namespace, root / namespace, sites)

    try:
        yield create
    finally:
        clear_objects(server)


@contextmanager
def run_controllers() -> Iterator[BeginController]:
    """Yield a function that starts a controller with the records of a fleet."""
    with run_processes(FANOUT_NOW="") as start:

        def start_controller(
            twin: Twin,
            *options: str,
            program: tuple[str, ...] = PLAIN,
            records: bool = True,
            name: str = "",
        ) -> Running:
            line = ["--kubeconfig", str(twin.server.kubeconfig), "--context", CONTROLLER]
            if records:
                path = twin.fleet.records().path
                if not path.exists():
                    create_bare(path)
                line += ["--records", str(path)]
            line += ["--interval", "1h", *options]
            return start(twin.fleet, *line, program=program, verb=("controller",), name=name)

        yield start_controller


def await_kinds(server: KubeServer) -> None:
    """Wait until all kinds of fanout are served: their storage may have yet to be initialized."""
    for kind in KINDS:
        wait_until(partial(is_listed, server, kind), f"{kind} is not served")


def is_listed(server: KubeServer, kind: str) -> bool:
    """Return whether a kind of fanout is served."""
    try:
        server.list(OWN, kind)
    except (KeyError, KubeError):
        return False
    return True


def own(twin: Twin, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return an object of fanout in the namespace of the fleet."""
    meta = {"name": name, "namespace": twin.namespace}
    return {"apiVersion": OWN, "kind": kind, "metadata": meta, **({"spec": spec} if spec else {})}


def condition(twin: Twin, kind: str, name: str, type_: str) -> dict[str, Any]:
    """Return a condition of an object of fanout; {}: it has none of the type."""
    status = twin.server.get(own(twin, kind, name)).get("status", {})
    return next((it for it in status.get("conditions", ()) if it["type"] == type_), {})


def is_idle(controller: Running) -> bool:
    """Return whether the last pass had nothing to do."""
    names = {"trigger", "sweep", "event", "level", "timestamp"}
    return bool(controller.passes()) and controller.passes()[-1].keys() <= names


def request_pass(twin: Twin, value: str, policy: str = "monitoring") -> None:
    """Ask for a pass that lists the repositories again."""
    annotation = {"reconcile.fanout.dev/requestedAt": value}
    twin.server.patch(
        own(twin, "UpstreamPolicy", policy), {"metadata": {"annotations": annotation}}
    )


def await_handled(controller: Running, twin: Twin, value: str, policy: str = "monitoring") -> None:
    """Ask for a pass, and wait until the statuses of the policy and its variants are written."""
    request_pass(twin, value, policy)
    controller.until(lambda: is_idle(controller) and _shows(twin, value, policy))


def _shows(twin: Twin, value: str, policy: str) -> bool:
    """Return whether all statuses are there; those of variants are written after the policy's."""
    status = twin.server.get(own(twin, "UpstreamPolicy", policy)).get("status", {})
    if status.get("lastHandledReconcileAt") != value:
        return False
    items = twin.server.list(OWN, "PackageVariant", twin.namespace)
    of_policy = [it for it in items if it["spec"].get("policyRef") == {"name": policy}]
    number: int = sum(status.get("counts", {}).values())
    return sum("status" in it for it in of_policy) >= number


def allow_secrets(twin: Twin) -> None:
    """Let the controller read the Secrets of the namespace, as an administrator of it does."""
    line = ("create", "rolebinding", "secrets", "--clusterrole=fanout-secret-reader")
    twin.server.kubectl(*line, f"--user={CONTROLLER}", namespace=twin.namespace)
    may = partial(twin.server.may, CONTROLLER, "get", "secrets", twin.namespace)
    wait_until(may, "the controller may not read Secrets")


@contextmanager
def denied(server: KubeServer, resource: str) -> Iterator[None]:
    """Take the right to read a kind away from the controller while open."""
    plural = resource.partition(".")[0]
    with_rules(server, [it for it in READER["rules"] if it["resources"] != [plural]])
    try:
        yield
    finally:
        with_rules(server, READER["rules"])


@contextmanager
def without_binding(server: KubeServer) -> Iterator[None]:
    """Delete the binding of the controller to all that it may read for policies while open."""
    api = "rbac.authorization.k8s.io"
    meta = {"name": "fanout-reader"}
    binding = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": meta}
    may = partial(server.may, CONTROLLER, "watch", "configmaps")
    present = server.get(binding)
    server.delete(binding)
    wait_until(lambda: not may(), "the right is still there")
    try:
        yield
    finally:
        server.apply({**binding, "roleRef": present["roleRef"], "subjects": present["subjects"]})
        wait_until(may, "the right is not back")


@contextmanager
def without_watches(server: KubeServer) -> Iterator[None]:
    """Let the controller list what policies name, and not watch it, while open."""
    with_rules(server, [{**it, "verbs": ["get", "list"]} for it in READER["rules"]])
    try:
        yield
    finally:
        with_rules(server, READER["rules"])


def exists(twin: Twin, kind: str, name: str) -> bool:
    try:
        twin.server.get(own(twin, kind, name))
    except KubeError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True


def essence(variant: dict[str, Any]) -> Any:
    """Return what a variant says, without the generation that it is about."""
    status = {**variant["status"], "observedGeneration": 0}
    status["conditions"] = [{**it, "observedGeneration": 0} for it in status.get("conditions", ())]
    return variant["spec"], status


def is_written(write: Callable[[str, Any], None], edit: tuple[str, Any]) -> bool:
    try:
        write(*edit)
    except KubeError as error:
        if error.status == 403:
            return False
        raise
    return True


def variants_of(twin: Twin) -> dict[str, Any]:
    """Return the PackageVariant of each policy that has one."""
    items = twin.server.list(OWN, "PackageVariant", twin.namespace)
    return {it["spec"]["policyRef"]["name"]: it for it in items}


@contextmanager
def without_admission(server: KubeServer) -> Iterator[None]:
    """Delete the admission policy of variants while open."""
    documents = build_admission_policies("fanout-system/fanout-controller")
    with ExitStack() as stack:
        for document in documents:
            if document["metadata"]["name"].startswith("packagevariants"):
                server.delete(document)
                stack.callback(server.apply, document)
        yield
