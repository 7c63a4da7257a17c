"""What a pass costs, counted: for good, on any machine."""

import re
from collections import Counter
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet

from fanout.git.git_command import GitProgram
from fanout.reconcile.pass_scope import PassMode

SITES = {
    "ams": ("dev", "edge"),
    "ber": ("dev", "edge"),
    "cph": ("dev", "core"),
    "dub": ("prod", "core"),
    "edi": ("prod", "west"),
}
ANN = ("--reason", "holidays", "--by", "Ann <ann@example.com>")


@company
def fleet(root: Path) -> Fleet:
    """Five sites in three repositories; with upstream and records five repositories are listed."""
    return Fleet.build(root, SITES)


def idle(cost: dict[str, int]) -> dict[str, int]:
    """What a pass may cost in which nothing changed."""
    nothing = dict.fromkeys(cost, 0)
    asked = {name: cost[name] for name in ("evaluations", "judged")}
    return {**nothing, "listings": 5, **asked}


def test_a_pass_without_changes_lists_each_repository_once(
    fleet: Fleet,
):
    fleet.settle()
    before = fleet.refs(), fleet.records().refs()
    cost = fleet.counted()
    assert cost == idle(cost)
    assert (fleet.refs(), fleet.records().refs()) == before


def test_a_second_pass_of_a_running_program_costs_no_more(fleet: Fleet):
    fleet.settle()
    with fleet.opened() as program:
        assert program.sweep(PassMode()).outcomes == ()
        program.world.counters.reset()
        assert program.sweep(PassMode()).outcomes == ()
        cost = dict(program.world.counters.read())
    assert cost == {**idle(cost), "judged": 0}


def test_variants_that_changed_are_rendered_and_their_repositories_pushed_once(fleet: Fleet):
    fleet.settle()
    for site in ("dub", "edi"):
        fleet.site(site, "prod", SITES[site][1], retention="30d")
    cost = fleet.counted()
    assert (cost["renders"], cost["pushes"], cost["record_writes"]) == (2, 2, 0)


def test_drafts_take_one_push_and_publications_two(fleet: Fleet):
    drafted = fleet.counted()
    assert drafted["renders"] == 5
    assert drafted["pushes"] - drafted["record_writes"] == 3
    published = fleet.counted()
    assert published["renders"] == 0
    assert published["pushes"] - published["record_writes"] == 2 * 2
    assert published["record_writes"] == 2, "the releases before, what came of them after"


SCOPES = [
    ("a policy", []),
    ("a stage", ["--stage", "dev"]),
    ("variants", [f"--variant=sites/{site}" for site in ("ams", "ber", "cph")]),
]


@pytest.mark.parametrize("scope", [row[1] for row in SCOPES], ids=[row[0] for row in SCOPES])
def test_no_package_is_rendered_for_suspended_variants(fleet: Fleet, scope: list[str]):
    fleet.settle()
    fleet.release("v2")
    assert fleet.run("suspend", "monitoring", *scope, *ANN).code == 0
    fleet.counted()  # fetches the new revision
    cost = fleet.counted()
    assert cost == idle(cost)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many git processes were started for each repository, as they are started."""
    counts: Counter[str] = Counter()
    run = GitProgram.run

    def counting(self, mirror, *rest, **more):
        url = re.search(r'url = "(.*)"', (mirror / "config").read_text())
        counts[Path(url[1]).stem] += 1
        return run(self, mirror, *rest, **more)

    monkeypatch.setattr(GitProgram, "run", counting)
    return counts


def test_git_is_started_for_fetches_and_pushes_alone(fleet: Fleet, processes: Counter[str]):
    fleet.sweep()
    downstream = {"edge", "core", "west"}
    assert {processes[name] for name in downstream} == {2}  # with a fetch
    assert processes["blueprints"] == 2  # git lists annotated tags that the mirror does not have
    processes.clear()
    fleet.sweep()
    assert dict(processes) == {
        "edge": 2, "core": 2,
        "records": 2,  # two writes, of which one is the fence of the other
    }  # fmt: skip
    fleet.release("v2")
    processes.clear()
    fleet.sweep()
    assert dict(processes) == {
        "edge": 1, "core": 1, "blueprints": 2, "records": 1
    }  # fmt: skip


def test_with_v_a_command_says_what_it_counted_and_where_the_time_went(fleet: Fleet):
    quiet, costs = fleet.run("plan"), fleet.run("sweep", "-v").err
    assert "cost" not in quiet.err
    assert "renders=5 " in costs
    phases = re.findall(
        r"^cost of (\w+): clock=[\d.]+ own=[\d.]+ children=[\d.]+", costs, re.MULTILINE
    )
    assert {"files", "records", "listings", "writing", "else"} <= set(phases)
    assert re.search(r"^cost of writing: .* git-push=[\d.]+", costs, re.MULTILINE)
