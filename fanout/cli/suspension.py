"""Makes the two verbs that record whether something is suspended; no file is edited."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from fanout.cli.naming import recordable
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import about, about_options, by_option, identity, reason_option, record
from fanout.cli.settings import Settings
from fanout.cli.start import open_program
from fanout.cli.terminal import say
from fanout.gates.decisions import Scope, Standing, scopes
from fanout.gates.records import Action, Decision
from fanout.gates.wording import listed
from fanout.plan.book import standing
from fanout.plan.facts import records
from fanout.reconcile.report import PolicyPass


def verb(action: Action, words: str) -> click.Command:
    """The verb that records a Decision of this action; `words` are its help."""

    @click.command(help=words)
    @about_options
    @reason_option
    @by_option
    @with_settings()
    def command(
        settings: Settings,
        policy: str,
        stage: str,
        variants: tuple[str, ...],
        reason: str,
        by: str | None,
    ) -> None:
        who = identity(by)
        with open_program(settings) as program:
            item = recordable(program, policy)
            spec = about(item, stage, variants) | {"action": action.value, "reason": reason}
            meant = scopes(stage, spec.get("variants", ()))
            suspended = _suspended(item, settings.now())
            resume = action is Action.RESUME
            idle = _idle(item, meant, suspended) if resume else _again(meant, suspended)
            if idle:
                say(f"nothing to do: {idle}", settings.color)
                return
            name = record(program, item, "Decision", spec, who)
        write(f"decision.fanout.dev/{name} recorded\n")

    return command


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
