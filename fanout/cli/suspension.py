"""Makes the two verbs that record whether something is suspended; no file is edited."""

from collections.abc import Mapping, Sequence

import click

from fanout.cli.completing import complete_policies
from fanout.cli.exit_codes import ExitCode, exit_code_after
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
from fanout.values import frozen


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
    ) -> ExitCode:
        _refuse_both(policy, stage, variants, everything=everything)
        who = identity(by)
        with open_program(settings) as program:
            if everything:
                return exit_code_after(0, effect=_record_all(program, action, reason, who))
            item = recordable(program, policy)
            done = _record(program, item, action, reason, who, stage, variants)
        if done.name:
            write(f"decision.fanout.dev/{done.name} recorded\n")
        if done.note:
            head = "nothing goes on yet" if done.name else "nothing to do"
            say(f"{head}: {done.note}", settings.color)
        return exit_code_after(0, effect=done.effect)

    return command


@frozen
class _Done:
    """What came of a decision about one policy."""

    name: str = ""  # of the record; "": nothing was recorded
    note: str = ""  # why nothing was recorded, or why nothing goes on by it
    effect: bool = True


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
) -> _Done:
    """Record the decision, unless there is nothing to decide."""
    spec = about(item, stage, variants) | {"action": action.value, "reason": reason}
    meant = scopes(stage, spec.get("variants", ()))
    now = program.settings.now()
    known = Standing(records(standing(item.about), now).decisions, now)
    resume = action is Action.RESUME
    again = (_resumed if resume else _again)(meant, known)
    idle = "" if again or not resume else _idle(item, meant, known.suspensions())
    if again or idle:
        return _Done(note=again or idle, effect=bool(again))
    name = record(program, item, "Decision", spec, by)
    left = _still_suspended(item, meant, known.suspensions()) if resume else ""
    return _Done(name, left, not left)


def _record_all(program: Program, action: Action, reason: str, by: Identity) -> bool:
    """Record one decision about each policy; return whether any of them has an effect.

    Raises Stopped at the end with those about which nothing can be recorded.
    """
    failed: list[str] = []
    recorded = idle = 0
    effect = False
    color = program.settings.color
    for item in program.observe(Mode(namespace=program.settings.namespace)).policies:
        try:
            refuse_unrecordable(item)
            one = _record(program, item, action, reason, by)
        except FanoutError as error:
            failed.append(f"{item.title}: {error}")
            continue
        effect = effect or one.effect
        if one.name:
            recorded += 1
            write(f"decision.fanout.dev/{one.name} recorded for {item.title}\n")
        else:
            idle += 1
        if one.note:
            head = "nothing goes on yet" if one.name else "nothing to do"
            say(f"{head} for {item.title}: {one.note}", color)
    done = "suspended" if action is Action.SUSPEND else "resumed"
    say(f"{done}: {recorded}; nothing to do: {idle}; failed: {len(failed)}", color)
    if failed:
        raise Stopped(f"not {done}: {'; '.join(failed)}")
    return effect


def _again(meant: Sequence[Scope], known: Standing) -> str:
    """Who has suspended all of what is meant, for as long as nobody resumes it; "" if nobody."""
    suspended = known.suspensions()
    if any(scope not in suspended or suspended[scope].expires is not None for scope in meant):
        return ""
    return f"{listed(map(_named, meant))} is suspended already, by {_by(meant, suspended)}"


def _resumed(meant: Sequence[Scope], known: Standing) -> str:
    """Who has resumed all of what is meant since it was suspended; "" if nobody."""
    resumed = known.resumptions()
    if any(scope not in resumed for scope in meant):
        return ""
    return f"{listed(map(_named, meant))} is resumed already, by {_by(meant, resumed)}"


def _by(meant: Sequence[Scope], decisions: Mapping[Scope, Decision]) -> str:
    return listed({f"{decisions[scope].by} in {decisions[scope].name}" for scope in meant})


def _still_suspended(
    item: PolicyPass, meant: Sequence[Scope], suspended: Mapping[Scope, Decision]
) -> str:
    """What keeps all of what was resumed suspended: a file, or a decision about more; "" if not."""
    stages = {case.spec.name: case.spec.stage for case in item.cases}
    files = _by_file(item)
    found: list[str] = []
    for scope in meant:
        what, name = scope
        around = [("policy", "")] if what != "policy" else []
        around += [("stage", stages[name])] if stages.get(name) and what == "variant" else []
        by_decision = [it for it in around if it in suspended]
        by_file = [it for it in (scope, *around) if _named(it) in files]
        if not by_decision and not by_file:
            return ""
        found += [f"{_named(it)} is suspended by {suspended[it].name}" for it in by_decision]
        found += [f"{_named(it)} is suspended in its file" for it in by_file]
    return listed(dict.fromkeys(found))


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
