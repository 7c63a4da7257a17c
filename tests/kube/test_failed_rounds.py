"""Statuses while a round fails as a whole: what people see when records cannot be read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from http_git import GitServer, serving
from kube import tenants
from kube.twin import Twin, open_twin
from kube_server import KubeServer
from run_process import Running, run_processes

from fanout.git.mirror import create_bare

pytestmark = pytest.mark.kube
SCHEDULE = {"schedule": "0 9 * * *"}


def drop_connection(path: str) -> None:
    """Give no response, as a host that is down."""
    raise ConnectionError(path)


class Outage:
    """A fleet in a cluster, with a controller and a host of records that may be down."""

    def __init__(self, twin: Twin, begin: Any, host: GitServer) -> None:
        self.twin, self.host = twin, host
        self._begin = begin
        self.controller: Running | None = None

    def start(self) -> None:
        options = ["--kubeconfig", str(self.twin.server.kubeconfig), "--context", "admin"]
        options += ["--records", self.host.url("records.git"), "--interval", "1h"]
        self.controller = self._begin(self.twin.fleet, *options, verb=("controller",))

    def end(self) -> None:
        assert self.controller is not None
        assert self.controller.end() == 0

    def begin_outage(self) -> None:
        """Let the host of the records be down."""
        self.host.before = drop_connection

    def end_outage(self) -> None:
        self.host.before = lambda _: None

    def until(self, condition: Any) -> None:
        assert self.controller is not None
        self.controller.until(condition)

    def policy(self) -> dict[str, Any]:
        """Return the status of the policy."""
        meta = {"name": "monitoring", "namespace": self.twin.namespace}
        head = {"apiVersion": "fanout.dev/v1alpha1", "kind": "UpstreamPolicy", "metadata": meta}
        status: dict[str, Any] = self.twin.server.get(head).get("status", {})
        return status

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Return status and reason of the policy's conditions by type."""
        items = self.policy().get("conditions", ())
        return {it["type"]: (it["status"], it["reason"]) for it in items}

    def variants(self) -> dict[str, Any]:
        items = self.twin.server.list("fanout.dev/v1alpha1", "PackageVariant", self.twin.namespace)
        return {it["metadata"]["name"]: it.get("status") for it in items}


@pytest.fixture
def outage(server: KubeServer, tmp_path: Path) -> Iterator[Outage]:
    create_bare(tmp_path / "hosts" / "records.git")
    with (
        open_twin(server, tmp_path / "fleet") as twin,
        run_processes(FANOUT_NOW="") as begin,
        serving(tmp_path / "hosts") as host,
    ):
        yield Outage(twin, begin, host)


def settle(outage: Outage) -> None:
    """Start the controller, and wait until two stages have what they can have."""
    outage.start()
    outage.until(lambda: len(outage.variants()) == 3)
    outage.until(lambda: all(outage.variants().values()) and outage.policy().get("counts"))
    outage.until(lambda: outage.policy()["counts"].get("Verifying"))
    states = {"Verifying", "Drafted"}
    outage.until(lambda: {it["state"] for it in outage.variants().values()} == states)


def message_of(status: dict[str, Any], condition: str) -> str:
    """Return the message of a condition."""
    (text,) = (it["message"] for it in status["conditions"] if it["type"] == condition)
    return str(text)


def request_pass(outage: Outage, value: str) -> None:
    """Ask for a pass over the policy."""
    tenants.request_pass(outage.twin, value)


UNREACHABLE = ("False", "RemoteUnavailable")


@pytest.mark.parametrize("is_scheduled", [False, True], ids=["plain", "scheduled"])
def test_a_process_that_never_reaches_the_records_says_so(outage: Outage, is_scheduled: bool):
    if is_scheduled:
        meta = {"name": "everything", "namespace": outage.twin.namespace}
        head = {"apiVersion": "fanout.dev/v1alpha1", "kind": "PromotionPolicy", "metadata": meta}
        outage.twin.server.patch(head, {"spec": SCHEDULE})
    outage.begin_outage()
    outage.start()
    outage.until(lambda: outage.conditions().get("Ready") == UNREACHABLE)
    assert outage.conditions().keys() == {"Ready", "Reconciling"}
    assert outage.policy()["observedGeneration"] == 1
    message = message_of(outage.policy(), "Ready")
    assert outage.host.url("records.git") in message
    assert "make this records repository reachable" in message
    assert outage.variants() == {}
    outage.end_outage()
    outage.until(lambda: len(outage.variants()) == 3)
    outage.until(lambda: outage.conditions()["Ready"] != UNREACHABLE)
    outage.end()


def test_a_process_that_starts_in_an_outage_keeps_what_was_written(outage: Outage):
    settle(outage)
    outage.end()
    before, variants = outage.policy(), outage.variants()
    outage.begin_outage()
    outage.start()
    outage.until(lambda: outage.conditions()["Ready"] == UNREACHABLE)
    during = outage.policy()
    assert {**during, "conditions": None} == {**before, "conditions": None}
    assert outage.variants() == variants
    outage.end_outage()
    outage.until(lambda: outage.policy() == before)
    assert outage.variants() == variants
    outage.end()


def test_an_outage_is_shown_beside_what_the_last_pass_saw(outage: Outage):
    settle(outage)
    before, variants = outage.policy(), outage.variants()
    outage.begin_outage()
    request_pass(outage, "during")
    outage.until(lambda: "RecordsUnreadable" in outage.conditions())
    assert outage.conditions()["Ready"] == ("False", "Progressing")
    assert outage.host.url("records.git") in message_of(outage.policy(), "RecordsUnreadable")
    assert outage.variants() == variants
    outage.end_outage()
    request_pass(outage, "after")
    outage.until(lambda: "RecordsUnreadable" not in outage.conditions())
    assert outage.policy() == {**before, "lastHandledReconcileAt": "after"}
    outage.end()


def test_a_records_repository_that_does_not_exist_needs_a_person(outage: Outage):
    records = outage.host.root / "records.git"
    records.rename(records.with_name("elsewhere.git"))
    outage.start()
    outage.until(lambda: outage.conditions().get("Ready") == ("False", "RemoteNotFound"))
    assert outage.conditions().keys() == {"Ready", "Stalled"}
    message = message_of(outage.policy(), "Ready")
    assert "name their repository with --records" in message
    assert "accept-records" not in message
    outage.end()
