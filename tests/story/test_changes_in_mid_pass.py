"""What people declare or record while a pass is about to publish something of another policy."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from fleet import Fleet

from fanout.cli.startup import Program
from fanout.cli.verbs.run import build_dependencies
from fanout.controller.declaration_reader import SettlingTime
from fanout.controller.run_loop import RunLoop
from fanout.controller.work_queue import Trigger, TriggerKey
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.records.policy_records import RecordsKey
from fanout.reconcile.execution.plan_execution import is_final, run_pass
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.values import replace

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "core")}
MONITORING = PassSubject("default", "monitoring")
PATIENCE = 30.0  # seconds


class ConfirmingLoop:
    """A loop that reads what is declared again before it publishes, as the controller does."""

    def __init__(self, program: Program, change: Callable[[], None]) -> None:
        self.program, self.change = program, change
        dependencies = replace(build_dependencies(program), run_pass=self.run_pass)
        self.loop = RunLoop(dependencies, timedelta(hours=1), settling=SettlingTime(0.05, 1.0))
        self.passes: list[PassReport] = []
        self.confirmed = threading.Event()

    def run_pass(self, declared: DeclaredObjects, now: object, mode: PassMode) -> PassReport:
        access, reconciler = self.program.world, self.program.reconciler
        report = run_pass(
            access, reconciler, declared, self.program.settings.now(), mode, self.confirm
        )
        self.passes.append(report)
        return report

    def confirm(self, pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
        if not is_final(pass_plan) or self.confirmed.is_set():
            return None
        self.confirmed.set()
        self.change()
        present = self.program.read_declared()
        self.loop.adopt(present)
        return present


def await_true(condition: Callable[[], bool], problem: str) -> None:
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end, problem
        sleep(0.02)


def test_a_policy_that_is_created_while_another_publishes_gets_its_drafts(tmp_path: Path):
    fleet = Fleet.build(tmp_path, SITES)
    fleet.policy("logging")
    fleet.settle()
    with fleet.opened(long_running=True) as program:
        confirming = ConfirmingLoop(program, lambda: fleet.policy("metrics"))
        thread = threading.Thread(target=confirming.loop.run)
        thread.start()
        try:
            await_true(lambda: len(confirming.passes) > 0, "no first pass")
            fleet.release("v2")
            key = TriggerKey(Trigger.REQUEST, *MONITORING)
            confirming.loop._queue.add(key)
            await_true(confirming.confirmed.is_set, "nothing is published")

            def has_drafts() -> bool:
                return any("metrics" in it for repo in fleet.repos.values() for it in repo.refs())

            # The interval is an hour, so that no poll helps.
            await_true(has_drafts, "the new policy is not noticed")
        finally:
            confirming.loop.stop()
            thread.join()


@pytest.mark.parametrize("is_released", [False, True])
def test_a_policy_publishes_no_variant_while_its_record_waits(tmp_path: Path, is_released: bool):
    """Also what a pass has released, whose push failed, so that no release is to be recorded."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    edge = fleet.repos["edge"]
    with fleet.opened(long_running=True) as program:
        program.sweep(PassMode())
        fleet.release("v2")
        program.sweep(PassMode())
        before = edge.refs()["refs/heads/main"]
        if is_released:
            hook = edge.path / "hooks" / "pre-receive"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text("#!/bin/sh\nexit 1\n")
            hook.chmod(0o755)
            program.sweep(PassMode())
            hook.unlink()
        key = RecordsKey("default", "monitoring")
        program.world.records.hold_status({key: "a suspension waits"})
        held = program.sweep(PassMode())
        assert edge.refs()["refs/heads/main"] == before
        assert ["a suspension waits" in str(it.error) for it in held.pass_plan.policies] == [True]
        program.world.records.hold_status({})
        program.sweep(PassMode())
        assert edge.refs()["refs/heads/main"] != before
