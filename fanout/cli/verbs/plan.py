"""`fanout plan`: what a sweep would do now, and nothing is done."""

import json
from pathlib import Path

import click

from fanout.cli.completing import complete_policies
from fanout.cli.exit_codes import ExitCode, detailed
from fanout.cli.lookup import check_policies
from fanout.cli.options import detailed_option, with_settings
from fanout.cli.settings import Format, Settings
from fanout.cli.start import open_program
from fanout.cli.telling import tell_faults, tell_plan
from fanout.errors import InvalidInput, Where
from fanout.plan.actions import Plan
from fanout.reconcile.passes import Mode


@click.command()
@click.argument("policies", nargs=-1, shell_complete=complete_policies)
@click.option("--drafts-only", is_flag=True, help="Only what brings drafts up to date.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Save the plan, for `fanout sweep --plan`.",
)
@detailed_option
@with_settings(formats=(Format.TABLE, Format.JSON, Format.YAML))
def command(
    settings: Settings, policies: tuple[str, ...], drafts_only: bool, out: Path | None, **how: bool
) -> int:
    """Show what a sweep would do now.

    With POLICIES only these (or variants written by hand). Exits with 0 whether or not there is
    something to do, and with 3 when something failed or is held by what a person must mend, as the
    sweep would.
    """
    if out is not None and not out.parent.is_dir():
        raise _unwritable(out, f"there is no directory {out.parent}")
    mode = Mode(
        publish=not drafts_only, only=frozenset(policies) or None, namespace=settings.namespace
    )
    with open_program(settings, read=False) as program:
        # What a pass at rest remembers are troubles alone; data has the holds too.
        faults, table = 0, settings.output is Format.TABLE
        observed = program.at_rest(mode) if table else None
        if observed is None:
            program.check()
            faults = tell_faults(program.declared())
            check_policies(policies, program.declared(), settings.namespace)
            observed = program.observe(mode)
    if out is not None:
        _save(observed.plan, out)
    tell_plan(observed, settings, faults)
    code = ExitCode.SOME_FAILED if faults or observed.unmended else ExitCode.OK
    return detailed(code, changes=bool(observed.plan)) if how["detailed"] else code


def _save(plan: Plan, out: Path) -> None:
    try:
        out.write_text(json.dumps(plan.plain(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(out, str(error.strerror)) from error


def _unwritable(out: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"the plan cannot be saved as {out}: {why}",
        reason="InvalidSetting",
        remedy="name a file in a directory that is there and may be written to",
        where=Where(field="--out"),
    )
