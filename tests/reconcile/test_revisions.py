"""Revisions that a rule allows, as the pass finds them in a listing."""

import pytest
from reconcile.builders import COMMITS, UPSTREAM_URL, resolved, tags

from fanout.errors import InvalidInput, Unavailable
from fanout.reconcile.observation.upstream_packages import find_revisions

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
    assert list(find_revisions(resolved(revision=rule), listings, {})) == allowed.split()


def test_tags_of_other_packages_do_not_count():
    listings = {UPSTREAM_URL: tags("v2", package="logging")}
    with pytest.raises(InvalidInput, match="monitoring/v<N>") as caught:
        find_revisions(resolved(), listings, {})
    assert caught.value.reason == "NoRevision"


def test_a_tag_that_moved_since_it_was_used_is_refused():
    listings = {UPSTREAM_URL: tags("v1", v2="e" * 40)}
    recorded = {"v1": COMMITS["v1"], "v2": COMMITS["v2"]}
    with pytest.raises(InvalidInput, match="monitoring/v2") as caught:
        find_revisions(resolved(), listings, recorded)
    assert caught.value.reason == "TagMoved"


def test_a_moved_tag_that_the_rule_does_not_allow_is_no_error():
    listings = {UPSTREAM_URL: tags("v1", v2="e" * 40)}
    policy = resolved(revision={"semver": "<2"})
    assert find_revisions(policy, listings, {"v2": COMMITS["v2"]}) == {"v1": COMMITS["v1"]}


def test_a_listing_that_failed_is_raised():
    with pytest.raises(Unavailable, match="no answer"):
        find_revisions(resolved(), {UPSTREAM_URL: Unavailable("no answer")}, {})
