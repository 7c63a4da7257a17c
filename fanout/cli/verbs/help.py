"""`fanout help`: print the help of the program or of one command."""

import click

from fanout.cli.output.printer import write_stdout
from fanout.cli.process_exit import not_found


@click.command()
@click.argument("path", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, path: tuple[str, ...]) -> None:
    """Print the help of a command.

    Without COMMAND, prints the help of fanout.
    """
    current = ctx.find_root()
    for name in path:
        group = current.command
        subcommand = group.get_command(current, name) if isinstance(group, click.Group) else None
        if subcommand is None:
            raise not_found(f"there is no command {' '.join(path)}", "run `fanout help`")
        current = click.Context(subcommand, info_name=name, parent=current)
    write_stdout(f"{current.get_help()}\n")
