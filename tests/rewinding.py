"""Records of a fleet that are put back to an older state, and a machine that never read them."""

import shutil

from fleet import Fleet

RECORDS_BRANCH = "refs/heads/fanout/default/default/monitoring"
WHY = ("--reason", "restored", "--by", "Ann <ann@example.com>")
SUSPEND = ("suspend", "monitoring", "--stage", "prod", *WHY)
ACCEPT = ("accept-records", "monitoring", *WHY)


def head(fleet: Fleet) -> str:
    return fleet.records().refs()[RECORDS_BRANCH]


def put_back(fleet: Fleet, commit: str) -> None:
    fleet.records().git("update-ref", RECORDS_BRANCH, commit)


def moved(fleet: Fleet, state: str) -> Fleet:
    """Give the company another machine, with its records and nothing else of the old one's."""
    fresh = fleet.root / state
    fresh.mkdir()
    shutil.copytree(fleet.records().path, fresh / "records.git")
    fleet.state = state
    return fleet


def held(fleet: Fleet) -> str:
    """Sweep; nothing moves, and the policy is held."""
    before = fleet.refs()
    swept = fleet.sweep()
    assert swept.code == 3, (swept.out, swept.err)
    assert fleet.refs() == before
    explained = fleet.run("explain", "monitoring", "-o", "json").json
    assert explained["status"]["state"] == "Stopped"
    assert explained["status"]["blockers"][0]["reason"] == "RecordsRewound"
    return swept.err
