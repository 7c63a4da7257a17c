"""The whole life of a fleet in a cluster, driven by kubectl: from installation to an empty etcd.

One test, because each step begins with what the steps before it left. `fanout controller` runs with
the rights of the Kustomize base, and people use kubectl. It has a server of its own, which it
installs into and empties.

STORIES=full: 200 sites, and a program whose admission policies are in force after a minute.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import yaml
from diagonal import IS_FULL
from fleet import Fleet, Repo
from kube.twin import install_clusters
from kube_server import CONTROLLER, KubeServer, running_kube_server

pytestmark = [pytest.mark.kube, pytest.mark.diagonal]

ROOT = Path(__file__).parent.parent.parent
NAMESPACE = "shop"
SITES, REPOSITORIES, DEV_SITES = (200, 10, 20) if IS_FULL else (20, 5, 5)
PROGRAM = ("-m", "fanout") if IS_FULL else (str(Path(__file__).parent / "hasty_controller.py"),)
IN_FORCE = timedelta(minutes=1) if IS_FULL else timedelta(seconds=1)
PATIENCE = 240  # seconds, for a slow machine and a sweep that begins each minute
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster}
    template:
      stageExpr: target.metadata.labels.tier
      downstream:
        repositoryExpr: target.spec.repository
        packageExpr: "'sites/' + target.metadata.name"
      injectors: [{kind: ConfigMap, nameExpr: target.metadata.name}]
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - name: prod
    after: {stages: [dev]}
    requires: [{name: ok, approval: {atLeast: 2, from: [sre]}}]
"""
SMALL = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: NAME}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge-0, packageNames: [NAME/a]}]
    template: {stage: first}
  - repositories: [{name: edge-1, packageNames: [NAME/b]}]
    template: {stage: second}
  stages: [{name: first}, {name: second, after: {stages: [first]}}]
"""
PROMOTION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: everything}
spec:
  policies: ["*"]
SCHEDULE  autoPromotion: {stages: ["*"]}
  approvers: [{group: sre, subjects: ["user:alice", "user:bob"]}]
"""
READER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: fanout-reads-sites
  labels: {rbac.fanout.dev/aggregate-to-reader: "true"}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [infra.example.com], resources: [clusters], verbs: [get, list, watch]}
"""


def name_site(number: int) -> str:
    return f"site-{number:03}"


class Life:
    """A cluster with the base, a fleet of repositories, and the controller."""

    def __init__(self, server: KubeServer, root: Path) -> None:
        self.server, self.root = server, root
        self.fleet = Fleet(root)
        self.processes: list[subprocess.Popen[bytes]] = []

    # ---- the cluster ---------------------------------------------------------------------------

    def kubectl(self, *line: str, by: str = "admin", stdin: str | None = None) -> str:
        return self.server.kubectl(*line, namespace=NAMESPACE, by=by, stdin=stdin).stdout

    def list_items(self, resource: str) -> list[dict[str, Any]]:
        """Return the objects of fanout in the namespace."""
        path = f"/apis/fanout.dev/v1alpha1/namespaces/{NAMESPACE}/{resource}"
        items: list[dict[str, Any]] = self.server.ask("GET", path)["items"]
        return items

    def patch(self, resource: str, name: str, **spec: Any) -> None:
        change = json.dumps({"spec": spec})
        self.kubectl("patch", resource, name, "--type=merge", "-p", change)

    def apply_base(self) -> None:
        """Apply the Kustomize base."""
        line = ("apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "deploy"))
        self.server.kubectl(*line, namespace="fanout-system")

    def install(self) -> None:
        """Apply the base, and what an administrator adds."""
        self.apply_base()
        install_clusters(self.server)
        self.kubectl("apply", "-f", "-", stdin=READER)
        # As the controller manager does, which does not run here.
        rules = json.dumps(yaml.safe_load(READER)["rules"])
        patch = f'{{"rules": {rules}}}'
        self.kubectl("patch", "clusterrole", "fanout-reader", "--type=merge", "-p", patch)
        self.kubectl("create", "namespace", NAMESPACE)
        for user, role in (
            ("carol", "fanout-reporter"),
            ("alice", "fanout-approver"),
            ("bob", "fanout-approver"),
        ):
            binding = f"{user}-{role}"
            self.kubectl(
                "create", "rolebinding", binding, f"--clusterrole={role}", f"--user={user}"
            )
        right: tuple[str, ...] = ("list", "clusters.infra.example.com")
        self.until(lambda: self.server.may(CONTROLLER, *right))
        right = ("approve", "upstreampolicies.fanout.dev", NAMESPACE)
        self.until(lambda: self.server.may("alice", *right))

    def apply(self) -> None:
        """Apply all manifests of the users."""
        self.kubectl("apply", "-f", str(self.root / self.fleet.policies))

    def record(self, kind: str, by: str, **spec: Any) -> str:
        """Create a record with kubectl; return its name."""
        manifest = {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": kind,
            "metadata": {"generateName": "r-", "annotations": {"fanout.dev/by": by}},
            "spec": {"policy": "monitoring", **spec},
        }
        line = ("create", "-f", "-", "-o", "name")
        return self.kubectl(*line, by=by, stdin=json.dumps(manifest)).strip()

    def is_refused(self, kind: str, by: str, **spec: Any) -> bool:
        with pytest.raises(AssertionError, match="forbidden"):
            self.record(kind, by, **spec)
        return True

    def until_recorded(self, resource: str, number: int) -> None:
        """Wait until so many records are in the records repository."""
        self.until(
            lambda: (
                sum("record" in it.get("status", {}) for it in self.list_items(resource)) == number
            )
        )

    def until_in_force(self) -> None:
        """Wait until records count: admission policies need time to be in force."""
        api = "admissionregistration.k8s.io/v1"
        written = max(
            datetime.fromisoformat(field["time"])
            for it in self.server.list(api, "ValidatingAdmissionPolicy")
            for field in it["metadata"]["managedFields"]
        )
        self.until(lambda: datetime.now(UTC) - written > IN_FORCE + timedelta(seconds=2))

    def request_pass(self, name: str = "monitoring") -> str:
        """Ask for a pass over a policy, and wait until it has been made; return the request."""
        passes, requested = self.count_requested(), datetime.now(UTC).isoformat()
        annotation = f"reconcile.fanout.dev/requestedAt={requested}"
        self.kubectl("annotate", "--overwrite", "upstreampolicy", name, annotation)
        self.until(lambda: self.count_requested() > passes)
        return requested

    def count_requested(self) -> int:
        """Return how many passes somebody asked for."""
        lines = self.read_log().splitlines()
        return sum('"request"' in line and '"Pass done"' in line for line in lines)

    # ---- the controller ------------------------------------------------------------------------

    def start(self) -> None:
        """Start a controller with an empty state directory."""
        state = self.root / f"state-{len(self.processes)}"
        command = [sys.executable, *PROGRAM, "controller", "--state-dir", str(state)]
        command += ["--records", str(self.records.path), "--interval", "10s", "-v"]
        command += ["--kubeconfig", str(self.server.kubeconfig), "--context", CONTROLLER]
        environment = {**os.environ, "FANOUT_NOW": ""}
        with (self.root / f"log-{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, env=environment)
        self.processes.append(process)

    def stop(self) -> None:
        """End the controller at a safe point."""
        self.processes[-1].terminate()
        assert self.processes[-1].wait(PATIENCE) == 0, self.log()

    def read_log(self) -> str:
        """Return the log of the present process."""
        path = self.root / f"log-{len(self.processes) - 1}"
        return path.read_text() if path.exists() else ""

    def read_passes(self) -> list[dict[str, Any]]:
        """Return the lines about passes in the log of the present process."""
        lines = map(json.loads, filter(str.strip, self.read_log().splitlines()))
        return [it for it in lines if it["event"] == "Pass done"]

    def log(self) -> str:
        """Return the end of the log, for a failed assertion."""
        return self.read_log()[-4000:]

    def until(self, condition: Callable[[], object]) -> None:
        deadline = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < deadline, self.log()
            assert not self.processes or self.processes[-1].poll() is None, self.log()
            sleep(0.2)

    def statuses(self) -> dict[tuple[str, str], Any]:
        """Return the statuses of all kinds, without what belongs to the stored object alone.

        That is the generation, what people asked of it, and when a condition changed that no
        record and no commit tells of: whether a Repository answers, and a PromotionPolicy is valid.
        """
        own, unrecorded = ("observedGeneration", "lastHandledReconcileAt"), ("lastTransitionTime",)
        left_out = {
            "upstreampolicies": own,
            "packagevariants": own,
            "repositories": (*own, *unrecorded),
            "promotionpolicies": (*own, *unrecorded),
        }
        return {
            (kind, it["metadata"]["name"]): _without(it.get("status", {}), fields)
            for kind, fields in left_out.items()
            for it in self.list_items(kind)
        }

    def await_statuses(self) -> dict[tuple[str, str], Any]:
        """Return the statuses once they are written, which a pass does not wait for.

        Those of a pass are written before those of the next one.
        """
        for _ in range(2):
            requested = self.request_pass()
            self.until(partial(self.has_handled, requested))
        return self.statuses()

    def has_handled(self, requested: str) -> bool:
        """Return whether the status of the policy shows the request for a pass."""
        (status,) = (
            it.get("status", {})
            for it in self.list_items("upstreampolicies")
            if it["metadata"]["name"] == "monitoring"
        )
        return bool(status.get("lastHandledReconcileAt") == requested)

    # ---- the repositories ----------------------------------------------------------------------

    @property
    def records(self) -> Repo:
        return self.fleet.repos["records"]

    @property
    def edges(self) -> list[Repo]:
        return [self.fleet.repos[f"edge-{number}"] for number in range(REPOSITORIES)]

    def drafts(self) -> list[str]:
        return [draft for repo in self.edges for draft in repo.drafts()]

    def draft_trees(self) -> list[str]:
        """Return the tree of the package of each draft; a branch is named by path and policy."""
        return [
            repo.git("rev-parse", f"drafts/default/{draft}:{draft.rpartition('/')[0]}")
            for repo in self.edges
            for draft in repo.drafts()
        ]

    def heads(self) -> dict[str, str]:
        return {it.path.stem: it.refs()["refs/heads/main"] for it in self.edges}

    def packages(self) -> set[str]:
        suffix = "/Kptfile"
        files = (path for repo in self.edges for path in repo.files())
        return {path.removesuffix(suffix) for path in files if path.endswith(suffix)}

    def refs(self) -> dict[str, dict[str, str]]:
        return self.fleet.refs()


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _without(it, names) for key, it in value.items() if key not in names}
    return [_without(it, names) for it in value] if isinstance(value, list) else value


@contextmanager
def begin(tmp_path: Path) -> Iterator[Life]:
    with running_kube_server(tmp_path / "kubernetes") as server:
        life = Life(server, tmp_path)
        try:
            yield life
        finally:
            for process in life.processes:
                process.kill()
                process.wait()


def populate(life: Life) -> None:
    """Make repositories, and manifests of sites, policies and Repositories."""
    fleet = life.fleet
    fleet.repository("records", declare=False, first=False)
    fleet.repository("blueprints")
    fleet.release("v1")
    for number in range(REPOSITORIES):
        fleet.repository(f"edge-{number}")
    for number in range(SITES):
        tier = "dev" if number < DEV_SITES else "prod"
        fleet.site(name_site(number), tier, f"edge-{number % REPOSITORIES}")
    fleet.write("policy.yaml", POLICY)
    for name in ("alerts", "dashboards"):
        fleet.write(f"{name}.yaml", SMALL.replace("NAME", name))
    schedule_sweeps(life, '  schedule: "* * * * *"\n')


def schedule_sweeps(life: Life, schedule: str) -> None:
    life.fleet.write("promotion.yaml", PROMOTION.replace("SCHEDULE", schedule))


def test_a_fleet_lives(tmp_path: Path):
    with begin(tmp_path) as life:
        life.install()
        make_older(life)
        populate(life)
        life.apply()
        life.start()
        draft_and_sweep(life)
        promote(life)
        change_objects(life)
        upgrade(life)
        delete_policies(life)
        empty_etcd(life)


DEV = {f"sites/{name_site(number)}" for number in range(DEV_SITES)}
PROD = {f"sites/{name_site(number)}" for number in range(DEV_SITES, SITES)}
ALERTS, DASHBOARDS = {"alerts/a", "alerts/b"}, {"dashboards/a", "dashboards/b"}
FIRST = DEV | ALERTS | DASHBOARDS


def make_older(life: Life) -> None:
    """Install definitions that lack what a later version adds."""
    for item in life.server.list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
        if item["spec"]["group"] == "fanout.dev":
            (version,) = item["spec"]["versions"]
            del version["additionalPrinterColumns"]
            life.patch("crd", item["metadata"]["name"], versions=[version])


def draft_and_sweep(life: Life) -> None:
    """Await drafts of the first stage, and their publication by a sweep of the schedule."""
    life.until(lambda: life.packages() == FIRST)
    triggers = [it["trigger"] for it in life.read_passes() if "published" in it]
    assert triggers, life.log()
    assert all("schedule" in it for it in triggers), triggers
    items = life.list_items("upstreampolicies")
    assert all(it["metadata"]["finalizers"] == ["fanout.dev/removal"] for it in items)
    # The rest need not wait for the next minute.
    schedule_sweeps(life, "")
    life.apply()


def promote(life: Life) -> None:
    """Report a check, and have two people approve the drafts of the next stage."""
    life.until_in_force()
    evidence = {"check": "e2e", "status": "passed", "revision": "v1", "stage": "dev"}
    assert life.is_refused("Evidence", "alice", **evidence)
    life.record("Evidence", "carol", **evidence)
    life.until(lambda: len(life.drafts()) == len(PROD))
    trees = life.draft_trees()
    approval = {"check": "ok", "revision": "v1", "stage": "prod", "trees": trees}
    life.record("Approval", "alice", **approval)
    life.record("Approval", "alice", **approval)  # the same person
    life.until_recorded("approvals", 2)
    life.request_pass()
    assert not PROD & life.packages()
    life.record("Approval", "bob", **approval)
    life.until(lambda: life.packages() == FIRST | PROD)


def change_objects(life: Life) -> None:
    """Change a ConfigMap, and delete a target, whose removal two people approve."""
    site, repo = name_site(0), life.edges[0]
    settings, before = f"sites/{site}/settings.yaml", life.heads()
    assert "7d" in repo.file("main", settings)
    life.fleet.site(site, "dev", "edge-0", retention="30d")
    life.apply()
    life.until(lambda: "30d" in repo.file("main", settings))
    after = life.heads()
    assert {name for name in before if before[name] != after[name]} == {"edge-0"}
    removed_site = name_site(SITES - 1)
    life.fleet.remove(f"site-{removed_site}.yaml")
    life.kubectl("delete", "cluster", removed_site)
    branch = f"refs/heads/drafts/default/_removals/{NAMESPACE}.monitoring/prod"
    life.until(lambda: any(branch in it.refs() for it in life.edges))
    [edge] = [it for it in life.edges if branch in it.refs()]
    tree = edge.git("rev-parse", f"{branch}^{{tree}}").strip()
    for person in ("alice", "bob"):
        assert f"sites/{removed_site}" in life.packages()
        life.record("Approval", person, check="ok", stage="prod", trees=[tree])
    life.until(lambda: life.packages() == (FIRST | PROD) - {f"sites/{removed_site}"})


def upgrade(life: Life) -> None:
    """Apply the base while the controller runs; nothing is written to Git because of it."""
    assert "READY" not in life.kubectl("get", "upstreampolicies")
    life.request_pass()
    before = life.refs()
    life.apply_base()
    life.until(lambda: "READY" in life.kubectl("get", "upstreampolicies"))
    life.request_pass()
    assert life.refs() == before


def delete_policies(life: Life) -> None:
    """Delete one policy with Orphan, and one with Delete."""
    for name in ("alerts", "dashboards"):
        life.fleet.remove(f"{name}.yaml")
    heads = life.heads()
    life.patch("upstreampolicy", "dashboards", deletionPolicy="Orphan")
    life.kubectl("delete", "upstreampolicy", "dashboards", "--timeout=120s")
    # kubectl is not the last word over a fleet.
    life.kubectl("delete", "upstreampolicy", "alerts", "--wait=false")
    life.request_pass("alerts")
    assert life.heads() == heads
    life.patch("upstreampolicy", "alerts", removalLimit="100%")
    life.kubectl("wait", "--for=delete", "upstreampolicy/alerts", "--timeout=120s")
    assert life.packages() & (ALERTS | DASHBOARDS) == DASHBOARDS


def empty_etcd(life: Life) -> None:
    """Empty etcd and apply the manifests again: nothing is written that is in Git already."""
    statuses, refs = life.await_statuses(), life.refs()
    life.stop()
    life.server.stop()
    shutil.rmtree(life.server.root / "etcd")
    life.server.start()
    life.install()
    life.apply()
    life.start()
    life.until(lambda: life.statuses() == statuses)
    life.request_pass()
    assert life.refs() == refs
