"""Time from a changed object in a cluster to its pushed draft, with `fanout controller`."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks import inputs
from benchmarks.kube_status import Fleet
from benchmarks.rows import Row, at_most
from fanout.kube.api_connection import MERGE_TYPE, ApiConnection, open_connection

_CHANGES, _TOGETHER = 20, 100
_ROUNDS = 1  # for all that change together
_MEDIAN, _SLOWEST = 1.0, 1.5  # seconds, on a quiet machine
_BESIDE = 3.0  # seconds, while the first drafts of another policy are written
_BEATS_EACH_SECOND = 10
_OTHER = "logging"  # another policy
_QUIET = 3.0  # seconds without a line of the log and a write of a status
_PATIENCE = 1_800.0  # seconds
_MAPS = f"/api/v1/namespaces/{inputs.NAMESPACE}/configmaps"
_CLUSTERS = f"/apis/infra.example.com/v1/namespaces/{inputs.NAMESPACE}/clusters"
_VARIANTS = f"/apis/fanout.dev/v1alpha1/namespaces/{inputs.NAMESPACE}/packagevariants"


class Controller:
    """A process of `fanout controller` and its log.

    Of the log only what is new is read: to parse all of it, over and over, took a processor away
    from the process that is measured.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Read the log of a process that has just started."""
        self._process = process
        self._log = log
        self._read_size = 0  # bytes
        self._drafts: dict[str, list[datetime]] = {}  # by policy
        self._lines: list[dict[str, Any]] = []  # all others

    def drafts(self, policy: str = inputs.PACKAGE) -> list[datetime]:
        """Return when each draft of a policy was written, as the log says after the push."""
        self._read_on()
        return self._drafts.get(f"{inputs.NAMESPACE}/{policy}", [])

    def rounds(self) -> list[int]:
        """Return the number of drafts of each pass that wrote any."""
        return [it["drafts_written"] for it in self._read_on() if "drafts_written" in it]

    def memory(self) -> int:
        """Return the most memory that the process has taken, in MB."""
        return self._read_memory("VmHWM")

    def resident(self) -> int:
        """Return the memory that the process has now, in MB."""
        return self._read_memory("VmRSS")

    def _read_memory(self, field: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = (it for it in status.splitlines() if it.startswith(f"{field}:"))
        return int(line.split()[1]) // 1024

    def passes(self) -> list[dict[str, Any]]:
        """Return the lines about passes; the log has all of them with `-v`."""
        return [it for it in self._read_on() if it["event"] == "Pass done"]

    def problems(self) -> list[dict[str, Any]]:
        """Return the lines about problems and their ends."""
        return [it for it in self._read_on() if "problem" in it]

    def processor(self) -> float:
        """Return the seconds of processor that the process has used."""
        user, system = Path(f"/proc/{self._process.pid}/stat").read_text().split()[13:15]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def log_size(self) -> int:
        """Return the size of the log in bytes."""
        return self._log.stat().st_size

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises RuntimeError if the process ends before."""
        end = time.monotonic() + _PATIENCE
        while not condition():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(self._log.read_text()[-2000:])
            time.sleep(0.01)

    def _read_on(self) -> list[dict[str, Any]]:
        """Read what is new in the log; return all lines that are not about drafts."""
        with self._log.open("rb") as log:
            log.seek(self._read_size)
            content = log.read()
        complete, newline, _ = content.rpartition(b"\n")
        self._read_size += len(complete + newline)
        for line in complete.splitlines():
            it = json.loads(line) if line.startswith(b"{") else {}
            if it.get("event") == "Draft written":
                self._drafts.setdefault(it["policy"], []).append(_instant(it))
            elif it:
                self._lines.append(it)
        return self._lines


def measure_latency(world: Fleet) -> Iterator[Row]:
    """Yield the seconds from a change to its draft, and the rounds of changes made together."""
    connection = open_connection(world.server.kubeconfig, "admin")
    names = [it["metadata"]["name"] for it in connection.get(_MAPS)["items"]]
    with _running(world, "-v") as controller:
        begin = datetime.now(UTC)
        _await_fan_out(world, controller, connection)
        push = (controller.drafts()[-1] - begin).total_seconds()
        delays = [_measure_change(controller, connection, it) for it in names[:_CHANGES]]
        rounds_before, drafts_before = len(controller.rounds()), len(controller.drafts())
        together = names[_CHANGES : _CHANGES + _TOGETHER]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda name: _change(connection, name), together))
        controller.wait(lambda: len(controller.drafts()) >= drafts_before + len(together))
        rounds = len(controller.rounds()) - rounds_before
        memory = controller.memory()
    yield Row("controller/last-push", round(push, 2), "s")
    yield Row("controller/memory", memory, "MB")
    yield at_most("change-to-draft/median", median(delays), _MEDIAN, "s")
    yield at_most("change-to-draft/95th-percentile", quantiles(delays, n=20)[-1], _SLOWEST, "s")
    yield at_most("changes-together/rounds", rounds, _ROUNDS, "")


def measure_latency_beside_fan_out(world: Fleet) -> Iterator[Row]:
    """Yield the seconds from a change to its draft while another policy writes its first ones.

    Once the drafts wait for a sweep, and once they are published in the rounds after.
    """
    delays = _measure_beside(world, publishes=False)
    yield Row("change-beside-drafts/changes", len(delays), "")
    yield Row("change-beside-drafts/median", round(median(delays), 2), "s")
    yield at_most("change-beside-drafts/slowest", max(delays), _BESIDE, "s")
    delays = _measure_beside(world, publishes=True)
    yield Row("change-beside-publications/changes", len(delays), "")
    yield Row("change-beside-publications/median", round(median(delays), 2), "s")
    yield Row("change-beside-publications/slowest", round(max(delays), 2), "s")


def _measure_beside(world: Fleet, *, publishes: bool) -> list[float]:
    """Return the delays of changes, one after the other, until another policy has all drafts."""
    connection = open_connection(world.server.kubeconfig, "admin")
    names = [it["metadata"]["name"] for it in connection.get(_MAPS)["items"]]
    delays: list[float] = []
    # The policy is deleted after the controller has ended, which would else give it a finalizer.
    with ExitStack() as stack, _running(world, "-v") as controller:
        _await_fan_out(world, controller, connection)
        stack.enter_context(create_policy(connection, publishes=publishes))
        controller.wait(lambda: controller.drafts(_OTHER))
        for name in names:
            delay = _await_draft(controller, connection, name)
            if len(controller.drafts(_OTHER)) >= world.size.targets:
                break  # this change may have come after the last of them
            delays.append(delay)
    return delays


def measure_heartbeats(world: Fleet) -> Iterator[Row]:
    """Yield the passes and the processor time that statuses of targets cause."""
    connection = open_connection(world.server.kubeconfig, "admin")
    names = [it["metadata"]["name"] for it in connection.get(_CLUSTERS)["items"]]
    with _running(world, "-v") as controller:
        _await_fan_out(world, controller, connection)
        passes_before, processor = len(controller.passes()), controller.processor()
        begin, beats = time.monotonic(), 0
        while (passed := time.monotonic() - begin) < world.minutes * 60:
            body = {"status": {"heartbeat": datetime.now(UTC).isoformat()}}
            path = f"{_CLUSTERS}/{names[beats % len(names)]}/status"
            connection.send("PATCH", path, body, MERGE_TYPE)
            beats += 1
            time.sleep(max(beats / _BEATS_EACH_SECOND - passed, 0))
        processor = controller.processor() - processor
        time.sleep(_QUIET)
        passes = controller.passes()[passes_before:]
        for line in (*passes, *(controller.problems() if passes else ())):
            print(line, file=sys.stderr)
    yield Row("heartbeats/minutes", world.minutes, "")
    yield Row("heartbeats/beats", beats, "")
    yield Row("heartbeats/processor-of-each", round(processor / beats * 1e3, 2), "ms")
    yield at_most("heartbeats/passes", len(passes), 0, "")


@contextmanager
def create_policy(connection: ApiConnection, *, publishes: bool) -> Iterator[None]:
    """Create a second policy over the same targets, with paths of its own, for a while.

    `publishes`: False: in sweeps alone, of which there is none.
    """
    prefix = f"/apis/fanout.dev/v1alpha1/namespaces/{inputs.NAMESPACE}"
    spec = connection.get(f"{prefix}/upstreampolicies/{inputs.PACKAGE}")["spec"]
    downstream = spec["targets"][0]["template"]["downstream"]
    downstream["packageExpr"] = f"'{_OTHER}/' + target.metadata.name"
    objects = [("upstreampolicies", "UpstreamPolicy", spec)]
    if not publishes:
        yearly = {"policies": [_OTHER], "schedule": "0 0 1 1 *"}
        objects.insert(0, ("promotionpolicies", "PromotionPolicy", yearly))
    for plural, kind, content in objects:
        head = {"apiVersion": "fanout.dev/v1alpha1", "kind": kind, "metadata": {"name": _OTHER}}
        connection.send("POST", f"{prefix}/{plural}", {**head, "spec": content})
    try:
        yield
    finally:
        for plural, _, _ in objects:
            path = f"{prefix}/{plural}/{_OTHER}"
            change = {"metadata": {"finalizers": None}}  # no controller is to remove its packages
            connection.send("PATCH", path, change, MERGE_TYPE)
            connection.send("DELETE", path)


def _measure_change(controller: Controller, connection: ApiConnection, name: str) -> float:
    """Return the seconds from a change to its draft, and wait until nothing happens any more."""
    delay = _await_draft(controller, connection, name)
    _await_quiet(controller, connection)
    return delay


def _await_draft(controller: Controller, connection: ApiConnection, name: str) -> float:
    """Return the seconds from the response about a change to the draft of its variant."""
    count = len(controller.drafts())
    _change(connection, name)
    acknowledged = datetime.now(UTC)
    controller.wait(lambda: len(controller.drafts()) > count)
    return (controller.drafts()[-1] - acknowledged).total_seconds()


def _change(connection: ApiConnection, name: str) -> None:
    value = str(time.monotonic_ns())
    connection.send("PATCH", f"{_MAPS}/{name}", {"data": {"changed": value}}, MERGE_TYPE)


def _await_fan_out(world: Fleet, controller: Controller, connection: ApiConnection) -> None:
    """Wait until all targets have drafts and statuses, and a pass has found nothing to do."""
    controller.wait(lambda: len(controller.drafts()) >= world.size.targets)
    controller.wait(lambda: _is_idle(controller.passes()[-1]))
    _await_quiet(controller, connection)


def _await_quiet(controller: Controller, connection: ApiConnection) -> None:
    """Wait until nothing is published and no status is written any more."""
    state, since = ("", 0), time.monotonic()
    while time.monotonic() - since < _QUIET:
        # One object: the version of the list is that of the storage.
        version = connection.get(f"{_VARIANTS}?limit=1")["metadata"]["resourceVersion"]
        present = (version, controller.log_size())
        if present != state:
            state, since = present, time.monotonic()
        time.sleep(0.2)


def _is_idle(line: dict[str, Any]) -> bool:
    """Return whether the line is about a pass that did nothing."""
    return line.keys() <= {"trigger", "sweep", "event", "level", "timestamp"}


def _instant(line: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(line["timestamp"])


@contextmanager
def run_process(world: Fleet, name: str, line: Sequence[str]) -> Iterator[Controller]:
    """Run a process of a fleet without drafts, records and caches; `line`: verb and options."""
    world.clear()
    log, state, records = (world.place / f"{name}{it}" for it in (".log", "", "-records.git"))
    for path in (state, records):
        shutil.rmtree(path, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", str(records)], check=True)
    command = [sys.executable, "-m", "fanout", *line, "--interval", "2h"]
    command += ["--records", str(records), "--state-dir", str(state)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=world.place, stderr=output)
        try:
            yield Controller(process, log)
        finally:
            process.terminate()
            process.wait(60)


def controller_line(world: Fleet) -> list[str]:
    """Return verb and options of a controller of the fleet."""
    return ["controller", "--kubeconfig", str(world.server.kubeconfig), "--context", "admin"]


def _running(world: Fleet, *options: str) -> AbstractContextManager[Controller]:
    return run_process(world, "latency", [*controller_line(world), *options])
