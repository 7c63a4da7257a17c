"""What was said before a publication is not about it, though the clock shows the same second."""

from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

ROLLOUT = "rollout: {strategy: Linear}"
DEV = "{name: dev, verification: [{name: e2e, report: {}}]}"


@company
def three(root: Path) -> Fleet:
    """Three sites in dev, which go one by one; the first is published."""
    fleet = Fleet.build(root, dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge")))
    assert DEV in POLICY
    fleet.write("policy.yaml", POLICY.replace(DEV, f"{DEV[:-1]}, {ROLLOUT}}}", 1))
    fleet.settle()
    return fleet


def test_a_report_about_the_stage_is_not_about_who_is_published_in_the_same_second(three: Fleet):
    assert three.report("dev", "v1", "passed").code == 0
    for _ in range(3):
        three.sweep()
    states = three.states()
    assert [states[f"sites/{name}"] for name in ("ams", "ber", "cph")] == [
        "Ready",
        "Verifying",
        "Drafted",
    ]
    output = three.run("explain", "monitoring/dev").out
    assert "was recorded before v1 was published" in output


def test_a_report_after_the_publication_in_the_same_second_counts(three: Fleet):
    assert three.report("dev", "v1", "passed").code == 0
    three.sweep()
    assert three.report("dev", "v1", "passed", "--variant", "sites/ber").code == 0
    three.sweep()
    assert three.states()["sites/ber"] == "Ready"
    assert three.states()["sites/cph"] == "Verifying"


@pytest.mark.parametrize("minutes", [-4, 4], ids=["runs late", "runs ahead"])
def test_a_clock_of_a_pipeline_vouches_for_nobody_who_comes_later(three: Fleet, minutes: int):
    """On record before the publication: that is not about it, whatever its instant.

    What is dated ahead counts from its own instant, so the first site is ready then.
    """
    three.later(minutes=10)
    three.later(minutes=minutes)
    assert three.report("dev", "v1", "passed").code == 0
    three.later(minutes=-minutes)
    for _ in range(3):
        three.sweep()
    assert three.states()["sites/ams"] == ("Ready" if minutes < 0 else "Verifying")
    three.later(minutes=4)
    for _ in range(3):
        three.sweep()
    assert three.states()["sites/ams"] == "Ready"
    assert three.states()["sites/ber"] == "Verifying"
