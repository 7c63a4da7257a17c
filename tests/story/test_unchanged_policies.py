"""What a program that stays judges again, and what it knows already."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, PROMOTION, Fleet

from fanout.cli.startup import Program, open_program
from fanout.reconcile.pass_scope import PassMode

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "core")}


@company
def fleet(root: Path) -> Fleet:
    """Two policies for the same sites, settled: dev is published and waits for its report."""
    made = Fleet.build(root, SITES)
    made.policy("logging")
    made.settle()
    return made


def count_evaluated(program: Program, mode: PassMode = PassMode()) -> int:  # noqa: B008 - it is frozen
    """How many policies the next pass judges."""
    program.world.counters.reset()
    program.sweep(mode)
    return program.world.counters.read()["judged"]


def a_file(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY + "# changed\n")


def a_site(fleet: Fleet) -> None:
    fleet.site("cph", "prod", "core")


def a_release(fleet: Fleet) -> None:
    fleet.release("v2")


def a_commit(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {"README": "hello\n"})


def a_report(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1").code == 0


ROWS = [
    pytest.param(lambda _: None, 0, id="nothing"),
    pytest.param(a_report, 1, id="evidence about one policy"),
    pytest.param(a_commit, 2, id="a commit to a repository"),
    pytest.param(a_release, 2, id="a release of upstream"),
    pytest.param(a_file, 1, id="the file of one policy"),
    pytest.param(a_site, 2, id="a target"),
]


@pytest.mark.parametrize(("change", "number"), ROWS)
def test_a_change_has_its_policies_evaluated(
    fleet: Fleet, change: Callable[[Fleet], None], number: int
):
    with fleet.opened() as program:
        assert count_evaluated(program) == 2, "a new process knows nothing"
        assert count_evaluated(program) == 0
        change(fleet)
        assert count_evaluated(program) == number


def test_an_unevaluated_policy_has_the_same_results(fleet: Fleet):
    with fleet.opened() as program:
        first = program.observe(PassMode())
        again = program.observe(PassMode())
    assert [item.decision for item in again.policies] == [item.decision for item in first.policies]
    assert again.plan == first.plan
    assert again.warnings == first.warnings


def test_a_soak_that_ends_is_evaluated_again(fleet: Fleet):
    a_report(fleet)
    fleet.settle()
    with fleet.opened() as program:
        assert count_evaluated(program) == 2
        assert count_evaluated(program) == 0
        program.world.counters.reset()
        for minutes, number in ((59, 0), (61, 1), (62, 2)):
            later = fleet.now + timedelta(minutes=minutes)
            program.reconciler.plan_pass(program.read_declared(), later, PassMode())
            assert program.world.counters.read()["judged"] == number


def test_a_sweep_is_another_pass_than_an_observation(fleet: Fleet):
    text = PROMOTION.replace("spec:", 'spec:\n  schedule: "0 12 * * *"', 1)
    fleet.write("promotion.yaml", text)
    with fleet.opened() as program:
        count_evaluated(program, PassMode(sweep=False))
        assert count_evaluated(program, PassMode(sweep=True)) == 2
        assert count_evaluated(program, PassMode(sweep=True)) == 0


def test_a_changed_object_takes_one_listing_and_one_push(fleet: Fleet):
    fleet.write("policy-logging.yaml", chosen("logging", "dev"))
    fleet.settle()
    with open_program(fleet.settings(), long_running=True) as program:
        program.sweep(PassMode())
        fleet.site("ams", "dev", "edge", retention="1d")
        concerned = program.reconciler.find_concerned(program.read_declared())
        assert concerned == {("default", "monitoring"), ("default", "logging")}
        program.sweep(PassMode(publish=False, subjects=concerned))
        fleet.site("ber", "prod", "core", retention="1d")
        concerned = program.reconciler.find_concerned(program.read_declared())
        assert concerned == {("default", "monitoring")}, "it alone chooses the site"
        program.world.counters.reset()
        program.sweep(PassMode(publish=False, subjects=concerned, listing_age=3600.0))
        counts = program.world.counters.read()
    assert (counts["judged"], counts["listings"], counts["pushes"]) == (1, 1, 1)


def chosen(name: str, tier: str) -> str:
    """A policy for the sites of one tier."""
    text = POLICY.replace("name: monitoring", f"name: {name}", 1).replace("sites/", f"{name}/", 1)
    selector = "objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster"
    return text.replace(selector, f"{selector}, matchLabels: {{tier: {tier}}}", 1)
