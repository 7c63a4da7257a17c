"""A publication is dated no earlier than what it was published by."""

from datetime import datetime

from fleet import POLICY, PROMOTION, Fleet

WHY = ("--reason", "because", "--by", "Ann <ann@example.com>")
PROMOTE = ("promote", "monitoring", "--stage", "prod", *WHY)
SIGNED = "{name: prod, requires: [{name: signed-off, approval: {atLeast: 1, from: [sre]}}]}"


def test_a_publication_after_a_withdrawn_decision_is_dated_by_the_later_one(fleet: Fleet):
    fleet.write(
        "policy.yaml", POLICY.replace("{name: prod, after: {stages: [dev], soak: 1h}}", SIGNED)
    )
    fleet.write("promotion.yaml", PROMOTION.replace('["*"]}', "[dev]}"))
    fleet.settle()
    name = fleet.later(minutes=5).run(*PROMOTE).out.split()[0]
    assert fleet.states()["sites/ber"] == "Released"
    fleet.later(minutes=5).run("withdraw", "monitoring", name, *WHY)
    approve = (
        "approve",
        "monitoring",
        "--stage",
        "prod",
        "--check",
        "signed-off",
        "--revision",
        "v1",
    )
    approved = fleet.later(minutes=5).run(*approve, "--by", "Ann <ann@example.com>")
    assert approved.code == 0, approved.err
    fleet.later(minutes=5).run(*PROMOTE)
    assert fleet.published()["sites/ber"] == "v1"
    dated = fleet.repos["edge"].git("log", "-1", "--format=%cI", "sites/ber/v1")
    assert datetime.fromisoformat(dated) == fleet.now
