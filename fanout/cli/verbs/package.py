"""`fanout package`: the package engine on plain directories.

It needs no policy, no repository and no cluster, so that people and other programs can
merge, render, compare and validate packages of their own.
"""

import click

from fanout.cli.verbs.package_diff import diff
from fanout.cli.verbs.package_merge import merge
from fanout.cli.verbs.package_render import render
from fanout.cli.verbs.package_validate import validate


@click.group()
def command() -> None:
    """Merge, render, compare and validate packages in directories."""


for _verb in (merge, render, diff, validate):
    command.add_command(_verb)
