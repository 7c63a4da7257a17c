"""A decision to publish is for one step of a variant: it never comes back to life."""

from pathlib import Path

from companies import company
from fleet import POLICY, PROMOTION, Fleet

WHY = ("--reason", "because", "--by", "Ann <ann@example.com>")


@company
def fleet(root: Path) -> Fleet:
    """Prod is published by hand, as soon as dev is."""
    text = POLICY.replace(", soak: 1h", "").replace(", verification: [{name: e2e, report: {}}]", "")
    made = Fleet.build(root)
    made.write("policy.yaml", text)
    made.write("promotion.yaml", PROMOTION.replace('["*"]}', "[dev]}"))
    made.settle()
    promoted(made)
    return made


def promoted(fleet: Fleet) -> None:
    assert fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY).code in (
        0,
        3,
    )
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


def test_a_promotion_with_nothing_to_publish_is_not_kept_for_the_next_inputs(fleet: Fleet):
    before = fleet.records().refs()
    result = fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    assert (result.code, result.out) == (0, "nothing to do\n")
    assert "v1" in result.err
    assert "stage prod" in result.err
    assert fleet.records().refs() == before
    fleet.site("ber", "prod", "edge", retention="30d")
    fleet.later(minutes=5).settle()
    assert fleet.repos["edge"].drafts() == ["sites/ber/monitoring"]
    promoted(fleet)
    assert fleet.repos["edge"].drafts() == []


def test_a_promotion_is_about_the_drafts_that_there_were_to_see(fleet: Fleet):
    """Nobody has looked at what is rendered after it."""
    fleet.release("v2")
    fleet.settle()
    fleet.run("suspend", "monitoring", "--variant", "sites/ber", *WHY)
    fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    fleet.site("ber", "prod", "edge", retention="30d")
    fleet.later(minutes=5).run("resume", "monitoring", "--variant", "sites/ber", *WHY)
    fleet.settle()
    assert fleet.published()["sites/ber"] == "v1"
    assert fleet.published()["sites/cph"] == "v2"
    reason, sentence = fleet.condition("sites/ber")
    assert reason == "AutomationOff"
    assert all(word in sentence for word in ("ann@example.com", "v2"))
    promoted(fleet)
    assert fleet.published()["sites/ber"] == "v2"


def test_a_promotion_of_inputs_without_a_draft_is_refused(fleet: Fleet):
    fleet.site("ber", "prod", "edge", retention="30d")
    before = fleet.records().refs()
    result = fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    assert (result.code, result.out) == (4, "")
    assert "v1" in result.err
    assert "`fanout sweep --drafts-only`" in result.err
    assert fleet.records().refs() == before


def test_a_promotion_counts_the_variants_without_a_draft(fleet: Fleet):
    fleet.release("v2")
    fleet.settle()
    fleet.site("ber", "prod", "edge", retention="30d")
    result = fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *WHY)
    assert "1 of 2 variants" in result.err
    fleet.later(minutes=5).settle()
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": "v1", "sites/cph": "v2"}


def test_a_revision_may_be_promoted_before_there_is_a_draft_of_it(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace(", soak: 1h", ""))  # dev is to be reported on first
    fleet.report("dev", "v1")
    fleet.release("v2")
    fleet.settle()
    assert fleet.repos["core"].drafts() == []
    more = ("--revision", "v2", "--override", "after")
    fleet.later(minutes=5).run("promote", "monitoring", "--stage", "prod", *more, *WHY)
    fleet.settle()
    assert fleet.published()["sites/cph"] == "v2"


def test_a_move_is_not_published_by_what_was_decided_before_it(fleet: Fleet):
    assert fleet.published()["sites/ber"] == "v1"
    fleet.repository("moved")
    fleet.site("ber", "prod", "moved")
    fleet.later(minutes=5).settle()
    assert fleet.repos["moved"].tags() == []
    promoted(fleet)
    assert fleet.repos["moved"].tags() == ["sites/ber/v1"]
