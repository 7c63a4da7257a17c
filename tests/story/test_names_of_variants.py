"""A variant is found by `POLICY/TARGET`, as people say it, wherever a variant is asked for."""

import pytest
from fleet import Fleet

WHY = ("--reason", "as agreed", "--by", "Ann <ann@example.com>")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Two policies for the same three sites, drafted."""
    made = Fleet.build(tmp_path_factory.mktemp("company"))
    made.policy("logging")
    made.sweep()
    return made


LINES = [
    ("get", "variants", "{}", "-o", "name"),
    ("get", "targets", "{}", "-o", "name"),
    ("render", "{}"),
    ("diff", "{}"),
    ("explain", "{}"),
    ("suspend", "monitoring", "--variant", "{}", *WHY, "--dry-run"),
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_variant_by_policy_and_target(fleet: Fleet, line: tuple[str, ...]):
    result = fleet.run(*(word.format("monitoring/ber") for word in line))
    assert result.code in (0, 3), result.err
    assert result.out


def test_the_stage_may_stand_between(fleet: Fleet):
    by_stage = fleet.run("diff", "monitoring/prod/ber")
    assert (by_stage.code, by_stage.out) == (0, fleet.run("diff", "monitoring/ber").out)
    assert fleet.run("diff", "monitoring/dev/ber").code == 1


def test_a_target_of_two_policies_is_ambiguous(fleet: Fleet):
    refused = fleet.run("diff", "ber")
    assert refused.code == 1
    assert "matches several variants" in refused.err
    assert refused.err.count("monitoring-ber-928771694f") == 1
    assert "logging-ber-" in refused.err
