"""What holds of every pass, whatever the company looks like and whatever happens in it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fleet import POLICY, Fleet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

REPOSITORIES = ("edge", "core")
MINE = "sites/s0/mine.txt"  # a person's file in the published package
VERIFIED = "verification: [{name: e2e, report: {}}]"
Event = Callable[[Fleet], object]


@dataclass(frozen=True)
class Company:
    """Sites with their stage and repository, what stages ask for, and what happens."""

    sites: dict[str, tuple[str, str]]
    verified: tuple[bool, bool]  # dev, prod
    soak: bool
    events: list[Event]
    draft_per: str

    @property
    def status(self) -> int:
        """What sweeps leave with: a site in a stage that is not there is not served."""
        return 3 if any(stage == "nowhere" for stage, _ in self.sites.values()) else 0

    def build(self, root: Path) -> Fleet:
        fleet = Fleet.build(root, self.sites)
        dev, prod = (f", {VERIFIED}" if asked else "" for asked in self.verified)
        after = "after: {stages: [dev], soak: 1h}" if self.soak else "after: {stages: [dev]}"
        stages = f"  stages:\n  - {{name: dev{dev}}}\n  - {{name: prod, {after}{prod}}}\n"
        text = POLICY[: POLICY.index("  stages:")] + stages
        fleet.write(
            "policy.yaml", text.replace("spec:\n", f"spec:\n  draftPer: {self.draft_per}\n")
        )
        return fleet


def reported(stage: str, status: str, number: int) -> Event:
    def event(fleet: Fleet) -> None:
        fleet.report(stage, f"v{number}", status)  # refused where it is about nothing

    return event


def released(number: int) -> Event:
    def event(fleet: Fleet) -> None:
        if f"monitoring/v{number}" not in fleet.repos["blueprints"].tags():
            fleet.release(f"v{number}")

    return event


def changed(retention: str) -> Event:
    def event(fleet: Fleet) -> None:
        fleet.site("s0", "dev", "edge", retention)

    return event


def edited(branch: str, number: int) -> Event:
    """A person changes what is published, or commits to a draft; the same field now and then."""

    def event(fleet: Fleet) -> None:
        edge, path = fleet.repos["edge"], "sites/s0/deployment.yaml"
        if branch in edge.git("branch", "--format=%(refname:short)") and path in edge.files(branch):
            text = edge.file(branch, path).replace("replicas:", f"paused: {number}\n  replicas:")
            edge.commit(branch, {path: text if number else None, MINE: f"{number}\n"})

    return event


def waited(minutes: int) -> Event:
    return lambda fleet: fleet.later(minutes=minutes)


EVENTS = st.one_of(
    st.builds(
        reported,
        st.sampled_from(["dev", "prod"]),
        st.sampled_from(["passed", "passed", "failed"]),
        st.integers(1, 2),
    ),
    st.builds(released, st.integers(2, 3)),
    st.builds(changed, st.sampled_from(["1d", "2d"])),
    st.builds(
        edited,
        st.sampled_from(
            [
                "main",
                "drafts/default/sites/s0/monitoring",
                "drafts/default/_stages/default.monitoring/dev",
            ]
        ),
        st.sampled_from([0, 1]),
    ),
    st.builds(waited, st.sampled_from([1, 90])),
)
PLACES = st.tuples(st.sampled_from(["dev", "prod", "nowhere"]), st.sampled_from(REPOSITORIES))
COMPANIES = st.builds(
    Company,
    st.lists(PLACES, max_size=3).map(
        lambda places: {"s0": ("dev", "edge")} | {f"s{n}": p for n, p in enumerate(places, start=1)}
    ),
    st.tuples(st.booleans(), st.booleans()),
    st.booleans(),
    st.lists(EVENTS, min_size=1, max_size=4),
    st.sampled_from(["Variant", "Stage"]),
)


def expected(company: Company, fleet: Fleet) -> int:
    """The exit code of a sweep: 3 also where a site has failed its check."""
    return 3 if "Failed" in fleet.states().values() else company.status


@settings(max_examples=16, suppress_health_check=[HealthCheck.too_slow])
@given(COMPANIES)
def test_drafts_are_up_to_date_after_each_pass_and_sweeps_come_to_an_end(company: Company):
    with tempfile.TemporaryDirectory() as directory:
        fleet = company.build(Path(directory))
        mine = False
        for event in [waited(0), *company.events]:
            event(fleet)
            mine |= MINE in fleet.repos["edge"].files("main")
            assert fleet.sweep().code == expected(company, fleet)
            due = fleet.plan("--drafts-only", "-o", "json").json["actions"]
            assert {action["kind"] for action in due} <= {"Record"}  # no draft is
        fleet.settle(status=company.status)
        plan = fleet.plan("-o", "json")
        assert (plan.code, plan.json["actions"]) == (expected(company, fleet), [])
        assert not mine or MINE in fleet.repos["edge"].files("main")
        before = fleet.refs(), fleet.records().refs()
        assert fleet.sweep().out.startswith("nothing to do")
        assert (fleet.refs(), fleet.records().refs()) == before


def test_identical_input_gives_identical_commits(fleet: Fleet):
    """Two installations of one name, with nothing in common but the world that they find."""
    git_directory, kept = fleet.root / "git", fleet.root / "kept"
    shutil.copytree(git_directory, kept)
    seen = []
    for state in ("one", "two"):
        shutil.rmtree(git_directory)
        shutil.copytree(kept, git_directory)
        mine = replace(fleet, state=state)
        mine.settle()
        mine.later(minutes=5).report("dev", "v1")
        mine.settle()
        mine.later(hours=2).settle()
        assert set(mine.published().values()) == {"v1"}
        seen.append((mine.refs(), mine.records().refs()))
    assert seen[0] == seen[1]


def test_the_same_observation_gives_the_same_plan_in_every_process(fleet: Fleet):
    line = [
        "plan", "-o", "json", "-f", str(fleet.root / "policies"),
        "--state-dir", str(fleet.root / "state"), "--now", fleet.now.isoformat(),
    ]  # fmt: skip
    plans = {
        subprocess.run(
            [sys.executable, "-m", "fanout", *line],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(plans) == 1
    assert plans.pop().decode() == fleet.plan("-o", "json").out
