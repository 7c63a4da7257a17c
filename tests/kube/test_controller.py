"""`fanout controller` as a process on a real kube-apiserver."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from threading import Event, Thread
from time import monotonic, monotonic_ns, sleep
from typing import Any

import pytest
import yaml
from kube.record_fleet import (
    WRITER,
    await_age,
    decision,
    granted,
    install_admission,
    record,
    remove_admission,
)
from kube.status_world import WRITES, count_requests
from kube.tenants import OWN, await_kinds, own, request_pass
from kube.twin import Sites, Twin, install_clusters, open_twin
from kube_server import KubeServer
from run_process import PATIENCE, Running, run_processes

from fanout.git.mirror import create_bare
from fanout.kube import pending_records
from fanout.kube.api_connection import CONNECTIONS, MERGE_TYPE, open_connection

pytestmark = pytest.mark.kube


@pytest.fixture
def sites() -> Sites:
    """The sites of the twin; a test with others names them as a parameter."""
    return None


# A fixture, never a block in a test: controllers, which write to its objects, end before it.
@pytest.fixture
def twin(server: KubeServer, tmp_path: Path, sites: Sites) -> Iterator[Twin]:
    with open_twin(server, tmp_path, sites) as twin:
        yield twin


def name_sites(count: int) -> Sites:
    """Return so many sites in one stage and one repository."""
    return {f"site-{number:03}": ("dev", "edge") for number in range(count)}


Start = Callable[..., Running]
HASTY = (str(Path(__file__).parent / "hasty_controller.py"),)


@pytest.fixture
def start(twin: Twin) -> Iterator[Start]:
    """Return a function that starts a controller for the twin."""
    with run_processes(FANOUT_NOW="") as begin:

        def begin_controller(*options: str, by: str = "admin") -> Running:
            shared = ["--kubeconfig", str(twin.server.kubeconfig), "--context", by]
            records = twin.fleet.records().path
            if not records.exists():
                create_bare(records)
            shared += ["--records", str(records)]
            return begin(twin.fleet, *shared, *options, program=HASTY, verb=("controller",))

        yield begin_controller


def test_objects_become_drafts_and_a_changed_object_another_one(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: edge.tags() == ["sites/ams/v1"])
    before = edge.refs("refs/heads/drafts")
    meta = {"name": "ams", "namespace": twin.namespace}
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    twin.server.patch(changed, {"data": {"retention": "30d"}})
    controller.until(lambda: edge.refs("refs/heads/drafts") != before)
    assert controller.end() == 0


def patch_retention(twin: Twin, name: str, retention: str) -> None:
    """Change the ConfigMap of a site."""
    meta = {"name": name, "namespace": twin.namespace}
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    twin.server.patch(changed, {"data": {"retention": retention}})


def rounds_that_wrote(controller: Running) -> list[int]:
    """The numbers of drafts that each pass wrote, without passes that wrote none."""
    return [it["drafts_written"] for it in controller.passes() if "drafts_written" in it]


@pytest.mark.parametrize("sites", [name_sites(100)], ids=["100"])
def test_objects_that_change_together_are_one_round(twin: Twin, start: Start, sites: Sites):
    controller = start("--interval", "1h")
    controller.until(lambda: sum(rounds_that_wrote(controller)) == 100)
    settle(controller)
    before = len(rounds_that_wrote(controller))
    connection = open_connection(twin.server.kubeconfig, "admin")
    path = f"/api/v1/namespaces/{twin.namespace}/configmaps"
    body = {"data": {"retention": "9d"}}
    with ThreadPoolExecutor(CONNECTIONS) as executor:
        send = partial(connection.send, body=body, content_type=MERGE_TYPE)
        # The process stands still meanwhile, so that it meets all changes at once however busy the
        # machine is; that changes settle is in tests/controller/test_run_loop.py.
        controller.process.send_signal(SIGSTOP)
        try:
            list(executor.map(lambda name: send("PATCH", f"{path}/{name}"), sites or {}))
        finally:
            controller.process.send_signal(SIGCONT)
    controller.until(lambda: sum(rounds_that_wrote(controller)) == 200)
    # One, but a process that gets no processor for a tenth of a second sees a gap between two
    # changes, after which the ones before it are a round of their own.
    assert len(rounds_that_wrote(controller)) - before <= 2


def test_objects_that_change_all_the_time_hold_up_no_draft(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    settle(controller)
    before, stopped = len(rounds_that_wrote(controller)), Event()

    def change() -> None:
        connection = open_connection(twin.server.kubeconfig, "admin")
        path = f"/api/v1/namespaces/{twin.namespace}/configmaps/ams"
        while not stopped.wait(0.005):
            body = {"data": {"retention": f"{monotonic_ns()}s"}}
            connection.send("PATCH", path, body, MERGE_TYPE)

    thread = Thread(target=change)
    thread.start()
    try:
        controller.until(lambda: len(rounds_that_wrote(controller)) >= before + 2)
    finally:
        stopped.set()
        thread.join()


def settle(controller: Running) -> int:
    """Wait until a pass has nothing to do; return the number of passes."""
    controller.until(lambda: controller.passes() and is_idle(controller.passes()[-1]))
    return len(controller.passes())


def is_idle(line: dict[str, Any]) -> bool:
    return line.keys() <= {"trigger", "sweep", "event", "level", "timestamp"}


def test_heartbeats_in_a_status_make_no_pass(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    settle(controller)
    patch_retention(twin, "ams", "30d")
    controller.until(lambda: len(rounds_that_wrote(controller)) == 2)
    passes = settle(controller)
    for beat in range(100):
        twin.write_status("ams", {"heartbeat": str(beat)})
    # A change after them: a pass of theirs would have come before its own.
    patch_retention(twin, "ams", "31d")
    controller.until(lambda: len(rounds_that_wrote(controller)) == 3)
    assert "drafts_written" in controller.passes()[passes]


def test_a_request_lists_the_repositories_anew(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    settle(controller)
    twin.fleet.release("v2")
    request_pass(twin, "first")
    controller.until(lambda: "request" in controller.triggers())
    controller.until(lambda: len(rounds_that_wrote(controller)) == 2)
    request_pass(twin, "first")
    passes = settle(controller)
    request_pass(twin, "second")
    controller.until(lambda: len(controller.passes()) > passes)


def test_the_api_server_may_restart(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    controller.until(lambda: rounds_that_wrote(controller))
    before = twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))["spec"]
    twin.server.stop()
    try:
        with pytest.raises(OSError, match="refused"):
            twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))
        controller.until(lambda: any(it["event"] == "Watch ended" for it in controller.log()))
    finally:
        twin.server.start()
        await_kinds(twin.server)
    assert twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))["spec"] == before
    patch_retention(twin, "ams", "30d")
    controller.until(lambda: len(rounds_that_wrote(controller)) == 2)
    assert controller.end() == 0


def test_a_definition_that_is_deleted_removes_no_variant(
    twin: Twin, start: Start, request: pytest.FixtureRequest
):
    """Its objects are deleted with it, one by one, before it is gone itself."""
    controller = start("--interval", "1h")
    edge = twin.fleet.repos["edge"]
    controller.until(edge.tags)
    settle(controller)
    before = edge.refs()
    # Else the kind would be one that is installed after its policy.
    metadata = twin.server.get(own(twin, "UpstreamPolicy", "monitoring"))["metadata"]
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    controller.until(lambda: datetime.now(UTC) > created + timedelta(seconds=3))
    twin.server.kubectl("delete", "crd", "clusters.infra.example.com")
    request.addfinalizer(partial(install_clusters, twin.server))
    controller.until(lambda: any("kind Cluster" in it for it in problems(controller)))
    settle(controller)
    assert edge.refs() == before
    install_clusters(twin.server)
    request_pass(twin, "defined anew, without any object")
    controller.until(lambda: controller.count_passes("request") == 1)
    assert edge.refs() == before
    path = str(twin.fleet.root / "policies" / "site-ams.yaml")
    twin.server.kubectl("apply", "-f", path, namespace=twin.namespace)  # one of three
    request_pass(twin, "restored in part")
    controller.until(lambda: controller.count_passes("request") == 2)
    assert edge.refs() == before
    twin.apply()
    patch_retention(twin, "ams", "30d")
    controller.until(lambda: len(edge.drafts()) == len(drafts_in(before)) + 1)
    assert before.items() <= {**edge.refs(), **rendered(before)}.items()
    # A definition that was just created has no conditions.
    assert not [it for it in problems(controller) if "InternalError" in it]


def drafts_in(refs: dict[str, str]) -> list[str]:
    return [ref for ref in refs if ref.startswith("refs/heads/drafts/")]


def rendered(refs: dict[str, str]) -> dict[str, str]:
    return {ref: commit for ref, commit in refs.items() if ref.endswith("/rendered")}


def test_commands_in_the_log_have_the_options_of_their_reader(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    controller.until(lambda: twin.fleet.repos["edge"].tags() == ["sites/ams/v1"])
    settle(controller)
    assert controller.end() == 0
    records = twin.fleet.records()
    (branch,) = (it for it in records.refs() if it.endswith("/monitoring"))
    records.git("update-ref", branch, f"{branch}~1")
    controller = start("--interval", "1h")
    controller.until(lambda: any("accept-records" in it for it in problems(controller)))
    (problem,) = (it for it in problems(controller) if "accept-records" in it)
    (line,) = (it for it in problem.split("`") if it.startswith("fanout accept-records"))
    options = f"--context admin --kubeconfig {twin.server.kubeconfig}"
    assert f"-n {twin.namespace} --reason WHY {options}" in line
    assert controller.end() == 0


def problems(controller: Running) -> list[str]:
    return [it["problem"] for it in controller.log() if "problem" in it]


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: prometheus}}
spec: {{replicas: {}}}
"""
FREEZE = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: freeze}
spec:
  policies: ["*"]
  windows: [{deny: {schedule: "* * * * *", duration: 1h}}]
"""


SUBJECTS = {"subjects": ["user:admin", "user:bob"]}


def ask_for_approvals(twin: Twin) -> None:
    """Let the drafts of dev wait for two approvals."""
    policies = twin.fleet.root / "policies"
    signed = {"name": "signed", "approval": {"atLeast": 2, "from": ["sre"]}}
    for name in ("policy.yaml", "promotion.yaml"):
        item = yaml.safe_load((policies / name).read_text())
        if name == "policy.yaml":
            item["spec"]["stages"][0]["requires"] = [signed]
        else:
            item["spec"]["approvers"] = [{"group": "sre", **SUBJECTS}]
        (policies / name).write_text(yaml.safe_dump(item))
    twin.apply()


class Freeze:
    """A PromotionPolicy whose window is never open."""

    def begin(self, twin: Twin, controller: Running, revision: str) -> None:
        request_pass(twin, revision)

    def restrict(self, twin: Twin) -> None:
        twin.server.create(self._locate(twin))

    def release(self, twin: Twin) -> None:
        twin.server.delete(self._locate(twin))

    def _locate(self, twin: Twin) -> dict[str, Any]:
        freeze: dict[str, Any] = yaml.safe_load(FREEZE)
        freeze["metadata"]["namespace"] = twin.namespace
        return freeze


class Suspension(Freeze):
    """A Decision that suspends the policy."""

    def restrict(self, twin: Twin) -> None:
        self._decide(twin, "Suspend")

    def release(self, twin: Twin) -> None:
        self._decide(twin, "Resume")

    def _decide(self, twin: Twin, action: str) -> None:
        # Without kubectl, whose start takes as long as a pass.
        twin.server.create(decision(twin.namespace, action, by="admin"))


class Revocation(Freeze):
    """One of two approvals is revoked while the other one lets the drafts pass."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {}  # of the first approval
        self.record = ""

    def begin(self, twin: Twin, controller: Running, revision: str) -> None:
        request_pass(twin, revision)
        twin.fleet.now = datetime.now(UTC)
        line = ("approve", "monitoring", "--stage", "dev", "--revision", revision)
        controller.until(lambda: twin.ask(*line, by="admin").code == 0)
        approvals = twin.server.list("fanout.dev/v1alpha1", "Approval", twin.namespace)
        [first] = (it for it in approvals if it["spec"]["revision"] == revision)
        named = {"apiVersion": "fanout.dev/v1alpha1", "kind": "Approval", **first}
        controller.until(lambda: twin.server.get(named).get("status", {}).get("record"))
        self.spec, self.record = first["spec"], twin.server.get(named)["status"]["record"]
        settle(controller)
        self._approve(twin, "bob")

    def restrict(self, twin: Twin) -> None:
        self._approve(twin, "admin", revokes=self.record)

    def release(self, twin: Twin) -> None:
        self._approve(twin, "admin")

    def _approve(self, twin: Twin, by: str, **changes: Any) -> None:
        approval = record("Approval", twin.namespace, by, **self.spec, **changes)
        twin.server.create(approval, by=by)


@pytest.mark.parametrize("restriction", [Freeze(), Suspension(), Revocation()], ids=type)
def test_a_restriction_binds_what_begins_after_it_was_acknowledged(
    twin: Twin,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    restriction: Freeze,
):
    """Races at random instants; RACES=1000 for as many as the bar has."""
    if isinstance(restriction, Revocation):
        ask_for_approvals(twin)
    if type(restriction) is not Freeze:
        monkeypatch.setattr(pending_records, "IN_FORCE_AFTER", timedelta(seconds=1))
        # With them nobody but the service account of a controller writes variants of policies.
        request.addfinalizer(partial(remove_admission, twin.server))
        install_admission(twin.server)
        await_age(twin.server)
        request.getfixturevalue("writers")
    controller = start("--interval", "1h", "-v")
    settle(controller)
    random, races = Random(int(os.environ.get("SEED", "1"))), int(os.environ.get("RACES", "6"))

    def begin(number: int) -> int:
        """Begin a race; return how many passes had published before."""
        published = len(publications(controller))
        revision = f"v1.{number}.0"
        twin.fleet.release(revision, {"deployment.yaml": DEPLOYMENT.format(number)})
        restriction.begin(twin, controller, revision)
        return published

    # How long a publication takes on this machine: half of the instants are to be before it.
    published, begun = begin(1), monotonic()
    controller.until(partial(has_published, controller, published))
    slowest = 2 * (monotonic() - begun)
    settle(controller)
    prevented = race = 0
    while race < races or not 0 < prevented < race:
        assert race < 10 * races, f"{prevented} of {race} restrictions came before the publication"
        published = begin(race + 2)
        sleep(random.uniform(0, slowest))
        restriction.restrict(twin)
        acknowledged = datetime.now(UTC)
        passes = len(controller.passes())
        request_pass(twin, f"{race} again")
        controller.until(partial(has_passed, controller, passes))
        settle(controller)
        late = [it for it in publications(controller)[published:] if it > acknowledged]
        assert not late, controller.path.read_text()
        was_prevented = len(publications(controller)) == published
        prevented += was_prevented
        # The machine is busier or less busy than at first.
        slowest *= 1.2 if was_prevented else 0.8
        race += 1
        restriction.release(twin)
        controller.until(partial(has_published, controller, published))


@pytest.fixture
def writers(server: KubeServer) -> Iterator[None]:
    """All users may record."""
    with granted(server, WRITER, "create", "decisions.fanout.dev"):
        yield


def has_passed(controller: Running, passes: int) -> bool:
    return len(controller.passes()) > passes


def has_published(controller: Running, publications_before: int) -> bool:
    return len(publications(controller)) > publications_before


def publications(controller: Running) -> list[datetime]:
    """The instants at which passes that published had last asked for restrictions."""
    instants, asked = [], None
    for line in controller.log():
        if line["event"] == "Restrictions are read":
            asked = datetime.fromisoformat(line["timestamp"])
        elif line["event"] in ("Pass done", "Pass failed"):
            if "published" in line:
                assert asked is not None, "a pass published without asking for restrictions"
                instants.append(asked)
            asked = None
    return instants


def test_the_controller_writes_statuses_between_rounds(twin: Twin, start: Start):
    controller = start("--interval", "1h")

    def variants() -> list[Any]:
        return twin.server.list("fanout.dev/v1alpha1", "PackageVariant", twin.namespace)

    def is_shown() -> bool:
        states = [it.get("status", {}).get("state") for it in variants()]
        return len(states) == 3 and all(states)

    controller.until(is_shown)
    twin.server.kubectl(
        "wait", "--for=condition=Ready", "repository/edge", namespace=twin.namespace
    )
    twin.server.delete(variants()[0])
    controller.until(is_shown)
    assert controller.end() == 0


@pytest.mark.parametrize("sites", [name_sites(60)], ids=["60"])
def test_a_killed_controller_leaves_only_the_missing_statuses_to_the_next(twin: Twin, start: Start):
    # Drafts alone, so that no variant changes while its status is written.
    everything = {"name": "everything", "namespace": twin.namespace}
    promotion = {"apiVersion": "fanout.dev/v1alpha1", "kind": "PromotionPolicy"}
    twin.server.delete({**promotion, "metadata": everything})

    def list_states() -> list[str]:
        items = twin.server.list(OWN, "PackageVariant", twin.namespace)
        return [it.get("status", {}).get("state", "") for it in items]

    # Requests of a client that is gone are counted as failed, whether they were carried out.
    count_done = partial(count_requests, twin.server, "packagevariants", WRITES, "2")
    before = count_done()
    controller = start("--interval", "1h")
    controller.until(list_states)
    controller.end(SIGKILL)
    controller = start("--interval", "1h")
    controller.until(lambda: len(list(filter(None, list_states()))) == 60)
    assert controller.end() == 0
    # But for what was on its way, one request of each connection, all is written once.
    assert abs(count_done() - before - 2 * 60) <= CONNECTIONS


@pytest.mark.parametrize("name", ["blueprints", "edge"])
def test_a_repository_that_comes_back_is_noticed_without_a_poll(
    twin: Twin, start: Start, name: str
):
    controller = start("--interval", "1h")
    edge = twin.fleet.repos["edge"]
    controller.until(lambda: edge.tags() == ["sites/ams/v1"])
    settle(controller)
    path = twin.fleet.repos[name].path
    away = path.rename(path.with_name("away.git"))
    patch_retention(twin, "ams", "30d")
    request_pass(twin, "first")
    controller.until(lambda: "retry" in controller.triggers())
    away.rename(path)
    controller.until(lambda: len(rounds_that_wrote(controller)) == 2)
    settle(controller)
    assert controller.triggers() & {"retry", "interval"} == {"retry"}
    assert controller.end() == 0


def test_records_that_come_back_are_noticed_without_a_poll(twin: Twin, start: Start):
    controller = start("--interval", "1h")
    edge = twin.fleet.repos["edge"]
    controller.until(edge.tags)
    settle(controller)
    path = twin.fleet.records().path
    away = path.rename(path.with_name("away.git"))
    path.write_text("no repository")
    twin.fleet.release("v2")
    request_pass(twin, "first")
    controller.until(lambda: "retry" in controller.triggers())
    assert all(tag.endswith("/v1") for tag in edge.tags())
    path.unlink()
    away.rename(path)
    controller.until(lambda: any(tag.endswith("/v2") for tag in edge.tags()))
    assert "interval" not in controller.triggers()
    assert controller.end() == 0


def test_a_stop_in_the_middle_of_a_push_waits_for_it(twin: Twin, start: Start):
    edge, root = twin.fleet.repos["edge"], twin.fleet.root
    pushing, opened = root / "pushing", root / "opened"
    edge.hook(
        "pre-receive",
        f"touch {pushing}\nwhile [ -e {pushing} -a ! -e {opened} ]; do sleep 0.1; done",
    )
    controller = start("--interval", "1h")
    try:
        controller.until(pushing.exists)
        controller.process.send_signal(SIGTERM)
    finally:
        opened.touch()
    assert controller.process.wait(PATIENCE) == 0
    assert len(edge.drafts()) == 2
    assert rounds_that_wrote(controller) == [3]
