"""Two installations in one cluster: the first writes statuses, the second says that it does not."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube.tenants import OWN, BeginController, CreateTenant, condition
from kube.test_two_controllers import are_steady
from kube_server import CONTROLLER, KubeServer
from run_process import Running

from fanout.git.mirror import create_bare
from fanout.kube.api_connection import open_connection
from fanout.kube.installation_lease import InstallationLease

pytestmark = pytest.mark.kube

LEASES = "coordination.k8s.io/v1"
HASTY = """\
from datetime import timedelta
from fanout.cli.main import run
from fanout.kube import pending_records, installation_lease
from fanout.controller import status_thread
pending_records.IN_FORCE_AFTER = timedelta(seconds=1)
installation_lease.LEASE_TIME = timedelta(seconds=5)
installation_lease.RENEWAL_PAUSE = 0.5
status_thread.RETRY_PAUSE = 0.5
run()
"""
RECORDS = ("ssh://git@git.example.com/a.git", "ssh://git@git.example.com/b.git")


@pytest.fixture
def leases(server: KubeServer, kube_namespace: str) -> Iterator[list[InstallationLease]]:
    """Two installations, in one namespace."""
    connection = open_connection(server.kubeconfig, "admin")
    yield [InstallationLease(connection, kube_namespace, "default", it) for it in RECORDS]
    server.clear(LEASES, "Lease")


def test_the_first_writes_and_the_second_names_it(leases: list[InstallationLease]):
    first, second = leases
    for lease in (first, second, first, second):
        lease.renew()
    assert first.find_obstacle() == ""
    obstacle = second.find_obstacle()
    assert f"installation default with the records {RECORDS[0]} (Lease test-" in obstacle
    assert "stop one of them" in obstacle


def test_the_second_goes_on_when_the_first_has_ended(
    server: KubeServer, kube_namespace: str, leases: list[InstallationLease]
):
    first, second = leases
    for lease in leases:
        lease.renew()
    assert second.find_obstacle()
    for item in server.list(LEASES, "Lease", kube_namespace):
        if RECORDS[0] in item["spec"]["holderIdentity"]:
            ended = {"renewTime": "2026-01-01T00:00:00.000000Z"}
            server.patch({**item, "apiVersion": LEASES, "kind": "Lease"}, {"spec": ended})
    second.renew()
    assert second.find_obstacle() == ""
    # What has ended begins anew, behind what goes on.
    for lease in (first, second):
        lease.renew()
    assert [bool(it.find_obstacle()) for it in leases] == [True, False]


def test_processes_of_one_installation_share_a_lease(server: KubeServer, kube_namespace: str):
    connection = open_connection(server.kubeconfig, "admin")
    pair = [InstallationLease(connection, kube_namespace, "a", RECORDS[0]) for _ in range(2)]
    for lease in (*pair, *pair):
        lease.renew()
    assert [it.find_obstacle() for it in pair] == ["", ""]
    assert len(server.list(LEASES, "Lease", kube_namespace)) == 1


def test_an_installation_without_write_access_yields_and_one_without_list_access_continues(
    admission_server: KubeServer, kube_namespace: str, caplog: pytest.LogCaptureFixture
):
    admin = open_connection(admission_server.kubeconfig, "admin")
    controller = open_connection(admission_server.kubeconfig, CONTROLLER)
    outsider = open_connection(admission_server.kubeconfig, "carol")
    alone = InstallationLease(controller, kube_namespace, "b", RECORDS[1])
    alone.renew()
    assert alone.find_obstacle() == ""
    InstallationLease(admin, kube_namespace, "a", RECORDS[0]).renew()
    alone.renew()
    assert RECORDS[0] in alone.find_obstacle()
    without = InstallationLease(outsider, kube_namespace, "c", RECORDS[1])
    without.renew()
    assert without.find_obstacle() == ""
    own = InstallationLease(controller, "fanout-system", "b", RECORDS[1])
    own.renew()
    names = [it["metadata"]["namespace"] for it in admission_server.list(LEASES, "Lease")]
    assert "fanout-system" in names, "the base has the right"


def begin_in_base(
    begin: BeginController, twin: Any, root: Path, records: str, name: str
) -> Running:
    """Begin a controller whose context has the namespace of the base, with other records."""
    config = yaml.safe_load(twin.server.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = "fanout-system"
    path = root / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    options = ("--kubeconfig", str(path), "--context", CONTROLLER, "--records", records)
    return begin(twin, *options, program=("-c", HASTY), records=False, name=name)


def statuses(twin: Any) -> dict[str, Any]:
    kinds = ("UpstreamPolicy", "PackageVariant", "Repository", "PromotionPolicy")
    return {
        f"{kind}/{it['metadata']['name']}": (it["metadata"]["resourceVersion"], it.get("status"))
        for kind in kinds
        for it in twin.server.list(OWN, kind, twin.namespace)
    }


def test_a_second_installation_leaves_the_statuses_alone_until_the_first_has_ended(
    tenant: CreateTenant, begin: BeginController, tmp_path: Path
):
    twin = tenant({"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    paths = [tmp_path / it for it in ("records-a.git", "records-b.git")]
    for path in paths:
        create_bare(path)
    first = begin_in_base(begin, twin, tmp_path, str(paths[0]), "-a")
    first.until(lambda: len(twin.server.list(OWN, "PackageVariant", twin.namespace)) == 2)
    first.until(lambda: are_steady(twin))
    before = statuses(twin)
    second = begin_in_base(begin, twin, tmp_path, str(paths[1]), "-b")
    second.until(lambda: [it for it in second.log() if it["event"] == "Status is not written"])
    [line] = [it for it in second.log() if it["event"] == "Status is not written"]
    assert f"with the records {paths[0]} (Lease fanout-system/fanout-" in line["problem"]
    second.until(lambda: are_steady(twin))
    assert statuses(twin) == before
    assert not [it for it in first.log() if it["event"] == "Status is not written"]
    assert first.end() == 0
    # Its records know nothing of what is downstream, and now everybody sees that.
    ready = partial(condition, twin, "UpstreamPolicy", "monitoring", "Ready")
    second.until(lambda: ready().get("reason") == "RecordsLost")
    assert second.end() == 0
