"""A decision to publish is for one step of a variant: it never comes back to life."""

import pytest
from fleet import POLICY, PROMOTION, Fleet

WHY = ("--reason", "because", "--by", "Ann <ann@example.com>")


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    """Prod is published by hand, as soon as dev is."""
    text = POLICY.replace(", soak: 1h", "").replace(", verification: [{name: e2e, report: {}}]", "")
    fleet.write("policy.yaml", text)
    fleet.write("promotion.yaml", PROMOTION.replace('["*"]}', "[dev]}"))
    fleet.settle()
    promoted(fleet)
    return fleet


def promoted(fleet: Fleet) -> None:
    assert fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY).code == 0
    fleet.later(minutes=5).settle()


def test_a_vanished_tag_takes_nobody_back_to_what_was_promoted_before(fleet: Fleet):
    for name in ("v2", "v3"):
        fleet.release(name)
        fleet.settle()
        promoted(fleet)
    assert fleet.published() == dict.fromkeys(fleet.published(), "v3")
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v3")
    fleet.later(minutes=5).settle()
    assert fleet.published() == dict.fromkeys(fleet.published(), "v3")
    promoted(fleet)
    assert fleet.published()["sites/ber"] == "v2"
    assert fleet.published()["sites/ams"] == "v3"


def test_a_move_is_not_published_by_what_was_decided_before_it(fleet: Fleet):
    assert fleet.published()["sites/ber"] == "v1"
    fleet.repository("moved")
    fleet.site("ber", "prod", "moved")
    fleet.later(minutes=5).settle()
    assert fleet.repos["moved"].tags() == []
    promoted(fleet)
    assert fleet.repos["moved"].tags() == ["sites/ber/v1"]
