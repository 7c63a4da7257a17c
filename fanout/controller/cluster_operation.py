"""Passes over the objects of a cluster: what is done around each of them.

Records are taken in before, restrictions are read again before a publication, and completed
deletions are released afterwards.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import inf
from time import monotonic

import structlog

from fanout.api.package_variant import PackageVariant
from fanout.api.reasons import Reason
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.controller.loop_health import LoopObserver, ScheduledPass
from fanout.controller.run_loop import IntakeReport, LoopDependencies, RunLoop
from fanout.controller.status_thread import StatusThread
from fanout.declared.declared_objects import (
    DeclaredObjects,
    ObjectKey,
    have_same_restrictions,
    key_of,
    own_kind,
)
from fanout.errors import FanoutError, Waiting
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.ports import ClusterLease, FinalizerWriter, Inventory, StatusWriter, WatchedCluster
from fanout.reconcile.execution.plan_execution import is_final, run_pass
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject, list_requests
from fanout.reconcile.reconciler import Reconciler
from fanout.reconcile.records.record_intake import RecordIntake, RecordRetention
from fanout.reconcile.validation.expression_validation import ObjectFindings
from fanout.reconcile.world import World
from fanout.values import replace

RETRY_AFTER = 30.0  # seconds until objects without the finalizer are tried again


class FinalizedInventory:
    """Inventory whose objects have the finalizer before anything is planned for them.

    The same value is returned while the API server shows the same objects.
    """

    def __init__(self, inventory: Inventory, finalizers: FinalizerWriter) -> None:
        """Read from another inventory."""
        self._inventory = inventory
        self._finalizers = finalizers
        self._shown: DeclaredObjects | None = None  # what the other inventory read last
        self._finalized = DeclaredObjects()
        self._retry_at = inf  # by the monotonic clock

    def read(self) -> DeclaredObjects:
        """Return what is declared and has the finalizer. Raises what the other inventory raises."""
        shown = self._inventory.read()
        if shown is not self._shown or monotonic() >= self._retry_at:
            self._finalized = self._finalizers.add_missing(shown)
            self._shown = shown
            self._retry_at = inf if self._finalized is shown else monotonic() + RETRY_AFTER
        return self._finalized

    def require(self, injected: Mapping[ObjectKey, Collection[tuple[str, str]]]) -> bool:
        """Read these kinds too, which packages inject; return whether the next reading differs."""
        return self._inventory.require(injected)


_log = structlog.get_logger()


class ClusterOperation:
    """Passes of one process over the objects of a cluster, and the intake of its records."""

    def __init__(
        self,
        cluster: WatchedCluster,
        inventory: FinalizedInventory,
        world: World,
        reconciler: Reconciler,
        retention: timedelta | None,
        lease: ClusterLease,
    ) -> None:
        """Evaluate nothing yet.

        `inventory` reads the objects of `cluster`. Records are deleted `retention` after they were
        recorded; None: never.
        """
        self._cluster = cluster
        self._inventory = inventory
        self._world = world
        self._reconciler = reconciler
        self._retention = RecordRetention(cluster.pending_records, retention)
        self._lease = lease
        self._loop: RunLoop | None = None
        self._evaluated = PolicyErrorMemo()
        self._intake = RecordIntake(
            world.records, cluster.pending_records, self._evaluated.find_obstacle
        )
        self._problems: frozenset[str] = frozenset()  # of the intake, as logged
        self._admission_problem: FanoutError | None = None  # as of the last intake
        self._changed: frozenset[PassSubject] = frozenset()  # taken in during a pass

    def connect(self, loop: RunLoop) -> None:
        """Wake a loop after each change, and when the API server is back."""
        self._loop = loop
        self._cluster.notify(loop.wake, loop.notify_records, loop.notify_return)

    def complete(self, dependencies: LoopDependencies) -> LoopDependencies:
        """Return the dependencies of the loop that makes these passes."""
        return replace(
            dependencies, run_pass=self.run_pass, take_in=self.take_in, list_requests=list_requests
        )

    @contextmanager
    def run_observers(self, writer: StatusWriter, observers: list[LoopObserver]) -> Iterator[None]:
        """Write statuses and release completed deletions while open; add the observers."""
        thread = StatusThread(
            writer,
            lambda: self._admission_problem,
            ObjectFindings(self._world.sandbox).find_errors,
            self._lease.find_obstacle,
        )
        observers += (DeletionObserver(self._cluster.finalizers), thread)
        with self._lease.renewed(self._notify_records), thread.run():
            yield

    def _notify_records(self) -> None:
        if self._loop is not None:
            self._loop.notify_records()

    def run_pass(self, declared: DeclaredObjects, now: datetime, mode: PassMode) -> PassReport:
        """Run one pass; what restricts it is read again before anything is published."""

        def confirm(pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
            present = read_again(pass_plan, declared)
            if present is not None and self._loop is not None:
                self._loop.adopt(present)
            return present

        def read_again(pass_plan: PassPlan, declared: DeclaredObjects) -> DeclaredObjects | None:
            # Packages may inject kinds that no policy names.
            if self._inventory.require(self._reconciler.list_injected_kinds(pass_plan)):
                return self._inventory.read()
            if not is_final(pass_plan):
                return None
            _log.debug("Restrictions are read")
            # A watch may be late: what the API server has acknowledged binds what begins now.
            self._cluster.refresh()
            present = self._inventory.read()
            changed = self._take_in(now)
            if changed:
                # Another policy than those of this pass may be among them.
                self._changed |= changed
                self._notify_records()
            # Other objects may change all the time: a draft of an older one can be replaced.
            is_same = have_same_restrictions(declared, present)
            return None if is_same and not changed else present

        try:
            report = run_pass(self._world, self._reconciler, declared, now, mode, confirm)
        except FanoutError as error:
            self._evaluated.fail(error)
            raise
        if self._evaluated.update(report.pass_plan, declared):
            self._notify_records()  # some may have waited for the first pass
        return report

    def take_in(self, now: datetime) -> IntakeReport:
        """Take in the records that wait; return the policies and variants they are about.

        Those that were taken in during the last pass are among them.
        """
        # The status of a record says where it is: two installations would take it in twice.
        if self._lease.find_obstacle():
            return IntakeReport(frozenset(), is_complete=False)
        result = self._retention.delete_expired(now)
        for problem in result.problems:
            _log.warning("A record is not deleted", problem=problem)
        if result.has_more:
            self._notify_records()
        changed, self._changed = self._changed | self._take_in(now), frozenset()
        return IntakeReport(changed, not self._problems and self._admission_problem is None)

    def _take_in(self, now: datetime) -> frozenset[PassSubject]:
        if self._lease.find_obstacle():
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
        self._admission_problem = result.admission_problem
        if result.has_more:
            self._notify_records()
        return result.changed


class PolicyErrorMemo:
    """Policies that a pass has evaluated, by their key, with the error that stopped them."""

    def __init__(self) -> None:
        self._errors: dict[RecordsKey, FanoutError | None] = {}
        self._failure: FanoutError | None = None  # of the last pass as a whole
        self._has_results = False  # of a pass that did not fail as a whole

    def update(self, pass_plan: PassPlan, declared: DeclaredObjects) -> bool:
        """Take over the results of a pass; return whether a policy may get records that waited.

        Policies that are not `declared` any more are forgotten, but for those whose records were
        put back: somebody may declare them again.
        """
        results = {it.resolved_policy.records_key: it.error for it in pass_plan.policies}
        unevaluated = Waiting("")
        earlier = ((self._errors.get(key, unevaluated), error) for key, error in results.items())
        # After a failure records of any policy may have waited for its end, and else those of a
        # policy for the change of its error.
        has_opened = (
            self._failure is not None
            or not self._has_results
            or any(
                before is not None
                and (error is None or (_is_rewound(before) and not _is_rewound(error)))
                for before, error in earlier
            )
        )
        objects = (*map(key_of, (*declared.policies, *declared.variants)), *declared.left_out)
        present = {
            RecordsKey(it.namespace, it.name if it.kind == UpstreamPolicy.__name__ else "")
            for it in objects
        }

        def may_be_declared(key: RecordsKey) -> bool:
            kind = own_kind(UpstreamPolicy if key.policy else PackageVariant)
            return key in present or any(it.concerns(kind, key.namespace) for it in declared.unread)

        self._errors = {
            key: error
            for key, error in self._errors.items()
            if _is_rewound(error) or may_be_declared(key)
        } | results
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


def _is_rewound(error: FanoutError | None) -> bool:
    return error is not None and error.reason == Reason.RECORDS_REWOUND


class DeletionObserver(LoopObserver):
    """Observer of the loop that removes the finalizer of objects whose removal is complete."""

    def __init__(self, finalizers: FinalizerWriter) -> None:
        """Use the finalizers of a cluster."""
        self._finalizers = finalizers

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:  # noqa: ARG002 as of the protocol
        """Release the completed deletions of a pass."""
        if made_pass is not None and (completed := made_pass.report.pass_plan.completed_deletions):
            self._finalizers.remove(completed)
