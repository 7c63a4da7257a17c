"""Queue of statuses: the latest result of each policy, and which of them are to be written.

The loop updates it after each round, and a thread of its own takes from it what is to be written.
A newer result of a policy replaces one that waits.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from itertools import chain
from threading import Lock
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import VariantState
from fanout.api.object_meta import KRMObject, Label
from fanout.api.reasons import NEEDS_REPAIR
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, own_kind
from fanout.errors import Conflict, FanoutError
from fanout.plan.records.policy_records import RECORD_KINDS
from fanout.plan.written_objects import ObjectName, PolicyEvent, TransitionTimes, WrittenObject
from fanout.present.conditions import RepositoryReport, summarize_repositories
from fanout.present.notifications.notification_conditions import (
    NotificationCondition,
    find_conditions,
)
from fanout.present.policy_entry import VariantEntry, format_time, walk_policy
from fanout.present.policy_events import (
    find_changed_variants,
    list_action_events,
    list_condition_events,
)
from fanout.present.record_statuses import build_record_statuses
from fanout.present.status_views import (
    UNKNOWN_TIME,
    VARIANT_KIND,
    build_broken_status,
    build_orphan_status,
    build_policy_status,
    build_promotion_status,
    build_repository_status,
    build_stopped_status,
    build_unevaluated_status,
    build_variant_status,
    with_errors,
    with_failure,
)
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject, list_requests
from fanout.reconcile.selection.policy_resolution import PolicyKey, repository_key
from fanout.reconcile.validation.expression_validation import ErrorsByObject
from fanout.selection.variant_spec import variant_digest
from fanout.values import Value, replace

MAX_PUT_OFF = 8  # passes in a row
_URGENT_STATES = frozenset({VariantState.HELD, VariantState.FAILED})


class PassChange(Value):
    """Changes by the pass itself, so that its result is about the time before them.

    The loop makes another pass over the policy at once, which observes the changes: a variant
    is written once and not twice. Of a policy that one pass after the other changes, the
    variants are written that were not changed themselves.
    """

    variants: frozenset[str] = frozenset()
    number: int = 0  # passes in a row that changed the policy


class _PolicyBatch(Value):
    """Result of a policy, and which of its variants are to be written."""

    result: PolicyResult
    names: frozenset[str] | None  # None: all
    change: PassChange

    def includes(self, name: str) -> bool:
        """Return whether a variant is to be written."""
        change = self.change
        # Left to the next pass.
        if name in change.variants or 0 < change.number <= MAX_PUT_OFF:
            return False
        return self.names is None or name in self.names


class StatusBatch(Value, kw_only=True):
    """Objects, statuses and events to be written at one moment."""

    version: int  # of the queue
    policies: tuple[_PolicyBatch, ...]
    repository_reports: Mapping[str, tuple[RepositoryReport, ...]]  # by key of the Repository
    evaluated: frozenset[PolicyKey]  # policies that have a result
    declared_keys: frozenset[PolicyKey]  # policies that are declared without errors
    is_complete: bool  # every declared policy has a result, so that an unused Repository is one
    declared: DeclaredObjects
    problem: FanoutError | None  # of all policies
    failure: FanoutError | None  # of the last round as a whole
    observed_at: datetime | None  # instant of the last pass; None: there was none
    errors: ErrorsByObject  # of usable objects
    requests: Mapping[PolicyKey, str]  # for passes, as far as they were handled
    events: tuple[PolicyEvent, ...]

    def list_objects(
        self,
        records: Mapping[str, ObjectName],
        has_result: Callable[[PolicyKey], bool] = lambda _: True,
    ) -> Iterator[WrittenObject]:
        """Yield the objects: policies, variants that are held or failed, then all others.

        `records`: names of the objects of records, by uid. `has_result`: whether a policy still
        has a result, asked for each of its variants; those of others would be created again.
        """
        pairs = (*self.declared.positions.items(), *self.declared.broken)
        positions = {ObjectName(key.kind, key.namespace, key.name): it for key, it in pairs}
        # Of records of policies that the pass did not change itself.
        of_records = [
            build_record_statuses(it.result, records, it.includes)
            for it in self.policies
            if records
        ]
        for item in chain(self._list_all(has_result), *of_records):
            name = item.name
            position = positions.get(name) if item.content is None else None
            if position is None:
                yield item
                continue
            is_policy = name.kind == UpstreamPolicy.__name__
            key, metadata = (name.namespace, name.name, is_policy), position.value["metadata"]
            # The request that was handled: policies and variants are asked for a pass; of all
            # others the annotation was read.
            request = str((metadata.get("annotations") or {}).get(Label.REQUESTED_AT, ""))
            if key in self.declared_keys and (is_policy or name.kind == VARIANT_KIND):
                request = self.requests.get(key, "")
            shown = with_errors(item, self.errors.get(_locate(name), ()))
            status = {**shown.status, **({"lastHandledReconcileAt": request} if request else {})}
            # Of a file there is no time of creation.
            created = metadata.get("creationTimestamp") or format_instant(UNKNOWN_TIME)
            times = TransitionTimes(created, format_time(self.observed_at) or "")
            yield replace(shown, status=status, times=times)

    def _list_all(self, has_result: Callable[[PolicyKey], bool]) -> Iterator[WrittenObject]:
        if self.failure is not None:
            yield from (build_unevaluated_status(it, self.failure) for it in self.unevaluated)
        policies = [(it, walk_policy(it.result)) for it in self.policies]
        for item, policy in policies:
            if item.result.resolved_policy.upstream_policy is not None:
                yield self._add_failure(build_policy_status(policy, self.problem))
        for repository in self.declared.repositories:
            reports = self.repository_reports.get(repository_key(repository), ())
            if reports or self.is_complete:
                yield build_repository_status(repository, reports)
        yield from map(build_promotion_status, self.declared.promotions)
        for key, position in self.declared.broken:
            name = ObjectName(key.kind, key.namespace, key.name)
            problems = [
                str(it)
                for it in self.declared.faults
                if it.where.object == _locate(name) and it.severity == "error"
            ]
            yield build_broken_status(name, position.value["metadata"], problems)
        urgent: list[VariantEntry] = []
        plain: list[VariantEntry] = []
        for item, policy in policies:
            result = item.result
            for orphan in policy.orphans:
                if item.includes(orphan.locations.name):
                    yield build_orphan_status(orphan)
            if result.decision is None and result.resolved_policy.package_variant is not None:
                yield self._add_failure(build_stopped_status(policy))
            for entry in policy.rows:
                if item.includes(entry.variant.spec.name):
                    is_urgent = entry.shown.state in _URGENT_STATES or any(
                        it.reason in NEEDS_REPAIR for it in entry.shown.holds
                    )
                    (urgent if is_urgent else plain).append(entry)
        for entry in (*urgent, *plain):
            if has_result(entry.policy.resolved_policy.key):
                shown = build_variant_status(entry)
                yield shown if shown.content is not None else self._add_failure(shown)

    def _add_failure(self, item: WrittenObject) -> WrittenObject:
        """Return a policy or hand-written variant with the failure of the last round."""
        return item if self.failure is None else with_failure(item, self.failure)

    @property
    def unevaluated(self) -> Iterator[KRMObject]:
        """Policies and hand-written variants of which there is no result yet."""
        declarations = (*self.declared.policies, *self.declared.variants)
        return (it for it in declarations if _key_of(it) not in self.evaluated)


class StatusQueue:
    """Board of one process. Thread-safe: it is updated and read by different threads."""

    def __init__(self) -> None:
        """Create an empty queue."""
        self._lock = Lock()
        self._version = 0
        self._declared = DeclaredObjects()
        self._at: datetime | None = None  # instant of the last pass
        self._results: dict[PolicyKey, PolicyResult] = {}
        self._changes: dict[PolicyKey, PassChange] = {}
        self._reports: dict[PolicyKey, Mapping[str, RepositoryReport]] = {}
        self._conditions: dict[PolicyKey, frozenset[NotificationCondition]] = {}
        self._problem: FanoutError | None = None  # of all policies
        self._failure: FanoutError | None = None  # of the last round as a whole
        # Not all policies show the problem or failure yet, or show one that is over.
        self._is_new_problem = False
        self._errors: ErrorsByObject = {}  # of usable objects
        self._waiting: dict[PolicyKey, None] = {}  # in order of their results
        self._requests: dict[PolicyKey, str] = {}  # for passes, as the last pass handled them
        # Whose request is to be shown as handled, or whose object has other errors than before.
        self._handled: dict[PolicyKey, None] = {}
        self._events: list[PolicyEvent] = []

    @property
    def version(self) -> int:
        """Number that grows with every change of what is to be written."""
        return self._version

    def has_result(self, key: PolicyKey) -> bool:
        """Return whether a policy or hand-written variant is declared and has a result."""
        return key in self._results

    @property
    def has_waiting(self) -> bool:
        """True if a result waits to be written."""
        return bool(self._waiting)

    def update(
        self,
        report: PassReport | None,
        declared: DeclaredObjects,
        problem: FanoutError | None = None,
        failure: FanoutError | None = None,
        errors: ErrorsByObject | None = None,
    ) -> None:
        """Take in the pass of a round, if it made one, and what is declared now.

        `problem`: one that all policies are to show. `failure`: of the round as a whole. A lost
        race is none that people are to see: it is repeated at once. `errors`: of usable objects;
        default: none.
        """
        keys = _list_keys(declared)
        errors = errors or {}
        failure = self._failure if isinstance(failure, Conflict) else failure
        with self._lock:
            is_new = str(problem or "") != str(self._problem or "")
            is_new |= str(failure or "") != str(self._failure or "")
            self._version += declared is not self._declared or is_new
            self._problem, self._failure = problem, failure
            self._is_new_problem |= is_new
            self._declared = declared
            if errors != self._errors:
                # Policies whose errors changed are to be written.
                for key in self._results:
                    namespace, name, is_policy = key
                    kind = UpstreamPolicy.__name__ if is_policy else VARIANT_KIND
                    location = _locate(ObjectName(kind, namespace, name))
                    if errors.get(location) != self._errors.get(location):
                        self._handled[key] = None
                self._errors = errors
                self._version += 1
            if report is not None:
                self._at = report.pass_plan.now
                changed = find_changed_variants(report)
                requests = list_requests(declared)
                for item in report.pass_plan.policies:
                    key = namespace, name, _ = item.resolved_policy.key
                    earlier, change = self._changes.get(key, PassChange()), PassChange()
                    if key in changed:
                        change = PassChange(changed[key], earlier.number + 1)
                    # The same result again is that of a policy for which nothing has changed.
                    if self._results.get(key) is not item or change != earlier:
                        self._results[key], self._changes[key] = item, change
                        self._waiting[key] = None
                        self._version += 1
                    # Whether the pass changed anything or not, it handled the request.
                    request = requests.get(PassSubject(namespace, name), "")
                    if request != self._requests.get(key, ""):
                        self._requests[key] = request
                        self._handled[key] = None
                        self._version += 1
                self._events += list_action_events(report)
            tables: tuple[dict[PolicyKey, Any], ...] = (
                self._results,
                self._changes,
                self._reports,
                self._conditions,
                self._waiting,
                self._requests,
                self._handled,
            )
            for key in self._results.keys() - keys:
                for table in tables:
                    table.pop(key, None)

    def take(self, foreign: Collection[ObjectName]) -> StatusBatch:
        """Return what is to be written until `finish`; `foreign` is what others have changed."""
        with self._lock:
            results = {key: self._results[key] for key in self._waiting}
            events, self._events = self._events, []
        for key, result in results.items():
            self._reports[key] = summarize_repositories(result)
            conditions = find_conditions(result)
            earlier = self._conditions.get(key)
            self._conditions[key] = frozenset(conditions)
            # The first result has no events: all of its conditions may be old.
            if earlier is not None and self._at is not None:
                began = {it: text for it, text in conditions.items() if it not in earlier}
                events += list_condition_events(result, began, self._at)
        kinds = (VARIANT_KIND, *RECORD_KINDS)
        foreign_names = frozenset(it.name for it in foreign if it.kind in kinds)
        namespaces = frozenset(it.namespace for it in foreign)
        with self._lock:
            reports: dict[str, list[RepositoryReport]] = {}
            policies: list[_PolicyBatch] = []
            for key, result in self._results.items():
                for repository, report in self._reports.get(key, {}).items():
                    reports.setdefault(repository, []).append(report)
                if key in self._waiting:
                    policies.append(_PolicyBatch(result, None, self._changes[key]))
                elif result.resolved_policy.namespace in namespaces:
                    policies.append(_PolicyBatch(result, foreign_names, self._changes[key]))
                elif self._is_new_problem or key in self._handled:
                    is_policy = result.resolved_policy.upstream_policy is not None
                    names: frozenset[str] | None = frozenset() if is_policy else None
                    policies.append(_PolicyBatch(result, names, self._changes[key]))
            declared_keys = _list_keys(self._declared)
            return StatusBatch(
                version=self._version,
                policies=tuple(policies),
                repository_reports={name: tuple(it) for name, it in reports.items()},
                evaluated=frozenset(self._results),
                declared_keys=declared_keys,
                is_complete=self._reports.keys() >= declared_keys,
                declared=self._declared,
                problem=self._problem,
                failure=self._failure,
                observed_at=self._at,
                errors=self._errors,
                requests=dict(self._requests),
                events=tuple(events),
            )

    def finish(self, batch: StatusBatch) -> None:
        """Take note that all of a batch was tried; what came since then waits on."""
        with self._lock:
            is_shown = self._problem is batch.problem and self._failure is batch.failure
            self._is_new_problem &= not is_shown
            if self._version == batch.version:
                self._handled.clear()
            for item in batch.policies:
                key = item.result.resolved_policy.key
                if self._results.get(key) is item.result:
                    self._waiting.pop(key, None)

    def find_obsolete(
        self, made: Mapping[tuple[str, str], str], batch: StatusBatch
    ) -> Iterator[ObjectName]:
        """Yield the variants of policies that no policy has any more.

        `made`: name of the policy by namespace and name of each PackageVariant that has one.
        """
        keeps = {subject: _build_keeper(result) for subject, result in dict(self._results).items()}
        declared = batch.declared
        for (namespace, name), policy in made.items():
            if (keep := keeps.get((namespace, policy, True))) is not None:
                is_obsolete = not keep(name)
            else:
                # Something that could be the policy may be declared that cannot be used.
                objects = (it.metadata for it in declared.policies)
                is_obsolete = (
                    all((it.namespace, it.name) != (namespace, policy) for it in objects)
                    and all(
                        (it.namespace, it.name) != (namespace, policy) for it in declared.left_out
                    )
                    and not any(
                        it.concerns(own_kind(UpstreamPolicy), namespace) for it in declared.unread
                    )
                )
            if is_obsolete:
                yield ObjectName(VARIANT_KIND, namespace, name)


def _locate(name: ObjectName) -> str:
    """Return the location of an object as errors have it."""
    return f"{name.kind}/{name.namespace}/{name.name}"


def _list_keys(declared: DeclaredObjects) -> frozenset[PolicyKey]:
    """Return the keys of all policies and hand-written variants that are declared."""
    return frozenset(map(_key_of, (*declared.policies, *declared.variants)))


def _key_of(declaration: KRMObject) -> PolicyKey:
    meta = declaration.metadata
    return meta.namespace, meta.name, isinstance(declaration, UpstreamPolicy)


def _build_keeper(result: PolicyResult) -> Callable[[str], bool]:
    """Return a function that tells whether a policy still has the variant of this name."""
    policy = result.resolved_policy
    if result.error is not None or policy.error is not None or not policy.is_complete:
        return lambda _: True
    names = {it.name for it in policy.variants} | {it.name for it in result.orphans}
    # A target that fails keeps its variant, whose name ends with a digest of the target.
    failed = {variant_digest(policy.namespace, policy.name, it.target) for it in policy.failures}
    return lambda name: name in names or name.rpartition("-")[2] in failed
