"""Makes the two verbs that record whether something is suspended; no file is edited."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from fanout.cli.completing import complete_policies
from fanout.cli.naming import recordable, refuse_unrecordable
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, by_option, identity, reason_option, record, scope_options
from fanout.cli.settings import Settings
from fanout.cli.start import Program, open_program
from fanout.cli.terminal import say
from fanout.errors import FanoutError, InvalidInput, Stopped
from fanout.gates.decisions import Scope, Standing, scopes
from fanout.gates.records import Action, Decision
from fanout.gates.wording import listed
from fanout.plan.book import standing
from fanout.plan.facts import records
from fanout.plan.repository import Identity
from fanout.reconcile.passes import Mode
from fanout.reconcile.report import PolicyPass


def verb(action: Action, words: str) -> click.Command:
    """Return the verb that records a Decision of this action; `words` are its help."""

    @click.command(help=words)
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
    ) -> None:
        _refuse_both(policy, stage, variants, everything=everything)
        who = identity(by)
        with open_program(settings) as program:
            if everything:
                _record_all(program, action, reason, who)
                return
            item = recordable(program, policy)
            name, idle = _record(program, item, action, reason, who, stage, variants)
        if idle:
            say(f"nothing to do: {idle}", settings.color)
        else:
            write(f"decision.fanout.dev/{name} recorded\n")

    return command


def _refuse_both(policy: str, stage: str, variants: Sequence[str], *, everything: bool) -> None:
    """Raise InvalidInput unless exactly one of a policy and `--all` is given."""
    if everything and (policy or stage or variants):
        given = policy or ("--stage" if stage else "--variant")
        raise InvalidInput(
            f"--all means every policy, and {given} means one",
            reason="InvalidSetting",
            remedy="leave one of the two out",
        )
    if not everything and not policy:
        raise InvalidInput(
            "it is not said which policy is meant",
            reason="InvalidSetting",
            remedy="name one, or say --all",
        )


def _record(
    program: Program,
    item: PolicyPass,
    action: Action,
    reason: str,
    by: Identity,
    stage: str = "",
    variants: Sequence[str] = (),
) -> tuple[str, str]:
    """Record the decision; return its name, or "" and why there is nothing to decide."""
    spec = about(item, stage, variants) | {"action": action.value, "reason": reason}
    meant = scopes(stage, spec.get("variants", ()))
    suspended = _suspended(item, program.settings.now())
    resume = action is Action.RESUME
    idle = _idle(item, meant, suspended) if resume else _again(meant, suspended)
    return ("", idle) if idle else (record(program, item, "Decision", spec, by), "")


def _record_all(program: Program, action: Action, reason: str, by: Identity) -> None:
    """Record one decision about each policy, where it changes anything.

    Raises Stopped at the end with those about which nothing can be recorded.
    """
    failed: list[str] = []
    recorded = idle = 0
    color = program.settings.color
    for item in program.observe(Mode(namespace=program.settings.namespace)).policies:
        try:
            refuse_unrecordable(item)
            name, why = _record(program, item, action, reason, by)
        except FanoutError as error:
            failed.append(f"{item.title}: {error}")
            continue
        if why:
            idle += 1
            say(f"nothing to do for {item.title}: {why}", color)
        else:
            recorded += 1
            write(f"decision.fanout.dev/{name} recorded for {item.title}\n")
    done = "suspended" if action is Action.SUSPEND else "resumed"
    say(f"{done}: {recorded}; nothing to do: {idle}; failed: {len(failed)}", color)
    if failed:
        raise Stopped(f"not {done}: {'; '.join(failed)}")


def _suspended(item: PolicyPass, now: datetime) -> Mapping[Scope, Decision]:
    return Standing(records(standing(item.about), now).decisions, now).suspensions()


def _again(meant: Sequence[Scope], suspended: Mapping[Scope, Decision]) -> str:
    """Who has suspended all of what is meant, for as long as nobody resumes it; "" if nobody."""
    known = [suspended[scope] for scope in meant if scope in suspended]
    if len(known) < len(meant) or any(it.expires is not None for it in known):
        return ""
    by = listed({f"{it.by} in {it.name}" for it in known})
    return f"{listed(map(_named, meant))} is suspended already, by {by}"


def _idle(item: PolicyPass, meant: Sequence[Scope], suspended: Mapping[Scope, Decision]) -> str:
    """Why there is nothing to resume; "" where a decision suspends any of what is meant."""
    if any(scope in suspended for scope in meant):
        return ""
    sentence = f"no decision suspends {listed(map(_named, meant))}"
    if suspended:
        sentence += f"; decisions suspend: {listed(map(_named, suspended))}"
    by_file = list(_by_file(item))
    return f"{sentence}; files suspend: {listed(by_file)}" if by_file else sentence


def _by_file(item: PolicyPass) -> list[str]:
    whole = item.named.policy is not None and item.named.policy.spec.suspend
    stages = [_named(("stage", rule.name)) for rule in item.rules if rule.suspended]
    variants = [_named(("variant", it.spec.name)) for it in item.cases if it.spec.suspended]
    return [*(["the policy"] if whole else []), *stages, *variants]


def _named(scope: Scope) -> str:
    what, name = scope
    return f"{what} {name}" if name else f"the {what}"
