"""`fanout status`: print the state of the whole fleet on one screen."""

import shutil
import sys
import time

import click

from fanout.cli.input.name_lookup import read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, selector_option, with_settings
from fanout.cli.output.explanation_text import ExplanationLayout
from fanout.cli.output.fleet_screen import format_fleet_status
from fanout.cli.output.pass_output import report_refused_records
from fanout.cli.output.printer import print_value, write_stdout
from fanout.cli.output.text_layout import text_width
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import accepts_escapes, is_colored
from fanout.present.explanation.fleet_status import build_fleet_status, dump_fleet_status
from fanout.present.view_meta import select_policies
from fanout.reconcile.pass_scope import PassMode
from fanout.selection.label_selector import FlagSelector, parse_selector

_FORMATS = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSON, OutputFormat.YAML)
_WATCH_SECONDS = 2.0  # seconds between two observations of --watch
_CLEAR_SCREEN = "\x1b[H\x1b[2J"


@click.command(cls=VerbCommand)
@click.option(
    "-w", "--watch", is_flag=True, help="Keep running, and print the state again after each change."
)
@selector_option("policies")
@with_settings(READ_OPTIONS, formats=_FORMATS)
def command(settings: Settings, watch: bool, selector: str) -> ExitCode:
    """Print the state of the whole fleet on one screen.

    The first part lists everything that a person must act on, with the command to run for each
    entry. The second part has one line for each stage of every policy. If some lines do not fit on
    the screen, prints how many were left out; -o wide prints all lines.

    Exits with code 3 if anything failed or must be repaired, or if fanout cannot process a policy
    (state Stopped).
    """
    labels = parse_selector(selector, "--selector")
    with open_program(settings, check=False) as program:
        _, errors = read_input(program)
        errors += report_refused_records(program.world.records, settings.color)
        before, fix_count = _print_status(program, labels, None)
        while watch:
            time.sleep(_WATCH_SECONDS)
            before, fix_count = _print_status(program, labels, before)
    return ExitCode.SOME_FAILED if errors or fix_count else ExitCode.OK


def _print_status(program: Program, labels: FlagSelector, before: object) -> tuple[object, int]:
    """Print the status unless it equals `before`; return it and the number of repairs needed."""
    settings = program.settings
    observed = select_policies(program.observe(PassMode(namespace=settings.namespace)), labels)
    fleet_status = build_fleet_status(observed, settings.commands)
    if settings.output.is_data:
        view = dump_fleet_status(fleet_status, settings.namespace)
        if view != before:
            print_value(view, settings.output)
        return view, fleet_status.fix_count
    layout = ExplanationLayout(
        observed.now,
        text_width(),
        is_colored(settings.color, sys.stdout),
        settings.commands,
        fleet_status.names,
    )
    is_wide = settings.output is OutputFormat.WIDE
    # Of the terminal, or of a common one in a pipe; LINES overrides both.
    height = None if is_wide else shutil.get_terminal_size().lines
    lines = format_fleet_status(fleet_status, layout, height)
    text = "".join(f"{line}\n" for line in lines)
    if text != before:
        clear = _CLEAR_SCREEN if before and accepts_escapes(sys.stdout) else ""
        write_stdout(clear + text, is_colored=layout.is_colored)
    return text, fleet_status.fix_count
