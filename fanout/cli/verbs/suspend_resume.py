"""`fanout suspend` and `fanout resume`: decisions that suspend a policy, a stage or a variant."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import click

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.cli.declarations import are_policies_unread
from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import find_policy, refuse_unrecordable
from fanout.cli.input.options import VerbCommand
from fanout.cli.output.pass_output import report_input_errors
from fanout.cli.process_exit import ExitCode, exit_code_after, invalid_setting
from fanout.cli.recording.record_session import (
    RecordRequest,
    RecordSession,
    open_recording,
    print_new_records,
    reason_option,
    scope_options,
    with_request,
    with_trace,
    write_record_traces,
)
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


def _build_command(action: Action, help_text: str) -> click.Command:
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
    def command(request: RecordRequest, everything: bool) -> ExitCode:
        if everything and (request.policy or request.stage or request.variants):
            other = request.policy or ("--stage" if request.stage else "--variant")
            raise invalid_setting(f"--all and {other} exclude each other", "keep one of them")
        if not everything and not request.policy:
            raise invalid_setting("the policy is missing", "name a policy, or use --all")
        with open_recording(request) as (program, author):
            if everything:
                return exit_code_after(0, effect=_record_all(program, action, request, author))
            item = find_policy(program, request.policy)
            refuse_unrecordable(item)
            session = RecordSession(program, item, request, author)
            name, has_effect = _record_for_policy(session, action)
            session.write_traces(name if action is Action.SUSPEND else "")
            session.print_consequences()
        return exit_code_after(0, effect=has_effect)

    return command


def _record_for_policy(session: RecordSession, action: Action, title: str = "") -> tuple[str, bool]:
    """Record the decision unless it would change nothing, and print its name and what it lacks.

    Return the name ("" for none), and whether there is an effect. `title`: of the policy, printed.
    """
    item, now = session.item, session.settings.now()
    spec = session.build_subject() | {"action": action.value, "reason": session.request.reason}
    named_scopes = list_scopes(session.request.stage, spec.get("variants", ()))
    decisions = ActiveDecisions(
        build_gate_records(active_records(item.records), now).decisions, now
    )
    # Decisions before this record: it ends its own scopes, not those around them.
    suspended = decisions.suspensions()
    names = format_names(map(_format_scope, named_scopes))
    still = problem = ""
    if action is Action.SUSPEND:
        verb = "suspended"
        repeated = {scope: it for scope, it in suspended.items() if not it.spec.expires}
    else:
        verb, repeated = "resumed", decisions.suspensions(Action.RESUME)
    # A resumption that asks again for pull requests that a person closed is always recorded.
    if action is Action.SUSPEND or not _has_declined(item, named_scopes):
        if action is Action.RESUME:
            still = _format_still_suspended(item, named_scopes, suspended)
        if repeated.keys() >= set(named_scopes):
            authors = {f"{repeated[it].by} in {repeated[it].name}" for it in named_scopes}
            problem = f"{names} is already {verb} by {format_names(authors)}"
            problem += f"; {still}" if still else ""
        elif action is Action.RESUME and suspended.keys().isdisjoint(named_scopes):
            problem = f"no decision suspends {names}"
            if suspended:
                problem += f"; decisions suspend: {format_names(map(_format_scope, suspended))}"
            if by_spec := _suspended_by_spec(item):
                problem += f"; specs suspend: {format_names(by_spec)}"
            still = problem
    name = "" if problem else session.append("Decision", spec)
    if name:
        session.print_name(name, title)
    head = "nothing to do" if problem else "still suspended"
    if note := problem or still:
        session.print_notes([f"{head}{title}: {note}"])
    return name, not still


def _has_declined(item: PolicyResult, named_scopes: Sequence[Scope]) -> bool:
    """Return whether a person closed a pull request of a draft or a removal in these scopes."""

    def has_closed_request(holds: Iterable[Hold]) -> bool:
        return any(hold.reason == Reason.REQUEST_CLOSED for hold in holds)

    leftovers, removals = item.remaining_leftovers, item.removals.holds
    declined = [
        (it.spec.stage, it.spec.name)
        for it in item.variants
        if it.is_declined or has_closed_request(leftovers.get(it.spec.name, ()))
    ]
    declined += [
        (it.stage, it.name) for it in item.orphans if has_closed_request(removals.get(it.name, ()))
    ]
    scopes = [(("policy", ""), ("stage", stage), ("variant", name)) for stage, name in declined]
    return not set(named_scopes).isdisjoint(chain.from_iterable(scopes))


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
            session = RecordSession(program, item, request, author)
            name, has_effect = _record_for_policy(session, action, f" for {item.title}")
        except FanoutError as error:
            failed.append(f"{item.title}: {error}")
            continue
        stop = name if action is Action.SUSPEND else ""
        stopped.append(with_trace(item, stop, program.settings.now()))
        effect = effect or has_effect
        recorded += bool(name)
        unchanged += not name
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


def _format_still_suspended(
    item: PolicyResult, named_scopes: Sequence[Scope], suspended: Mapping[Scope, DecisionFacts]
) -> str:
    """Return the specs and wider decisions that keep all of the resumed scopes suspended."""
    stages = {variant.spec.name: variant.spec.stage for variant in item.variants}
    by_spec, policy = _suspended_by_spec(item), item.resolved_policy.name
    sentences: list[str] = []
    for scope in named_scopes:
        level, name = scope
        outer_scopes = [("policy", "")] if level != "policy" else []
        outer_scopes += [("stage", stages[name])] if stages.get(name) and level == "variant" else []
        by_decision = [it for it in outer_scopes if it in suspended]
        labels = [it for it in map(_format_scope, (scope, *outer_scopes)) if it in by_spec]
        if not by_decision and not labels:
            return ""
        for outer in by_decision:
            by = f"{suspended[outer].by} in {suspended[outer].name}"
            outer_stage = outer[1] if outer[0] == "stage" else ""
            command = format_decision_command("resume", policy, outer_stage)
            sentences.append(f"{_format_scope(outer)} is suspended by {by}: run `{command}`")
        sentences += [
            f"{describe_spec_suspension(it)}: set suspend to false there" for it in labels
        ]
    return format_names(dict.fromkeys(sentences))


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


suspend = _build_command(
    Action.SUSPEND,
    "Suspend a policy, a stage, a variant, or everything. Records a decision; no file is changed."
    " `fanout resume` ends the suspension.",
)
resume = _build_command(
    Action.RESUME,
    "Resume a suspended policy, stage or variant, or everything. Ends only "
    "suspensions that `fanout suspend` recorded. If the field `suspend` of an object causes the "
    "suspension, remove the field from the file of the object. If there is nothing to "
    "resume, nothing is recorded. Exits with code 4 if nothing is resumed.",
)
