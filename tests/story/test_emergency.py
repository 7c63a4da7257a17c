"""Promotion of a fix in an emergency, over the real command: before approvals of what was next."""

import re
from pathlib import Path

import pytest
from fleet import POLICY, Fleet

ANN = ("--by", "Ann <ann@example.com>", "--reason", "urgent")
BOB = ("--by", "Bob <bob@example.com>")
TWO = "requires: [{name: signed, approval: {atLeast: 2, from: [sre]}}]"
ALL = ("--override", "after", "--override", "soak")
PROD = ("monitoring", "--stage", "prod")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Dev at v2; prod with nothing yet, and drafts of v1 with one of two approvals."""
    made = Fleet.build(tmp_path)
    made.write("policy.yaml", POLICY.replace("soak: 1h}", f"soak: 1h}}, {TWO}"))
    made.settle()
    made.later(minutes=5).report("dev", "v1")
    made.settle()
    made.later(hours=2).settle()
    assert made.run("approve", *PROD, "--revision", "v1", *BOB).code == 0
    made.release("v2")
    made.later(minutes=1).settle()
    return made


def published(fleet: Fleet) -> dict[str, str]:
    items = fleet.run("get", "variants", "-o", "json").views
    return {
        it["metadata"]["name"].split("-")[1]: it.get("published", {}).get("revision", "")
        for it in items
    }


def test_the_fix_goes_before_the_approvals_of_what_was_next(fleet: Fleet):
    result = fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *ALL, *ANN)
    assert "approvals of v1 by bob@example.com do not count for it" in result.err
    assert "the candidate is v1" not in result.err
    fleet.settle()
    # The approvals that the override does not replace are asked of the fix.
    approve = ("approve", *PROD, "--revision", "v2")
    assert fleet.later(minutes=1).run(*approve, *BOB).code == 0
    assert fleet.later(minutes=1).run(*approve, *ANN[:2]).code == 0
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v2"}
    [decision] = fleet.run("get", "decisions", "-o", "json").views
    assert decision["state"] == "Applied"


def test_one_cluster_goes_first_and_the_others_stay_then_all_follow(fleet: Fleet):
    more = (*ALL, "--override", "requires", *ANN)
    one = ("monitoring", "--stage", "prod", "--variant", "ber", "--revision", "v2")
    fleet.later(minutes=1).run("promote", *one, *more)
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": ""}
    # Bob's approval of v1 still counts for the others.
    assert fleet.later(minutes=1).run("approve", *PROD, "--revision", "v1", *ANN[:2]).code == 0
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v1"}
    drafts = fleet.run("get", "drafts", "-o", "json").items
    assert drafts == []
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v2"}


def test_an_override_that_is_not_enough_is_refused_with_the_command_that_is(fleet: Fleet):
    args = ("promote", *PROD, "--revision", "v2", "--override", "after")
    result = fleet.later(minutes=1).run(*args, *ANN)
    assert result.code == 2
    assert fleet.run("get", "decisions", "-o", "json").items == []
    [command] = re.findall(r"`fanout (promote [^`]*)`", result.err)
    fleet.run(*command.split(), *ANN)
    fleet.settle()
    assert {it["revision"] for it in fleet.run("get", "drafts", "-o", "json").views} == {"v2"}


def test_a_promotion_that_waits_is_not_used_up_by_what_comes_before(fleet: Fleet):
    promotion = (fleet.root / "policies/promotion.yaml").read_text()
    fleet.write("promotion.yaml", promotion.replace('["*"]}', "[dev]}"))
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *ANN)
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v1", *ANN)
    assert fleet.later(minutes=1).run("approve", *PROD, "--revision", "v1", *ANN[:2]).code == 0
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v1", "cph": "v1"}
    states = {
        it["revision"]: it["state"] for it in fleet.run("get", "decisions", "-o", "json").views
    }
    assert states == {"v1": "Applied", "v2": "Active"}
