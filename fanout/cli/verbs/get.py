"""`fanout get`: the observed state, as tables or as objects."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from fanout.api.nearest import suggestion
from fanout.cli import recorded
from fanout.cli.columns import COLUMNS
from fanout.cli.completing import (
    complete_names,
    complete_nouns,
    complete_policies,
    complete_stages,
)
from fanout.cli.exit_codes import ExitCode
from fanout.cli.filters import Filter, refuse_gone
from fanout.cli.lookup import check_policies
from fanout.cli.nouns import ALIASES, NOUNS, RECORDS
from fanout.cli.options import with_settings
from fanout.cli.output import show
from fanout.cli.settings import Format, Settings
from fanout.cli.start import Program, open_program
from fanout.cli.telling import tell_faults
from fanout.cli.terminal import say
from fanout.cli.watching import changed
from fanout.errors import InvalidInput
from fanout.gates.answer import State
from fanout.reconcile import present
from fanout.reconcile.passes import Mode
from fanout.reconcile.reachability import repositories
from fanout.reconcile.report import Observed
from fanout.selection.typed_selectors import parse_selector

_PAUSE = 2.0  # seconds between two looks of --watch
_VIEWS: Mapping[str, Callable[[Observed], list[dict[str, Any]]]] = {
    "policies": present.policies,
    "variants": present.variants,
    "stages": present.stages,
    "drafts": present.drafts,
}


@click.command()
@click.argument("what", default="", metavar="WHAT", shell_complete=complete_nouns)
@click.argument("names", nargs=-1, shell_complete=complete_names)
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="SELECTOR",
    help="Only what has these labels: KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or"
    " !KEY, joined by commas.",
)
@click.option(
    "--policy", default="", shell_complete=complete_policies, help="Only what is this policy's."
)
@click.option(
    "--stage", default="", shell_complete=complete_stages, help="Only what is in this stage."
)
@click.option(
    "--state",
    type=click.Choice(list(State), case_sensitive=False),
    metavar="STATE",
    help="Only variants, targets and drafts in this state, such as Held.",
)
@click.option("-w", "--watch", is_flag=True, help="Print again whenever something changed.")
@with_settings(formats=tuple(Format))
def command(
    settings: Settings,
    what: str,
    names: tuple[str, ...],
    selector: str,
    watch: bool,
    **asked: str | None,
) -> ExitCode:
    """List policies, variants, stages, drafts, records and the like.

    WHAT is policies, variants, stages, targets, repositories, drafts or records, as they are now;
    nothing is changed. Of records (or evidence, approvals, decisions alone) NAMES
    are those of policies. A target has the labels of its object, a draft those of
    its variant, a stage those of its policy; all have fanout.dev/policy, fanout.dev/stage and
    fanout.dev/repository. Variants, targets and drafts go by the name of their cluster too, by path
    and by repository:path.
    """
    noun = _noun(what)
    said = {name: value or "" for name, value in asked.items()}
    chosen = Filter(noun, names, parse_selector(selector, "--selector"), **said)
    with open_program(settings) as program:
        faults = tell_faults(program.declared())
        chosen.check(program.declared(), settings.namespace)
        columns = COLUMNS.get(noun) or recorded.columns(
            noun, settings.now(), wide=settings.output is Format.WIDE
        )
        seen, now = _items(program, noun, names)
        chosen.refuse_unknown(seen)
        shown = chosen.chosen(seen)
        if shown or settings.output not in (Format.TABLE, Format.WIDE):
            show(shown, columns, settings.output)
        else:
            say("nothing found", settings.color)
        while watch:
            time.sleep(_PAUSE)
            before, past = shown, now
            seen, now = _items(program, noun, names)
            shown = chosen.chosen(seen)
            if fresh := changed(before, shown, now - past):
                show(fresh, columns, settings.output)
    return ExitCode.SOME_FAILED if faults else ExitCode.OK


def _items(
    program: Program, noun: str, names: Sequence[str]
) -> tuple[list[dict[str, Any]], datetime]:
    """What there is, and when it was looked at; of records, those of these policies."""
    namespace = program.settings.namespace
    if noun in RECORDS:
        check_policies(names, program.declared(), namespace)
        return recorded.recorded(program, noun, names), program.settings.now()
    observed = program.observe(Mode(namespace=namespace))
    if noun == "policies":
        for sentence in observed.undeclared:
            say(f"warning: {sentence}", program.settings.color, fg="yellow")
    if noun == "targets":
        return present.targets(observed, program.declared()), observed.now
    if noun != "repositories":
        items = _VIEWS[noun](observed)
        if noun == "variants" and names:
            refuse_gone(names, items, present.targets(observed, program.declared()))
        return items, observed.now
    items = repositories(observed, program.declared())
    return [it for it in items if namespace in ("", it["metadata"]["namespace"])], observed.now


def _noun(what: str) -> str:
    noun = ALIASES.get(what.lower(), what.lower())
    if noun not in NOUNS:
        raise InvalidInput(
            f"there is nothing like {what} to list" if what else "it is not said what to list",
            reason="NotFound",
            remedy=suggestion(what, (*NOUNS, *ALIASES), f"say one of: {', '.join(NOUNS)}"),
        )
    return noun
