"""Two controllers of one cluster at once, as when a node is lost and its pod goes on."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from signal import SIGKILL
from time import sleep
from typing import Any

import pytest
from kube.record_fleet import record
from kube.tenants import (
    HASTY_ADMISSION,
    OWN,
    BeginController,
    CreateTenant,
    own,
    request_pass,
)
from kube.twin import Twin
from run_process import Running

pytestmark = pytest.mark.kube

HASTY = ("-c", HASTY_ADMISSION)
SITES = {
    f"{tier}-{number}": (tier, f"edge-{number % 3}")
    for tier in ("dev", "prod")
    for number in range(12)
}
STAGES = [
    {"name": "dev", "verification": [{"name": "e2e", "report": {}}]},
    {"name": "prod", "after": {"stages": ["dev"]}},
]


@pytest.fixture
def twin(tenant: CreateTenant) -> Twin:
    twin = tenant(SITES)
    twin.server.patch(own(twin, "UpstreamPolicy", "monitoring"), {"spec": {"stages": STAGES}})
    return twin


def published(twin: Twin, tier: str, revision: str) -> int:
    """Return how many variants of a stage have the tag of a publication."""
    tags = [tag for number in range(3) for tag in twin.fleet.repos[f"edge-{number}"].tags()]
    return sum(tag.startswith(f"sites/{tier}-") and tag.endswith(f"/{revision}") for tag in tags)


def recorded_publications(twin: Twin, tier: str, revision: str) -> int:
    """Return how many variants of a stage have a status with this publication."""
    items = twin.server.list(OWN, "PackageVariant", twin.namespace)
    published = [
        it["status"].get("published", {})
        for it in items
        if it["spec"]["downstream"]["package"].startswith(f"sites/{tier}-") and "status" in it
    ]
    return sum(it.get("revision") == revision for it in published)


def report(twin: Twin, revision: str) -> dict[str, Any]:
    """State, as a user does, that a revision works in dev."""
    spec = {"stage": "dev", "check": "e2e", "revision": revision, "status": "passed"}
    evidence = record("Evidence", twin.namespace, "alice", **spec)
    created: dict[str, Any] = twin.server.create(evidence, by="alice")
    return created


def publications(twin: Twin, site: str) -> list[str]:
    """Return the commits of the package of a site on the main branch."""
    repository = twin.fleet.repos[SITES[site][1]]
    return repository.git("log", "--format=%H", "main", "--", f"sites/{site}").split()


def statuses(twin: Twin) -> dict[str, tuple[str, str]]:
    """Return the state and the resourceVersion of each variant."""
    items = twin.server.list(OWN, "PackageVariant", twin.namespace)
    return {
        it["metadata"]["name"]: (
            it.get("status", {}).get("state", ""),
            it["metadata"]["resourceVersion"],
        )
        for it in items
    }


def all_are(twin: Twin, state: str) -> bool:
    return [it for it, _ in statuses(twin).values()] == [state] * len(SITES)


def are_steady(twin: Twin) -> bool:
    """Return whether no status is written for some seconds."""
    before = statuses(twin)
    sleep(3)
    return statuses(twin) == before


def recorded(twin: Twin) -> list[str]:
    """Return the names of the evidence in the records repository."""
    twin.fleet.now = datetime.now(UTC)
    items = twin.ask("get", "records", "-o", "json").items
    return [it["metadata"]["name"] for it in items if it["kind"] == "Evidence"]


def errors(controller: Running) -> list[dict[str, Any]]:
    return [it for it in controller.log() if it["level"] == "error"]


def test_two_controllers_publish_and_record_everything_once(twin: Twin, begin: BeginController):
    first, second = (begin(twin, program=HASTY, name=name) for name in ("-a", "-b"))
    until: Callable[[Callable[[], object]], None] = first.until
    until(lambda: recorded_publications(twin, "dev", "v1") == 12)
    evidence = [report(twin, "v1")]
    until(lambda: published(twin, "prod", "v1") == 12)
    twin.fleet.release("v2")
    request_pass(twin, "v2")
    until(lambda: published(twin, "dev", "v2"))
    second.end(SIGKILL)
    second = begin(twin, program=HASTY, name="-c")
    until(lambda: recorded_publications(twin, "dev", "v2") == 12)
    evidence.append(report(twin, "v2"))
    until(lambda: published(twin, "prod", "v2") == 12)
    until(partial(all_are, twin, "Ready"))
    second.until(second.passes)  # before its first pass it may not handle signals yet
    until(partial(are_steady, twin))  # neither writes what the other one has written
    assert all_are(twin, "Ready")
    assert [controller.end() for controller in (first, second)] == [0, 0]
    assert {len(publications(twin, site)) for site in SITES} == {2}
    names = [twin.server.get(it)["status"]["record"] for it in evidence]
    assert recorded(twin) == names
    for repository in twin.fleet.repos.values():
        repository.fsck()
    assert [errors(it) for it in (first, second)] == [[], []]
    assert "by hand" not in first.path.read_text() + second.path.read_text()
