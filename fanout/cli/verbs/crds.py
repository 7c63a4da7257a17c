"""`fanout crds`: the kinds as Kubernetes takes them, for `kubectl apply -f -`."""

import click

from fanout.api.crds import crds
from fanout.cli.options import with_settings
from fanout.cli.output import as_yaml, list_of, show_value, write
from fanout.cli.settings import Format, Settings


@click.command()
@with_settings(sources=False, formats=(Format.YAML, Format.JSON))
def command(settings: Settings) -> None:
    """Print the CustomResourceDefinitions.

    As YAML it is one document each: `fanout crds | kubectl apply -f -`.
    """
    if settings.output is Format.JSON:
        show_value(list_of(crds()), Format.JSON)
    else:
        write("---\n".join(as_yaml(crd) for crd in crds()))
