"""A process that lives through changes plans the same as one that has just begun."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fleet import POLICY, PROMOTION, Fleet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fanout.cli.startup import Program, open_program
from fanout.plan.actions import ActionKind, Plan
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

LONG = 1e9  # seconds; listings of that age will do
SITES = {"s0": ("dev", "edge"), "s1": ("prod", "edge"), "s2": ("dev", "core")}
SELECTOR = "objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster"
TIER = "matchExpressions: [{key: tier, operator: "
SELECTIONS = (  # what is added to the selector
    "",
    ", matchLabels: {tier: dev}",
    ", matchLabels: {tier: prod}",
    f", {TIER}NotIn, values: [dev]}}]",
    f", {TIER}Exists}}]",
)
E2E = "{name: e2e, report: {}}"
HEALTH = (
    "{name: health, settle: 1s, freshFor: 10m, object: {apiVersion: infra.example.com/v1,"
    " kind: Health, nameExpr: target.metadata.name, cel: object.spec.ok}}"
)
BY_REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: everywhere}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositorySelector: {matchLabels: {ring: early}}
    template: {stage: dev, downstream: {package: all}}
  stages: [{name: dev}]
"""
EVERYTHING = PassMode()


@dataclass
class Process:
    """The program, open for many passes, woken by changes of its files as `fanout run` is."""

    fleet: Fleet
    program: Program
    plans: list[Plan] = field(default_factory=list)

    def mode_after_change(self) -> PassMode:
        concerned = self.program.reconciler.find_concerned(self.program.read_declared())
        return PassMode(subjects=concerned, listing_age=LONG)

    def sweep(self, mode: PassMode) -> Plan:
        declared = self.program.read_declared()
        access, reconciler = self.program.world, self.program.reconciler
        return run_pass(access, reconciler, declared, self.fleet.now, mode).pass_plan.plan

    def observe(self):
        declared = self.program.read_declared()
        return self.program.reconciler.plan_pass(declared, self.fleet.now, EVERYTHING)


Event = Callable[[Fleet], bool]
"""Something that happens; it returns whether only files changed."""


def a_site(name: str, place: tuple[str, str], retention: str) -> Event:
    def event(fleet: Fleet) -> bool:
        fleet.site(name, *place, retention)
        return True

    return event


def no_site(name: str) -> Event:
    def event(fleet: Fleet) -> bool:
        if (fleet.root / fleet.policies / f"site-{name}.yaml").exists():
            fleet.remove(f"site-{name}.yaml")
        return True

    return event


def a_policy(name: str, path: str, selection: str, check: str = E2E) -> Event:
    def event(fleet: Fleet) -> bool:
        text = POLICY.replace(SELECTOR, SELECTOR + selection).replace(E2E, check)
        text = text.replace("name: monitoring", f"name: {name}", 1)
        fleet.write(f"policy-{name}.yaml", text.replace("sites/", f"{path}/", 1))
        return True

    return event


def a_health(name: str, ok: str) -> Event:
    """An object that checks may read."""

    def event(fleet: Fleet) -> bool:
        meta = f"metadata: {{name: {name}}}"
        text = f"apiVersion: infra.example.com/v1\nkind: Health\n{meta}\nspec: {{ok: {ok}}}\n"
        fleet.write(f"health-{name}.yaml", text)
        return True

    return event


def a_ring(ring: str) -> Event:
    """A repository is in a ring that a policy chooses, or no more."""

    def event(fleet: Fleet) -> bool:
        fleet.write("policy-everywhere.yaml", BY_REPOSITORY)
        fleet.write(
            "repository-core.yaml",
            "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
            f"metadata: {{name: core, labels: {{ring: {ring}}}}}\n"
            f"spec: {{url: {fleet.repos['core'].path}}}\n",
        )
        return True

    return event


def automatic(stages: str) -> Event:
    def event(fleet: Fleet) -> bool:
        fleet.write("promotion.yaml", PROMOTION.replace('["*"]}', f"[{stages}]}}", 1))
        return True

    return event


def a_release(number: int) -> Event:
    def event(fleet: Fleet) -> bool:
        if f"monitoring/v{number}" not in fleet.repos["blueprints"].tags():
            fleet.release(f"v{number}")
        return False

    return event


def an_edit(fleet: Fleet) -> bool:
    edge = fleet.repos["edge"]
    edge.commit("main", {"sites/s0/notes.txt": "by hand\n"})
    return False


def a_report(stage: str, status: str) -> Event:
    def event(fleet: Fleet) -> bool:
        fleet.report(stage, "v1", status)  # refused where it is about nothing
        return False

    return event


def time(minutes: int) -> Event:
    def event(fleet: Fleet) -> bool:
        fleet.later(minutes=minutes)
        return False

    return event


PLACES = st.tuples(st.sampled_from(["dev", "prod", "nowhere"]), st.sampled_from(["edge", "core"]))
NAMES = st.sampled_from(["s0", "s1", "s3"])
EVENTS = st.one_of(
    st.builds(a_site, NAMES, PLACES, st.sampled_from(["1d", "2d"])),
    st.builds(a_site, NAMES, PLACES, st.sampled_from(["1d", "2d"])),
    st.builds(no_site, NAMES),
    st.builds(
        a_policy,
        st.just("logging"),
        st.sampled_from(["sites", "logs"]),
        st.sampled_from(SELECTIONS),
        st.sampled_from([E2E, HEALTH]),
    ),
    st.builds(a_health, NAMES, st.sampled_from(["true", "false", "1"])),
    st.builds(a_ring, st.sampled_from(["early", "late"])),
    st.builds(automatic, st.sampled_from(["", '"*"', "dev"])),
    st.builds(a_release, st.integers(2, 3)),
    st.just(an_edit),
    st.builds(a_report, st.sampled_from(["dev", "prod"]), st.sampled_from(["passed", "failed"])),
    st.builds(time, st.sampled_from([1, 90])),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EVENTS, min_size=3, max_size=6))
def test_a_process_that_stays_plans_the_same_as_a_fresh_one(events: list[Event]):
    with tempfile.TemporaryDirectory() as directory:
        fleet = Fleet.build(Path(directory), SITES)
        a_policy("logging", "logs", SELECTIONS[1], HEALTH)(fleet)
        a_health("s0", "true")(fleet)
        with open_program(fleet.settings(), long_running=True) as program:
            process = Process(fleet, program)
            settle(process, EVERYTHING)
            for event in events:
                only_files = event(fleet)
                mode = process.mode_after_change() if only_files else EVERYTHING
                declared = program.read_declared()
                plan = program.reconciler.plan_pass(declared, fleet.now, mode).plan
                with open_program(fleet.settings()) as fresh:
                    seen = Process(fleet, fresh).observe()
                    assert actions(plan) == actions(seen.plan)
                settle(process, mode)
                assert_alike(process, fleet)


def test_changes_during_a_broken_revision_are_injected_after_it(tmp_path):
    fleet = Fleet.build(tmp_path, SITES)
    with open_program(fleet.settings(), long_running=True) as program:
        process = Process(fleet, program)
        settle(process, EVERYTHING)
        fleet.release("v2", {"Kptfile": "no: Kptfile\n"})
        process.sweep(EVERYTHING)
        for name, place in SITES.items():
            a_site(name, place, "9d")(fleet)
            process.sweep(process.mode_after_change())
        fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v2")
        drafts = [it for it in process.observe().plan.actions if it.kind is ActionKind.WRITE_DRAFT]
        # Stage prod has stayed at v1, and has its draft.
        assert {(it.stage, it.revision) for it in drafts} == {("dev", "v1")}
        assert len(drafts) == 2
        assert_alike(process, fleet)


def settle(process: Process, mode: PassMode) -> None:
    """Sweep until there is nothing to do; later passes follow what the earlier ones did."""
    for _ in range(12):
        if not process.sweep(mode).actions:
            return
        mode = replace(mode, subjects=None)
    raise AssertionError("the sweeps do not come to an end")


def assert_alike(process: Process, fleet: Fleet) -> None:
    mine = process.observe()
    with open_program(fleet.settings()) as program:
        fresh = Process(fleet, program).observe()
    assert actions(mine.plan) == actions(fresh.plan)
    assert {it.title: it.decision for it in mine.policies} == {
        it.title: it.decision for it in fresh.policies
    }
    assert mine.problems == fresh.problems
    assert mine.warnings == fresh.warnings


def actions(plan: Plan) -> list[str]:
    return sorted(map(repr, plan.actions))
