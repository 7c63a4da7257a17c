"""Who may ask a variant to go back, and what is refused."""

from pathlib import Path

import pytest
from companies import company
from fleet import Fleet
from returning import ONE_STAGE, WHY, rollback, tree, two_sites


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


BY_HAND = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: own}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  downstream: {repository: edge, package: own}
"""


def test_a_variant_written_by_hand_goes_back_by_its_name(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ber": ("prod", "edge")})
    for name in ("policy.yaml", "promotion.yaml", "site-ber.yaml"):
        fleet.remove(name)
    fleet.write("own.yaml", BY_HAND)
    for revision in ("v1", "v2"):
        if revision != "v1":
            fleet.release(revision)
        fleet.later(minutes=5).settle()
        fleet.run("promote", "own", *WHY)
        assert fleet.published() == {"own": revision}
    assert fleet.later(minutes=5).run("rollback", "--yes", "own", *WHY).code == 0
    assert fleet.published() == {"own": "v1"}
    fleet.later(minutes=5).settle()
    explained = fleet.run("explain", "own").out
    assert "candidate v1" in explained
    assert "Pinned  own stays at v1, by decision " in explained
    assert tree(fleet, "main:own") == tree(fleet, "own/v1:own")


#   sentence, arguments, what is told
REFUSED = [
    ("an unknown stage", ("--stage", "qa"), "has no stage qa; choose one of: prod"),
    ("no stage", (), "the stage of default/monitoring is missing"),
    ("an unknown variant", ("--stage", "prod", "--variant", "x"), "has no variant x"),
    (
        "a revision that nobody had",
        ("--stage", "prod", "--revision", "v7"),
        "v7 was never published in stage prod of default/monitoring; choose one of: v1, v2",
    ),
]


@pytest.mark.parametrize(("_", "args", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(fleet: Fleet, _: str, args: tuple[str, ...], words: str):
    before = fleet.records().refs()
    done = fleet.run("rollback", "--yes", "monitoring", *args, *WHY)
    assert done.code in (1, 4)
    assert words in done.err
    assert fleet.records().refs() == before


def test_refused_where_nothing_was_published_before(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ber": ("prod", "edge")})
    fleet.write("policy.yaml", ONE_STAGE)
    fleet.settle()
    words = rollback(fleet)
    assert words.code == 4
    assert "nothing was published in stage prod of default/monitoring before v1" in words.err
