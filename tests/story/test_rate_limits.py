"""Pull requests that a host's limit does not let through wait, and policies share what it does."""

from collections import Counter
from pathlib import Path

import pytest
from fleet import PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea

from fanout.reconcile.pass_scope import PassMode

POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: {name}}}
spec:
  draftPer: Variant
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets:
  - repositories: [{{name: edge, packageNames: [{packages}]}}]
    template: {{stage: dev}}
  stages: [{{name: dev}}]
"""
LARGE, SMALL = "large", "small"  # the large one comes first by name
LIMIT = 4

pytestmark = pytest.mark.forge


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """Nine variants of one policy, one of another, and a host that takes four requests an hour."""
    made = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge")})
    for path in ("policy.yaml", "site-ams.yaml"):
        made.remove(path)
    for name, number in ((LARGE, 9), (SMALL, 1)):
        packages = ", ".join(f"{name}/p{index}" for index in range(number))
        made.write(f"policy-{name}.yaml", POLICY.format(name=name, packages=packages))
    made.write("promotion.yaml", PROMOTION.rstrip() + "\n  merge: Manual\n")
    made.configure(creationsPerHour=LIMIT)
    assert made.sweep().code == 0  # writes the drafts, which are released in a later pass
    assert opened(made).total() == 0
    return made.later(minutes=1)


def opened(fleet: ForgeFleet) -> Counter[str]:
    """How many requests of each policy there are."""
    heads = (it["head"].removeprefix("drafts/default/") for it in fleet.requests("edge"))
    return Counter(head.partition("/")[0] for head in heads)


def test_a_policy_with_many_requests_does_not_starve_another(fleet: ForgeFleet):
    swept = fleet.sweep("-o", "json")
    assert swept.code == 0, swept.err
    assert opened(fleet) == {LARGE: LIMIT - 1, SMALL: 1}
    waiting = [it for it in swept.json["outcomes"] if not it["done"]]
    assert {(it["reason"], it["policy"]) for it in waiting} == {("RateLimited", LARGE)}
    assert sum(it["kind"] == "OpenRequest" for it in waiting) == 9 - (LIMIT - 1)
    assert all(it["until"].endswith("Z") for it in waiting)


def test_waiting_requests_are_planned_until_all_are_open(fleet: ForgeFleet):
    planned = fleet.plan()
    assert f"{fleet.gitea.host}: 10 requests, 22 calls, 0 refs: about 2 hours at" in planned.out
    swept = fleet.sweep()
    assert (swept.code, swept.err.count("waiting: ")) == (0, 1)
    assert f"the limit of new pull requests for {fleet.gitea.host} is reached" in swept.err
    for count in (8, 10):  # each process counts anew
        assert fleet.plan("--detailed-exitcode").code == 2
        assert fleet.later(minutes=1).sweep().code == 0
        assert opened(fleet).total() == count
    assert "waiting: " not in fleet.later(minutes=1).sweep().err
    assert opened(fleet) == {LARGE: 9, SMALL: 1}


def test_a_process_counts_across_its_passes(fleet: ForgeFleet):
    with fleet.opened() as program:
        for _ in range(2):
            report = program.sweep(PassMode())
            assert report.fix_count == 0
            assert len(report.deferred_outcomes) > 0
    assert opened(fleet).total() == LIMIT
