"""Defects of other engines that only whole commands can show; the others are in `tests/gates`.

Each test names the issue it is reported in; the docstring says what went wrong there.
"""

import json
from pathlib import Path
from string import Template

import pytest
import yaml
from companies import company
from fleet import POLICY, PROMOTION, Fleet, two_stages

FIXTURES = Path(__file__).parents[2] / "fixtures" / "checks"
DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"
RECORDS_BRANCH = "fanout/default/default/monitoring"
SITES = {
    "ams": ("dev", "edge"),
    "bru": ("dev", "edge"),
    "cph": ("prod", "edge"),
    "dub": ("prod", "edge"),
}


@company
def fleet(root: Path) -> Fleet:
    """Two sites in dev and two in prod behind it; all are published."""
    return two_stages(root, SITES)


def published_sites(fleet: Fleet) -> list[str]:
    """The sites whose packages are on the branch."""
    files = fleet.repos["edge"].files()
    return sorted({path.split("/")[1] for path in files if path.startswith("sites/")})


BROKEN = [
    pytest.param(
        lambda fleet: fleet.write(
            "site-eze.yaml",
            "apiVersion: infra.example.com/v1\nkind: Cluster\nmetadata: {name: eze}\nspec: {}\n",
        ),
        id="an expression fails for another target",
    ),
    pytest.param(
        lambda fleet: fleet.write(
            "policy.yaml", POLICY.replace("target.metadata.labels.tier", "target.nope.labels.tier")
        ),
        id="an expression fails for all targets that there are",
    ),
    pytest.param(
        lambda fleet: fleet.write(
            "policy.yaml",
            POLICY.replace("soak: 1h}}", "soak: 1h}, propagateWhen: [target.nope == 1]}"),
        ),
        id="a condition of its stage fails",
    ),
]


@pytest.mark.parametrize("spoil", BROKEN)
def test_kro_1316_an_orphan_is_removed_though_expressions_fail(fleet: Fleet, spoil):
    """A deletion was stuck for ever because an expression could not be evaluated any more."""
    fleet.remove("site-dub.yaml")
    spoil(fleet)
    fleet.sweep()
    assert published_sites(fleet) == ["ams", "bru", "cph"], "and those whose targets are there stay"


def test_kro_1135_the_last_stage_is_removed_first(fleet: Fleet):
    """Orphans were pruned all at once: what others need went before them."""
    for site in ("ams", "dub"):
        fleet.remove(f"site-{site}.yaml")
    fleet.sweep()
    assert published_sites(fleet) == ["ams", "bru", "cph"]
    fleet.sweep()
    assert published_sites(fleet) == ["bru", "cph"]


def application(fleet: Fleet, seen: str, sync: str = "Synced", health: str = "Healthy") -> None:
    text = (FIXTURES / "argo.yaml").read_text()
    fleet.write("argo.yaml", Template(text).substitute(seen=seen, sync=sync, health=health))


def test_argo_29410_an_application_that_has_not_seen_the_change_lets_nobody_go_on(tmp_path: Path):
    """Still Synced and Healthy from before the change, dev was taken for done; prod went first."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    check = yaml.safe_load((FIXTURES / "argo-check.yaml").read_text())
    stage = json.dumps({"name": "dev", "verification": [check]})
    fleet.write("policy.yaml", POLICY.replace(DEV, stage).replace(", soak: 1h", ""))
    config = tmp_path / "fanout.yaml"
    config.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
        "checks: {namespaces: [argocd]}\n"
    )
    fleet.options = ("--config", str(config))
    fleet.settle()
    application(fleet, fleet.repos["edge"].git("rev-parse", "main"))
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}

    fleet.release("v2")  # nobody tells the Application
    for _ in range(4):
        fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": "v1"}
    now = fleet.repos["edge"].git("rev-parse", "main")
    application(fleet, now, sync="OutOfSync", health="Progressing")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ber"] == "v1"
    application(fleet, now)
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ber"] == "v2"


FREEZE = '  windows: [{deny: {schedule: "0 0 2 3 *", duration: 24h}}]\n'  # the day of the tests
MIDNIGHT = "2026-03-03T00:00:00Z"


def test_argo_21692_the_end_of_a_denied_time_is_reported_and_then_it_goes(fleet: Fleet):
    """When the denied time was over nothing happened until something else did."""
    fleet.write("promotion.yaml", PROMOTION + FREEZE)
    fleet.release("v2")
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v1"
    assert fleet.condition("sites/ams")[0] == "WindowClosed"
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["next"] == MIDNIGHT, "the instant at which fanout run wakes"
    fleet.later(hours=14, minutes=55).settle()
    assert fleet.published()["sites/ams"] == "v2"


RAW = {
    "apiVersion": "fanout.dev/v1alpha1",
    "kind": "Decision",
    "metadata": {"namespace": "default"},
    "spec": {
        "policy": "monitoring",
        "stage": "prod",
        "revision": "v2",
        "action": "Publish",
        "reason": "I know better",
    },
}


def test_kargo_2724_a_promotion_that_is_written_past_the_program_opens_no_gate(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """Who wrote the object themselves promoted what the interface would have refused."""
    fleet.release("v2")
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"
    name = "records/20260302t091000z-aaaaaaaaaaaa.json"
    monkeypatch.setenv("GIT_COMMITTER_DATE", fleet.now.isoformat())
    fleet.records().commit(RECORDS_BRANCH, {name: json.dumps(RAW)})
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/cph"] == "v1"
    [decision] = fleet.run("get", "decisions", "-o", "json").items
    assert decision["status"]["state"] == "Active"
    fleet.report("dev", "v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/cph"] == "v2"
