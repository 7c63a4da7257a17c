"""Statuses of a pass, and the order in which they are to be written."""

from pathlib import Path
from typing import Any

import pytest
from fleet import Fleet, check_status

from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import EventReason
from fanout.cli.startup import Program
from fanout.declared.declared_objects import DeclaredObjects, key_of
from fanout.errors import Denied
from fanout.plan.written_objects import ObjectName, WrittenObject, add_transition_times
from fanout.present.status_queue import MAX_PUT_OFF, StatusBatch, StatusQueue
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet.build(tmp_path)


def sweep(program: Program, queue: StatusQueue, *, publish: bool = True) -> StatusBatch:
    """Make a pass, and return what is to be written then."""
    report = program.sweep(PassMode(publish=publish))
    queue.update(report, program.read_declared())
    batch = queue.take(())
    queue.finish(batch)
    return batch


def settle(program: Program, queue: StatusQueue) -> list[WrittenObject]:
    """Make passes until one has nothing to do; return what its predecessor left to be written."""
    for _ in range(12):
        report = program.sweep(PassMode())
        queue.update(report, program.read_declared())
        if not report.outcomes:
            return list(queue.take(()).list_objects({}))
    raise AssertionError("the passes do not come to an end")


def kinds(objects: list[WrittenObject]) -> list[str]:
    return [it.name.kind for it in objects]


def state(item: WrittenObject) -> Any:
    return item.status.get("state")


def test_policies_come_first_and_variants_that_are_held_before_others(fleet: Fleet):
    fleet.site("fra", "nowhere", "edge")  # a stage that the policy does not declare
    with fleet.opened() as program:
        objects = settle(program, StatusQueue())
    order = kinds(objects)
    assert order[0] == "UpstreamPolicy"
    assert order[-4:] == ["PackageVariant"] * 4
    variants = [it for it in objects if it.name.kind == "PackageVariant"]
    assert state(variants[0]) in ("Held", "Failed")
    assert "fra" in variants[0].name.name


def test_a_status_fits_its_schema(fleet: Fleet):
    with fleet.opened() as program:
        for item in settle(program, StatusQueue()):
            conditions = item.status["conditions"]
            if item.times is not None:
                conditions = add_transition_times(conditions, {}, item.times)
            status = {**item.status, "conditions": conditions, "observedGeneration": 1}
            check_status(item.name.kind, status)
            if item.content is not None:
                meta = {"name": item.name.name, "namespace": item.name.namespace}
                PackageVariant.model_validate(
                    {"kind": "PackageVariant", "metadata": meta, "spec": item.content["spec"]}
                )


def test_two_processes_make_the_same_of_the_same(fleet: Fleet):
    with fleet.opened() as program:
        first = settle(program, StatusQueue())
    fleet.later(hours=3)
    with fleet.opened() as program:
        second = settle(program, StatusQueue())
    # The instants of passes are for what the objects have.
    assert [replace(it, times=None) for it in second] == [replace(it, times=None) for it in first]


def test_variants_of_a_policy_that_a_pass_changed_are_left_to_the_next(fleet: Fleet):
    queue = StatusQueue()
    with fleet.opened() as program:
        written = sweep(program, queue, publish=False)
        assert "PackageVariant" not in kinds(list(written.list_objects({})))
        observed = sweep(program, queue, publish=False)
        assert kinds(list(observed.list_objects({}))).count("PackageVariant") == 3
        assert not queue.has_waiting


def test_a_policy_that_changes_in_each_pass_is_written_in_the_end(fleet: Fleet):
    queue = StatusQueue()
    objects: list[WrittenObject] = []
    with fleet.opened() as program:
        for number in range(MAX_PUT_OFF + 1):
            assert "PackageVariant" not in kinds(objects)
            fleet.site("ams", "dev", "edge", retention=f"{number + 8}d")
            objects = list(sweep(program, queue, publish=False).list_objects({}))
    names = [it.name.name for it in objects if it.name.kind == "PackageVariant"]
    assert len(names) == 2
    assert not any("ams" in it for it in names), "its draft was written by that very pass"


def test_events_are_counted_by_stage_and_revision(fleet: Fleet):
    queue = StatusQueue()
    with fleet.opened() as program:
        events = sweep(program, queue, publish=False).events
    assert [(it.reason, it.message) for it in events] == [
        (EventReason.DRAFTS_WRITTEN, "1 draft of v1 written in stage dev"),
        (EventReason.DRAFTS_WRITTEN, "2 drafts of v1 written in stage prod"),
    ]
    assert {it.subject for it in events} == {ObjectName("UpstreamPolicy", "default", "monitoring")}


def test_conditions_of_the_first_result_in_a_process_have_no_events(fleet: Fleet):
    queue, restarted = StatusQueue(), StatusQueue()
    with fleet.opened() as program:
        settle(program, queue)
        stage = ("--stage", "dev", "--revision", "v1")
        result = ("--check", "e2e", "--status", "failed", "--by", "Ci <ci@example.com>")
        fleet.run("report", "monitoring", *stage, *result)
        report, declared = program.sweep(PassMode()), program.read_declared()
        for present in (queue, restarted):
            present.update(report, declared)
    assert EventReason.VARIANT_FAILED in {it.reason for it in queue.take(()).events}
    assert EventReason.VARIANT_FAILED not in {it.reason for it in restarted.take(()).events}


def test_an_unchanged_result_is_not_written_again(fleet: Fleet):
    queue = StatusQueue()
    with fleet.opened() as program:
        settle(program, queue)
        queue.finish(queue.take(()))
        version = queue.version
        queue.update(None, program.read_declared())
        assert queue.version == version
        assert kinds(list(queue.take(()).list_objects({}))).count("PackageVariant") == 0


def test_a_problem_of_all_policies_costs_no_variant_a_write(fleet: Fleet):
    queue, problem = StatusQueue(), Denied("no binding", reason="AdmissionMissing")
    with fleet.opened() as program:
        settle(program, queue)
        queue.finish(queue.take(()))
        for present, shows in ((problem, True), (problem, False), (None, True), (None, False)):
            queue.update(None, program.read_declared(), present)
            batch = queue.take(())
            objects = list(batch.list_objects({}))
            assert ("UpstreamPolicy" in kinds(objects)) is shows
            assert "PackageVariant" not in kinds(objects)
            queue.finish(batch)


def test_obsolete_variants_are_those_that_no_policy_has(fleet: Fleet):
    queue = StatusQueue()
    with fleet.opened() as program:
        variants = [it for it in settle(program, queue) if it.name.kind == "PackageVariant"]
        made = {(it.name.namespace, it.name.name): "monitoring" for it in variants}
        others = {("default", "left-over"): "monitoring", ("default", "alone-1"): "another"}
        batch = queue.take(())
        obsolete = list(queue.find_obsolete(made | others, batch))
    assert [it.name for it in obsolete] == ["left-over", "alone-1"]


def test_variants_stay_while_their_policy_cannot_be_read(fleet: Fleet):
    queue = StatusQueue()
    made = {("default", "monitoring-1"): "monitoring"}
    fleet.write("policy.yaml", "apiVersion: [")
    with fleet.opened() as program:
        queue.update(None, program.read_declared())
        assert not list(queue.find_obsolete(made, queue.take(())))


def request_pass(program: Program, queue: StatusQueue) -> tuple[PassReport, DeclaredObjects]:
    """Ask for a pass when all is written; return the last pass, and what is declared."""
    settle(program, queue)
    declared = program.read_declared()
    report = program.sweep(PassMode())
    queue.update(report, declared)
    queue.finish(queue.take(()))
    (policy,) = declared.policies
    metadata = declared.positions[key_of(policy)].value["metadata"]
    metadata["annotations"] = {"reconcile.fanout.dev/requestedAt": "now"}
    return report, declared


def test_a_request_for_a_pass_that_changed_nothing_is_shown(fleet: Fleet):
    with fleet.opened() as program:
        queue = StatusQueue()
        report, declared = request_pass(program, queue)
        queue.update(None, declared)
        objects = list(queue.take(()).list_objects({}))
        assert "UpstreamPolicy" not in kinds(objects), "not handled yet"
        queue.update(report, declared)
        batch = queue.take(())
        (shown,) = (it for it in batch.list_objects({}) if it.name.kind == "UpstreamPolicy")
        assert shown.status["lastHandledReconcileAt"] == "now"
        assert "PackageVariant" not in kinds(list(batch.list_objects({})))
        queue.finish(batch)
        queue.update(report, declared)
        assert "UpstreamPolicy" not in kinds(list(queue.take(()).list_objects({})))


def test_a_status_that_is_written_for_another_reason_shows_no_request_that_waits(fleet: Fleet):
    with fleet.opened() as program:
        queue = StatusQueue()
        report, declared = request_pass(program, queue)
        # A round that made no pass over the policy, after which all policies show a problem.
        queue.update(None, declared, Denied("no right", reason="AdmissionMissing"))
        batch = queue.take(())
        (shown,) = (it for it in batch.list_objects({}) if it.name.kind == "UpstreamPolicy")
        assert "lastHandledReconcileAt" not in shown.status
        queue.finish(batch)
        queue.update(report, declared)
        (shown,) = (
            it for it in queue.take(()).list_objects({}) if it.name.kind == "UpstreamPolicy"
        )
        assert shown.status["lastHandledReconcileAt"] == "now"


def test_a_variant_whose_target_is_gone_still_shows_what_is_published(fleet: Fleet):
    with fleet.opened() as program:
        objects = settle(program, StatusQueue())
        (before,) = (it for it in objects if "ams" in it.name.name)
        assert before.status["published"]["revision"] == "v1"
        for path in (fleet.root / "policies").glob("*ams*"):
            path.unlink()
        queue = StatusQueue()
        queue.update(program.sweep(PassMode(publish=False)), program.read_declared())
        objects = list(queue.take(()).list_objects({}))
    (after,) = (it for it in objects if "ams" in it.name.name)
    assert state(after) == "Held"
    assert after.status["conditions"][0]["reason"] != before.status["conditions"][0]["reason"]
    for field in ("revision", "digest", "published"):
        assert after.status[field] == before.status[field]
