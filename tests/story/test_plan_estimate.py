"""`fanout plan` says how many refs the sweep changes, and is right about it."""

from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, PROMOTION, Fleet

SHARED = "spec: {url: "


@company
def fleet(root: Path) -> Fleet:
    made = Fleet(root)
    for name in ("blueprints", "edge"):
        made.repository(name)
    made.release("v1")
    made.write("policy.yaml", PLAIN)
    made.write("promotion.yaml", PROMOTION)
    return made


def changed_refs(fleet: Fleet) -> int:
    """How many refs of the downstream repository one sweep makes, moves or removes."""
    before = fleet.repos["edge"].refs()
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 0, swept.err
    after = fleet.repos["edge"].refs()
    return sum(before.get(ref) != after.get(ref) for ref in before.keys() | after.keys())


def declare_without_tags(fleet: Fleet) -> None:
    path = fleet.root / fleet.policies / "repository-edge.yaml"
    path.write_text(path.read_text().replace(SHARED, "spec: {tags: None, url: "))


def share_drafts(fleet: Fleet) -> None:
    fleet.write("policy.yaml", PLAIN.replace("spec:\n", "spec:\n  draftPer: Stage\n", 1))


@pytest.mark.parametrize("prepare", [None, declare_without_tags, share_drafts])
def test_a_plan_counts_the_refs_that_the_sweep_changes(fleet: Fleet, prepare):
    if prepare is not None:
        prepare(fleet)
    counts = []
    for revision in ("v1", "v2"):
        for _ in range(3):
            fleet.later(minutes=1)
            planned = fleet.plan("-o", "json").json
            refs = planned["estimate"]["refs"]
            text = fleet.plan().out
            assert text.endswith(f"{refs} refs to push\n") or refs < 2, text
            counts.append(changed_refs(fleet))
            assert refs == counts[-1], planned["actions"]
        if revision == "v1":
            fleet.release("v2")
    assert counts[0] > 0, "drafts were written"
    assert counts[1] > counts[0] - 1, "they were published"
    assert counts[2] == 0, "nothing is left to do"
    assert planned["estimate"]["hosts"] == []


def test_a_plan_without_work_says_nothing_of_refs(fleet: Fleet):
    fleet.settle()
    assert fleet.plan().out == "nothing to do\n"
    assert fleet.plan("-o", "json").json["estimate"] == {"refs": 0, "hosts": []}
