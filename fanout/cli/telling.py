"""What a pass did, told to people on stderr; what it came to as data on stdout."""

from collections import Counter
from collections.abc import Iterable

from fanout.cli.output import show_value, table, write
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import say
from fanout.cluster.declared import Declared
from fanout.plan.actions import Action, Kind, Outcome, Plan
from fanout.reconcile.report import Observed, Report

_DONE = {
    Kind.RELEASE: "released",
    Kind.WRITE_DRAFT: "drafts written",
    Kind.PUBLISH: "published",
    Kind.REMOVE_DRAFT: "drafts removed",
    Kind.RECORD: "recorded",
}


def tell_faults(declared: Declared) -> int:
    """Say every error in the files; answers how many there are."""
    errors = [fault for fault in declared.faults if fault.severity == "error"]
    for fault in errors:
        say(str(fault), fg="red")
    return len(errors)


def tell_plan(plan: Plan, output: Format) -> None:
    """The plan on stdout: a line per action, or the plan as JSON or YAML."""
    if output in (Format.JSON, Format.YAML):
        show_value(plan.plain(), output)
    else:
        write(_lines(plan.actions) or "nothing to do\n")


def _lines(actions: Iterable[Action]) -> str:
    rows = [
        (action.kind.value, action.policy, action.stage or "-", action.sentence())
        for action in actions
    ]
    return table(("ACTION", "POLICY", "STAGE", "WHAT"), rows) if rows else ""


def tell_report(report: Report, settings: Settings) -> None:
    """What was done, by kind and for each failure; with -o json the outcomes."""
    if settings.output in (Format.JSON, Format.YAML):
        show_value(_plain(report), settings.output)
        return
    tell_problems(report.observed, settings)
    for outcome in report.failed:
        say(f"failed: {outcome.action.sentence()}: {outcome.problem}", settings.color, fg="red")
    if settings.verbosity:
        write(_lines(outcome.action for outcome in report.outcomes if outcome.done))
    counts = Counter(outcome.action.kind for outcome in report.outcomes if outcome.done)
    parts = [f"{counts[kind]} {_DONE[kind]}" for kind in Kind if counts[kind]]
    write((", ".join(parts) or "nothing to do") + "\n")


def tell_problems(observed: Observed, settings: Settings) -> None:
    """Policies that are stopped, targets without a variant, variants that cannot be rendered."""
    for warning in observed.warnings:
        say(f"warning: {warning}", settings.color, fg="yellow")
    for item in observed.policies:
        if item.problem is not None:
            say(f"{item.title}: {item.problem}", settings.color, fg="red")
        for failure in item.failures:
            sentence = f"{item.title}: {failure.target}: {failure.problem}"
            say(sentence, settings.color, fg="yellow")
        sentences = [
            f"{item.title}: {case.spec.name}: {case.failure}"
            for case in item.cases
            if case.failure is not None
        ]
        obstacles = [case.obstacle for case in item.cases if case.failure is None]
        sentences += [f"{item.title}: {hold.sentence}" for hold in obstacles if hold is not None]
        for sentence in dict.fromkeys(sentences):  # one repository may stop many variants
            say(sentence, settings.color, fg="red")


def _plain(report: Report) -> dict[str, object]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "SweepReport",
        "outcomes": [_outcome(outcome) for outcome in report.outcomes],
        "problems": [
            {"policy": item.title, "reason": item.problem.reason, "message": str(item.problem)}
            for item in report.observed.policies
            if item.problem is not None
        ],
        "failedTargets": [
            {
                "policy": item.title,
                "target": failure.target,
                "reason": failure.reason,
                "message": failure.problem,
            }
            for item in report.observed.policies
            for failure in item.failures
        ],
        "warnings": list(report.observed.warnings),
    }


def _outcome(outcome: Outcome) -> dict[str, object]:
    body: dict[str, object] = {**outcome.action.plain(), "done": outcome.done}
    if not outcome.done:
        body |= {"reason": outcome.reason, "message": outcome.problem}
    return body
