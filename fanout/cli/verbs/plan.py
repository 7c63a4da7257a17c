"""`fanout plan`: print what a sweep would do now, without doing it."""

import json
from pathlib import Path

import click

from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, detailed_option, with_settings
from fanout.cli.output.pass_output import print_plan
from fanout.cli.process_exit import ExitCode, detailed_exit_code, invalid_setting
from fanout.cli.settings import REPORT_FORMATS, OutputFormat, Settings
from fanout.cli.startup import open_program
from fanout.errors import InvalidInput
from fanout.reconcile.pass_scope import PassMode


@click.command(cls=VerbCommand)
@click.argument("policies", nargs=-1, shell_complete=complete_policies)
@click.option("--drafts-only", is_flag=True, help="Plan only updates of drafts.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Save the plan in this file, for `fanout sweep --plan FILE`.",
)
@detailed_option
@with_settings(READ_OPTIONS, formats=REPORT_FORMATS)
def command(
    settings: Settings, policies: tuple[str, ...], drafts_only: bool, out: Path | None, **how: bool
) -> int:
    """Show what a sweep would do now.

    POLICIES are names of policies, or names of PackageVariant objects. Without POLICIES, the plan
    is for all policies and PackageVariant objects. Exits with code 3 if something failed or needs a
    person. Otherwise exits with code 0, even if there are changes.
    """
    # Checked before the pass, which can take minutes.
    if out is not None and not out.parent.is_dir():
        raise _build_unwritable(out, f"there is no directory {out.parent}")
    mode = PassMode(
        publish=not drafts_only, only=frozenset(policies) or None, namespace=settings.namespace
    )
    with open_program(settings, check=False) as program:
        # A no-op snapshot has the problems only; JSON and YAML need the holds too.
        faults, is_table = 0, settings.output is OutputFormat.TABLE
        observed = program.find_noop_result(mode) if is_table else None
        if observed is None:
            _, faults = read_input(program, policies)
            observed = program.observe(mode)
        estimate = program.estimate_calls(observed)
    if out is not None:
        plan = json.dumps(observed.plan.as_json(), indent=2, sort_keys=True)
        try:
            out.write_text(f"{plan}\n", encoding="utf-8")
        except OSError as error:
            raise _build_unwritable(out, str(error.strerror)) from error
    print_plan(observed, estimate, settings, faults)
    code = ExitCode.SOME_FAILED if faults or observed.fix_count else ExitCode.OK
    return (
        detailed_exit_code(code, changes=bool(observed.printed_plan)) if how["detailed"] else code
    )


def _build_unwritable(out: Path, why: str) -> InvalidInput:
    return invalid_setting(
        f"the plan cannot be saved as {out}: {why}",
        "use a file in an existing, writable directory",
        "--out",
    )
