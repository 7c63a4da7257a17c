"""Metrics of `fanout run` for Prometheus: counted as the loop runs, or read at each scrape."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, time
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder

from fanout.controller.loop_health import LoopHealth, ScheduledPass
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.present.policy_counts import PolicyCounts, count_gate_decisions, count_policy
from fanout.reconcile.pass_scope import PassSubject
from fanout.sandbox.worker_protocol import ExceededLimit
from fanout.serve import metric_table as table
from fanout.serve.hook_receiver import HookOutcome
from fanout.serve.metric_table import Metric, MetricType
from fanout.telemetry.error_isolation import run_isolated
from fanout.telemetry.metrics import PHASES, Counters, EventName, Labels

# As `PolicyCounts` has them.
_STATE_METRICS = (table.POLICIES, table.STAGES, table.VARIANTS, table.HOLDS, table.PROBLEMS)
QUEUE = "fanout"  # name of the queue in the metrics
_RESULTS = ("success", "failed", "error")


class RunMetrics:
    """Observer of the loop, and source of the page `/metrics`."""

    def __init__(
        self,
        version: str,
        counters: Counters,
        health: Callable[[], LoopHealth],
        remaining_calls: Callable[[], Mapping[tuple[str, str], int]],
        waiting_notifications: Callable[[], Mapping[str, int]],
    ) -> None:
        """Create metrics. The functions are called at each scrape."""
        # Series with the instants at which counters were made double the size of the page.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._version = version
        self._counters = counters
        self._health = health
        self._remaining_calls = remaining_calls
        self._waiting_notifications = waiting_notifications
        # From the last pass over each policy. Replaced and never changed, so that readers need no
        # lock.
        self._states: Mapping[PassSubject, PolicyCounts] = {}
        self._registry = CollectorRegistry()
        self._reconciles = self._counter(table.RECONCILES)
        self._errors = self._counter(table.RECONCILE_ERRORS)
        self._phases = self._counter(table.PHASE_SECONDS)
        self._actions = self._counter(table.ACTIONS)
        self._decisions = self._counter(table.GATE_DECISIONS)
        self._adds = self._counter(table.QUEUE_ADDS).labels(QUEUE)
        self._retries = self._counter(table.QUEUE_RETRIES).labels(QUEUE)
        self._waits = self._histogram(table.QUEUE_SECONDS).labels(QUEUE)
        self._work = self._histogram(table.WORK_SECONDS).labels(QUEUE)
        self._durations = self._histogram(table.RECONCILE_SECONDS)
        for result in _RESULTS:  # so that rates are known from the first failure on
            self._reconciles.labels(result)
        self._last_success = 0.0
        self._started, self._phase_clocks = monotonic(), dict.fromkeys(PHASES, 0.0)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    # ---- observer of the loop ------------------------------------------------------------------

    def begin_round(self, waits: Sequence[float], declared: DeclaredObjects) -> None:  # noqa: ARG002 as of the protocol
        """Count the keys of a round, and start its clocks."""
        for seconds in waits:
            self._waits.observe(seconds)
        self._adds.inc(len(waits))
        self._started, self._phase_clocks = monotonic(), self._read_phases()

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Count a round with its pass or its error."""
        seconds = monotonic() - self._started
        self._work.observe(seconds)
        if failure is not None:
            self._retries.inc()
            self._reconciles.labels("error").inc()
            self._errors.labels(failure.reason).inc()
        elif made_pass is not None:
            report = made_pass.report
            self._reconciles.labels("failed" if report.fix_count else "success").inc()
            self._last_success = time()
            failed = {id(it) for it in report.failed_outcomes}
            for outcome in report.outcomes:
                result = "done" if outcome.is_done else "deferred"
                if id(outcome) in failed:
                    result = "failed"
                    self._errors.labels(outcome.reason).inc()
                self._actions.labels(str(outcome.action.kind), result).inc()
            counted: dict[PassSubject, PolicyCounts] = {}
            for item in report.pass_plan.policies:
                for labels, number in count_gate_decisions(item).items():
                    self._decisions.labels(*labels).inc(number)
                subject = PassSubject(item.resolved_policy.namespace, item.resolved_policy.name)
                counted[subject] = count_policy(item)
            # Policies that are not declared any more are forgotten.
            merged = {**self._states, **counted}
            self._states = {it: merged[it] for it in merged if it in made_pass.declared}
        else:
            return
        self._durations.observe(seconds)
        for phase, clock in self._read_phases().items():
            self._phases.labels(phase).inc(max(clock - self._phase_clocks[phase], 0.0))

    def _read_phases(self) -> dict[str, float]:
        # On the thread of the loop: it alone may read the times of phases.
        return {name: it.clock for name, it in self._counters.times.read().items()}

    # ---- the page ------------------------------------------------------------------------------

    def format_page(self, accepted: str) -> tuple[bytes, str]:
        """Return the page and its type, in the format that the header Accept asks for."""
        encode, content_type = choose_encoder(accepted)
        return encode(self._registry), content_type

    def collect(self) -> Iterable[Family]:
        """Yield the metrics that are read at a scrape, as prometheus_client asks for them."""
        health, read = self._health(), self._counters.events.read
        yield _family(table.BUILD, {(self._version,): 1})
        yield _family(table.LAST_SUCCESS, {(): self._last_success})
        yield _family(table.QUEUE_DEPTH, {(QUEUE,): health.waiting})
        yield _family(table.UNFINISHED_SECONDS, {(QUEUE,): health.seconds_without_pass})
        totals = {it: defaultdict[Labels, float](float) for it in _STATE_METRICS}
        for counts in self._states.values():
            for metric, numbers in zip(_STATE_METRICS, counts, strict=True):
                for labels, number in numbers.items():
                    totals[metric][labels] += number
        for metric, total in totals.items():
            yield _family(metric, total)
        operations = read(EventName.GIT_OPERATION)
        yield _family(table.GIT_OPERATIONS, operations)
        yield _summary(table.GIT_SECONDS, operations, read(EventName.GIT_SECONDS))
        calls = read(EventName.FORGE_CALL)
        yield _family(table.FORGE_CALLS, calls)
        yield _summary(table.FORGE_SECONDS, calls, read(EventName.FORGE_SECONDS))
        remaining = run_isolated(self._remaining_calls)  # raises while clients are closed
        yield _family(
            table.FORGE_REMAINING, {} if isinstance(remaining, FanoutError) else remaining
        )
        hooks = read(EventName.HOOK)
        yield _family(table.HOOKS, {(it.value,): hooks.get((it.value,), 0) for it in HookOutcome})
        kills = read(EventName.SANDBOX_KILL)
        yield _family(table.SANDBOX_KILLED, {(it,): kills.get((it,), 0) for it in ExceededLimit})
        yield _family(table.NOTIFICATIONS, read(EventName.NOTIFICATION))
        waiting = {(name,): it for name, it in self._waiting_notifications().items()}
        yield _family(table.NOTIFICATIONS_WAITING, waiting)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.meaning, metric.labels, registry=self._registry)

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(
            metric.name,
            metric.meaning,
            metric.labels,
            registry=self._registry,
            buckets=table.BUCKETS,
        )


def _family(metric: Metric, counts: Mapping[Any, float]) -> Family:
    kind = CounterMetricFamily if metric.type is MetricType.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=metric.labels)
    for labels, number in sorted(counts.items()):
        family.add_metric(labels, number)
    return family


def _summary(
    metric: Metric, counts: Mapping[Labels, float], seconds: Mapping[Labels, float]
) -> Family:
    """Return sums of seconds; the first label of `counts` is that of `seconds`."""
    family = SummaryMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, total in sorted(seconds.items()):
        number = sum(it for key, it in counts.items() if key[:1] == labels)
        family.add_metric(labels, int(number), total)
    return family
