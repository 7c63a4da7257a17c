"""`fanout crds`: print CustomResourceDefinitions, for `kubectl apply -f -`."""

import click

from fanout.api.crd_schemas import build_crds
from fanout.cli.input.options import VerbCommand, with_settings
from fanout.cli.output.printer import build_list, format_yaml, print_value, write_stdout
from fanout.cli.settings import OutputFormat, Settings


@click.command(cls=VerbCommand)
@with_settings((), formats=(OutputFormat.YAML, OutputFormat.JSON))
def command(settings: Settings) -> None:
    """Print the CustomResourceDefinitions.

    The YAML output has one document for each kind. To install the kinds, run `fanout crds | kubectl
    apply -f -`.
    """
    if settings.output is OutputFormat.JSON:
        print_value(build_list(build_crds()), OutputFormat.JSON)
    else:
        write_stdout("---\n".join(format_yaml(crd) for crd in build_crds()))
