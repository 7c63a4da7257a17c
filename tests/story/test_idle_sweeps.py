"""A sweep that finds the world as it was when there was nothing to do: it says so, and no more.

Each command is a program of its own, so what one knows of the other is in the state directory.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet, Result

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "core")}


@company
def fleet(root: Path) -> Fleet:
    """Dev is published and passed, prod waits for the end of its soak, an hour later."""
    made = Fleet.build(root, SITES)
    made.settle()
    made.report("dev", "v1")
    made.settle()
    return made


def rests(fleet: Fleet, *args: str) -> bool:
    """Did the sweep find everything at rest? It then has not even looked for policies."""
    swept = fleet.run("sweep", "-v", *args)
    assert swept.code in (0, 3), swept.err  # 3: a person has something to mend
    cost = next(line for line in swept.err.splitlines() if line.startswith("cost: "))
    counts = dict(part.split("=") for part in cost.removeprefix("cost: ").split())
    return "judged" not in counts or counts["judged"] == "0"


def listings(fleet: Fleet) -> int:
    """How many times the sweep asked a repository for its refs."""
    swept = fleet.run("sweep", "-v", "--drafts-only")
    match = re.search(r"^cost: .*\blistings=(\d+)", swept.err, re.MULTILINE)
    assert match is not None, swept.err
    return int(match[1])


def test_a_sweep_that_finds_a_change_lists_each_repository_once(fleet: Fleet):
    each = len(("blueprints", "edge", "core", "records"))
    assert listings(fleet) == each, "nothing is remembered of such sweeps"
    assert listings(fleet) == each, "all is as it was"
    fleet.release("v2")
    assert listings(fleet) == each
    fleet.remove("site-ams.yaml")
    assert listings(fleet) == each


def test_a_sweep_without_changes_evaluates_no_policy(fleet: Fleet):
    assert rests(fleet)
    assert rests(fleet)


def test_a_skipped_pass_prints_the_same_output(fleet: Fleet):
    results = [fleet.run("sweep"), fleet.run("sweep", "-o", "json"), fleet.run("plan")]
    shutil.rmtree(fleet.root / fleet.state / "rest")
    evaluated = [fleet.run("sweep"), fleet.run("sweep", "-o", "json"), fleet.run("plan")]
    assert results == evaluated
    assert results[0] == Result(0, "nothing to do\n", "")


def test_a_pass_with_work_is_followed_by_a_pass_that_evaluates(fleet: Fleet):
    fleet.release("v2")
    assert not rests(fleet), "drafts are written"
    assert not rests(fleet), "nobody has judged what came of it"
    while not rests(fleet):
        pass
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": ""}


def a_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY + "# changed\n")


def a_new_file(fleet: Fleet) -> None:
    fleet.write("more.yaml", "# nothing yet\n")


def a_file_less(fleet: Fleet) -> None:
    fleet.remove("promotion.yaml")


def a_file_renamed(fleet: Fleet) -> None:
    policies = fleet.root / fleet.policies
    (policies / "policy.yaml").rename(policies / "rules.yaml")


def a_report(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1", "failed").code == 0


def a_release(fleet: Fleet) -> None:
    fleet.repos["blueprints"].git("update-ref", "refs/tags/monitoring/v2", "refs/heads/main")


def a_commit(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {"README": "hello\n"})


def a_draft_less(fleet: Fleet) -> None:
    [ref] = [ref for ref in fleet.repos["core"].refs() if "/drafts/" in ref]
    fleet.repos["core"].git("update-ref", "-d", ref)


def a_tag_less(fleet: Fleet) -> None:
    fleet.repos["edge"].git("update-ref", "-d", "refs/tags/sites/ams/v1")


def the_state_lost(fleet: Fleet) -> None:
    shutil.rmtree(fleet.root / fleet.state / "rest")


CHANGES = [
    a_file, a_new_file, a_file_less, a_file_renamed, a_report, a_release, a_commit, a_draft_less,
    a_tag_less, the_state_lost,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda it: it.__name__.replace("_", " "))
def test_a_change_of_any_kind_is_evaluated_again(fleet: Fleet, change: Callable[[Fleet], None]):
    assert rests(fleet)
    change(fleet)
    assert not rests(fleet)


def test_a_policy_is_evaluated_again_at_its_next_instant(fleet: Fleet):
    assert rests(fleet.later(minutes=59))
    assert not rests(fleet.later(minutes=2))
    assert fleet.published()["sites/ber"] == "v1", "the soak is over"


def test_a_snapshot_of_a_later_instant_is_not_used(fleet: Fleet):
    assert rests(fleet)
    assert not rests(fleet.later(minutes=-10))


def test_drafts_only_is_another_way_of_sweeping(fleet: Fleet):
    assert not rests(fleet, "--drafts-only")
    assert rests(fleet, "--drafts-only")
    assert rests(fleet)


def test_another_configuration_is_evaluated_anew(fleet: Fleet):
    config = fleet.root / "fanout.yaml"
    config.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\nconcurrency: 2\n"
    )
    assert rests(fleet)
    assert not rests(fleet, "--config", str(config))


def test_a_sweep_of_one_policy_says_nothing_of_the_others(fleet: Fleet):
    shutil.rmtree(fleet.root / fleet.state / "rest")
    assert not rests(fleet, "monitoring")
    assert not rests(fleet, "monitoring")
    assert not rests(fleet)


def test_a_mistyped_policy_is_reported_though_everything_rests(fleet: Fleet):
    assert rests(fleet)
    assert fleet.run("sweep", "monitorin").code != 0


def test_a_fault_in_the_files_is_reported_every_time(fleet: Fleet):
    fleet.write("policy.yaml", POLICY + "---\nkind: Mistake\napiVersion: fanout.dev/v1alpha1\n")
    results = [fleet.run("sweep") for _ in range(3)]
    assert [it.code for it in results] == [3, 3, 3]
    assert results[1].err == results[2].err != ""


def test_a_repository_that_cannot_be_listed_is_reported(fleet: Fleet):
    assert rests(fleet)
    path = fleet.repos["edge"].path
    path.rename(path.with_name("away"))
    swept = fleet.run("sweep")
    assert swept.code == 3
    assert "edge" in swept.err


def lie(path: Path) -> None:
    digest, _, content = path.read_bytes().partition(b"\n")
    kept = json.loads(content)
    kept["until"] = None
    path.write_bytes(digest + b"\n" + json.dumps(kept).encode())


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def rubbish(path: Path) -> None:
    path.write_bytes(b"\0\xff" * 100)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [lie, cut_off, rubbish, a_directory], ids=lambda it: it.__name__)
def test_a_damaged_snapshot_is_not_used(fleet: Fleet, harm: Callable[[Path], None]):
    assert rests(fleet)
    for path in (fleet.root / fleet.state / "rest").iterdir():
        harm(path)
    assert not rests(fleet)


def test_holds_that_wait_for_people_are_printed_again(fleet: Fleet):
    fleet.repos["core"].commit("main", {"sites/ber/Kptfile": "somebody's\n"})
    swept = [fleet.run("sweep") for _ in range(4)]
    assert swept[-1] == swept[-2]
