"""`fanout graph`: draw the stages of a policy with their state."""

import sys

import click

from fanout.cli.input.completion import complete_policies
from fanout.cli.input.name_lookup import find_policy, read_input
from fanout.cli.input.options import READ_OPTIONS, VerbCommand, with_settings
from fanout.cli.output.printer import write_stdout
from fanout.cli.output.stage_graph import build_graph, draw_dot, draw_mermaid, draw_svg, draw_text
from fanout.cli.process_exit import ExitCode
from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.cli.terminal import print_message, terminal_width

_PIPE_WIDTH = 80  # characters of a line where no terminal says how many there are
_DRAWERS = {"mermaid": draw_mermaid, "dot": draw_dot, "svg": draw_svg}


@click.command(cls=VerbCommand)
@click.argument("policy", shell_complete=complete_policies)
@click.option(
    "-o",
    "--output",
    "language",
    type=click.Choice(["text", *_DRAWERS]),
    default="text",
    show_default=True,
    help="Output format.",
)
@with_settings(READ_OPTIONS)
def command(settings: Settings, policy: str, language: str) -> ExitCode:
    """Draw the stages of a policy with their state.

    Each stage shows its candidate (the revision to roll out in the stage), its state (Stopped,
    Halted, Failed, Suspended, Passed or Pending), and how many variants are ready at the candidate.
    Each edge shows the condition in the stage field `after`, and the soak time. The format mermaid
    is for Markdown pages, and the format dot is for Graphviz.
    """
    with open_program(settings, check=False) as program:
        _, faults = read_input(program, [policy])
        item = find_policy(program, policy)
    if item.error is not None:
        print_message(f"{item.title}: {item.error}", settings.color, fg="red")
    graph = build_graph(item)
    if language == "text":
        write_stdout(draw_text(graph, terminal_width(sys.stdout) or _PIPE_WIDTH))
    else:
        write_stdout(_DRAWERS[language](graph))
    return ExitCode.SOME_FAILED if faults or item.error is not None else ExitCode.OK
