"""What Skip and Retry have in common: a decision about variants on their way to one revision."""

from collections.abc import Callable, Sequence

import click

from fanout.cli.effects import changed
from fanout.cli.exit_codes import ExitCode, exit_code_after
from fanout.cli.naming import candidate_of, judged, meant, refuse_no_stage
from fanout.cli.options import with_settings
from fanout.cli.output import write
from fanout.cli.recording import (
    about,
    about_options,
    by_option,
    carried_out,
    identity,
    reason_option,
)
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_program
from fanout.cli.telling import tell_report
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.records import Action
from fanout.gates.wording import counted
from fanout.plan.cases import Case
from fanout.reconcile.report import PolicyPass

Those = tuple[list[Case], Sequence[str]]
"""The variants that a decision is to name, and what is to be said of others."""
Choose = Callable[[PolicyPass, str, tuple[str, ...], list[Case], str], Those]
"""Policy, stage, the names that were said, their variants and the revision → whom it is about.

Raises InvalidInput when it would be about nobody.
"""


def verb(action: Action, words: str, choose: Choose) -> click.Command:
    """The verb that records a Decision of this action; `words` are its help."""

    @click.command(help=words)
    @about_options
    @click.option("--revision", default="", help="The revision; by default the candidate.")
    @reason_option
    @by_option
    @with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
    def command(
        settings: Settings, policy: str, stage: str, by: str | None, **said: tuple[str, ...] | str
    ) -> ExitCode:
        who = identity(by)
        with open_program(settings) as program:
            item = judged(program, policy)
            refuse_no_stage(item, stage)
            spec = about(item, stage, tuple(said["variants"]))
            named = tuple(spec.get("variants", ()))
            revision = _known(item, str(said["revision"])) or candidate_of(item, stage)
            chosen, notes = choose(item, stage, named, meant(item, stage, named), revision)
            spec |= {
                "action": action.value,
                "variants": sorted(case.spec.name for case in chosen),
                "revision": revision,
                "reason": said["reason"],
            }
            name, report = carried_out(program, item, spec, who)
        if settings.output is Format.TABLE:
            whom = counted(len(chosen), "variant")
            write(f"decision.fanout.dev/{name} recorded for {whom} at {revision}\n")
        names = [case.spec.name for case in chosen]
        effect = changed(item, report, stage, revision, names)
        tell_report(report, settings, effect.sentence)
        for note in notes:
            say(note, settings.color)
        return exit_code_after(report.unmended_of(names), effect=effect.any)

    return command


def _known(item: PolicyPass, revision: str) -> str:
    """The revision, if the policy allows it or has it. A decision about another says nothing."""
    there = {case.published.revision for case in item.cases if case.published is not None}
    known = dict.fromkeys([*item.revisions, *sorted(there)])
    if revision and revision not in known:
        raise InvalidInput(
            f"{revision} is not a revision of {item.title}",
            reason="NotFound",
            remedy=f"there are: {', '.join(known)}",
        )
    return revision
