"""The tag of what is published goes: the candidate goes back, and everybody hears why."""

from pathlib import Path

from companies import company
from fleet import POLICY, Fleet


@company
def fleet(root: Path) -> Fleet:
    """v2 is in force in both sites, and its tag is gone."""
    fleet = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    text = POLICY.replace(", soak: 1h", "").replace(", verification: [{name: e2e, report: {}}]", "")
    fleet.write("policy.yaml", text)
    fleet.settle()
    fleet.release("v2")
    fleet.settle()
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v2")
    return fleet


def test_a_lost_tag_is_reported_once_with_the_commit_to_put_it_back_on(fleet: Fleet):
    commit = fleet.repos["blueprints"].refs()["refs/heads/main"]
    result = fleet.sweep()
    assert result.code == 3
    assert result.err.count("tag monitoring/v2") == 1
    assert commit in result.err
    assert fleet.plan("-o", "json").reasons == {"TagMissing"}
    assert "TagMissing" in fleet.run("get", "variants").out
    for subject in ("monitoring", "monitoring/dev", "monitoring/dev/ams"):
        assert fleet.run("explain", subject).out.count("TagMissing  ") == 1
    fleet.repos["blueprints"].git("update-ref", "refs/tags/monitoring/v2", commit)
    mended = fleet.sweep()
    assert mended.code == 0
    assert mended.err == ""
    assert fleet.run("explain", "monitoring").code == 0


def test_a_newer_revision_ends_it(fleet: Fleet):
    fleet.release("v3")
    fleet.settle()
    assert fleet.sweep().err == ""
    assert set(fleet.published().values()) == {"v3"}


def test_a_rule_that_was_narrowed_has_lost_no_tag(fleet: Fleet):
    fleet.repos["blueprints"].git("update-ref", "refs/tags/monitoring/v2", "refs/heads/main")
    fleet.write("policy.yaml", POLICY.replace(">=1 <9", ">=1 <2"))
    assert "TagMissing" not in fleet.run("get", "variants").out
