"""Metrics of rounds and of the states that passes observed."""

from datetime import UTC, datetime

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.controller.loop_health import LoopHealth, ScheduledPass
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Denied, Unavailable
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.plan.actions import ActionKind, ActionResult, Plan, PlanAction, undone_result
from fanout.plan.records.policy_records import PolicyRecords
from fanout.reconcile.pass_results import PassPlan, PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.serve.run_metrics import RunMetrics
from fanout.telemetry.metrics import Counters, EventName

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def metrics(remaining_calls=dict):
    return RunMetrics("0.1.0", Counters(), LoopHealth, remaining_calls, dict)


def samples(made):
    """Values by series of the page, without zeros."""
    page, _ = made.format_page("")
    lines = (it.rpartition(" ") for it in page.decode().splitlines() if it.startswith("fanout_"))
    return {series: float(value) for series, _, value in lines if float(value)}


def variant(name, state, *reasons):
    holds = tuple(Hold(reason, "") for reason in reasons)
    return VariantResult(name=name, stage="dev", candidate="v1", state=state, holds=holds)


def result(name, *variants, halted=False, error=None):
    """A result of hand-written variants: it names no UpstreamPolicy."""
    resolved = ResolvedPolicy(
        namespace="platform", name=name, upstream_policy=None, package_variant=None, upstream=None
    )
    stage = StageResult(
        name="dev",
        candidate="v1",
        state="Halted" if halted else "Pending",
        verdict=Verdict.PENDING,
        gate=Verdict.PASSED,
        holds=(Hold("Halted", ""),) * halted,
        halted=halted,
    )
    decision = PolicyEvaluation({"dev": stage}, {it.name: it for it in variants}, {})
    return PolicyResult(
        resolved_policy=resolved,
        policy_state=PolicyRecords(),
        decision=None if error else decision,
        error=error,
    )


def made_pass(*results, outcomes=(), declared=None):
    actions = tuple(it.action for it in outcomes)
    plan = PassPlan(now=NOW, policies=results, plan=Plan(actions))
    subjects = [it.resolved_policy for it in results]
    names = declared or [it.name for it in subjects]
    return ScheduledPass(
        PassReport(plan, tuple(outcomes)), frozenset(PassSubject("platform", it) for it in names)
    )


def series(name, **labels):
    texts = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{texts}}}"


HAND_WRITTEN = {"namespace": "platform", "policy": ""}


def test_states_and_holds_are_counted_and_never_named():
    made = metrics()
    failed = variant("canary-1", VariantState.FAILED, "VerificationFailed")
    held = variant("canary-2", VariantState.HELD, "MergeConflict", "SoakRunning")
    first = result("canary-a", failed, held, halted=True)
    second = result("canary-b", variant("canary-3", VariantState.HELD, "MergeConflict"))
    made.end_round(made_pass(first, second), None)
    values = samples(made)
    stage = {**HAND_WRITTEN, "stage": "dev"}
    assert values[series("fanout_variants", **stage, state="Held")] == 2
    assert values[series("fanout_variants", **stage, state="Failed")] == 1
    assert values[series("fanout_stages", **stage, state="Halted")] == 1
    assert values[series("fanout_stages", **stage, state="Pending")] == 1
    assert values[series("fanout_holds", **stage, reason="MergeConflict")] == 2
    assert values[series("fanout_holds", **stage, reason="Halted")] == 1
    assert values[series("fanout_policies", **HAND_WRITTEN, state="Failed")] == 1
    assert values[series("fanout_policies", **HAND_WRITTEN, state="Progressing")] == 1
    assert not any("canary" in it for it in values)


def test_an_approval_counts_as_missing_when_nothing_else_is_before_it():
    made = metrics()
    early = [
        variant(f"canary-{reason}", VariantState.HELD, reason, "ApprovalMissing")
        for reason in ("AfterPending", "AfterFailed", "SoakRunning", "SoakCutShort")
    ]
    made.end_round(made_pass(result("canary-a", *early)), None)
    name, stage = "fanout_holds", {**HAND_WRITTEN, "stage": "dev"}
    assert series(name, **stage, reason="ApprovalMissing") not in samples(made)
    assert samples(made)[series(name, **stage, reason="SoakRunning")] == 1
    asked = variant("canary-1", VariantState.HELD, "WindowClosed", "ApprovalMissing")
    made.end_round(made_pass(result("canary-a", *early, asked)), None)
    assert samples(made)[series(name, **stage, reason="ApprovalMissing")] == 1


def test_decisions_of_gates_are_counted_in_each_pass():
    made = metrics()
    stage = {"stage": "dev", "candidate": "v1"}
    released = VariantResult(
        name="a", state=VariantState.PROPOSED, release=True, publish=True, **stage
    )
    held = variant("b", VariantState.HELD, "MergeConflict", "SoakRunning")
    for _ in range(2):
        made.end_round(made_pass(result("p", released, held)), None)
    counts = {it: value for it, value in samples(made).items() if "gate_decisions" in it}
    name = "fanout_gate_decisions_total"
    assert counts == {
        series(name, decision="Release", reason=""): 2,
        series(name, decision="Publish", reason=""): 2,
        series(name, decision="Hold", reason="MergeConflict"): 2,
        series(name, decision="Hold", reason="SoakRunning"): 2,
    }


def test_ended_workers_are_counted_by_cause():
    counters = Counters()
    made = RunMetrics("0.1.0", counters, LoopHealth, dict, dict)
    counters.events.add(EventName.SANDBOX_KILL, "memory")
    assert samples(made)[series("fanout_sandbox_killed_total", cause="memory")] == 1


def test_a_pass_over_some_keeps_the_others_and_forgets_what_is_not_declared():
    made = metrics()
    ready = variant("x", VariantState.READY)
    made.end_round(made_pass(result("a", ready), result("b", ready), result("c", ready)), None)
    stopped = result("a", error=Denied("no", reason="RemoteDenied"))
    made.end_round(made_pass(stopped, declared=["a", "b"]), None)
    states = {it: value for it, value in samples(made).items() if "fanout_policies" in it}
    assert states == {
        series("fanout_policies", **HAND_WRITTEN, state="Ready"): 1,
        series("fanout_policies", **HAND_WRITTEN, state="Stopped"): 1,
    }


def test_actions_are_counted_by_result_and_failures_by_reason():
    made = metrics()
    action = PlanAction(kind=ActionKind.PUBLISH, namespace="platform", policy="a")
    limited = ActionResult(action, is_done=False, reason="RateLimited", until=LATER)
    refused = undone_result(action, Denied("no", reason="PushDenied"))
    outcomes = (ActionResult(action, is_done=True), refused, limited)
    made.end_round(made_pass(outcomes=outcomes), None)
    values = samples(made)
    for name in ("done", "failed", "deferred"):
        assert values[series("fanout_actions_total", kind="Publish", result=name)] == 1
    assert values[series("fanout_reconcile_errors_total", reason="PushDenied")] == 1
    assert series("fanout_reconcile_errors_total", reason="RateLimited") not in values
    assert values[series("fanout_reconcile_total", result="failed")] == 1


def test_a_round_that_fails_is_no_success_and_one_without_a_pass_is_no_pass():
    made = metrics()
    made.begin_round([0.5], DeclaredObjects())
    made.end_round(None, Unavailable("no answer", reason="RemoteUnavailable"))
    made.begin_round([], DeclaredObjects())
    made.end_round(None, None)
    values = samples(made)
    assert values[series("fanout_reconcile_total", result="error")] == 1
    assert values[series("fanout_reconcile_errors_total", reason="RemoteUnavailable")] == 1
    assert values["fanout_reconcile_duration_seconds_count"] == 1
    assert "fanout_sweep_last_success_timestamp_seconds" not in values


def test_forges_that_are_being_closed_do_not_fail_the_page():
    def closed():
        raise Unavailable("a call was given up", reason="ForgeUnavailable")

    assert series("fanout_build_info", version="0.1.0") in samples(metrics(closed))
    remaining = metrics(lambda: {("git.example.com", "calls"): 59})
    labels = {"host": "git.example.com", "limit": "calls"}
    assert samples(remaining)[series("fanout_forge_rate_limit_remaining", **labels)] == 59
