"""`--wait[=DURATION]`: repeat passes until the rollout has happened or cannot happen by itself.

An interrupt ends the wait between two changes: the next pass continues what one has left.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from functools import partial

import click

from fanout.api.durations import format_duration, parse_duration
from fanout.api.field_errors import InvalidValue
from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import AWAITS_APPROVERS
from fanout.api.results import VariantResult
from fanout.api.text_fields import pluralize
from fanout.cli.input.options import Option, VerbCommand
from fanout.cli.process_exit import invalid_setting
from fanout.cli.recording.decision_effect import find_variants_done, is_in_force
from fanout.cli.recording.record_session import RecordSession
from fanout.cli.settings import Settings
from fanout.cli.terminal import print_message
from fanout.errors import Stopped
from fanout.gates.gate_wording import format_names
from fanout.plan.actions import ActionKind
from fanout.present.policy_entry import walk_policy
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.values import Value, replace

_POLL_SECONDS = 5.0  # between two passes that had nothing to do
_RECORD_POLL_SECONDS = 0.5  # between two readings of an object that waits for the controller
_UNLIMITED = "unlimited"
_IN_FORCE = (VariantState.READY, VariantState.SKIPPED)
_ANSWERED_BY_PROGRAMS = (VariantState.VERIFYING, VariantState.PROPOSED)


class WaitCommand(VerbCommand):
    """Click command whose option --wait takes a value behind `=` only, as with kubectl."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse like click, with `--wait` alone read as a wait without limit."""
        # click would take the argument behind it for its value.
        words = [f"--wait={_UNLIMITED}" if word == "--wait" else word for word in args]
        return super().parse_args(ctx, words)


def _parse_limit(_ctx: click.Context, _param: click.Parameter, text: str) -> timedelta | None:
    if not text:
        return None
    if text == _UNLIMITED:
        return timedelta.max
    try:
        return parse_duration(text)
    except InvalidValue as error:
        raise invalid_setting(str(error), "write --wait, or --wait=10m", "--wait") from error


_UNTIL_PUBLISHED = (
    "Wait until the revision is published for all selected variants, until each "
    "remaining variant needs a person, or until the duration ends. Exits with code "
    "4 if the revision is still unpublished for any of these variants."
)


def wait_option(help_text: str = _UNTIL_PUBLISHED) -> Option:
    """Return the option --wait; `help_text` describes what ends the wait."""
    return click.option(
        "--wait",
        "wait_limit",
        default="",
        metavar="[=DURATION]",
        callback=_parse_limit,
        help=help_text,
    )


class PendingVariant(Value):
    """Variant that is not in force yet; `can_proceed`: without a person."""

    name: str
    state: str
    can_proceed: bool


def wait_for_rollout(
    first: PassReport,
    run_pass: Callable[[], PassReport],
    list_pending: Callable[[PassReport], Sequence[PendingVariant]],
    limit: timedelta,
    settings: Settings,
) -> tuple[PassReport, bool]:
    """Repeat passes after the first one, and print each change of the pending variants.

    Ends if nothing is pending, nothing can proceed without a person, or the limit is exceeded.
    """
    latest, outcomes, shown = first, first.outcomes, ""
    start = time.monotonic()
    while True:
        report = replace(latest, outcomes=outcomes)
        if not (pending := list_pending(report)):
            return report, True
        has_acted = any(it.is_done for it in latest.outcomes)
        counts = Counter(it.state for it in pending)
        states = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()))
        line = f"waiting for {pluralize(len(pending), 'variant')}: {states}"
        if line != shown:
            print_message(line, settings.color)
            shown = line
        if not has_acted and not any(it.can_proceed for it in pending):
            return report, False
        if time.monotonic() - start >= limit.total_seconds():
            print_message(f"stopped waiting after {format_duration(limit)}", settings.color)
            return report, False
        if not has_acted:
            remaining = limit.total_seconds() - (time.monotonic() - start)
            time.sleep(max(min(_POLL_SECONDS, remaining), 0))
        latest = run_pass()
        outcomes = (*outcomes, *latest.outcomes)


def list_unready(report: PassReport) -> list[PendingVariant]:
    """List the variants of all policies of the pass that are neither ready nor skipped."""
    pending: list[PendingVariant] = []
    for item in report.pass_plan.policies:
        if item.decision is None:
            pending.append(PendingVariant(item.title, "Stopped", can_proceed=False))
        decisions = (it.decision for it in walk_policy(item).variants)
        pending += [_describe(item, it) for it in decisions if it.state not in _IN_FORCE]
    return pending


def wait_until_published(
    session: RecordSession, report: PassReport, names: Collection[str], revision: str
) -> tuple[PassReport, bool]:
    """Wait, if the request says so, until the revision is published for the named variants.

    On a cluster, where the controller publishes, until the record is in the records repository.
    Raises Stopped if it was refused.
    """
    if (limit := session.request.wait_limit) is None:
        return report, True
    creator, color = session.program.record_creator, session.settings.color
    if creator is not None:
        deadline, shown = time.monotonic() + limit.total_seconds(), ""
        while True:
            states = creator.read_states()
            waiting = {name: state for name, state in states.items() if not state.record}
            for name, state in waiting.items():
                if state.is_refused:
                    raise Stopped(f"{name} is refused: {state.message}", reason=state.reason)
            if not waiting:
                return report, True
            reasons = "; ".join(sorted({it.message for it in waiting.values() if it.message}))
            line = f"waiting for the controller to record {format_names(waiting)}"
            line = f"{line}: {reasons}" if reasons else line
            if line != shown:
                print_message(line, color)
                shown = line
            if time.monotonic() >= deadline:
                print_message(f"stopped waiting after {format_duration(limit)}", color)
                return report, False
            time.sleep(_RECORD_POLL_SECONDS)
    list_pending = partial(list_unpublished, names=names, revision=revision)
    return wait_for_rollout(report, session.run_pass, list_pending, limit, session.settings)


def list_unpublished(
    report: PassReport, names: Collection[str], revision: str
) -> list[PendingVariant]:
    """List those of the named variants that the revision is not published for."""
    published = find_variants_done(report, ActionKind.PUBLISH)
    return [
        _describe(item, item.decision.variants[variant.spec.name])
        if item.decision is not None
        else PendingVariant(variant.spec.name, "Stopped", can_proceed=False)
        for item in report.pass_plan.policies
        for variant in item.variants
        if variant.spec.name in names
        and variant.spec.name not in published
        and not is_in_force(variant, revision)
    ]


def _describe(item: PolicyResult, variant: VariantResult) -> PendingVariant:
    assert item.decision is not None, "only variants of evaluated policies have a state"
    stage = item.decision.stages.get(variant.stage)
    # Time or another program can change the state.
    can_proceed = (
        variant.state in _ANSWERED_BY_PROGRAMS
        or variant.next is not None
        or (stage is not None and stage.next is not None)
        or any(it.until is not None for it in variant.holds)
        or any(
            it.verdict is Verdict.PENDING and it.reason not in AWAITS_APPROVERS
            for it in variant.checks
        )
    )
    return PendingVariant(variant.name, variant.state, can_proceed)


def refuse_with_wait(limit: timedelta | None, flags: Iterable[tuple[str, object]]) -> None:
    """Raise InvalidInput if --wait is given with an option that excludes it."""
    for flag, value in flags:
        if limit is not None and value:
            raise invalid_setting(
                f"--wait and {flag} exclude each other", "keep one of them", "--wait"
            )
