"""`fanout forecast`: how early each stage can have a revision."""

from pathlib import Path

import pytest
from editing import conflict, one_site
from fleet import PROMOTION, Fleet


def forecast(fleet: Fleet, *words: str) -> dict[str, dict]:
    views = fleet.run("forecast", "monitoring", *words, "-o", "json").views
    return {view["stage"]: view for view in views}


def test_the_stage_after_waits_for_verification_and_soak(fleet: Fleet):
    fleet.settle()
    views = forecast(fleet, "--takes", "dev=10m")
    published = fleet.variants()["sites/ams"]["published"]["at"]
    assert views["dev"]["begins"] == published
    assert views["prod"]["begins"] > views["dev"]["passes"]
    assert views["prod"]["revision"] == "v1"
    assert fleet.run("forecast", "monitoring").code == 0


def test_a_forecast_comes_true(fleet: Fleet):
    fleet.settle()
    fleet.report("dev", "v1")
    fleet.settle()
    begins = forecast(fleet)["prod"]["begins"]
    fleet.later(minutes=59).settle()
    assert fleet.published()["sites/ber"] == ""
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/ber"] == "v1"
    assert fleet.variants()["sites/ber"]["published"]["at"] == begins


def test_a_suspended_stage_is_never_reached_by_itself(fleet: Fleet):
    fleet.settle()
    fleet.run("suspend", "monitoring", "--stage", "dev", "--reason", "wait", *ANN)
    result = fleet.run("forecast", "monitoring")
    assert result.code == 3
    assert "Suspended" in fleet.run("explain", "monitoring").out
    assert "stage dev" in result.out
    assert "passes" not in forecast(fleet)["prod"]


def test_a_schedule_is_reckoned_with(fleet: Fleet):
    text = PROMOTION.replace("spec:", 'spec:\n  schedule: "0 12 * * *"\n  timeZone: UTC', 1)
    fleet.write("promotion.yaml", text)
    assert forecast(fleet)["dev"]["begins"] == "2026-03-02T12:00:00Z"


ANN = ("--by", "Ann <ann@x.org>")
WRONG = [
    pytest.param(("nosuch",), ["policy nosuch"], id="an unknown policy"),
    pytest.param(("monitoring", "--revision", "v9"), ["revision v9", "v1"], id="a revision"),
    pytest.param(("monitoring", "--takes", "qa=1m"), ["stage qa", "dev"], id="a stage"),
    pytest.param(("monitoring", "--takes", "dev"), ["--takes", "duration"], id="no duration"),
    pytest.param(("monitoring", "--takes", "dev=1d"), ["--takes", "1d"], id="days"),
]


@pytest.mark.parametrize(("words", "data"), WRONG)
def test_a_forecast_of_a_missing_subject_is_refused(
    fleet: Fleet, words: tuple[str, ...], data: list[str]
):
    result = fleet.run("forecast", *words)
    assert result.code == 1
    assert [word for word in data if word not in result.err] == [], result.err


def test_undecided_conflicts_are_reported(tmp_path: Path):
    fleet = one_site(tmp_path)
    fleet.write("promotion.yaml", PROMOTION)
    conflict(fleet)
    [dev, *_] = fleet.run("forecast", "monitoring", "-o", "json").views
    [variant] = fleet.run("get", "variants", "-o", "json").items
    name = variant["metadata"]["name"]
    assumption = f"merge conflicts of 1 variant are decided immediately ({name})"
    assert assumption in dev["assumptions"]
