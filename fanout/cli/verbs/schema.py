"""`fanout schema`: JSON Schemas, so that an editor can check and complete what people write."""

import click

from fanout.api.schema import json_schemas
from fanout.cli.options import with_settings
from fanout.cli.output import show_value
from fanout.cli.settings import Format, Settings
from fanout.errors import InvalidInput


@click.command()
@click.argument("kind", required=False)
@with_settings(sources=False, formats=(Format.JSON, Format.YAML))
def command(settings: Settings, kind: str | None) -> None:
    """Print JSON Schemas of the kinds, for editors.

    And of the views that `fanout get` prints. With a KIND, such as UpstreamPolicy or StageView,
    its schema; without, all of them by kind.
    """
    schemas = json_schemas()
    if kind is None:
        show_value(schemas, settings.output)
        return
    by_lower = {name.lower(): name for name in schemas}
    if kind.lower() not in by_lower:
        raise InvalidInput(
            f"there is no kind {kind!r}",
            reason="UnknownKind",
            remedy=f"use one of {', '.join(schemas)}",
        )
    show_value(schemas[by_lower[kind.lower()]], settings.output)
