"""`fanout completion`: print the script that makes a shell complete verbs and options."""

import click
from click.shell_completion import get_completion_class

from fanout.cli.output.printer import write_stdout


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash: source <(fanout completion bash)
    zsh:  source <(fanout completion zsh)
    fish: fanout completion fish | source
    """
    script = get_completion_class(shell)
    assert script is not None  # Choice lets no other name through
    write_stdout(script(ctx.find_root().command, {}, "fanout", "_FANOUT_COMPLETE").source() + "\n")
