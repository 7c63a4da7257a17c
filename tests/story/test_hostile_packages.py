"""A package that is too large fails the policies and variants that use it, and no other.

Upstream, on a draft, on the branch at a variant's path: wherever somebody can push one.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from companies import company
from diagonal import choose
from fleet import POLICY, RULE, Fleet
from hostile import PACKAGES, Hostile

LATEST = "revision: {latest: true}"
AMS, BER = "sites/ams", "sites/ber"
# KiB more than without the package, at most: git alone takes 200 MB to fetch what hostile.py has.
MEMORY = 120 << 10


@dataclass(frozen=True)
class Swept:
    """What a sweep in a process of its own said, and the memory of the largest process in it."""

    code: int
    err: str
    memory: int  # KiB


def swept(fleet: Fleet) -> Swept:
    read, write = os.pipe()
    line = ["sweep", "-f", str(fleet.root / fleet.policies), "--now", fleet.now.isoformat()]
    line += ["--state-dir", str(fleet.root / fleet.state)]
    with (fleet.root / "err").open("w+b") as err:
        child = subprocess.Popen(
            [sys.executable, "-m", "fanout", *line], stdout=subprocess.DEVNULL, stderr=err
        )
        # git's memory counts as well: wait4 answers the most that any process below it had.
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        os.close(read)
        os.close(write)
        return Swept(child.returncode, err.read().decode(), usage.ru_maxrss)


def with_hostile_upstream(root: Path, number: int) -> Fleet:
    fleet = Fleet.build(root, {"ams": ("dev", "edge")})
    _, make, _, _ = PACKAGES[number]
    upstream = Hostile(fleet.repos["blueprints"].path)
    commit = upstream.commit("refs/heads/main", "hostile", make(upstream))
    fleet.repos["blueprints"].git("update-ref", "refs/tags/hostile/v1", commit)
    fleet.policy("hostile", (RULE, f"package: hostile, {LATEST}"))
    return fleet


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The memory of a sweep without such a package."""
    return swept(Fleet.build(tmp_path_factory.mktemp("usual"), {"ams": ("dev", "edge")})).memory


@pytest.mark.parametrize("number", range(len(PACKAGES)), ids=[row[0] for row in PACKAGES])
def test_upstream_it_fails_its_variants_and_no_others(tmp_path, usual, number):
    fleet = with_hostile_upstream(tmp_path, number)
    done = swept(fleet)
    assert done.code == 3, done.err
    assert done.memory < usual + MEMORY
    assert fleet.repos["edge"].drafts() == ["sites/ams/monitoring"]
    targets = {it["policy"]: it for it in fleet.run("get", "targets", "-o", "json").views}
    hold = targets["hostile"]["holds"][0]
    _, _, limit, words = PACKAGES[number]
    assert (targets["hostile"]["state"], hold["reason"]) == ("Failed", "LimitExceeded")
    assert hold["message"].startswith("hostile at v1 of ")
    assert words in hold["message"]
    assert limit in hold["message"]


@company
def fleet(root: Path) -> Fleet:
    """Two sites at v1, with open drafts of v2; one of them may fail."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.write("policy.yaml", POLICY.replace("name: dev,", "name: dev, rollout: {maxFailures: 1},"))
    made.settle()
    made.release("v2")
    made.later(minutes=1).sweep("--drafts-only")
    return made


# Downstream the same code reads them; these are the ones that had no end, or took the most memory.
DOWNSTREAM = [0, 2, 3]


def on_branch(fleet: Fleet, number: int, branch: str, path: str) -> None:
    edge = Hostile(fleet.repos["edge"].path)
    edge.commit(f"refs/heads/{branch}", path, PACKAGES[number][1](edge))


@pytest.mark.diagonal
@pytest.mark.parametrize("number", choose(DOWNSTREAM, 0))
def test_on_a_draft_it_holds_the_draft(fleet, number):
    on_branch(fleet, number, "drafts/default/sites/ams/monitoring", AMS)
    done = swept(fleet.later(minutes=1))
    assert "Traceback" not in done.err
    assert fleet.published()[BER] == "v2"
    assert fleet.published()[AMS] == "v1"
    reason, sentence = fleet.condition(AMS)
    assert PACKAGES[number][3] in sentence, (reason, sentence)
    assert AMS in sentence


@pytest.mark.diagonal
@pytest.mark.parametrize("number", choose(DOWNSTREAM, 1))
def test_at_the_path_of_a_variant_it_fails_that_variant(fleet, number):
    on_branch(fleet, number, "main", AMS)
    done = swept(fleet.later(minutes=1))
    assert "Traceback" not in done.err
    assert fleet.published()[BER] == "v2"
    fleet.release("v3")
    done = swept(fleet.later(minutes=1))
    swept(fleet.later(minutes=1))
    assert fleet.published()[BER] == "v3"
    assert fleet.published()[AMS] != "v3"
    reason, sentence = fleet.condition(AMS)
    assert PACKAGES[number][3] in sentence, (reason, sentence, done.err)


@pytest.mark.diagonal
@pytest.mark.parametrize("number", choose(DOWNSTREAM, 2))
def test_beside_a_variant_it_is_never_read(fleet, usual, number):
    on_branch(fleet, number, "main", "sites/other")
    done = swept(fleet.later(minutes=1))
    assert done.code == 0, done.err
    assert done.memory < usual + MEMORY
    assert fleet.published() == {AMS: "v2", BER: "v2"}
    fleet.repos["edge"].fsck()


def test_every_command_that_reads_a_package_refuses_it(fleet):
    on_branch(fleet, 0, "main", AMS)
    fleet.later(minutes=1)
    for line in (["get", "variants"], ["explain", "variant", "monitoring-ams"], ["plan"],
                 ["get", "targets"]):  # fmt: skip
        result = fleet.run(*line)
        assert "Traceback" not in result.err, line
    names = [it["variant"] for it in fleet.run("get", "targets", "-o", "json").views]
    for name in names:
        result = fleet.run("diff", name)
        assert "InternalError" not in result.err + result.out
    assert json.loads(fleet.run("get", "variants", "-o", "json").out)["items"]
