"""`fanout status`: print the state of the whole fleet on one screen.

What needs a person, a line per stage, totals. It fits one screen, whatever the size of the fleet:
what does not fit is counted.
"""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence

import click

from fanout.api.reasons import Reason
from fanout.api.text_fields import list_first, pluralize
from fanout.cli.input.name_lookup import read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, selector_option, with_settings
from fanout.cli.output.explanation_text import ExplanationLayout
from fanout.cli.output.pass_output import report_refused_records
from fanout.cli.output.printer import print_value, write_stdout
from fanout.cli.output.text_layout import (
    format_fitted,
    format_relative,
    text_width,
    wrap_command,
    wrap_rows,
    wrap_text,
)
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import OutputFormat, Settings
from fanout.cli.startup import Program, open_program
from fanout.cli.terminal import accepts_escapes, escape_control, is_colored
from fanout.groups import group_pairs
from fanout.present.explanation.fleet_status import (
    FleetStatus,
    build_fleet_status,
    dump_fleet_status,
)
from fanout.present.policy_entry import select_policies
from fanout.reconcile.pass_scope import PassMode
from fanout.selection.label_selector import FlagSelector, parse_selector
from fanout.values import replace

_INDENT = "  "
_MIN_HEIGHT = 12
_FRAME_LINES = 5  # headline, empty lines, and the next instant
_STATE = "STATE"
_HEADS = ("POLICY", "STAGE", "REVISION", "READY", _STATE, "WAITS FOR", "NEXT")
_PRIORITIES = (0, 0, 2, 1, 0, 1, 3)
_CUT_WIDTHS = (12, 10, 10, 0, 0, 16, 0)  # 16: the reason ApprovalMissing and a mark
_MAX_KEYS = 2  # of merge conflicts in one line
_MAX_TEXT_LINES = 3  # of one sentence; `fanout explain` prints all of it


def format_fleet_status(
    fleet_status: FleetStatus, layout: ExplanationLayout, height: int | None
) -> Iterator[str]:
    """Yield the lines of the screen; `height` None: everything, however long."""
    explanations = fleet_status.explanations
    total = sum(it.status.variants for it in explanations)
    ready = sum(it.status.ready for it in explanations)
    failed = sum(it.failed for it in fleet_status.stages)
    policies = pluralize(len(explanations), "policy")
    parts = [policies, f"{ready} of {pluralize(total, 'variant')} ready"]
    parts += [f"{failed} failed"] if failed else []
    headline = wrap_text(f"Fleet: {', '.join(parts)}", layout.width)
    yield from (layout.paint(line, bold=True) for line in headline)
    lines_left = None if height is None else max(height, _MIN_HEIGHT) - _FRAME_LINES
    # Stages may take half of the screen, and leave to what is urgent what they do not need.
    stage_lines = 0 if lines_left is None else min(len(fleet_status.stages) + 2, lines_left // 2)
    urgent_lines = None if lines_left is None else lines_left - stage_lines
    # Policies of several namespaces may have the same name.
    with_namespace = len({it.namespace for it in fleet_status.stages}) > 1
    urgent = list(_format_urgent(fleet_status, layout, urgent_lines, with_namespace=with_namespace))
    if urgent:
        yield ""
        yield from urgent
    yield ""
    limit = None if lines_left is None else lines_left - len(urgent)
    yield from _format_stages(fleet_status, layout, limit, with_namespace=with_namespace)
    if fleet_status.next is not None:
        yield from layout.format_next(fleet_status.next)


def _format_urgent(
    fleet_status: FleetStatus, layout: ExplanationLayout, limit: int | None, *, with_namespace: bool
) -> Iterator[str]:
    """Yield what needs a person, with the first command for each, in `limit` lines at most."""
    if not fleet_status.urgent:
        return

    def format_rest(number: int) -> list[str]:
        return wrap_text(f"and {number} more: run `fanout explain`", layout.width, _INDENT, _INDENT)

    yield layout.paint("Needs a person:", bold=True)
    # With those that count the rest: the command may need options of any length.
    printed, line_count = 0, 1 + len(format_rest(len(fleet_status.urgent)))
    for explanation, blocker in fleet_status.urgent:
        namespace = explanation.metadata.namespace if with_namespace else ""
        name = explanation.spec.policy or explanation.spec.variant
        place = "/".join(filter(None, (namespace, name, blocker.stage)))
        keys = [it.key for it in explanation.status.conflicts if it.variant in blocker.variants]
        if blocker.reason == Reason.MERGE_CONFLICT and keys:
            number = pluralize(len(keys), "undecided merge conflict")
            shown = list_first(keys, _MAX_KEYS)
            blocker = replace(blocker, message=f"{number} (keys: {shown})")  # noqa: PLW2901
        subject = layout.format_subject(blocker, explanation, limit=0)
        row = (place, blocker.reason, f"{subject}{blocker.message}")
        lines = list(wrap_rows([row], layout.width, _INDENT, _MAX_TEXT_LINES))
        # One command to run; of a conflict that which decides it.
        for command in [it for it in blocker.commands if not it.startswith("fanout diff ")][:1]:
            wrapped = wrap_command(command, layout.width, _INDENT * 2)
            lines += (layout.paint(line, fg="cyan") for line in wrapped)
        if limit is not None and printed and line_count + len(lines) > limit:
            break
        yield from lines
        printed += 1
        line_count += len(lines)
    if further := len(fleet_status.urgent) - printed:
        yield from format_rest(further)


def _format_stages(
    fleet_status: FleetStatus, layout: ExplanationLayout, limit: int | None, *, with_namespace: bool
) -> Iterator[str]:
    """Yield a line per stage: of policies that are not done first, in `limit` lines at most."""
    by_policy = group_pairs(((it.namespace, it.policy), it) for it in fleet_status.stages)
    policies = sorted(by_policy.values(), key=lambda stages: all(it.is_done for it in stages))
    rows: list[Sequence[str]] = []
    shown = 0
    for stages in policies:
        # The heads, and the line that counts the rest.
        if limit is not None and shown and len(rows) + len(stages) > limit - 2:
            break
        for it in stages:
            further = f" +{len(it.waits_for) - 1}" if len(it.waits_for) > 1 else ""
            cells = (
                f"{it.namespace}/{it.policy}" if with_namespace else it.policy,
                it.stage or "-",
                it.candidate or "-",
                f"{it.ready}/{it.variants}",
                it.state,
                f"{it.waits_for[0]}{further}" if it.waits_for else "-",
                format_relative(it.next, layout.now) if it.next is not None else "-",
            )
            rows.append([escape_control(cell) for cell in cells])
        shown += 1
    # Without any instant the last column would only narrow the others.
    columns = len(_HEADS) - all(row[-1] == "-" for row in rows)
    heads, rows = _HEADS[:columns], [row[:columns] for row in rows]
    text = format_fitted(heads, rows, layout.width, _PRIORITIES[:columns], _CUT_WIDTHS[:columns])
    head_line, *lines = text.splitlines()
    yield head_line
    start, index = head_line.find(_STATE), _HEADS.index(_STATE)
    for line, row in zip(lines, rows, strict=True):
        state, end = row[index], start + len(row[index])
        # Not there if the column is left out, or moved by wide characters before it.
        is_shown = start >= 0 and line[start:end] == state
        yield f"{line[:start]}{layout.paint_state(state)}{line[end:]}" if is_shown else line
    if shown < len(policies):
        rest = policies[shown:]
        # By the variants of each policy: a line may also count targets without a variant.
        names = {(stages[0].namespace, stages[0].policy) for stages in rest}
        counts = [
            it.status
            for it in fleet_status.explanations
            if (it.metadata.namespace, it.spec.policy or it.spec.variant) in names
        ]
        total, ready = sum(it.variants for it in counts), sum(it.ready for it in counts)
        is_ready = all(it.is_done for stages in rest for it in stages)
        state = "all ready" if is_ready else f"{ready} of {pluralize(total, 'variant')} ready"
        yield from wrap_text(f"and {pluralize(len(rest), 'more policy')}, {state}", layout.width)


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
    labels = parse_selector(selector)
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
        if (view := dump_fleet_status(fleet_status, settings.namespace)) != before:
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
    if (text := "".join(f"{line}\n" for line in lines)) != before:
        clear = _CLEAR_SCREEN if before and accepts_escapes(sys.stdout) else ""
        write_stdout(clear + text, is_colored=layout.is_colored)
    return text, fleet_status.fix_count
