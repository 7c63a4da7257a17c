"""Costs of statuses: first fan-outs with and without them, and direct writes of the objects."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from benchmarks.kube_fleet import CONNECTIONS, VARIANTS, KubeFleet, list_names
from benchmarks.rows import Row, at_most
from fanout.kube.api_connection import APPLY_TYPE, ApiConnection

_PUSH_RATIO, _WRITE_RATIO, _MEMORY_RATIO, _WRITES = 1.3, 1.5, 1.6, 2.0


def measure_statuses(fleet: KubeFleet) -> Iterator[Row]:
    """Yield the costs of a fan-out with statuses and without, and of direct writes."""
    files = _fan_out(fleet, "files")
    before = _count_writes(fleet)
    cluster = _fan_out(fleet, "cluster")
    writes = (_count_writes(fleet) - before) / fleet.size.targets
    raw_seconds = _write_directly(fleet.connect())
    for name, it in (("files", files), ("cluster", cluster)):
        yield Row(f"fan-out-of-{name}/last-push", round(it["push"], 2), "s")
        yield Row(f"fan-out-of-{name}/processor", round(it["processor"], 2), "s")
        yield Row(f"fan-out-of-{name}/memory", round(it["memory"]), "MB")
    yield Row("statuses/all-there", round(cluster["statuses"], 2), "s")
    yield Row("statuses/raw-writes", round(raw_seconds, 2), "s")
    yield at_most("statuses/writes-of-a-variant", writes, _WRITES)
    for kind in ("push", "processor"):
        ratio = cluster[kind] / files[kind]
        yield at_most(f"statuses/last-push-to-files/{kind}", ratio, _PUSH_RATIO)
    yield at_most("statuses/to-raw-writes", cluster["statuses"] / raw_seconds, _WRITE_RATIO)
    yield at_most("statuses/memory-to-files", cluster["memory"] / files["memory"], _MEMORY_RATIO)


def _count_writes(fleet: KubeFleet) -> int:
    """Return the number of writes of variants that the API server has counted."""
    total = 0.0
    for line in fleet.server.kubectl("get", "--raw", "/metrics").stdout.splitlines():
        if line.startswith("apiserver_request_total{") and 'resource="packagevariants"' in line:
            labels, _, number = line.rpartition(" ")
            verbs = ("APPLY", "PATCH", "PUT", "POST", "DELETE")
            total += float(number) if any(f'verb="{it}"' in labels for it in verbs) else 0
    return int(total)


def _fan_out(fleet: KubeFleet, kind: str) -> dict[str, float]:
    """Run the first fan-out of all targets in a new process, into repositories without drafts."""
    fleet.clear()
    line = [sys.executable, "-m", "benchmarks.kube_fan_out", kind, str(fleet.directory)]
    line += [str(fleet.size.targets), str(fleet.server.kubeconfig)]
    completed = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(completed.stdout.splitlines()[-1])
    return result


def _write_directly(connection: ApiConnection) -> float:
    """Delete all variants and write the same objects over eight connections. Return seconds."""
    items = connection.get(VARIANTS)["items"]
    bodies = []
    for item in items:
        meta = {key: item["metadata"][key] for key in ("name", "namespace", "labels")}
        head = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}
        named = {**head, "metadata": {key: meta[key] for key in ("name", "namespace")}}
        bodies.append(({**head, "spec": item["spec"]}, {**named, "status": item["status"]}))
    names = list_names(connection, VARIANTS)
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(lambda it: connection.send("DELETE", f"{VARIANTS}/{it}"), names))

    def write(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
        path = f"{VARIANTS}/{pair[0]['metadata']['name']}"
        query = "?fieldManager=fanout&force=true"
        connection.send("PATCH", path + query, pair[0], APPLY_TYPE)
        connection.send("PATCH", f"{path}/status{query}", pair[1], APPLY_TYPE)

    start = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        pending = iter(bodies)
        while batch := list(islice(pending, 500)):
            list(threads.map(write, batch))
    return time.monotonic() - start
