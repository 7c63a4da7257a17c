"""What a pass did, told to people on stderr; what it came to as data on stdout."""

from collections import Counter
from collections.abc import Iterable

from fanout.cli.ending import hold
from fanout.cli.output import show_value, table, write
from fanout.cli.plan_holds import holds_plain
from fanout.cli.settings import Format, Settings
from fanout.cli.terminal import say
from fanout.cluster.declared import Declared
from fanout.cluster.findings import folded
from fanout.gates.wording import counted
from fanout.plan.actions import Action, Kind, Outcome
from fanout.reconcile.gathering import failures, gathered, lines, undone
from fanout.reconcile.report import Observed, Report, Trouble

_DONE = {
    Kind.RELEASE: ("", "released"),
    Kind.WRITE_DRAFT: ("draft", "written"),
    Kind.PUBLISH: ("", "published"),
    Kind.REMOVE_PACKAGE: ("package", "removed"),
    Kind.REMOVE_DRAFT: ("draft", "removed"),
    Kind.RECORD: ("", "recorded"),
}


def tell_faults(declared: Declared) -> int:
    """Say every error in the files; answers how many there are."""
    errors = [fault for fault in declared.faults if fault.severity == "error"]
    for _, line in folded(errors):
        say(line, fg="red")
    return len(errors)


def tell_plan(observed: Observed, settings: Settings, faults: int = 0) -> None:
    """The plan on stdout: a line per action, or the plan and what it leaves out as JSON or YAML.

    `faults`: how many errors there are in the files.
    """
    hold(observed)
    tell_problems(observed, settings)
    if settings.output in (Format.JSON, Format.YAML):
        holds = {"holds": holds_plain(observed)}
        show_value({**observed.plan.plain(), **troubles_plain(observed), **holds}, settings.output)
    else:
        write(_lines(observed.plan.actions) or f"{_nothing(observed, faults)}\n")


def _nothing(observed: Observed, faults: int, undone_actions: int = 0) -> str:
    """What is said where nothing was done: why, if it is not that all is well."""
    actions = counted(undone_actions, "action") if undone_actions else ""
    faulty = f"{counted(faults, 'error')} in the files" if faults else ""
    failed = ", ".join(filter(None, (failures(observed.troubles), actions, faulty)))
    return f"nothing to do; failed: {failed}" if failed else "nothing to do"


def _lines(actions: Iterable[Action]) -> str:
    rows = [
        (
            action.kind.value,
            action.policy or "-",
            action.stage or "-",
            action.variant or "-",
            action.sentence(),
        )
        for action in actions
    ]
    return table(("ACTION", "POLICY", "STAGE", "VARIANT", "WHAT"), rows) if rows else ""


def tell_report(report: Report, settings: Settings, effect: str = "", faults: int = 0) -> None:
    """What was done, by kind and for each failure; with -o json the outcomes.

    `effect` is the line that says what the decision does that the pass acted on; `faults`, how many
    errors there are in the files.
    """
    hold(report)
    if settings.output in (Format.JSON, Format.YAML):
        show_value(_plain(report), settings.output)
        return
    tell_problems(report.observed, settings)
    for line in undone(report.failed):
        say(f"failed: {line}", settings.color, fg="red")
    for line in undone(report.left):
        say(f"warning: {line}", settings.color, fg="yellow")
    if settings.verbosity:
        write(_lines(outcome.action for outcome in report.outcomes if outcome.done))
    counts = Counter(outcome.action.kind for outcome in report.outcomes if outcome.done)
    parts = [_done(counts[kind], *_DONE[kind]) for kind in Kind if counts[kind]]
    if effect:
        write(f"{effect}\n")
    if parts or not effect:
        nothing = _nothing(report.observed, faults, len(report.failed))
        write((", ".join(parts) or nothing) + "\n")


def _done(number: int, noun: str, verb: str) -> str:
    return f"{counted(number, noun) if noun else number} {verb}"


def tell_problems(observed: Observed, settings: Settings) -> None:
    """Policies that are stopped, targets without a variant, variants that cannot go on."""
    for warning in observed.warnings:
        say(f"warning: {warning}", settings.color, fg="yellow")
    for failed, line in lines(gathered(observed.troubles)):
        say(line, settings.color, fg="red" if failed else "yellow")


def troubles_plain(observed: Observed) -> dict[str, object]:
    """The troubles of a pass as JSON, one by one."""
    troubles = observed.troubles
    return {
        "problems": [_trouble(it) for it in troubles if it.noun == "policy"],
        "failedTargets": [_trouble(it) for it in troubles if it.noun == "target"],
        "failedVariants": [_trouble(it) for it in troubles if it.noun == "variant" and it.failed],
        "held": [_trouble(it) for it in troubles if not it.failed],
        "warnings": list(observed.warnings),
    }


def _trouble(one: Trouble) -> dict[str, str]:
    subject = {one.noun: one.subject} if one.subject else {}
    return {"policy": one.policy, **subject, "reason": one.reason, "message": one.sentence}


def _plain(report: Report) -> dict[str, object]:
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "SweepReport",
        "outcomes": [_outcome(outcome) for outcome in report.outcomes],
        **troubles_plain(report.observed),
    }


def _outcome(outcome: Outcome) -> dict[str, object]:
    body: dict[str, object] = {**outcome.action.plain(), "done": outcome.done}
    if not outcome.done:
        body |= {"reason": outcome.reason, "message": outcome.problem}
    return body
