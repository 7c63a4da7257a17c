"""Startup of the intake of records from a cluster."""

from functools import partial
from typing import Any

from fanout.cli.lazy_import import load_module
from fanout.cli.startup import Program
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.records.policy_records import RecordsKey
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.records.record_intake import RecordIntake


def open_record_intake(program: Program, connection: Any) -> RecordIntake:
    """Open the intake of records from the API server of an `ApiConnection`."""
    return RecordIntake(
        program.world.records,
        load_module("kube.pending_records").ApiPendingRecords(connection),
        program.configuration.record_retention,
        partial(find_record_obstacle, program),
    )


def find_record_obstacle(program: Program, key: RecordsKey) -> FanoutError | None:
    """Return why a policy without records must not get a first one; None if it may.

    As verbs that record do, one pass over the policy decides whether its records are lost.
    """
    only = frozenset([key.policy]) if key.policy else None
    mode = PassMode(sweep=False, only=only, namespace=key.namespace)
    pass_plan = program.reconciler.plan_pass(program.read_declared(), program.settings.now(), mode)
    results = [it for it in pass_plan.policies if it.resolved_policy.records_key == key]
    if not results:
        return InvalidInput(
            f"namespace {key.namespace} has no UpstreamPolicy {key.policy}"
            if key.policy
            else f"namespace {key.namespace} has no PackageVariant without a policy",
            reason="NotFound",
            remedy="create it, or delete the record",
        )
    return next((it.error for it in results if it.error is not None), None)
