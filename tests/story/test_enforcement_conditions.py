"""The condition NotEnforced, by the rules of a branch on a real Gitea."""

import re
from pathlib import Path

import pytest
from fleet import PLAIN
from forge_fleet import ForgeFleet
from gitea_server import Gitea

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "gitea.md"
pytestmark = pytest.mark.forge


@pytest.fixture
def waiting(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """A company with an open request, which a person has to merge."""
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", PLAIN)
    promotion = (fleet.root / "policies" / "promotion.yaml").read_text(encoding="utf-8")
    fleet.write("promotion.yaml", f"{promotion}  merge: Manual\n")
    fleet.sweep()
    assert fleet.only_request("edge")["state"] == "open"
    return fleet


def condition(fleet: ForgeFleet, kind: str) -> tuple[str, str, str] | None:
    """Status, reason and sentence of NotEnforced."""
    [item] = [
        it
        for it in fleet.run("get", kind, "-o", "json").items
        if it["metadata"]["name"] in ("edge", "monitoring")
    ]
    conditions = [it for it in item["status"]["conditions"] if it["type"] == "NotEnforced"]
    assert len(conditions) <= 1
    return (
        (conditions[0]["status"], conditions[0]["reason"], conditions[0]["message"])
        if conditions
        else None
    )


@pytest.mark.parametrize(
    ("rules", "status", "reason", "words"),
    [
        (None, "True", "NotEnforced", "is not protected"),
        ({"enable_push": False}, "True", "NotEnforced", "does not require the status fanout"),
        (
            {"enable_push": True, "status_check_contexts": ["fanout"]},
            *("Unknown", "EnforcementUnknown", "forbid pushes to it"),
        ),
        (
            {"enable_push": False, "status_check_contexts": ["ci", "fanout"]},
            *("False", "Enforced", "main requires the status fanout"),
        ),
    ],
    ids=["open", "other rules", "pushes", "enforced"],
)
def test_rules_of_a_branch_are_a_condition(waiting: ForgeFleet, rules, status, reason, words):
    if rules is not None:
        checked = "status_check_contexts" in rules
        waiting.protect("edge", **{"enable_status_check": checked, **rules})
    for kind in ("repositories", "policies"):
        shown = condition(waiting, kind)
        assert shown is not None
        assert shown[:2] == (status, reason)
        assert words in shown[2]
    is_enforced = status == "False"
    for subject in ("monitoring", "monitoring/dev", "monitoring/dev/sites/ams"):
        explained = waiting.run("explain", subject).out
        assert (f"{reason}  edge: the branch main" in explained) is not is_enforced
    waiting.release("v2")
    planned = waiting.plan()
    assert (f"note: {reason}: edge: the branch main" in planned.err) is not is_enforced
    notes = waiting.plan("-o", "json").json["notes"]
    assert [it.partition(":")[0] for it in notes] == ([] if is_enforced else [reason])


def test_the_guide_shows_the_printed_text(waiting: ForgeFleet):
    [shown] = re.findall(r"^NotEnforced .*$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown in waiting.run("explain", "monitoring").out


def test_a_pass_that_has_no_request_asks_for_no_rules(waiting: ForgeFleet):
    waiting.merge("edge", waiting.only_request("edge")["number"])
    waiting.later(minutes=2).settle()
    waiting.calls()
    assert condition(waiting, "repositories") is None
    assert not [call for call in waiting.calls() if "/branches/" in call]
