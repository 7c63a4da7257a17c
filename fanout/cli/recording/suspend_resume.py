"""Suspend and resume: decisions that suspend a policy, a stage or a variant."""

from collections.abc import Mapping, Sequence

import click

from fanout.api.gate_vocabulary import Action
from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import find_recordable_policy, refuse_unrecordable
from fanout.cli.input.options import with_settings
from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import ExitCode, exit_code_after
from fanout.cli.recording.record_options import (
    append_record,
    build_subject,
    by_option,
    reason_option,
    resolve_author,
    scope_options,
)
from fanout.cli.settings import Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import print_message
from fanout.errors import FanoutError, InvalidInput, Stopped
from fanout.gates.active_decisions import ActiveDecisions, Scope, list_scopes
from fanout.gates.gate_wording import format_names
from fanout.gates.record_facts import DecisionFacts
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.records.policy_records import active_records
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.values import frozen


def build_suspension_command(action: Action, help_text: str) -> click.Command:
    """Build the command that records a Decision of this action; `help_text` is its help."""

    @click.command(help=help_text)
    @click.argument("policy", required=False, default="", shell_complete=complete_policies)
    @scope_options
    @click.option(
        "--all",
        "everything",
        is_flag=True,
        help="All policies, and all variants written by hand; with -n those of one namespace.",
    )
    @reason_option
    @by_option
    @with_settings()
    def command(
        settings: Settings,
        policy: str,
        stage: str,
        variants: tuple[str, ...],
        everything: bool,
        reason: str,
        by: str | None,
    ) -> ExitCode:
        _require_one_subject(policy, stage, variants, everything=everything)
        author = resolve_author(by)
        with open_program(settings) as program:
            if everything:
                return exit_code_after(0, effect=_record_all(program, action, reason, author))
            item = find_recordable_policy(program, policy)
            recorded = _record_for_policy(program, item, action, reason, author, stage, variants)
        if recorded.name:
            write_stdout(f"decision.fanout.dev/{recorded.name} recorded\n")
        if recorded.note:
            head = "nothing goes on yet" if recorded.name else "nothing to do"
            print_message(f"{head}: {recorded.note}", settings.color)
        return exit_code_after(0, effect=recorded.has_effect)

    return command


@frozen
class _RecordedSuspension:
    """Result of a decision about one policy."""

    name: str = ""  # of the record; "": nothing was recorded
    note: str = ""  # why nothing was recorded, or why the subject stays suspended
    has_effect: bool = True


def _require_one_subject(
    policy: str, stage: str, variants: Sequence[str], *, everything: bool
) -> None:
    """Raise InvalidInput unless exactly one of a policy and `--all` is given."""
    if everything and (policy or stage or variants):
        subject = policy or ("--stage" if stage else "--variant")
        raise InvalidInput(
            f"--all means every policy, and {subject} means one",
            reason="InvalidSetting",
            remedy="leave one of the two out",
        )
    if not everything and not policy:
        raise InvalidInput(
            "it is not said which policy is meant",
            reason="InvalidSetting",
            remedy="name one, or say --all",
        )


def _record_for_policy(
    program: Program,
    item: PolicyResult,
    action: Action,
    reason: str,
    by: CommitIdentity,
    stage: str = "",
    variants: Sequence[str] = (),
) -> _RecordedSuspension:
    """Record the decision unless it would change nothing."""
    spec = build_subject(item, stage, variants) | {"action": action.value, "reason": reason}
    named_scopes = list_scopes(stage, spec.get("variants", ()))
    now = program.settings.now()
    decisions = ActiveDecisions(
        build_gate_records(active_records(item.records), now).decisions, now
    )
    resume = action is Action.RESUME
    already_done = (_format_resumed_by if resume else _format_suspended_by)(named_scopes, decisions)
    not_suspended = (
        ""
        if already_done or not resume
        else _format_not_suspended(item, named_scopes, decisions.suspensions())
    )
    if already_done or not_suspended:
        return _RecordedSuspension(
            note=already_done or not_suspended, has_effect=bool(already_done)
        )
    name = append_record(program, item, "Decision", spec, by)
    # Evaluated with the decisions before this record: it ends its own scopes, not those around
    # them.
    still_suspended = (
        _format_still_suspended(item, named_scopes, decisions.suspensions()) if resume else ""
    )
    return _RecordedSuspension(name, still_suspended, not still_suspended)


def _record_all(program: Program, action: Action, reason: str, by: CommitIdentity) -> bool:
    """Record one decision about each policy; return whether any of them has an effect.

    Raises Stopped at the end, naming the policies whose records cannot be extended.
    """
    # One policy whose records cannot be extended must not keep the others from being suspended.
    failed: list[str] = []
    recorded = unchanged = 0
    effect = False
    color = program.settings.color
    for item in program.observe(PassMode(namespace=program.settings.namespace)).policies:
        try:
            refuse_unrecordable(item)
            result = _record_for_policy(program, item, action, reason, by)
        except FanoutError as error:
            failed.append(f"{item.title}: {error}")
            continue
        effect = effect or result.has_effect
        if result.name:
            recorded += 1
            write_stdout(f"decision.fanout.dev/{result.name} recorded for {item.title}\n")
        else:
            unchanged += 1
        if result.note:
            head = "nothing goes on yet" if result.name else "nothing to do"
            print_message(f"{head} for {item.title}: {result.note}", color)
    past_action = "suspended" if action is Action.SUSPEND else "resumed"
    print_message(
        f"{past_action}: {recorded}; nothing to do: {unchanged}; failed: {len(failed)}", color
    )
    if failed:
        raise Stopped(f"not {past_action}: {'; '.join(failed)}")
    return effect


def _format_suspended_by(named_scopes: Sequence[Scope], decisions: ActiveDecisions) -> str:
    """Return who has suspended all of the named scopes without expiry.

    Empty if any is not suspended.
    """
    suspended = decisions.suspensions()
    if any(
        scope not in suspended or suspended[scope].expires is not None for scope in named_scopes
    ):
        return ""
    return (
        f"{format_names(map(_format_scope, named_scopes))} is suspended already, by"
        f" {_format_authors(named_scopes, suspended)}"
    )


def _format_resumed_by(named_scopes: Sequence[Scope], decisions: ActiveDecisions) -> str:
    """Return who has resumed all of the named scopes since their suspension.

    Empty if any is not resumed.
    """
    resumed = decisions.resumptions()
    if any(scope not in resumed for scope in named_scopes):
        return ""
    return (
        f"{format_names(map(_format_scope, named_scopes))} is resumed already, by"
        f" {_format_authors(named_scopes, resumed)}"
    )


def _format_authors(named_scopes: Sequence[Scope], decisions: Mapping[Scope, DecisionFacts]) -> str:
    return format_names(
        {f"{decisions[scope].by} in {decisions[scope].name}" for scope in named_scopes}
    )


def _format_still_suspended(
    item: PolicyResult, named_scopes: Sequence[Scope], suspended: Mapping[Scope, DecisionFacts]
) -> str:
    """Return the files and wider decisions that keep all resumed scopes suspended.

    Empty if one is not.
    """
    stages = {variant.spec.name: variant.spec.stage for variant in item.variants}
    files = _suspended_by_files(item)
    sentences: list[str] = []
    for scope in named_scopes:
        level, name = scope
        outer_scopes = [("policy", "")] if level != "policy" else []
        outer_scopes += [("stage", stages[name])] if stages.get(name) and level == "variant" else []
        by_decision = [it for it in outer_scopes if it in suspended]
        by_file = [it for it in (scope, *outer_scopes) if _format_scope(it) in files]
        if not by_decision and not by_file:
            return ""
        sentences += [
            f"{_format_scope(it)} is suspended by {suspended[it].name}" for it in by_decision
        ]
        sentences += [f"{_format_scope(it)} is suspended in its file" for it in by_file]
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
    by_file = list(_suspended_by_files(item))
    return f"{sentence}; files suspend: {format_names(by_file)}" if by_file else sentence


def _suspended_by_files(item: PolicyResult) -> list[str]:
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
