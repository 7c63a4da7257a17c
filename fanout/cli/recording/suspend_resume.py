"""Suspend and resume: decisions that suspend a policy, a stage or a variant."""

from collections.abc import Iterable, Mapping, Sequence

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.cli.command_errors import invalid_setting
from fanout.cli.declarations import are_policies_unread
from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import find_recordable_policy, refuse_unrecordable
from fanout.cli.input.options import VerbCommand
from fanout.cli.output.pass_output import report_input_errors
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.record_session import (
    RecordRequest,
    RecordSession,
    describe_record,
    open_recording,
    print_new_records,
    print_recorded,
    reason_option,
    scope_options,
    with_request,
    with_trace,
    write_record_traces,
)
from fanout.cli.settings import Settings
from fanout.cli.startup import Program
from fanout.cli.terminal import print_message
from fanout.errors import FanoutError, Stopped
from fanout.gates.active_decisions import ActiveDecisions, Scope, list_scopes
from fanout.gates.gate_wording import describe_spec_suspension, format_names
from fanout.gates.record_facts import DecisionFacts
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.plan_wording import format_decision_command
from fanout.plan.records.policy_records import active_records
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import Value


def build_suspension_command(action: Action, help_text: str) -> click.Command:
    """Build the command that records a Decision of this action; `help_text` is its help."""

    @click.command(cls=VerbCommand, help=help_text)
    @click.argument("policy", required=False, default="", shell_complete=complete_policies)
    @scope_options
    @click.option(
        "--all",
        "everything",
        is_flag=True,
        help="All policies, and all variants that have no policy. With -n, only those of "
        "this namespace.",
    )
    @reason_option
    @with_request()
    def command(settings: Settings, request: RecordRequest, everything: bool) -> ExitCode:
        if everything and (request.policy or request.stage or request.variants):
            other = request.policy or ("--stage" if request.stage else "--variant")
            raise invalid_setting(f"--all and {other} exclude each other", "keep one of them")
        if not everything and not request.policy:
            raise invalid_setting("the policy is missing", "name a policy, or use --all")
        with open_recording(settings, request) as (program, author):
            if everything:
                return exit_code_after(0, effect=_record_all(program, action, request, author))
            item = find_recordable_policy(program, request.policy)
            session = RecordSession(program, item, request, author)
            recorded = _record_for_policy(session, action)
            _print_recorded(recorded, settings)
            session.write_traces(recorded.name if action is Action.SUSPEND else "")
            session.print_consequences()
        return exit_code_after(0, effect=recorded.has_effect)

    return command


class _RecordedSuspension(Value):
    """Result of a decision about one policy."""

    name: str = ""  # of the record; "": nothing was recorded
    note: str = ""  # why nothing was recorded, or why the subject stays suspended
    has_effect: bool = True


def _record_for_policy(session: RecordSession, action: Action) -> _RecordedSuspension:
    """Record the decision unless it would change nothing."""
    item, now = session.item, session.settings.now()
    spec = session.build_subject() | {"action": action.value, "reason": session.request.reason}
    named_scopes = list_scopes(session.request.stage, spec.get("variants", ()))
    decisions = ActiveDecisions(
        build_gate_records(active_records(item.records), now).decisions, now
    )
    if action is Action.RESUME and _has_declined(item, named_scopes):
        return _RecordedSuspension(session.append("Decision", spec))
    # Decisions before this record: it ends its own scopes, not those around them.
    suspended = decisions.suspensions()
    if already_done := _format_repeated(action, named_scopes, decisions):
        is_resume = action is Action.RESUME
        still = _format_still_suspended(item, named_scopes, suspended) if is_resume else ""
        note = f"{already_done}; {still}" if still else already_done
        return _RecordedSuspension(note=note, has_effect=not still)
    if action is Action.SUSPEND:
        return _RecordedSuspension(session.append("Decision", spec))
    if not_suspended := _format_not_suspended(item, named_scopes, suspended):
        return _RecordedSuspension(note=not_suspended, has_effect=False)
    name = session.append("Decision", spec)
    still_suspended = _format_still_suspended(item, named_scopes, suspended)
    return _RecordedSuspension(name, still_suspended, not still_suspended)


def _has_declined(item: PolicyResult, named_scopes: Sequence[Scope]) -> bool:
    """Return whether a person closed a pull request in one of the scopes.

    That is one with a draft of a variant, or one that removes a package.
    """
    leftovers, removals = item.remaining_leftovers, item.removals.holds
    declined = [
        (it.spec.stage, it.spec.name)
        for it in item.variants
        if it.is_declined or _has_closed_request(leftovers.get(it.spec.name, ()))
    ]
    declined += [
        (it.stage, it.name) for it in item.orphans if _has_closed_request(removals.get(it.name, ()))
    ]
    return any(
        {("policy", ""), ("stage", stage), ("variant", name)} & set(named_scopes)
        for stage, name in declined
    )


def _has_closed_request(holds: Iterable[Hold]) -> bool:
    return any(hold.reason == Reason.REQUEST_CLOSED for hold in holds)


def _record_all(
    program: Program, action: Action, request: RecordRequest, author: CommitIdentity
) -> bool:
    """Record one decision about each policy; return whether any of them has an effect.

    Raises Stopped at the end, naming the policies whose records cannot be extended.
    """
    # One policy whose records cannot be extended must not keep the others from being suspended.
    failed: list[str] = []
    recorded = unchanged = 0
    effect = False
    stopped: list[PolicyResult] = []
    declared, namespace = program.read_declared(), program.settings.namespace
    for item in program.observe(PassMode(namespace=program.settings.namespace)).policies:
        try:
            refuse_unrecordable(item)
            result = _record_for_policy(RecordSession(program, item, request, author), action)
        except FanoutError as error:
            failed.append(f"{item.title}: {error}")
            continue
        stop = result.name if action is Action.SUSPEND else ""
        stopped.append(with_trace(item, stop, program.settings.now()))
        effect = effect or result.has_effect
        recorded += bool(result.name)
        unchanged += not result.name
        _print_recorded(result, program.settings, f" for {item.title}")
    # At once, because policies share repositories.
    write_record_traces(program, stopped)
    if program.settings.dry_run:
        print_new_records(program)
    if are_policies_unread(declared, namespace):
        report_input_errors(declared, namespace)
        failed.append("policies that cannot be read")
    past_action = "suspended" if action is Action.SUSPEND else "resumed"
    counts = f"{past_action}: {recorded}; nothing to do: {unchanged}; failed: {len(failed)}"
    print_message(counts, program.settings.color)
    if failed:
        raise Stopped(f"not {past_action}: {'; '.join(failed)}")
    return effect


def _print_recorded(recorded: _RecordedSuspension, settings: Settings, subject: str = "") -> None:
    if recorded.name:
        print_recorded(settings, describe_record(settings, recorded.name, subject))
    if recorded.note:
        head = "still suspended" if recorded.name else "nothing to do"
        print_message(f"{head}{subject}: {recorded.note}", settings.color)


def _format_repeated(
    action: Action, named_scopes: Sequence[Scope], decisions: ActiveDecisions
) -> str:
    """Return who has suspended without expiry, or resumed, all of the named scopes.

    Empty if the action is still to be recorded for any of them.
    """
    if action is Action.RESUME:
        verb, recorded = "resumed", decisions.resumptions()
    else:
        verb, suspensions = "suspended", decisions.suspensions().items()
        recorded = {scope: it for scope, it in suspensions if not it.spec.expires}
    if not recorded.keys() >= set(named_scopes):
        return ""
    authors = {f"{recorded[scope].by} in {recorded[scope].name}" for scope in named_scopes}
    names = format_names(map(_format_scope, named_scopes))
    return f"{names} is already {verb} by {format_names(authors)}"


def _format_still_suspended(
    item: PolicyResult, named_scopes: Sequence[Scope], suspended: Mapping[Scope, DecisionFacts]
) -> str:
    """Return the specs and wider decisions that keep all resumed scopes suspended.

    Empty if one is not.
    """
    stages = {variant.spec.name: variant.spec.stage for variant in item.variants}
    by_spec = _suspended_by_spec(item)
    sentences: list[str] = []
    for scope in named_scopes:
        level, name = scope
        outer_scopes = [("policy", "")] if level != "policy" else []
        outer_scopes += [("stage", stages[name])] if stages.get(name) and level == "variant" else []
        by_decision = [it for it in outer_scopes if it in suspended]
        labels = [it for it in map(_format_scope, (scope, *outer_scopes)) if it in by_spec]
        if not by_decision and not labels:
            return ""
        sentences += [_format_suspension(item, it, suspended[it]) for it in by_decision]
        sentences += [
            f"{describe_spec_suspension(it)}: set suspend to false there" for it in labels
        ]
    return format_names(dict.fromkeys(sentences))


def _format_not_suspended(
    item: PolicyResult, named_scopes: Sequence[Scope], suspended: Mapping[Scope, DecisionFacts]
) -> str:
    """Return why there is nothing to resume.

    Empty if a decision suspends any of the named scopes.
    """
    if any(scope in suspended for scope in named_scopes):
        return ""
    sentence = f"no decision suspends {format_names(map(_format_scope, named_scopes))}"
    if suspended:
        sentence += f"; decisions suspend: {format_names(map(_format_scope, suspended))}"
    by_spec = _suspended_by_spec(item)
    return f"{sentence}; specs suspend: {format_names(by_spec)}" if by_spec else sentence


def _format_suspension(item: PolicyResult, scope: Scope, decision: DecisionFacts) -> str:
    """Return who suspended the scope, in which record, and the command that resumes it."""
    level, name = scope
    stage = name if level == "stage" else ""
    command = format_decision_command("resume", item.resolved_policy.name, stage)
    record = f"{decision.by} in {decision.name}"
    return f"{_format_scope(scope)} is suspended by {record}: run `{command}`"


def _suspended_by_spec(item: PolicyResult) -> list[str]:
    policy_suspended = (
        item.resolved_policy.upstream_policy is not None
        and item.resolved_policy.upstream_policy.spec.suspend
    )
    stages = [_format_scope(("stage", rule.name)) for rule in item.rules if rule.suspended]
    variants = [
        _format_scope(("variant", it.spec.name)) for it in item.variants if it.spec.suspended
    ]
    return [*(["the policy"] if policy_suspended else []), *stages, *variants]


def _format_scope(scope: Scope) -> str:
    level, name = scope
    return f"{level} {name}" if name else f"the {level}"
