"""Writes the pages that are generated from the code (`make docs`).

A test compares them with what stands in the repository, so they cannot go stale.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from fanout.cli.main import VERBS, cli
from fanout.cli.process_exit import EXIT_CODE_HELP
from fanout.serve.metric_table import METRICS

DOCS = Path(__file__).parent
WIDTH = 96


def pages() -> dict[Path, str]:
    """Every generated page and what belongs in it."""
    return {
        DOCS / "reference" / "commands.md": "\n".join(_commands()),
        DOCS / "reference" / "metrics.md": "\n".join(_metrics()),
    }


def _commands() -> Iterator[str]:
    """The command reference: what `--help` says, verb by verb, in the order of the table."""
    yield "# Commands\n\nGenerated from the program by `make docs`.\n"
    yield "| command | what it does |\n|---|---|"
    for name, verb in VERBS.items():
        yield f"| [`fanout {name}`](#fanout-{name}) | {verb.help} |"
    yield "\n## Exit codes\n\n| code | meaning |\n|---|---|"
    for code, meaning in EXIT_CODE_HELP.items():
        yield f"| {int(code)} | {meaning} |"
    top = _context(cli, "fanout", None)
    for name in VERBS:
        command = cli.get_command(top, name)
        assert command is not None
        yield from _section(command, name, top)
    yield ""


def _metrics() -> Iterator[str]:
    """The table of metrics."""
    yield "# Metrics\n\nGenerated from the program by `make docs`.\n"
    yield (
        "`fanout run --listen ADDRESS` serves these on `/metrics`, and the `process_` metrics of"
        " its own process.\n[Monitoring](../guides/monitoring.md) shows how to use them. No label"
        " names a variant or a target: the number of\nseries grows with policies and stages, not"
        " with the fleet.\n"
    )
    yield "| metric | type | labels | meaning |\n|---|---|---|---|"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.type} | {labels} | {metric.meaning} |"
    yield ""


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """As the program itself makes it, so that the page does not depend on what ran before."""
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )


def _section(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    context = _context(command, name, parent)
    level = "#" * (len(context.command_path.split()))
    yield f"\n{level} {context.command_path}\n\n```\n{context.get_help()}\n```"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            below = command.get_command(context, inner)
            assert below is not None
            yield from _section(below, inner, context)


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
