"""A policy, or a variant written by hand, that is being deleted: what it has goes by level."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, two_stages

from fanout.cli.process_exit import ExitCode

AMS, CPH = "sites/ams", "sites/cph"
SITES = {"ams": ("dev", "edge"), "cph": ("prod", "core")}
DELETED = 'deletionTimestamp: "2026-03-02T09:00:00Z"'
ANN = ("--reason", "we leave", "--by", "Ann <ann@example.com>")
TEXT = POLICY.replace(", soak: 1h", "")
BY_HAND = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: NAME}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  downstream: {repository: core, package: hand/NAME}
"""
AUTOMATION = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: by-hand}
spec: {variants: [oslo], autoPromotion: {stages: ["*"]}}
"""


@company
def fleet(root: Path) -> Fleet:
    """A site in dev before one in prod; both are published."""
    return two_stages(root, SITES)


def delete(fleet: Fleet, *edits: tuple[str, str]) -> Fleet:
    """Delete the policy as an API server shows it while a finalizer keeps it."""
    text = TEXT.replace("{name: monitoring}", f"{{name: monitoring, {DELETED}}}", 1)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    fleet.write("policy.yaml", text)
    return fleet


ALL = ("  stages:\n", "  removalLimit: 100%\n  stages:\n")
ORPHAN = ("  stages:\n", "  deletionPolicy: Orphan\n  stages:\n")


def heads(fleet: Fleet) -> list[str]:
    return [fleet.repos[name].refs()["refs/heads/main"] for name in ("edge", "core")]


def recorded(fleet: Fleet, policy: str) -> list[str]:
    """The status lines of variants in the policy state."""
    branch = f"fanout/default/default/{policy}"
    records = fleet.records()
    lines = records.git("grep", "-h", "variant/", branch, "--", "status", check=False)
    return lines.splitlines()


def packages(fleet: Fleet) -> list[str]:
    return [
        path
        for name in ("edge", "core")
        for path in fleet.repos[name].files()
        if path.endswith("Kptfile")
    ]


def test_variants_of_a_deleted_policy_stay_until_a_person_confirms(fleet: Fleet):
    before = heads(delete(fleet))
    swept = fleet.sweep()
    assert swept.code == 3
    assert heads(fleet) == before
    assert "the policy was deleted; 2 variants would be removed" in swept.err
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["conditions"][0]["reason"] == "TooManyRemovals"
    explained = fleet.run("explain", "monitoring", "-o", "json").json
    assert explained["status"]["state"] == "Held"
    removed = fleet.run("remove", "monitoring", "--all-gone", *ANN)
    assert removed.code == 0, removed.err
    assert packages(fleet) == []


def test_the_status_of_a_deleted_policy_names_the_command_and_no_stage_waits(fleet: Fleet):
    delete(fleet).sweep()
    [policy] = fleet.run("get", "policies", "-o", "json").items
    message = policy["status"]["conditions"][0]["message"]
    command = "run `fanout remove monitoring --all-gone --reason WHY"
    assert message.startswith("2 variants without a target: the policy was deleted")
    assert command in message.rpartition("; ")[2]
    stages = fleet.run("get", "stages", "-o", "json").items
    assert [it["reason"] for stage in stages for it in stage["status"].get("holds", ())] == [
        "NoTargets"
    ] * len(SITES)
    plan = fleet.plan("-o", "json").json
    awaiting = [it for it in plan["holds"] if it["reason"] == "RemovalAwaits"]
    assert [command in it["who"] for it in awaiting] == [True]


def test_variants_of_a_deleted_policy_are_removed_level_by_level_when_allowed(fleet: Fleet):
    delete(fleet, ALL)
    assert fleet.sweep().code == 0
    assert packages(fleet) == [f"{AMS}/Kptfile"]
    assert fleet.sweep().code == 0
    assert packages(fleet) == []
    fleet.settle()
    assert fleet.repos["edge"].drafts() == fleet.repos["core"].drafts() == []


def test_with_orphan_they_stay_and_nobody_has_to_confirm(fleet: Fleet):
    fleet.release("v2")
    fleet.sweep("--drafts-only")
    assert len(recorded(fleet, "monitoring")) == len(SITES)
    before = heads(delete(fleet, ORPHAN))
    fleet.settle()
    assert heads(fleet) == before
    assert fleet.repos["edge"].drafts() == []
    assert recorded(fleet, "monitoring") == []


def test_with_orphan_automation_need_not_be_on(fleet: Fleet):
    fleet.remove("promotion.yaml")
    before = heads(delete(fleet, ORPHAN))
    fleet.settle()
    assert heads(fleet) == before
    assert fleet.targets() == {}


def test_no_upstream_no_expression_and_no_unread_file_holds_it(fleet: Fleet):
    fleet.remove("repository-blueprints.yaml")
    delete(fleet, ALL, ("stageExpr: target.metadata.labels.tier", "stageExpr: target.nothing"))
    for _ in range(2):
        fleet.sweep()
    assert packages(fleet) == []


def test_a_repository_that_is_not_declared_holds_what_it_has(fleet: Fleet):
    fleet.remove("repository-core.yaml")
    delete(fleet, ALL)
    for _ in range(2):
        assert "UnknownRepository" in fleet.sweep("-o", "json").out
    assert packages(fleet) == [f"{AMS}/Kptfile", f"{CPH}/Kptfile"]


def test_a_deleted_policy_drafts_and_publishes_no_revision(fleet: Fleet):
    fleet.release("v2")
    before = heads(delete(fleet))
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert heads(fleet) == before
    assert fleet.repos["edge"].drafts() == fleet.repos["core"].drafts() == []


def test_made_again_it_goes_on_where_it_was(fleet: Fleet):
    before = heads(delete(fleet))
    fleet.sweep()
    fleet.write("policy.yaml", TEXT)
    assert fleet.sweep().out == "nothing to do\n"
    assert heads(fleet) == before
    assert fleet.published() == {AMS: "v1", CPH: "v1"}


def hand_written(fleet: Fleet, name: str, *, deleted: bool = False, policy: str = "") -> None:
    text = BY_HAND.replace("NAME", name)
    if deleted:
        text = text.replace("}", f", {DELETED}}}", 1)
    fleet.write(f"{name}.yaml", text + policy)


def test_a_variant_written_by_hand_goes_and_the_others_of_its_namespace_stay(fleet: Fleet):
    fleet.write("automation.yaml", AUTOMATION.replace("oslo", "oslo, bergen"))
    hand_written(fleet, "oslo")
    hand_written(fleet, "bergen")
    fleet.settle()
    assert "hand/oslo/Kptfile" in packages(fleet)
    hand_written(fleet, "oslo", deleted=True)
    swept = fleet.sweep()
    assert swept.code == 0, swept.err
    assert packages(fleet) == [f"{AMS}/Kptfile", "hand/bergen/Kptfile", f"{CPH}/Kptfile"]
    fleet.remove("oslo.yaml")
    fleet.write("automation.yaml", AUTOMATION.replace("oslo", "bergen"))
    assert fleet.sweep().out == "nothing to do\n"


def test_a_variant_written_by_hand_with_orphan_stays_on_its_branch(fleet: Fleet):
    fleet.write("automation.yaml", AUTOMATION)
    hand_written(fleet, "oslo")
    fleet.settle()
    before = heads(fleet)
    assert len(recorded(fleet, "_")) == 1
    hand_written(fleet, "oslo", deleted=True, policy="  deletionPolicy: Orphan\n")
    fleet.settle()
    assert heads(fleet) == before
    assert recorded(fleet, "_") == []


def test_a_draft_of_a_variant_written_by_hand_goes_with_it(fleet: Fleet):
    hand_written(fleet, "oslo")
    fleet.sweep("--drafts-only")
    assert fleet.repos["core"].drafts() == ["hand/oslo/oslo"]
    fleet.write("automation.yaml", AUTOMATION)
    hand_written(fleet, "oslo", deleted=True)
    assert fleet.sweep().code == 0
    assert fleet.repos["core"].drafts() == []


def test_a_variant_written_by_hand_without_automation_waits_for_a_person(fleet: Fleet):
    fleet.write("automation.yaml", AUTOMATION)
    hand_written(fleet, "oslo")
    fleet.settle()
    fleet.remove("automation.yaml")
    hand_written(fleet, "oslo", deleted=True)
    assert fleet.sweep().code in (0, 3)
    assert "hand/oslo/Kptfile" in packages(fleet)
    removed = fleet.run("remove", "oslo", *ANN)
    assert removed.code == 0, removed.err
    assert "hand/oslo/Kptfile" not in packages(fleet)


VERBS = (
    *("plan", "status", "get policies", "get variants", "get targets", "get stages"),
    *("explain monitoring", "history monitoring", "graph monitoring", "validate"),
)


@pytest.mark.parametrize("line", VERBS)
def test_a_command_that_shows_something_takes_it(fleet: Fleet, line: str):
    delete(fleet)
    fleet.release("v2")
    shown = fleet.run(*line.split(), "-v")
    assert shown.code in (ExitCode.OK, ExitCode.SOME_FAILED), shown.err
    assert "Traceback" not in shown.err
