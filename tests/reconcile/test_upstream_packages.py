"""Revisions that a rule allows, as the pass finds them in a listing."""

import pytest
from gates.worlds import decided, draft, facts, grant, published, stage, variant
from reconcile.builders import COMMITS, UPSTREAM_URL, resolved, tags

from fanout.api.gate_vocabulary import Action
from fanout.errors import InvalidInput, Unavailable
from fanout.package.revision import parse_tag, select_releases
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.observation.upstream_packages import find_revisions, find_unusable

RULES = [
    ("latest takes all releases", {"latest": True}, "v1 v2 v3", "v1 v2 v3"),
    ("latest takes no prerelease", {"latest": True}, "v1.0.0 v1.1.0-rc.1", "v1.0.0"),
    ("a range", {"semver": ">=2 <4"}, "v1 v2 v3 v4", "v2 v3"),
    ("by version and not by text", {"semver": ">=1"}, "v10 v9 v1", "v1 v9 v10"),
    ("one tag", {"tag": "v2"}, "v1 v2 v3", "v2"),
    ("a commit needs no tag", {"commit": "a" * 40}, "", "a" * 40),
]


@pytest.mark.parametrize(
    ("rule", "listed", "allowed"), [row[1:] for row in RULES], ids=[row[0] for row in RULES]
)
def test_a_rule_allows_revisions_oldest_first(rule, listed, allowed):
    listings = {UPSTREAM_URL: tags(*listed.split())}
    assert (
        list(find_revisions(resolved(revision=rule), listings, RecordedStatus())) == allowed.split()
    )


def test_tags_of_other_packages_do_not_count():
    listings = {UPSTREAM_URL: tags("v2", package="logging")}
    with pytest.raises(InvalidInput, match="monitoring/v<N>") as caught:
        find_revisions(resolved(), listings, RecordedStatus())
    assert caught.value.reason == "NoRevision"


def test_a_tag_that_moved_since_it_was_used_is_refused():
    listings = {UPSTREAM_URL: tags("v1", v2="e" * 40)}
    recorded = RecordedStatus(revisions={"v1": COMMITS["v1"], "v2": COMMITS["v2"]})
    with pytest.raises(InvalidInput, match="monitoring/v2") as caught:
        find_revisions(resolved(), listings, recorded)
    assert caught.value.reason == "TagMoved"


def test_a_moved_tag_that_the_rule_does_not_allow_is_no_error():
    listings = {UPSTREAM_URL: tags("v1", v2="e" * 40)}
    policy = resolved(revision={"semver": "<2"})
    recorded = RecordedStatus(revisions={"v2": COMMITS["v2"]})
    assert find_revisions(policy, listings, recorded) == {"v1": COMMITS["v1"]}


def test_a_listing_that_failed_is_raised():
    with pytest.raises(Unavailable, match="no answer"):
        find_revisions(resolved(), {UPSTREAM_URL: Unavailable("no answer")}, RecordedStatus())


def test_a_version_of_thousands_of_digits_is_none():
    for name in ("v" + "9" * 5000, f"v1.{'9' * 5000}.0", "v1.0.0-" + "9" * 5000):
        assert parse_tag(f"monitoring/{name}", "monitoring") is None
        listed = {f"monitoring/{name}": "a" * 40, "monitoring/v2": COMMITS["v2"]}
        assert select_releases(listed, "monitoring") == [("v2", COMMITS["v2"])]


DEV = stage("dev")
# What has v3 besides the tag, and what is left out of v1 to v4 if v3 and v4 cannot be used.
TAKEN = [
    ("nothing", facts([DEV], [], revisions="v1 v2 v3 v4"), "v3 v4"),
    ("a publication",
     facts([DEV], [variant("a", "dev", published("v3"))], revisions="v1 v2 v3 v4"), "v4"),
    ("a draft",
     facts([DEV], [variant("a", "dev", draft=draft("v3"))], revisions="v1 v2 v3 v4"), "v4"),
    ("a release",
     facts([DEV], [variant("a", "dev", grant=grant("v3"))], revisions="v1 v2 v3 v4"), "v4"),
    ("a promotion",
     facts([DEV], [], decided(Action.PUBLISH, stage="dev", revision="v3"),
           revisions="v1 v2 v3 v4"), "v4"),
    ("a skip of a variant, which chooses nothing",
     facts([DEV], [], decided(Action.SKIP, stage="dev", revision="v3"),
           revisions="v1 v2 v3 v4"), "v3 v4"),
    ("a pin of the policy", facts([stage("dev", pin="v3")], [], revisions="v1 v2 v3 v4"), "v4"),
    ("nothing beside it", facts([DEV], [], revisions="v3 v4"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("_", "facts", "left_out"), TAKEN, ids=[row[0] for row in TAKEN])
def test_a_published_or_pinned_revision_is_not_left_out(_, facts, left_out):
    problems = {it: InvalidInput("no package") for it in ("v3", "v4")}
    assert sorted(find_unusable(facts, ["v4"], problems.get)) == left_out.split()
