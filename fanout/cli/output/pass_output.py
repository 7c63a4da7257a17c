"""Output of a pass: plan or actions on stdout, problems on stderr."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.api.durations import format_instant
from fanout.api.text_fields import pluralize
from fanout.cli.output.printer import format_table, print_value, write_stdout
from fanout.cli.settings import Settings
from fanout.cli.terminal import Color, complete_text, print_message
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import group_findings
from fanout.plan.actions import ActionKind, PlanAction
from fanout.plan.pull_requests.call_estimate import CallEstimate
from fanout.ports import RecordStore
from fanout.present.enforcement_conditions import list_unenforced
from fanout.present.policy_counts import list_holds
from fanout.reconcile.pass_results import PassPlan, PassProblem, PassReport
from fanout.reconcile.problem_aggregation import (
    count_failures,
    format_deferred_outcomes,
    format_failed_outcomes,
    format_lines,
    group_problems,
)

_ACTION_WORDS = {
    ActionKind.WRITE_TRACE: ("record trace", "written"),
    ActionKind.RELEASE: ("", "released"),
    ActionKind.WRITE_DRAFT: ("draft", "written"),
    ActionKind.DRAFT_REMOVAL: ("removal draft", "written"),
    ActionKind.PUBLISH: ("", "published"),
    ActionKind.REMOVE_PACKAGE: ("package", "removed"),
    ActionKind.REMOVE_DRAFT: ("draft", "removed"),
    ActionKind.OPEN_REQUEST: ("pull request", "opened"),
    ActionKind.UPDATE_REQUEST: ("pull request", "updated"),
    ActionKind.CLOSE_REQUEST: ("pull request", "closed"),
    ActionKind.SET_STATUS: ("status", "set"),
    ActionKind.MERGE_REQUEST: ("pull request", "merged"),
    ActionKind.RECORD: ("", "recorded"),
}


def report_input_errors(declared: DeclaredObjects, namespace: str | None) -> int:
    """Print and count the errors of objects, but of those that are surely of another namespace."""
    errors = [fault for fault in declared.faults if fault.is_error_in(namespace)]
    for _, line in group_findings(errors):
        print_message(line, fg="red")
    return len(errors)


def print_plan(
    observed: PassPlan, estimate: CallEstimate, settings: Settings, error_count: int = 0
) -> None:
    """Print the plan: a line per action, and what it asks of the hosts.

    As JSON or YAML with problems and holds. `error_count`: number of errors in the objects.
    """
    variants = [variant for item in observed.policies for variant in item.variants]
    notes = [f"{it.reason}: {it.message}" for it in list_unenforced(variants)]
    print_problems(observed, settings)
    if settings.output.is_data:
        additions = {"notes": notes, "estimate": estimate.as_json()}
        print_value({**_serialize_planned(observed), **additions}, settings.output)
        return
    for note in notes:
        print_message(f"note: {note}", settings.color)
    print_actions(observed, error_count)
    write_stdout("".join(f"{line}\n" for line in estimate.sentences()))


def print_actions(observed: PassPlan, error_count: int = 0) -> None:
    """Print the table of planned actions, and a line with their numbers."""
    if not (actions := observed.printed_plan.actions):
        write_stdout(f"{_format_nothing_done(observed, error_count)}\n")
        return
    write_stdout(_format_actions(actions, observed))
    write_stdout(f"Plan: {', '.join(_count_actions(actions, 'to be '))}.\n")


def _count_actions(actions: Iterable[PlanAction], auxiliary: str = "") -> Iterator[str]:
    counts = Counter(action.kind for action in actions)
    for kind in ActionKind:
        if number := counts[kind]:
            noun, participle = _ACTION_WORDS[kind]
            yield f"{pluralize(number, noun) if noun else number} {auxiliary}{participle}"


def _serialize_planned(observed: PassPlan) -> dict[str, object]:
    problems = serialize_problems(observed)
    return {**observed.printed_plan.as_json(), **problems, "holds": list_holds(observed)}


def _format_nothing_done(observed: PassPlan, error_count: int, undone_actions: int = 0) -> str:
    """Return the line for a pass without actions, with what failed if anything did."""
    actions = pluralize(undone_actions, "action") if undone_actions else ""
    object_errors = f"{pluralize(error_count, 'error')} in the objects" if error_count else ""
    failed = ", ".join(filter(None, (count_failures(observed.problems), actions, object_errors)))
    return f"nothing to do; failed: {failed}" if failed else "nothing to do"


def _format_actions(actions: Iterable[PlanAction], observed: PassPlan) -> str:
    target_names = {
        (item.resolved_policy.namespace, variant.spec.name): names[variant.spec.target]
        for item in observed.policies
        for names in (item.target_names,)
        for variant in item.variants
    }
    rows = [
        (
            it.kind.value,
            it.policy or "-",
            it.stage or "-",
            target_names.get((it.namespace, it.variant), it.variant) or "-",
            complete_text(it.summary()),
        )
        for it in actions
    ]
    heads = ("ACTION", "POLICY", "STAGE", "TARGET", "WHAT")
    return format_table(heads, rows, priorities=(0, 4, 3, 1, 2)) if rows else ""


def print_report(
    report: PassReport,
    settings: Settings,
    effect: str = "",
    error_count: int = 0,
    new_records: Sequence[Mapping[str, object]] = (),
) -> None:
    """Print the result of a pass: counts by kind of action and each failure.

    With -o json the outcomes. In a dry run, and on a cluster, the planned actions. `effect`: line
    about the decision that the pass acted on; `error_count`: number of errors in the objects;
    `new_records`: records of a dry run, for -o json.
    """
    if settings.plans_only:
        if settings.output.is_data:
            planned = _serialize_planned(report.pass_plan)
            print_value({**planned, "records": list(new_records)}, settings.output)
            return
        print_problems(report.pass_plan, settings)
        # "nothing to do" would contradict the effect of a decision that takes no action.
        if report.pass_plan.printed_plan or not effect:
            print_actions(report.pass_plan, error_count)
        write_stdout(f"{complete_text(effect)}\n" if effect else "")
        return
    if settings.output.is_data:
        outcomes: list[dict[str, object]] = []
        for it in report.outcomes:
            outcomes.append({**it.action.as_json(), "done": it.is_done})
            if not it.is_done:
                outcomes[-1] |= {"reason": it.reason, "message": it.problem}
            if not it.is_done and it.until is not None:
                outcomes[-1]["until"] = format_instant(it.until)
        view = {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "SweepReport",
            "outcomes": outcomes,
            **serialize_problems(report.pass_plan),
        }
        print_value(view, settings.output)
        return
    print_problems(report.pass_plan, settings)
    for warning in report.warnings:
        print_message(f"warning: {warning}", settings.color, fg="yellow")
    for line in format_failed_outcomes(report.failed_outcomes):
        print_message(f"failed: {line}", settings.color, fg="red")
    for line in format_failed_outcomes(report.undeletable_drafts):
        print_message(f"warning: {line}", settings.color, fg="yellow")
    for line in format_deferred_outcomes(report.deferred_outcomes):
        print_message(f"waiting: {line}", settings.color, fg="yellow")
    done_actions = [outcome.action for outcome in report.outcomes if outcome.is_done]
    if settings.verbosity:
        write_stdout(_format_actions(done_actions, report.pass_plan))
    counts = ", ".join(_count_actions(done_actions))
    if effect:
        write_stdout(f"{complete_text(effect)}\n")
    if counts or not effect:
        failed_count = len(report.failed_outcomes)
        nothing_done = _format_nothing_done(report.pass_plan, error_count, failed_count)
        write_stdout(f"{counts or nothing_done}\n")


def print_problems(observed: PassPlan, settings: Settings) -> None:
    """Print stopped policies, targets without a variant, and variants that cannot proceed."""
    for warning in observed.warnings:
        print_message(f"warning: {warning}", settings.color, fg="yellow")
    for failed, line in format_lines(group_problems(observed.problems)):
        print_message(line, settings.color, fg="red" if failed else "yellow")


def serialize_problems(observed: PassPlan) -> dict[str, object]:
    """Return the problems of a pass as data, one entry each."""
    problems = observed.problems
    return {
        "problems": [_serialize_problem(it) for it in problems if it.noun == "policy"],
        "failedTargets": [_serialize_problem(it) for it in problems if it.noun == "target"],
        "failedVariants": [
            _serialize_problem(it) for it in problems if it.noun == "variant" and it.failed
        ],
        "held": [_serialize_problem(it) for it in problems if not it.failed],
        "warnings": list(observed.warnings),
    }


def _serialize_problem(problem: PassProblem) -> dict[str, str]:
    subject = {problem.noun: problem.subject} if problem.subject else {}
    return {
        "policy": problem.policy,
        **subject,
        "reason": problem.reason,
        "message": problem.message,
    }


def report_refused_records(records: RecordStore, color: Color) -> bool:
    """Report that the records repository refused the last push; return whether it did.

    For commands that write nothing, and so cannot meet it.
    """
    if refusal := records.find_push_refusal():
        text = f"warning: the last push of records was refused, and nothing is published: {refusal}"
        print_message(text, color, fg="yellow")
    return bool(refusal)
