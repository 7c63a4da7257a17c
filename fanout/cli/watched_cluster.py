"""Watched objects of a cluster, and what a loop does with them besides passes.

Around each pass: the finalizer is added before anything is written for an object, records are
taken in, restrictions are read again before a publication, and completed deletions are released.
"""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import structlog

from fanout.api.reasons import Reason
from fanout.cli.continuous_operation import build_dependencies
from fanout.cli.declarations import find_default_namespace, open_cluster_connection
from fanout.cli.lazy_import import load_module
from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.controller.loop_health import LoopObserver, ScheduledPass
from fanout.controller.run_loop import IntakeReport, LoopDependencies, RunLoop
from fanout.controller.status_thread import StatusThread
from fanout.declared.declared_objects import DeclaredObjects, have_same_restrictions
from fanout.errors import FanoutError, Waiting
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.ports import Secrets
from fanout.reconcile.execution.completed_deletions import find_completed_deletions
from fanout.reconcile.execution.plan_execution import is_final, run_pass
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject, list_requests
from fanout.reconcile.records.record_intake import RecordIntake
from fanout.reconcile.records.record_retention import RecordRetention
from fanout.reconcile.validation.object_findings import ObjectFindings
from fanout.telemetry.redaction import Redactor
from fanout.values import replace

_log = structlog.get_logger()


class WatchedCluster:
    """Objects of one cluster for one loop."""

    def __init__(self, connection: Any) -> None:
        """Watch nothing yet."""
        self._connection = connection
        self._loop: RunLoop | None = None
        self.find_obstacle: Callable[[], str] = lambda: ""
        self.admission_problem: FanoutError | None = None  # as of the last intake
        self._source = load_module("kube.watched_objects").WatchedObjects(
            connection, self._notify_loop
        )
        self._records = load_module("kube.pending_records").PendingRecordWatch(
            connection, self.notify_records
        )
        finalizers = load_module("kube.finalizers")
        self._finalizers = finalizers.RemovalFinalizers(connection)
        self.inventory = finalizers.FinalizedInventory(
            load_module("kube.api_inventory").ApiInventory(self._source), self._finalizers
        )

    def start(self) -> None:
        """Begin to watch. Raises InvalidInput, Denied or Unavailable."""
        self._source.start()
        self._records.start()

    def stop(self) -> None:
        """End all watches."""
        self._source.stop()
        self._records.stop()

    def connect(self, loop: RunLoop) -> None:
        """Wake a loop after each change, and when the API server is back."""
        self._loop = loop
        self._connection.on_return(loop.notify_return)

    def open_secrets(self, administrator_secrets: Secrets, redactor: Redactor) -> Secrets:
        """Return the Secrets of namespaces, with those of the administrator."""
        secrets: Secrets = load_module("kube.api_secrets").ApiSecrets(
            self._connection, administrator_secrets, redactor
        )
        return secrets

    @contextmanager
    def run_observers(self, program: Program, observers: list[LoopObserver]) -> Iterator[None]:
        """Write statuses and release completed deletions while open. Adds the observers.

        Of several installations in the cluster one writes statuses.
        """
        lease = load_module("kube.installation_lease").InstallationLease(
            self._connection,
            find_default_namespace(program.settings),
            program.world.setup.install,
            program.records_url,
        )
        self.find_obstacle = lease.find_obstacle
        writer = load_module("kube.status_writer").ApiStatusWriter(
            self._connection, socket.gethostname()
        )
        thread = StatusThread(
            writer,
            lambda: self.admission_problem,
            ObjectFindings(program.world.sandbox).find_errors,
            lease.find_obstacle,
        )
        observers += (DeletionObserver(self._finalizers), thread)
        with lease.renewed(self.notify_records), thread.run():
            yield

    def build_dependencies(
        self, program: Program, observers: Sequence[LoopObserver]
    ) -> LoopDependencies:
        """Build the dependencies of the loop from an open program."""
        operation = _Operation(self, program)
        return replace(
            build_dependencies(program, observers),
            run_pass=operation.run_pass,
            take_in=operation.take_in,
            list_requests=list_requests,
        )

    def open_intake(self, program: Program, evaluated: "PolicyErrorMemo") -> RecordIntake:
        """Return the intake of the records of the cluster."""
        return open_record_intake(program, self._connection, evaluated)

    def open_retention(self, program: Program) -> RecordRetention:
        """Return the deletion of the objects of records of the cluster."""
        return open_record_retention(program, self._connection)

    def read_restrictions(self) -> DeclaredObjects:
        """Return what is declared, not older than the call."""
        # A watch may be late: what the API server has acknowledged binds what begins now.
        self._source.refresh()
        return self.read()

    def adopt(self, declared: DeclaredObjects) -> None:
        """Let the loop go on with what a pass has read."""
        if self._loop is not None:
            self._loop.adopt(declared)

    def read(self) -> DeclaredObjects:
        """Return what is declared."""
        declared: DeclaredObjects = self.inventory.read()
        return declared

    def _notify_loop(self) -> None:
        if self._loop is not None:
            self._loop.wake()

    def notify_records(self) -> None:
        """Let the loop take in records, now or in its next round."""
        if self._loop is not None:
            self._loop.notify_records()


class _Operation:
    """Passes of one program over the objects of a cluster, and the intake of its records."""

    def __init__(self, cluster: WatchedCluster, program: Program) -> None:
        self._cluster = cluster
        self._program = program
        self._evaluated = PolicyErrorMemo()
        self._intake = cluster.open_intake(program, self._evaluated)
        self._retention = cluster.open_retention(program)
        self._problems: frozenset[str] = frozenset()  # of the intake, as logged
        self._changed: frozenset[PassSubject] = frozenset()  # taken in during a pass

    def run_pass(self, declared: DeclaredObjects, now: datetime, mode: PassMode) -> PassReport:
        """Run one pass; what restricts it is read again before anything is published."""

        def confirm(pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
            present = read_again(pass_plan, declared)
            if present is not None:
                self._cluster.adopt(present)
            return present

        def read_again(pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
            # Packages may inject kinds that no policy names.
            injected = self._program.reconciler.list_injected_kinds(pass_plan)
            if self._cluster.inventory.require(injected):
                return self._cluster.read()
            if not is_final(pass_plan):
                return None
            _log.debug("Restrictions are read")
            present = self._cluster.read_restrictions()
            changed = self._take_in(now)
            if changed:
                # Another policy than those of this pass may be among them.
                self._changed |= changed
                self._cluster.notify_records()
            # Other objects may change all the time: a draft of an older one can be replaced.
            is_same = have_same_restrictions(declared, present)
            return None if is_same and not changed else present

        try:
            report = run_pass(
                self._program.world, self._program.reconciler, declared, now, mode, confirm
            )
        except FanoutError as error:
            self._evaluated.fail(error)
            raise
        if self._evaluated.update(report.pass_plan):
            self._cluster.notify_records()  # some may have waited for the first pass
        return report

    def take_in(self, now: datetime) -> IntakeReport:
        """Take in the records that wait; return the policies and variants they are about.

        Those that were taken in during the last pass are among them.
        """
        # The status of a record says where it is: two installations would take it in twice.
        if self._cluster.find_obstacle():
            return IntakeReport(frozenset(), is_complete=False)
        self._delete_expired(now)
        changed, self._changed = self._changed | self._take_in(now), frozenset()
        is_complete = not self._problems and self._cluster.admission_problem is None
        return IntakeReport(changed, is_complete)

    def _delete_expired(self, now: datetime) -> None:
        result = self._retention.delete_expired(now)
        for problem in result.problems:
            _log.warning("A record is not deleted", problem=problem)
        if result.has_more:
            self._cluster.notify_records()

    def _take_in(self, now: datetime) -> frozenset[PassSubject]:
        if self._cluster.find_obstacle():
            return frozenset()
        result = self._intake.take_in(now)
        problems = set(result.problems)
        if result.admission_problem is not None:
            problems.add(str(result.admission_problem))
        for problem in sorted(problems - self._problems):
            _log.warning("Records are not taken in", problem=problem)
        for problem in sorted(self._problems - problems):
            _log.info("Problem of records is gone", problem=problem)
        self._problems = frozenset(problems)
        self._cluster.admission_problem = result.admission_problem
        if result.has_more:
            self._cluster.notify_records()
        return result.changed


class PolicyErrorMemo:
    """Policies that a pass has evaluated, by their key, with the error that stopped them."""

    def __init__(self) -> None:
        self._errors: dict[RecordsKey, FanoutError | None] = {}
        self._failure: FanoutError | None = None  # of the last pass as a whole
        self._has_results = False  # of a pass that did not fail as a whole

    def update(self, pass_plan: PassPlan) -> bool:
        """Take over the results of a pass; return whether a policy may get records that waited."""
        results = {it.resolved_policy.records_key: it.error for it in pass_plan.policies}
        unevaluated = Waiting("")
        # After a failure records of any policy may have waited for its end.
        has_opened = (
            self._failure is not None
            or not self._has_results
            or any(
                _has_opened(self._errors.get(key, unevaluated), error)
                for key, error in results.items()
            )
        )
        self._errors |= results
        self._failure, self._has_results = None, True
        return has_opened

    def fail(self, error: FanoutError) -> None:
        """Take note that a pass failed as a whole, for example because all records are lost."""
        self._failure = error

    def find_obstacle(self, key: RecordsKey, policy_records: PolicyRecords) -> FanoutError | None:
        """Return why nothing can follow on the present records of a policy, or None.

        They may be lost or older than they were, which the first pass of a process finds.
        """
        if policy_records.head and self._has_results:
            error = self._errors.get(key)
            return error if _is_rewound(error) else None
        if self._failure is not None:
            return self._failure
        if policy_records.head:
            return Waiting(
                "no pass has compared the present records with the repositories yet",
                reason=str(Reason.SWEEP_AWAITED),
            )
        if key not in self._errors:
            subject = f"UpstreamPolicy {key.policy}" if key.policy else "PackageVariant of its own"
            return Waiting(
                f"namespace {key.namespace} has no {subject} that a pass has evaluated",
                reason=str(Reason.NOT_FOUND),
                remedy="create it, or delete the record",
            )
        # Whatever stopped the policy also leaves undecided whether its records are lost.
        return self._errors[key]


def _has_opened(before: FanoutError | None, error: FanoutError | None) -> bool:
    """Return whether records may have waited for the change of a policy's error."""
    return before is not None and (
        error is None or (_is_rewound(before) and not _is_rewound(error))
    )


def _is_rewound(error: FanoutError | None) -> bool:
    return error is not None and error.reason == Reason.RECORDS_REWOUND


def open_record_intake(
    program: Program, connection: Any, evaluated: PolicyErrorMemo
) -> RecordIntake:
    """Open the intake of the records of a cluster; `evaluated` has the results of passes."""
    pending = load_module("kube.pending_records").ApiPendingRecords(connection)
    return RecordIntake(program.world.records, pending, evaluated.find_obstacle)


def open_record_retention(program: Program, connection: Any) -> RecordRetention:
    """Open the deletion of the objects of a cluster that have been on record for long enough."""
    pending = load_module("kube.pending_records").ApiPendingRecords(connection)
    return RecordRetention(pending, program.configuration.record_retention)


class DeletionObserver:
    """Observer of the loop that removes the finalizer of objects whose removal is complete."""

    def __init__(self, finalizers: Any) -> None:
        """Use the finalizers of a cluster."""
        self._finalizers = finalizers

    def begin_round(self, waits: Sequence[float], declared: DeclaredObjects) -> None:
        """Do nothing."""

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:  # noqa: ARG002 as of the protocol
        """Release the completed deletions of a pass."""
        if made_pass is not None:
            completed = find_completed_deletions(made_pass.report.pass_plan)
            if completed:
                self._finalizers.remove(completed)


@contextmanager
def open_watched_cluster(settings: Settings) -> Iterator[WatchedCluster]:
    """Watch the objects of a cluster while open. Raises InvalidInput, Denied, Unavailable."""
    cluster = WatchedCluster(open_cluster_connection(settings))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
