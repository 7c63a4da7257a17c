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
from benchmarks.kube_fleet import (
    CLUSTERS,
    CONFIG_MAPS,
    CONNECTIONS,
    VARIANTS,
    KubeFleet,
    list_names,
)
from benchmarks.rows import Row, at_most
from fanout.kube.api_connection import MERGE_TYPE, ApiConnection

_CHANGES, _TOGETHER = 20, 100  # changes one after the other, and at the same time
_ROUNDS = 1  # bar for all changes at the same time
_MEDIAN, _SLOWEST = 1.0, 1.5  # bars in seconds, without other work
_BESIDE = 3.0  # bar in seconds while the first drafts of another policy are written
_BEATS_PER_SECOND = 10
_OTHER = "logging"  # name of the second policy
_IDLE = 3.0  # seconds without a line of the log and a write of a status
_TIMEOUT = 1_800.0  # seconds


class Controller:
    """Process of `fanout controller` and its log.

    Only new lines of the log are parsed: parsing the whole log each time would take processor time
    from the measured process.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Read the log of a process that has just started."""
        self._process = process
        self._log = log
        self._read_size = 0  # bytes
        self._drafts: dict[str, list[datetime]] = {}  # by policy
        self._lines: list[dict[str, Any]] = []  # without those of drafts

    def drafts(self, policy: str = inputs.PACKAGE) -> list[datetime]:
        """Return the time of each pushed draft of a policy, as logged."""
        self._read_new_lines()
        return self._drafts.get(f"{inputs.NAMESPACE}/{policy}", [])

    def rounds(self) -> list[int]:
        """Return the number of drafts of each pass that wrote some."""
        return [it["drafts_written"] for it in self._read_new_lines() if "drafts_written" in it]

    def memory(self) -> int:
        """Return the peak memory of the process in MB."""
        return self._read_memory("VmHWM")

    def resident(self) -> int:
        """Return the present memory of the process in MB."""
        return self._read_memory("VmRSS")

    def _read_memory(self, field: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = (it for it in status.splitlines() if it.startswith(f"{field}:"))
        return int(line.split()[1]) // 1024

    def passes(self) -> list[dict[str, Any]]:
        """Return the lines about passes; the log has all of them with `-v`."""
        return [it for it in self._read_new_lines() if it["event"] == "Pass done"]

    def problems(self) -> list[dict[str, Any]]:
        """Return the lines about problems and their ends."""
        return [it for it in self._read_new_lines() if "problem" in it]

    def processor(self) -> float:
        """Return the seconds of processor that the process has used."""
        user, system = Path(f"/proc/{self._process.pid}/stat").read_text().split()[13:15]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def log_size(self) -> int:
        """Return the size of the log in bytes."""
        return self._log.stat().st_size

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises RuntimeError if the process ends before."""
        end = time.monotonic() + _TIMEOUT
        while not condition():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(self._log.read_text()[-2000:])
            time.sleep(0.01)

    def _read_new_lines(self) -> list[dict[str, Any]]:
        """Read the new lines of the log. Return all lines so far, without those of drafts."""
        with self._log.open("rb") as log:
            log.seek(self._read_size)
            content = log.read()
        complete, newline, _ = content.rpartition(b"\n")
        self._read_size += len(complete + newline)
        for line in complete.splitlines():
            entry = json.loads(line) if line.startswith(b"{") else {}
            if entry.get("event") == "Draft written":
                written = datetime.fromisoformat(entry["timestamp"])
                self._drafts.setdefault(entry["policy"], []).append(written)
            elif entry:
                self._lines.append(entry)
        return self._lines


def measure_latency(fleet: KubeFleet) -> Iterator[Row]:
    """Yield the seconds from a change to its draft, and the rounds for simultaneous changes."""
    connection = fleet.connect()
    names = list_names(connection, CONFIG_MAPS)
    with _run_controller(fleet, "-v") as controller:
        start = datetime.now(UTC)
        _await_fan_out(fleet, controller, connection)
        push = (controller.drafts()[-1] - start).total_seconds()
        delays = [_measure_change(controller, connection, it) for it in names[:_CHANGES]]
        rounds_before, drafts_before = len(controller.rounds()), len(controller.drafts())
        together = names[_CHANGES : _CHANGES + _TOGETHER]
        with ThreadPoolExecutor(CONNECTIONS) as threads:
            list(threads.map(lambda name: _change(connection, name), together))
        controller.wait(lambda: len(controller.drafts()) >= drafts_before + len(together))
        rounds = len(controller.rounds()) - rounds_before
        memory = controller.memory()
    yield Row("controller/last-push", round(push, 2), "s")
    yield Row("controller/memory", memory, "MB")
    yield at_most("change-to-draft/median", median(delays), _MEDIAN, "s")
    yield at_most("change-to-draft/95th-percentile", quantiles(delays, n=20)[-1], _SLOWEST, "s")
    yield at_most("changes-together/rounds", rounds, _ROUNDS, "")


def measure_latency_beside_fan_out(fleet: KubeFleet) -> Iterator[Row]:
    """Yield the seconds from a change to its draft while another policy writes its first drafts.

    In the first part, the drafts of the other policy are not published, in the second they are.
    """
    delays = _measure_beside(fleet, publishes=False)
    yield Row("change-beside-drafts/changes", len(delays), "")
    yield Row("change-beside-drafts/median", round(median(delays), 2), "s")
    yield at_most("change-beside-drafts/slowest", max(delays), _BESIDE, "s")
    delays = _measure_beside(fleet, publishes=True)
    yield Row("change-beside-publications/changes", len(delays), "")
    yield Row("change-beside-publications/median", round(median(delays), 2), "s")
    yield Row("change-beside-publications/slowest", round(max(delays), 2), "s")


def _measure_beside(fleet: KubeFleet, *, publishes: bool) -> list[float]:
    """Return the delays of consecutive changes until another policy has all its drafts."""
    connection = fleet.connect()
    names = list_names(connection, CONFIG_MAPS)
    delays: list[float] = []
    # The policy is deleted after the end of the controller, which would add a finalizer again.
    with ExitStack() as stack, _run_controller(fleet, "-v") as controller:
        _await_fan_out(fleet, controller, connection)
        stack.enter_context(create_policy(connection, publishes=publishes))
        controller.wait(lambda: len(controller.drafts(_OTHER)) > 0)
        for name in names:
            delay = _await_draft(controller, connection, name)
            if len(controller.drafts(_OTHER)) >= fleet.size.targets:
                break  # this change may be later than the last draft
            delays.append(delay)
    return delays


def measure_heartbeats(fleet: KubeFleet) -> Iterator[Row]:
    """Yield the passes and the processor time that statuses of targets cause."""
    connection = fleet.connect()
    names = list_names(connection, CLUSTERS)
    with _run_controller(fleet, "-v") as controller:
        _await_fan_out(fleet, controller, connection)
        passes_before, processor = len(controller.passes()), controller.processor()
        start, beats = time.monotonic(), 0
        while (elapsed := time.monotonic() - start) < fleet.minutes * 60:
            body = {"status": {"heartbeat": datetime.now(UTC).isoformat()}}
            path = f"{CLUSTERS}/{names[beats % len(names)]}/status"
            connection.send("PATCH", path, body, MERGE_TYPE)
            beats += 1
            time.sleep(max(beats / _BEATS_PER_SECOND - elapsed, 0))
        processor = controller.processor() - processor
        time.sleep(_IDLE)
        passes = controller.passes()[passes_before:]
        for line in (*passes, *(controller.problems() if passes else ())):
            print(line, file=sys.stderr)
    yield Row("heartbeats/minutes", fleet.minutes, "")
    yield Row("heartbeats/beats", beats, "")
    yield Row("heartbeats/processor-of-each", round(processor / beats * 1e3, 2), "ms")
    yield at_most("heartbeats/passes", len(passes), 0, "")


@contextmanager
def create_policy(connection: ApiConnection, *, publishes: bool) -> Iterator[None]:
    """Create a second policy with the same targets and other paths; it is deleted afterwards.

    Without `publishes`, it publishes only in yearly sweeps.
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
            change = {
                "metadata": {"finalizers": None}
            }  # so that no controller removes its packages
            connection.send("PATCH", path, change, MERGE_TYPE)
            connection.send("DELETE", path)


def _measure_change(controller: Controller, connection: ApiConnection, name: str) -> float:
    """Return the seconds from a change to its draft, and wait until the controller is idle."""
    delay = _await_draft(controller, connection, name)
    _await_idle(controller, connection)
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
    connection.send("PATCH", f"{CONFIG_MAPS}/{name}", {"data": {"changed": value}}, MERGE_TYPE)


def _await_fan_out(fleet: KubeFleet, controller: Controller, connection: ApiConnection) -> None:
    """Wait until all targets have drafts and statuses, and a pass found nothing to do."""
    controller.wait(lambda: len(controller.drafts()) >= fleet.size.targets)
    controller.wait(lambda: _is_idle(controller.passes()[-1]))
    _await_idle(controller, connection)


def _await_idle(controller: Controller, connection: ApiConnection) -> None:
    """Wait until neither the log nor a status changes for some seconds."""
    previous, since = ("", 0), time.monotonic()
    while time.monotonic() - since < _IDLE:
        # One object suffices: the version of the list is that of the whole storage.
        version = connection.get(f"{VARIANTS}?limit=1")["metadata"]["resourceVersion"]
        present = (version, controller.log_size())
        if present != previous:
            previous, since = present, time.monotonic()
        time.sleep(0.2)


def _is_idle(line: dict[str, Any]) -> bool:
    """Return whether a line is about a pass without any action."""
    return line.keys() <= {"trigger", "sweep", "event", "level", "timestamp"}


@contextmanager
def run_process(fleet: KubeFleet, name: str, arguments: Sequence[str]) -> Iterator[Controller]:
    """Run fanout on the fleet without drafts, records and caches; `arguments`: verb and options."""
    fleet.clear()
    log, state, records = (fleet.directory / f"{name}{it}" for it in (".log", "", "-records.git"))
    for path in (state, records):
        shutil.rmtree(path, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", str(records)], check=True)
    command = [sys.executable, "-m", "fanout", *arguments, "--interval", "2h"]
    command += ["--records", str(records), "--state-dir", str(state)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=fleet.directory, stderr=output)
        try:
            yield Controller(process, log)
        finally:
            process.terminate()
            process.wait(60)


def _run_controller(fleet: KubeFleet, *options: str) -> AbstractContextManager[Controller]:
    return run_process(fleet, "latency", ["controller", *fleet.options, *options])
