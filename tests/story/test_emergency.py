"""Promotion of a fix in an emergency, over the real command: before approvals of what was next."""

import re
from pathlib import Path

from companies import company
from fleet import POLICY, Fleet

ANN = ("--by", "Ann <ann@example.com>", "--reason", "urgent")
BOB = ("--by", "Bob <bob@example.com>")
TWO = "requires: [{name: signed, approval: {atLeast: 2, from: [sre]}}]"
ALL = ("--override", "after", "--override", "soak")
PROD = ("monitoring", "--stage", "prod")


@company
def fleet(root: Path) -> Fleet:
    """Dev at v2; prod with nothing yet, and drafts of v1 with one of two approvals."""
    made = Fleet.build(root)
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


def test_a_promoted_cluster_goes_first_then_the_others_follow(fleet: Fleet):
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


def lead(fleet: Fleet, *more: str) -> None:
    """Have a draft of v2 for one cluster, which waits for approvals."""
    one = ("monitoring", "--stage", "prod", "--variant", "ber", "--revision", "v2")
    fleet.later(minutes=1).run("promote", *one, *more, *ANN)
    fleet.settle()
    views = fleet.run("get", "drafts", "-o", "json").views
    assert {it["path"]: it["revision"] for it in views} == {"sites/ber": "v2", "sites/cph": "v1"}


def test_the_rest_follows_although_some_of_it_has_a_draft_already(fleet: Fleet):
    lead(fleet, *ALL)
    more = (*ALL, "--override", "requires", *ANN)
    result = fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    assert "not included" not in result.out + result.err
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v2"}
    states = {it["state"] for it in fleet.run("get", "decisions", "-o", "json").views}
    assert states == {"Applied"}


def test_a_draft_that_is_to_be_written_again_is_covered_too(fleet: Fleet):
    lead(fleet, *ALL)
    fleet.site("ber", "prod", "edge", "30d")
    more = (*ALL, "--override", "requires", *ANN)
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    fleet.settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v2"}


def test_a_cluster_that_joins_meanwhile_is_covered_too(fleet: Fleet):
    lead(fleet, *ALL)
    closed = '  windows: [{deny: {schedule: "* * * * *", duration: 1h}}]\n'
    promotion = (fleet.root / "policies/promotion.yaml").read_text()
    fleet.write("promotion.yaml", promotion + closed)
    more = (*ALL, "--override", "requires", *ANN)
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    fleet.site("dub", "prod", "edge")
    fleet.later(minutes=1).settle()
    assert set(published(fleet).values()) == {"v2", ""}
    # The decision on record says all that the same command says again.
    count = len(fleet.run("get", "decisions", "-o", "json").items)
    fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    assert len(fleet.run("get", "decisions", "-o", "json").items) == count
    fleet.write("promotion.yaml", promotion.replace('["*"]}', "[dev]}"))
    fleet.later(minutes=1).settle()
    assert published(fleet) == {"ams": "v2", "ber": "v2", "cph": "v2", "dub": "v2"}


def test_the_rest_follows_in_a_stage_that_waits_for_no_other(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    policy = POLICY.replace("after: {stages: [dev], soak: 1h}", TWO)
    fleet.write("policy.yaml", policy)
    fleet.settle()
    assert fleet.run("approve", *PROD, "--revision", "v1", *BOB).code == 0
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    lead(fleet)
    more = ("--override", "requires", *ANN)
    result = fleet.later(minutes=1).run("promote", *PROD, "--revision", "v2", *more)
    assert "not included" not in result.out + result.err
    fleet.settle()
    assert set(published(fleet).values()) == {"v2"}


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
