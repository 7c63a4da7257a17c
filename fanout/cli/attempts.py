"""What Skip and Retry have in common: a decision about variants on their way to one revision."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
    recorded_line,
)
from fanout.cli.repeated import before, decided_before
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_program
from fanout.cli.telling import tell_report
from fanout.cli.terminal import say
from fanout.errors import InvalidInput
from fanout.gates.fates import Fate
from fanout.gates.records import Action
from fanout.gates.wording import counted
from fanout.plan.book import Recorded
from fanout.plan.cases import Case
from fanout.plan.repository import Identity
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
            spec |= {"action": action.value, "revision": revision, "reason": said["reason"]}
            those = meant(item, stage, named)
            try:
                chosen, notes = choose(item, stage, named, those, revision)
                names, earlier = sorted(case.spec.name for case in chosen), None
            except InvalidInput:
                earlier = _earlier(item, spec, named or [it.spec.name for it in those], who)
                if earlier is None:
                    raise
                names, notes = list(earlier.spec["variants"]), ()
            spec |= {"variants": names}
            again = earlier.name if earlier else ""
            name, report = carried_out(program, item, spec, who, again)
        if settings.output is Format.TABLE:
            whom = counted(len(names), "variant")
            write(recorded_line(name, f" for {whom} at {revision}", again=bool(again)))
        effect = changed(before(item, earlier), report, stage, revision, names)
        tell_report(report, settings, effect.sentence)
        for note in notes:
            say(note, settings.color)
        spent = earlier is not None and item.fates(settings.now())[again] is Fate.SPENT
        return exit_code_after(report.unmended_of(names), effect=effect.any or spent)

    return command


def _earlier(
    item: PolicyPass, spec: Mapping[str, Any], names: Sequence[str], who: Identity
) -> Recorded | None:
    """Return the equal decision that an earlier run has recorded, by now carried out or not.

    It may be about some of the variants that are named: those that were in the state for it then.
    """
    assert item.facts is not None, "a policy that is judged has its facts"
    for record in reversed(item.about):
        about_them = set(record.spec.get("variants", ())) <= set(names)
        if record.spec.get("action") == spec["action"] and about_them:
            same = {**spec, "variants": record.spec.get("variants", ())}
            return decided_before(item, same, who, item.facts.now, (Fate.STANDING, Fate.SPENT))
    return None


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
